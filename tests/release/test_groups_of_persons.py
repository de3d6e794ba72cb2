"""Persons in several groups: in how many cells of a table each is counted, and how much of a number each adds."""

import json

import polars as pl
import pytest

import holdfast as hf
from holdfast.arguments import Refused
from holdfast.release.job.job import Job
from holdfast.release.records.tabulate import tabulate
from holdfast.release.spec.spec import read_spec
from holdfast.release.table.laid import laid

DOMAIN = "region,place\nA,A1\nA,A2\nB,B1\nB,B2\n"
PLACES = ["A1", "A2", "B1", "B2"]
FIGURES = ["count", {"sum": "hectares", "between": [-20, 20]}]


def spec(folder, unit, privacy=None, data=None, **table):
    (folder / "domain.csv").write_text(DOMAIN)
    return {
        "title": "Holders",
        "output": str(folder / "out"),
        "ledger": str(folder / "ledger.sqlite"),
        "data": {"name": "holders", "domain": str(folder / "domain.csv"), **(data or {})},
        "privacy": {"rho": 1.0, "unit": {"column": "holder", **unit}, **(privacy or {})},
        "table": {"hierarchy": ["region", "place"], "root": "all", "figures": FIGURES, **table},
        "hold": ["consistent"],
    }


def records(*rows):
    return pl.DataFrame(rows, schema={"holder": pl.String, "place": pl.String, "hectares": pl.Int64}, orient="row")


def counted(folder, unit, frame, **more):
    return [cells.tolist() for cells in tabulate(laid(read_spec(spec(folder, unit, **more)))[0], frame)]


def test_a_person_counts_once_in_a_cell(tmp_path):
    frame = records(("a", "A1", 3), ("a", "A1", 4), ("a", "B1", 5), ("b", "A1", 1), ("c", "B2", 1))
    counts, hectares = counted(tmp_path, {"max_groups": 4}, frame)
    assert counts == [2, 0, 1, 1]
    assert hectares == [8, 0, 5, 1]


def test_a_person_is_in_so_many_cells_and_no_more(tmp_path):
    frame = records(*((who, place, 1) for who in "abcdefgh" for place in PLACES))
    for groups in (1, 2, 3):
        counts, hectares = counted(tmp_path, {"max_groups": groups}, frame)
        assert sum(counts) == 8 * groups
        assert counts == hectares  # both are of the same cells
    assert min(counted(tmp_path, {"max_groups": 2}, frame)[0]) > 0  # another choice for each


def test_what_a_person_adds_to_a_cell_is_within_the_bounds(tmp_path):
    frame = records(("a", "A1", 15), ("a", "A1", 15), ("a", "B1", -15), ("a", "B1", -15), ("b", "A1", 1))
    assert counted(tmp_path, {"max_groups": 2}, frame)[1] == [21, 0, -20, 0]
    assert counted(tmp_path, {"max_records": 4, "max_groups": 2}, frame)[0] == [3, 0, 2, 0]


def test_with_both_the_records_are_limited_first(tmp_path):
    frame = records(*(("a", place, 1) for place in PLACES for _ in range(3)))
    counts, _ = counted(tmp_path, {"max_records": 5, "max_groups": 2}, frame)
    assert 2 <= sum(counts) <= 5
    assert sum(each > 0 for each in counts) <= 2


def test_names_of_one_cell_are_one_group(tmp_path):
    """Two spellings that end in one cell are counted once."""
    frame = pl.DataFrame({"holder": ["a", "a"], "place": ["A1", "nowhere"], "hectares": [1, 1]})
    more = {"data": {"outside": {"category": "A1"}}}
    assert counted(tmp_path, {"max_groups": 2}, frame, **more) == [[1, 0, 0, 0], [2, 0, 0, 0]]


