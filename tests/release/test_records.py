"""Synthetic records: one row for every record that a released table counts, and nothing besides."""

import json

import numpy as np
import pandas as pd
import pytest

import holdfast as hf
import released
from holdfast.release.certificate.verify import verify
from holdfast.release.run import release
from holdfast.release.spec.places import SpecError

TREE = hf.Hierarchy.from_frame({"place": ["A", "A", "B"], "spot": ["a", "b", "c"]}, ["place", "spot"], root="all")


def test_records_count_to_the_table_exactly():
    truth = TREE.sum_up(np.array([3, 0, 5]))
    made = hf.laplace(hf.counts(TREE), epsilon=1).onto(hf.consistent(TREE) & hf.nonnegative(), integer=True)
    drawn = made.release(truth, rng=hf.seeded(1))
    found = drawn.records("pandas")
    assert list(found.columns) == ["place", "spot"]
    counts = [int((found["spot"] == name).sum()) for name in "abc"]
    assert TREE.sum_up(np.array(counts)).tolist() == drawn.values.tolist()
    assert found["spot"].is_monotonic_increasing
    assert set(found["place"][found["spot"] == "c"]) <= {"B"}


def test_records_of_cubes_and_histograms_have_their_coordinates():
    made = hf.laplace(hf.margins((2, 3), keep=None), epsilon=1).onto(hf.nonnegative(), integer=True)
    drawn = made.release(np.array([[1, 2, 0], [0, 4, 1]]).ravel(), rng=hf.seeded(2))
    found = drawn.records("pandas")
    again = np.zeros((2, 3), dtype=int)
    np.add.at(again, (found["axis 0"], found["axis 1"]), 1)
    assert again.ravel().tolist() == drawn.values.tolist()


@pytest.mark.parametrize(
    ("query", "constraint"),
    [(hf.margins((2, 3), keep=[(0,), (1,)]), hf.nonnegative()), (hf.counts(TREE), hf.nonnegative())],
)
def test_tables_that_no_records_count_to_are_refused(query, constraint):
    truth = query.answer(np.ones(query.cells, int))
    drawn = hf.laplace(query, epsilon=0.1).onto(constraint).release(truth, hf.seeded(1))  # by chance one might add up
    with pytest.raises(hf.Refused, match="records need"):
        drawn.records()


def test_a_folder_has_records_where_the_spec_asks_for_them(tmp_path):
    job = released.job(tmp_path, "moved", ("output: out", "output: {folder: out, records: true}"))
    folder = release(job)
    assert verify(folder).ok
    table = hf.load(folder).table()
    for found in (pd.read_csv(folder / "records.csv", dtype=str), pd.read_parquet(folder / "records.parquet")):
        assert list(found.columns) == ["borough", "zone"]
        assert len(found) == table.values[0]
        counted = found.groupby("zone").size()
        assert [int(counted.get(zone, 0)) for zone in ("N1", "N2", "S1", "S2", "S3")] == table.values[3:].tolist()
    assert len(table.records("pandas")) == len(found)
    certificate = json.loads((folder / "certificate.json").read_text())
    assert any("synthetic records" in words and "no row is a person's" in words for words in certificate["caveats"])


def test_records_that_do_not_count_to_the_table_are_found(tmp_path):
    folder = release(released.job(tmp_path, "moved", ("output: out", "output: {folder: out, records: true}")))
    path = folder / "records.csv"
    path.write_text(path.read_text().replace("N1", "N2", 1))
    broken = {check.name: check.sentence for check in verify(folder).differences}
    assert broken["table: records"] == "the records of records.csv do not count to the table"


def test_records_of_a_table_that_can_be_negative_are_refused_with_their_line(tmp_path):
    change = ("output: out", "output: {folder: out, records: true}")
    with pytest.raises(SpecError, match="records need whole numbers") as refusal:
        released.job(tmp_path, "margins", change, (", []], numbers: real", ", [sex, age, state]]"))
    assert refusal.value.line == 4
    with pytest.raises(SpecError, match="counts every cell"):
        released.job(tmp_path, "margins", change)
