"""Persons and households in one spec, from records to what an analyst computes, and what is refused."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import holdfast as hf
from holdfast.release.certificate.verify import verify
from holdfast.release.records.tabulate import tabulate
from village import BLOCKS, SPEC, persons, write


@pytest.fixture
def place(tmp_path):
    (tmp_path / "blocks.csv").write_text("street,block\nA,A1\nA,A2\nB,B1\nB,B2\n")
    (tmp_path / "spec.yaml").write_text(SPEC)
    write(tmp_path, persons())
    return tmp_path


@pytest.mark.slow
def test_two_tables_fit_in_every_block_and_everybody_can_test_it(place):
    released = hf.job(place / "spec.yaml").release()
    table = released.table()
    frame = table.frame("polars")
    for block in BLOCKS:
        here = frame.filter(frame["block"] == block)
        people, homes = here.filter(here["table"] == "persons"), here.filter(here["table"] == "households")
        heads = people.filter(people["relation"] == "head")["value"].sum()
        assert heads == homes["value"].sum()
        sizes = np.array([int(size) for size in homes["size"].to_list()])
        assert people["value"].sum() == (sizes * homes["value"].to_numpy()).sum()
    assert (frame["value"] >= 0).all()
    assert not verify(place / "out").differences
    assert subprocess.run([sys.executable, "verify.py"], cwd=place / "out", check=False).returncode == 0
    rows = table.records("polars")
    assert len(rows) == frame.filter(frame["level"].str.contains("block"))["value"].sum()
    assert len(rows.filter(rows["table"] == "households")) == len(rows.filter(rows["relation"] == "head"))
    # what an analyst asks: which table is meant follows from the columns, or is said
    assert (
        table.estimate(where={"block": "A1", "relation": "head"}).value
        == table.estimate(where={"block": "A1", "table": "households"}).value
    )
    with pytest.raises(hf.Refused, match="which table is meant"):
        table.estimate(where={"block": "A1"})
    assert table.mechanism.query.names == ("persons", "households")
    assert released.certificate.tables[0].linked[0].most == 3
    assert "One household with everybody in it" in released.certificate.protected

    wrong = json.loads((place / "out" / "certificate.json").read_text())
    assert len(wrong["tables"][0]["holds"]["linear"]) == 2 * len(BLOCKS)


@pytest.mark.slow
def test_the_statement_is_that_of_the_query_and_the_plan_shows_every_margin(place):
    job = hf.job(place / "spec.yaml")
    plan = job.plan().as_mapping()
    levels = [level["level"] for level in plan["tables"][0]["levels"]]
    assert "persons: block: age × relation" in levels
    assert "households: street: total" in levels
    table = job.made.tables[0]
    assert table.counted.rho == pytest.approx(2)
    assert table.counted.rho <= 2
    assert table.mechanism.base.neighbours.records == 1
    assert "a record is a household" in str(table.counted)
    assumed = "no household has more rows than 3 of persons or 1 of households"
    assert any(assumed in words for words in table.counted.assumes)
    assert any(assumed in words for words in job.explain()["What the release promises"])


def broken(rows, change):
    found = [list(row) for row in rows]
    change(found)
    return found


def _two_places(rows):
    again = next(i for i in range(1, len(rows)) if rows[i][0] == rows[i - 1][0])
    rows[again][1] = next(block for block in BLOCKS if block != rows[again][1])


def _no_head(rows):
    rows[0][3] = "other"


def _too_many(rows):
    rows += [["h0", rows[0][1], "old", "other", rows[0][4]] for _ in range(3)]


@pytest.mark.parametrize(
    ("change", "words"),
    [(_two_places, "two places"), (_no_head, "breaks tie"), (_too_many, "more records than max_records")],
)
def test_households_of_another_kind_are_refused_before_anything_is_charged(place, change, words):
    write(place, broken(persons(), change))
    job = hf.job(place / "spec.yaml")
    with pytest.raises(hf.Refused, match=words):
        tabulate(job.shapes)
    assert words in str(job.check())


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("unit: {column: household, max_records: 3}, ", "", "linked tables protect households"),
        ("[consistent, nonnegative]", "[consistent]", "consistent and nonnegative"),
        ("households: total}", "dogs: total}", "no linked table 'dogs'"),
        ("{relation: head}, households: total", "{relation: boss}, households: total", "has no value 'boss'"),
        ("{sum: size}", "{sum: age}", "no column 'age'"),
        ("measure: {street: [age, relation], block: all}", "measure: {block: [age]}", "tie 1"),
        ("rows: {relation: head}", "rows: {relation: boss}", "has no value 'boss'"),
    ],
)
def test_refusals_name_what_is_wrong(place, old, new, words):
    (place / "spec.yaml").write_text(SPEC.replace(old, new))
    with pytest.raises(hf.Refused, match=words):
        hf.job(Path(place) / "spec.yaml")


def test_vacant_units_are_households_without_persons(place):
    """A unit in which nobody lives is a row that only the households count, of size 0; no tie asks for its head."""
    spec = SPEC.replace("size: [1, 2, 3]}", "size: [0, 1, 2, 3], status: [lived in, vacant]}")
    spec = spec.replace("persons: {most: 3, ", "persons: {most: 3, rows: {status: lived in}, ")
    spec = spec.replace("households: total}", "households: {size: [1, 2, 3]}}")
    (place / "spec.yaml").write_text(spec)
    rows = [[*row, "lived in"] for row in persons()] + [[f"v{i}", "A1", "old", "head", 0, "vacant"] for i in range(5)]
    with (place / "persons.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["household", "block", "age", "relation", "size", "status"], *rows])
    job = hf.job(place / "spec.yaml")
    query, (cells,) = job.shapes.tables[0].layout.query, tabulate(job.shapes)
    assert cells["households"].reshape(len(BLOCKS), 4)[:, 0].tolist() == [5, 0, 0, 0]
    assert cells["persons"].sum() == len(persons())
    assert query.answer(cells).size == query.n  # the ties hold in every block