@pytest.mark.parametrize("unit", [{"max_groups": 1}, {"max_groups": 2}, {"max_records": 3, "max_groups": 2}])
def test_no_person_moves_the_noise_further_than_is_said(tmp_path, unit):
    """Three records of one more person, beside others: what they cost by the noise."""
    job = Job.from_spec(read_spec(spec(tmp_path, unit, method="onto")))
    others = (("b", "A1", 20), ("b", "B1", 20), ("c", "A1", 2))
    before = tabulate(job, records(*others))
    worst = 0.0
    for places in (("A1", "A1", "A1"), ("A1", "A2", "A2"), ("A1", "A2", "B1")):
        after = tabulate(job, records(*others, *(("a", place, 50) for place in places)))
        lost = 0.0
        for table, old, new in zip(job.tables, before, after, strict=True):
            moved = table.layout.query.columns @ (new - old)
            lost += float((moved**2).sum()) / 2 / float(table.mechanism.base.law.scale_values[0])
        worst = max(worst, lost)
    assert worst <= job.guarantee.rho <= 1
    assert job.guarantee.rho <= 1.1 * worst


def test_groups_cost_less_than_as_many_records(tmp_path):
    def noise(unit):
        job = Job.from_spec(read_spec(spec(tmp_path, unit, method="onto")))
        return [float(table.mechanism.base.law.scale_values[0]) for table in job.tables]

    groups, records_of, both = (
        noise({"max_groups": 3}),
        noise({"max_records": 3}),
        noise({"max_records": 5, "max_groups": 3}),
    )
    assert all(fewer < 0.8 * more for fewer, more in zip(groups, records_of, strict=True))
    assert both[1] == pytest.approx(groups[1])
    assert both[1] < noise({"max_records": 5})[1] / 2


def test_a_release_says_whom_it_counts_and_how(tmp_path):
    job = hf.job(spec(tmp_path, {"max_groups": 2}))
    released = job.release(records(*((f"h{i}", PLACES[i % 4], i % 7) for i in range(60))))
    text = (released.folder / "certificate.json").read_text()
    assert "at most 2 cells of a table, each once, are counted" in text
    assert "the sum of what a holder adds to a cell" in text
    certificate = json.loads(text)
    assert certificate["statements"][0]["unit"] == {"column": "holder", "records": 1}


def test_the_curator_sees_what_max_groups_takes_away(tmp_path):
    frame = records(
        *(("a", place, 1) for place in PLACES for _ in range(2)), ("b", "A1", 1), ("b", "A1", 2), ("b", "B1", 1)
    )
    counts, sums = hf.job(spec(tmp_path, {"max_groups": 2})).check(frame).tables
    assert counts.groups == {"persons": 1, "records": 7}  # a: 8 to 2; b: 3 to 2
    assert sums.groups == {"persons": 1, "records": 4}  # all records of two cells
    told = hf.job(spec(tmp_path, {"max_records": 9, "max_groups": 3})).check(frame)
    assert told.tables[0].groups == {"persons": 1, "records": 2}
    assert "max_groups: 1 person is in more cells than are counted; 2 records left out." in str(told)
    assert all(each.groups == {} for each in hf.job(spec(tmp_path, {"max_records": 3})).check(frame).tables)
    nothing = hf.job(spec(tmp_path, {"max_groups": 4})).check(records(("a", "A1", 1), ("a", "B1", 1)))
    assert nothing.tables[0].groups == {"persons": 0, "records": 0}
    assert "max_groups" not in str(nothing)


@pytest.mark.parametrize(
    ("unit", "more", "words"),
    [
        ({}, {}, "max_records, or in how many cells"),
        ({"max_groups": 0}, {}, "max_groups"),
        ({"max_groups": 2}, {"privacy": {"neighbours": "replace-one"}}, "use add-remove"),
        ({"max_groups": 2}, {"figures": ["count"]}, "write max_records alone"),
    ],
)
def test_limits_that_cannot_be_are_refused(tmp_path, unit, more, words):
    asked = spec(tmp_path, unit, **more)
    asked["hold"] = [{"exact": ["region"]}]
    with pytest.raises(Refused, match=words):
        Job.from_spec(read_spec(asked))


def test_records_of_nobody_are_refused_or_dropped(tmp_path):
    frame = records(("a", "A1", 1), (None, "A1", 1))
    with pytest.raises(Refused, match="has no 'holder'"):
        counted(tmp_path, {"max_groups": 2}, frame)
    assert counted(tmp_path, {"max_groups": 2}, frame, data={"nulls": "drop"})[0] == [1, 0, 0, 0]
