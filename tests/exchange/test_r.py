"""A real R reads a release folder with base R alone; skipped where there is no R."""

from __future__ import annotations

import json
import math
import shutil
import subprocess

import pytest

import asking
import holdfast as hf
from holdfast.release.certificate.naming import rows_where
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
cat("north", nrow(holdfast_rows(release, borough = "North", level = c("borough", "zone"), sex = c("F", "M"))), "\\n")
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
    assert int(lines["north"]) == 6  # a borough and its two zones, each of both sexes
    assert float(lines["epsilon"]) == hf.load(folder).guarantee.epsilon
    assert lines["scope"] == hf.load(folder).guarantee.scope
    assert "Not protected:" in said
    assert "title ü" in said


def test_r_gives_no_rows_whose_sum_counts_somebody_twice(tmp_path) -> None:
    folder = release(job(tmp_path, "hierarchy"), output=tmp_path / "out")
    table = hf.load(folder).table()
    said = run_r(
        f"""
        release <- holdfast_read("{folder}")
        for (ask in list(list(), list(borough = "North"), list(borough = "North", level = "zone"), list(zone = "N7")))
          cat(tryCatch(do.call(holdfast_rows, c(list(release), ask)), error = conditionMessage), "\n")
        for (sex in list(NA, c("F", "M")))
          cat(sum(holdfast_rows(release, borough = "North", level = "zone", sex = sex)$value), "\n")
        """
    ).splitlines()
    every = 'rows of several levels match, and each counts everyone again: name one, level = "'
    assert said[0].strip() == f'{every}city" or level = "borough" or level = "zone"'
    assert said[1].strip() == f'{every}borough" or level = "zone"'
    assert (
        said[2].strip()
        == 'rows for each sex match, and their totals too: name one, sex = "F", or sex = NA for the totals'
    )
    assert said[3].strip() == "zone has no value N7"
    assert [float(line) for line in said[4:]] == [table.estimate({"borough": "North"}).value] * 2


def test_r_refuses_a_folder_without_a_certificate(tmp_path) -> None:
    with pytest.raises(AssertionError, match="holds no certificate"):
        run_r(f'holdfast_read("{tmp_path}")')


@pytest.mark.parametrize(
    "kind",
    [
        "histogram",
        "not measured",
        "hierarchy given",
        "categories given",
        "given with bounds",
        "cube",
        "continuous, given",
        "residuals",
    ],
)
def test_r_computes_sums_ratios_and_differences_as_python_does(tmp_path, kind) -> None:
    folder = asking.folder(tmp_path / "released", kind)
    table = hf.load(folder).table()
    asked = [each for each in asking.questions(table) if asking.answered(lambda: table.estimate(each))]  # noqa: B023
    lines, expected = [], []
    for first, second in ((asked[0], asked[1]), (asked[3], asked[-1]), (asked[-1], asked[0])):
        apart = rows_where(table.certificate, table.columns, first) * 1.0
        apart -= rows_where(table.certificate, table.columns, second)
        for confidence in (0.95, 0.9):
            two = f"{listed(first)}, {listed(second)}, {confidence}"
            lines += [f"holdfast_estimate(release, {listed(first)}, {confidence})"]
            lines += [f"holdfast_ratio(release, {two})", f"holdfast_difference(release, {two})"]
            expected += [
                table.estimate(first, confidence=confidence),
                table.ratio(first, second, confidence),
                table.estimate(weights=apart, confidence=confidence),
            ]
    said = run_r(
        "\n".join(
            [f'release <- holdfast_read("{folder}")']
            + [f'cat(format(unlist({line}), digits = 17), "\\n")' for line in lines]
        )
    )
    found = [[float(each.replace("NA", "nan")) for each in line.split()] for line in said.strip().splitlines()]
    for line, mine, known in zip(lines, found, expected, strict=True):
        error = math.nan if known.standard_error is None else known.standard_error
        others = [known.value, known.low, known.high, error]
        assert mine == pytest.approx(others, rel=1e-9, abs=1e-9, nan_ok=True), line


def listed(where: dict) -> str:
    """Names as R writes them."""
    values = {name: [some] if isinstance(some, str) else some for name, some in where.items()}
    return f"list({', '.join(f'{name} = c({json.dumps(some)[1:-1]})' for name, some in values.items())})"
