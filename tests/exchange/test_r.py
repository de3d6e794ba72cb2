"""A real R reads a release folder with base R alone; skipped where there is no R."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

import holdfast as hf
from holdfast.release.run import release
from released import job
from scripts import ROOT

pytestmark = pytest.mark.skipif(shutil.which("Rscript") is None, reason="no R here: apt-get install r-base-core")

CODE = """
release <- holdfast_read("{folder}")
print(release)
table <- release$tables[[1]]
stopifnot(is.character(table$zone), is.numeric(table$value))
cat("sum", format(sum(table$value), digits = 15), "\\n")
cat("ends", sum(table$low <= table$value, na.rm = TRUE), attr(table, "confidence"), "\\n")
cat("north", nrow(holdfast_rows(release, borough = "North")), "\\n")
cat("epsilon", format(holdfast_promise(release)$epsilon[1], digits = 17), "\\n")
cat("scope", holdfast_promise(release)$scope[1], "\\n")
cat("title", holdfast_json("{made}")[["a \\"b\\""]][[2]], "\\n")
"""


def run_r(code: str) -> str:
    found = subprocess.run(
        ["Rscript", "--vanilla", "-e", f'source("{ROOT / "src" / "holdfast" / "exchange" / "holdfast.R"}")\n{code}'],
        capture_output=True, text=True, timeout=120, check=False,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/nowhere"},
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_r_reads_figures_intervals_and_what_is_promised(tmp_path) -> None:
    folder = release(job(tmp_path, "hierarchy"), output=tmp_path / "out")
    made = tmp_path / "made.json"
    made.write_text(json.dumps({'a "b"': [None, "ü\n\\", {}, [], 1.5e-3, True]}))
    table = hf.load(folder).table()
    said = run_r(CODE.format(folder=folder, made=made))
    lines = {line.split(" ", 1)[0]: line.split(" ", 1)[1].strip() for line in said.splitlines() if " " in line}
    assert float(lines["sum"]) == float(table.values.sum())
    assert lines["ends"].endswith("0.95")
    assert int(lines["north"]) == int((table.columns["borough"] == "North").sum())
    assert float(lines["epsilon"]) == hf.load(folder).guarantee.epsilon
    assert lines["scope"] == hf.load(folder).guarantee.scope
    assert "Not protected:" in said
    assert "title ü" in said


def test_r_refuses_a_folder_without_a_certificate(tmp_path) -> None:
    with pytest.raises(AssertionError, match="holds no certificate"):
        run_r(f'holdfast_read("{tmp_path}")')
