"""Counting a frame by a query agrees with counting one record after the other."""

from collections import Counter

import duckdb
import numpy as np
import polars as pl
import pytest

import holdfast as hf

PLACES = [("North", "A"), ("North", "B"), ("South", "A"), ("South", "C")]
COLUMNS = {"borough": [borough for borough, _ in PLACES], "zone": [zone for _, zone in PLACES]}
TREE = hf.Hierarchy.from_frame(COLUMNS, ["borough", "zone"], "all")


def rows(seed: int) -> pl.DataFrame:
    generator = np.random.default_rng(seed)
    chosen = generator.integers(0, 4, 50)
    places = [PLACES[i] for i in chosen]
    return pl.DataFrame(
        {
            "borough": [borough for borough, _ in places],
            "zone": [zone for _, zone in places],
            "category": generator.integers(0, 3, 50),
            "n": generator.integers(0, 9, 50),
        }
    )


@pytest.mark.parametrize("by", [1, 3])
@pytest.mark.parametrize("count", [None, "n"])
def test_records_of_a_hierarchy_are_counted_by_path(by, count):
    data = rows(by)
    query = hf.counts(TREE, by=by)
    expected: Counter[int] = Counter()
    for row in data.iter_rows(named=True):
        leaf = PLACES.index((row["borough"], row["zone"]))
        expected[leaf * by + (row["category"] if by > 1 else 0)] += 1 if count is None else row["n"]
    truth = query.answer([expected[cell] for cell in range(4 * by)])
    for frame in (data, data.lazy(), data.to_pandas(), data.to_arrow(), duckdb.sql("FROM data")):
        assert query.count(frame, count=count).tolist() == truth.tolist()


def test_records_of_cubes_margins_histograms_and_workloads():
    data = pl.DataFrame({"sex": [0, 1, 1], "age": [2.0, 0.0, 2.0], "cell": ["1", "1", "0"]})
    cube = hf.Cube((2, 3), names=["sex", "age"])
    cells = np.array([[0, 0, 1], [1, 0, 1]])
    assert hf.margins(cube).count(data).tolist() == cells.ravel().tolist()
    assert hf.margins(cube, keep=[(0,), ()]).count(data).tolist() == [1, 2, 3]
    assert hf.histogram(2).count(data).tolist() == [1, 2]
    assert hf.workload([[1, 1], [1, -1]]).count(data).tolist() == [3, -1]
    with pytest.raises(hf.Refused, match="sensitivities only"):
        hf.query(2, l1=1).count(data)


def test_records_of_a_cube_in_every_area():
    data = rows(7).with_columns(sex=pl.col("n") % 2)
    query = hf.counts(TREE, by=hf.Cube((2, 3), names=["sex", "category"]), keep={"all": [()], "zone": [(0,)]})
    expected = np.zeros((4, 2, 3), dtype=int)
    for row in data.iter_rows(named=True):
        expected[PLACES.index((row["borough"], row["zone"])), row["sex"], row["category"]] += 1
    assert query.count(data).tolist() == query.answer(expected.ravel()).tolist()
    assert query.count(data)[0] == 50
    whole = hf.counts(TREE, by=hf.Cube((2, 3), names=["sex", "category"]))
    assert whole.count(data).tolist() == whole.answer(expected.ravel()).tolist()


def test_records_outside_are_refused_or_dropped_and_wrong_counts_are_refused_by_row():
    query = hf.counts(TREE)
    data = pl.DataFrame({"borough": ["North", "North", None], "zone": ["A", "C", "A"], "n": [1, 2, 3]})
    with pytest.raises(hf.Refused, match="some record names no cell") as caught:
        query.count(data)
    assert "C" not in str(caught.value)
    assert query.count(data, count="n", outside="drop").tolist() == [1, 1, 0, 1, 0, 0, 0]
    for wrong in (None, -1, 1.5, float("nan"), True):
        worse = data.with_columns(n=pl.Series([1, wrong, 3], strict=False, dtype=pl.Boolean if wrong is True else None))
        with pytest.raises(hf.Refused, match=f"row {1 if wrong is True else 2} has none"):
            query.count(worse, count="n", outside="drop")
        with pytest.raises(hf.Refused, match="some row has none"):
            query.count(worse.lazy(), count="n", outside="drop")
    large = data.with_columns(n=pl.lit(2**61))
    with pytest.raises(hf.Refused, match="less than 2\\*\\*62"):
        query.count(large, count="n", outside="drop")
    for frame, words in [
        (data.drop("zone"), "needs a column 'zone'"),
        (data.drop("borough"), "columns of higher levels too"),
        (data.drop("n"), "no column 'n'"),
        (5, "narwhals can read"),
    ]:
        with pytest.raises(hf.Refused, match=words):
            query.count(frame, count="n")
    with pytest.raises(hf.Refused, match="outside"):
        query.count(data, outside="keep")
