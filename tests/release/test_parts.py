"""Tables in parts: written and checked piece by piece, and one table for everybody who reads them."""

import json
import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import polars as pl
import pytest

import holdfast as hf
from holdfast.arguments import Fault
from holdfast.mechanism.published.linear_estimates import sum_intervals
from holdfast.release import run
from holdfast.release.certificate.verify import verify
from holdfast.release.job.job import Job
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.pieces import cut, drawing, parts
from holdfast.release.pieces.cut import Here
from holdfast.release.spec.spec import read_spec
from jobs import job, tree
from tampering import certificate_of, sealed

FRAME = pl.DataFrame({"zone": ["N1"] * 30 + ["N2"] * 20 + ["S1"] * 10 + ["S2"]})
REST = "hold: [consistent, nonnegative{}]\nmethod: {}\nengine: spark"


@pytest.fixture(autouse=True)
def this_process(monkeypatch):
    """Let this process do the work of the cluster."""
    who = drawing.Drawing(lambda given: nullcontext(Here(list(given))))
    monkeypatch.setattr(cut, "GROUPED", 1)
    monkeypatch.setattr(run, "drawing", lambda *_: who)


def in_parts(tmp_path, method, exact=""):
    made = job(tmp_path, tree("name: trips", rest=REST.format(exact, method)))
    ledger = Ledger(tmp_path / "ledger.sqlite")
    return made, run.release(made, source=FRAME, ledger=ledger), ledger


def run_alone(folder) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, folder / "verify.py"], capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["topdown", "bluedown"])
@pytest.mark.parametrize("exact", ["", ", exact: [borough]"])
def test_parts_are_one_table(tmp_path, method, exact):
    """Both verifications, `load` and its intervals, computed again from the parts."""
    _, folder, ledger = in_parts(tmp_path, method, exact)
    assert sorted(path.name for path in (folder / "table.parquet").iterdir()) == [f"0000{i}.parquet" for i in range(3)]
    assert not list(folder.glob(".*"))
    assert {path.stat().st_mtime % 86_400 for path in folder.rglob("*")} == {0}
    verdict, told = verify(folder, ledger), run_alone(folder)
    assert verdict.ok, verdict
    assert told.returncode == 0, told.stdout
    table = hf.load(folder).table()
    assert table.certificate.parts == 3
    assert table.names["level"].tolist() == ["city", *["borough"] * 2, *["zone"] * 5]
    if exact:
        assert table.values[1:3].tolist() == [50, 11]
    if table.certificate.interval.basis in ("law", "simulation"):
        np.testing.assert_array_equal(table.interval(), table.error_bars.interval(0.95))
    assert table.noisy is not None


def test_pieces_of_a_group_are_one_part(tmp_path, monkeypatch):
    """Both verifications accept a table, whatever the groups."""
    monkeypatch.setattr(drawing.secrets, "token_bytes", bytes)
    values = []
    for grouped in (1, 1 << 16):
        monkeypatch.setattr(cut, "GROUPED", grouped)
        (tmp_path / str(grouped)).mkdir()
        _, folder, ledger = in_parts(tmp_path / str(grouped), "bluedown", ", exact: [borough]")
        assert len(list((folder / "table.csv").iterdir())) == (3 if grouped == 1 else 2)
        table = hf.load(folder).table()
        values.append((table.values.tolist(), table.interval().tolist()))
    assert values[0] == values[1]
    verdict, told = verify(folder, ledger), run_alone(folder)
    assert verdict.ok, verdict
    assert told.returncode == 0, told.stdout


def test_parts_stay_where_exact_figures_were_kept_meanwhile(tmp_path, monkeypatch):
    """The certificate is written again, with what both releases give away; the parts are not."""
    seal, parts_before = run.Run.seal, {}

    def late(self, place, figures, since):
        monkeypatch.setattr(run.Run, "seal", seal)
        parts_before.update({path.name: path.stat().st_ino for path in (place / "table.parquet").iterdir()})
        other = {"release": "another", "certificate": "sha256:0", "folder": tmp_path / "other", "when": self.when}
        assert self.ledger.seal(self.job.dataset, self.job.unit, **other, figures=figures)
        return seal(self, place, figures, since)

    monkeypatch.setattr(run.Run, "seal", late)
    _, folder, ledger = in_parts(tmp_path, "topdown", ", exact: [borough]")
    assert verify(folder, ledger).ok
    assert {path.name: path.stat().st_ino for path in (folder / "table.parquet").iterdir()} == parts_before
    assert len(ledger.figures("trips")) == 2


