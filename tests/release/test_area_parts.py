"""A census written in parts by those who drew it: one table for both verifications and for everybody who reads it."""

import subprocess
import sys
from contextlib import nullcontext
from functools import partial

import numpy as np
import polars as pl
import pytest

from holdfast.arguments import Fault, Refused
from holdfast.release import run
from holdfast.release.certificate.verify import verify
from holdfast.release.pieces import areas, drawing, parts
from holdfast.release.pieces.cut import Here, packed, unpacked
from holdfast.release.table import area_cut
from one_process import gathered_areas
from town import job, write

SPARK = ("output: {folder: out", "engine: spark\noutput: {folder: out")
LABELS = ("  values:", "  labels: {sex: {F: female, M: male}}\n  values:")


def through_packs(groups):
    """This process as a cluster: groups, what they are told and what they tell travel as they would there."""
    held = [areas.Group(unpacked(packed(each.work)), partial(unpacked, packed(each.sheet()))) for each in groups]

    class There(Here):
        def each(self, what, told):
            found = super().each(unpacked(packed(what)), {n: unpacked(packed(each)) for n, each in told.items()})
            return {n: unpacked(packed(each)) for n, each in found.items()}

    return nullcontext(There(held))


def released(folder, monkeypatch, *changes, hand=through_packs):
    monkeypatch.setattr(area_cut, "STRETCH", 300)
    monkeypatch.setattr(run, "drawing", lambda *_: drawing.Drawing(hand))
    folder.mkdir(exist_ok=True)
    write(folder)
    made = job(folder, SPARK, *changes)
    return made, made.release()


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield released(tmp_path_factory.mktemp("town"), monkeypatch, LABELS)


def test_parts_are_the_runs_of_one_census(town):
    """Rows, names, labels, intervals, noisy answers and records, as both verifications read them."""
    _, found = town
    verdict = verify(found.folder)
    assert verdict.ok, verdict
    told = subprocess.run([sys.executable, found.folder / "verify.py"], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout
    table = found.table()
    assert (table.certificate.parts, table.certificate.runs) == (5, True)
    assert not list(found.folder.glob(".*"))
    rows = pl.concat([pl.read_parquet(path) for path in sorted((found.folder / "table.parquet").iterdir())])
    assert rows["row"].to_list() == list(range(351))
    assert rows["sex_label"].unique().sort().to_list() == [None, "female", "male"]
    np.testing.assert_array_equal(table.interval(), table.error_bars.interval(0.95))
    assert table.noisy is not None
    persons = rows.filter(pl.col("level") == "block: total")["value"].sum()
    assert pl.read_parquet(found.folder / "records.parquet" / "*.parquet").height == persons


def test_the_parts_are_what_the_secret_makes(tmp_path, monkeypatch):
    """Figures and noisy answers are those of the stretches drawn here."""
    monkeypatch.setattr(drawing.secrets, "token_bytes", bytes)
    made, found = released(tmp_path, monkeypatch)
    table = made.made.tables[0]
    cells = run.tabulate(made.made, None)[0]
    values, noisy, _ = gathered_areas(areas.AreaPieces.of(table.mechanism), cells, bytes(32))
    np.testing.assert_array_equal(found.table().values, values)
    measured = pl.read_parquet(found.folder / "measurements.parquet" / "*.parquet").sort("row")
    np.testing.assert_array_equal(measured["value"], noisy[measured["row"]])


def test_a_part_that_does_not_hold_is_not_released(tmp_path, monkeypatch):
    whole = parts.read_parquet
    monkeypatch.setattr(parts, "read_parquet", lambda path: whole(path) | {"value": whole(path)["value"] + 1})
    with pytest.raises(Fault, match="a part has other entries"):
        released(tmp_path, monkeypatch)


def test_a_plan_says_what_the_cluster_does(town):
    (share,) = town[0].plan().shares
    assert (share.level, share.pieces, share.groups) == ("quarter", 2, 2)


def test_one_file_is_refused(tmp_path, monkeypatch):
    """Where the spec does not say that a cluster draws, names and parts are those of one file."""
    write(tmp_path)
    made = job(tmp_path)
    with pytest.raises(Refused, match="write engine: spark into the spec"):
        drawing.refuse_undrawn(made.made.tables[0])