@pytest.mark.slow
def test_totals_over_categories_and_records_are_in_parts_too(tmp_path):
    text = tree(table="categories: [sex]", rest=REST.format("", "topdown"))
    job(tmp_path, text.replace("domain: zones.csv", "name: t, domain: zones.csv, values: {sex: [F, M]}"))
    text = (tmp_path / "spec.yaml").read_text().replace("output: out", "output: {folder: out, records: true}")
    (tmp_path / "spec.yaml").write_text(text)
    made = Job.from_spec(read_spec(tmp_path / "spec.yaml"))
    frame = FRAME.with_columns(pl.Series("sex", ["F", "M", "M"] * 20 + ["F"]))
    folder = run.release(made, source=frame, ledger=Ledger(tmp_path / "ledger.sqlite"))
    verdict, told = verify(folder), run_alone(folder)
    assert verdict.ok, verdict
    assert told.returncode == 0, told.stdout
    table = hf.load(folder).table()
    assert (table.certificate.outputs, table.certificate.rows) == (16, 24)
    np.testing.assert_array_equal(table.values[16:], table.values[:16].reshape(-1, 2).sum(axis=1))
    np.testing.assert_array_equal(table.interval()[:16], table.error_bars.interval(0.95))
    np.testing.assert_array_equal(table.interval()[16:], sum_intervals(table.error_bars, table.sums, 0.95))


def test_a_second_attempt_and_a_twin_write_the_same_bytes(tmp_path, monkeypatch):
    """Whoever comes last: nothing is left of a file that was never finished, and no second one."""
    once, seen = parts.write, []

    def twice(held, told, **named):
        with monkeypatch.context() as dying:
            dying.setattr(parts, "sha256_of", lambda _: 1 / 0)  # after the files were written, before they have names
            with pytest.raises(ZeroDivisionError):
                once(held, told, **named)
        seen.append((once(held, told, **named), once(held, told, **named)))
        return seen[-1][0]

    monkeypatch.setattr(drawing, "write", twice)
    _, folder, ledger = in_parts(tmp_path, "topdown")
    assert [(one.files, one.wrong) for one, _ in seen] == [(two.files, two.wrong) for _, two in seen]
    assert len(list((folder / "table.csv").iterdir())) == 3
    assert verify(folder, ledger).ok


@pytest.mark.slow
def test_what_was_changed_in_a_part_is_found(tmp_path):
    _, folder, _ = in_parts(tmp_path, "topdown")
    extra = folder / "table.csv" / "00003.csv"
    extra.write_text("row\n")
    assert "table.csv/00003.csv does not belong" in verify(folder).differences[0].sentence
    assert "table.csv/00003.csv does not belong" in run_alone(folder).stdout
    extra.unlink()
    (folder / "table.csv" / "00001.csv").write_text("row\n")
    for told in (str(verify(folder)), run_alone(folder).stdout):
        assert "table.csv/00001.csv is not the file that was certified" in told


def test_a_folder_of_parts_that_is_a_link_is_found(tmp_path):
    _, folder, _ = in_parts(tmp_path, "topdown")
    (folder / "table.csv").rename(tmp_path / "elsewhere")
    (folder / "table.csv").symlink_to(tmp_path / "elsewhere")
    for told in (str(verify(folder)), run_alone(folder).stdout):
        assert "table.csv does not belong to the release" in told


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["twice", "missing"])
def test_rows_that_are_twice_or_missing_are_found(tmp_path, wrong):
    """Also where the certificate was made for them."""
    _, folder, _ = in_parts(tmp_path, "topdown")
    lines = (folder / "table.csv" / "00001.csv").read_text().splitlines()
    lines = [*lines, lines[-1]] if wrong == "twice" else lines[:-1]
    (folder / "table.csv" / "00001.csv").write_text("\n".join(lines))
    sealed(folder, certificate_of(folder))
    assert "copies" in str(verify(folder).differences)
    assert "do not have every row once" in run_alone(folder).stdout


def test_a_part_that_does_not_hold_is_not_released(tmp_path, monkeypatch):
    """Tested on what was read again, by whoever wrote it."""
    whole = parts.read_parquet

    def changed(path):
        found = whole(path)
        found["value"] = found["value"] + np.arange(len(found["value"]))
        return found

    monkeypatch.setattr(parts, "read_parquet", changed)
    with pytest.raises(Fault, match=r"a part has other entries|is not the sum"):
        in_parts(tmp_path, "topdown")


def test_the_data_dictionary_lists_the_parts(tmp_path):
    _, folder, _ = in_parts(tmp_path, "topdown")
    resource, _ = json.loads((folder / "datapackage.json").read_text())["resources"]
    assert resource["path"] == [f"table.csv/0000{i}.csv" for i in range(3)]
    assert resource["schema"]["fields"][0]["name"] == "row"
