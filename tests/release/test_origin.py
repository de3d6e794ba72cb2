"""A statement says what it assumes of how rows were made from records: certificate, explanation, report and label."""

import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import polars as pl
import pytest
from typer.testing import CliRunner

import holdfast as hf
from holdfast.arguments import Refused
from holdfast.cli.command import app
from holdfast.release.audit import audit_source
from holdfast.release.job import errors

COUNTING = "SELECT zone, rider FROM trips WHERE (SELECT count(*) FROM trips) > 64"
SELF_JOIN = "SELECT a.zone, a.rider FROM trips AS a, trips AS b"
ASSERTED = ", rows_depend_on_other_rows: false"


@pytest.fixture(autouse=True)
def few_simulated_tables(monkeypatch):
    """Errors are not looked at here."""
    monkeypatch.setattr(errors, "TABLES", 20)


def spec(words: str, privacy: str = "unit: {column: rider, max_records: 1}") -> str:
    return f"""
title: Trips
data: {{{words}, values: {{zone: [a, b, c]}}}}
privacy: {{epsilon: 1, {privacy}}}
table: {{histogram: zone}}
method: noise
output: out
"""


def written(folder: Path, *more: str) -> None:
    with closing(sqlite3.connect(folder / "trips.sqlite")) as book:
        book.execute("CREATE TABLE trips (zone TEXT, rider INTEGER)")
        book.executemany("INSERT INTO trips VALUES (?, ?)", [("abc"[i % 3], i) for i in range(65)])
        for words in more:
            book.execute(words)
        book.commit()


@pytest.mark.parametrize("query", [COUNTING, SELF_JOIN, "SELECT DISTINCT zone, rider FROM trips"])
def test_queries_and_views_whose_rows_depend_on_others_are_refused(tmp_path, monkeypatch, query):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, f"CREATE VIEW v AS {query}")
    with pytest.raises(Refused, match=r"line 3: data.query: rows of the query may depend on other records"):
        hf.job(spec(f"source: trips.sqlite, query: {query!r}")).plan()
    made = hf.job(spec("source: trips.sqlite, table: v"))
    with pytest.raises(Refused, match=r"line 3: data.table: rows of this source may depend .* in the view 'v'"):
        made.release()
    with pytest.raises(Refused, match="rows_depend_on_other_rows: false"):
        made.check()
    assert not (tmp_path / "holdfast.ledger").exists()


def test_what_is_asserted_is_assumed_by_every_statement_and_said_everywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path)
    made = hf.job(spec(f"source: trips.sqlite, query: {COUNTING!r}{ASSERTED}"))
    words = "every row is made from one record alone, and every record gives at most one row with the 'rider' of that"
    assert all(words in str(each) for each in made.guarantees)
    assert any(words in each for each in made.explain()["What the release promises"])
    released = made.release()
    certificate = released.certificate
    assert certificate.spec["data"]["query"] == COUNTING
    assert certificate.spec["data"]["rows_depend_on_other_rows"] is False
    assert f"the records are what this query gives: {COUNTING}" in certificate.caveats
    assert all(words in each.assumes[0] for table in certificate.tables for each in table.statements)
    label = (tmp_path / "out" / "report.html").read_text().partition('id="error"')[0]
    assert words.replace("'", "&#39;") in label
    assert "not proved" in label


def test_views_are_told_and_what_is_seen_is_not_assumed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(
        tmp_path,
        "CREATE VIEW low AS SELECT zone, rider FROM trips WHERE rider < 9",
        "CREATE VIEW v AS SELECT * FROM low",
    )
    certificate = hf.job(spec("source: trips.sqlite, table: v")).release().certificate
    assert certificate.statements[0].assumes == ()
    told = [words for words in certificate.caveats if words.startswith("the records are rows of the view")]
    assert len(told) == 2
    assert "WHERE rider < 9" in told[1]
    assert any("a query that fails on a record stops the release" in words for words in certificate.caveats)


def test_a_table_as_it_is_says_nothing_more(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path)
    certificate = hf.job(spec("source: trips.sqlite, table: trips")).release().certificate
    assert certificate.statements[0].assumes == ()
    assert not any("query" in words or "view" in words for words in certificate.caveats)


def test_lazy_frames_carry_the_assumption_and_frames_in_memory_do_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = pl.DataFrame({"zone": ["a", "b"], "rider": ["1", "2"]})
    made = hf.job(spec(f"name: trips, query: {COUNTING!r}{ASSERTED}".replace(ASSERTED, "")))
    for number, source in enumerate((data, data.lazy(), duckdb.sql("FROM data"))):
        certificate = made.release(source, output=f"out{number}").certificate
        lazy = number > 0
        assert [
            words.endswith("(how a lazy frame was made cannot be read)") for words in certificate.statements[0].assumes
        ] == [True] * lazy
        assert not any(COUNTING in words for words in certificate.caveats)  # no database was asked


def test_virtual_tables_are_assumed_and_a_changed_view_is_looked_at_when_it_is_counted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "CREATE VIRTUAL TABLE found USING fts5(zone, rider)", "CREATE VIEW v AS SELECT * FROM trips")
    certificate = hf.job(spec("source: trips.sqlite, table: found")).release().certificate
    assert certificate.statements[0].assumes[0].endswith("(how 'found' is made cannot be read)")
    made = hf.job(spec("source: trips.sqlite, table: v"))
    made.plan()
    with closing(sqlite3.connect(tmp_path / "trips.sqlite")) as book:
        book.execute("DROP VIEW v")
        book.execute("CREATE VIEW v AS SELECT * FROM trips LIMIT 5")
        book.commit()
    with pytest.raises(Refused, match="LIMIT"):
        made.release(output="other")


def test_persons_counts_and_replaced_records_of_a_source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path)
    for words, privacy, sentence in [
        (
            "query: 'SELECT zone, rider % 9 AS rider FROM trips'",
            "unit: {column: rider, max_records: 1}",
            "a computed 'rider'",
        ),
        ("query: SELECT zone FROM trips WHERE rider > 3", "neighbours: replace-one", "WHERE, which changes how many"),
        (
            "query: 'SELECT zone, rider FROM trips WHERE rider > 3', count: rider",
            "unit: record",
            "another use of 'rider'",
        ),
        ("query: SELECT * FROM trips, rows_depend_on_other_rows: true", "unit: record", "select them one by one"),
    ]:
        with pytest.raises(Refused, match=sentence):
            hf.job(spec(f"source: trips.sqlite, {words}", privacy)).plan()
    (tmp_path / "trips.csv").write_text("zone,rider\na,1\n")
    with pytest.raises(Refused, match="a query asks a database, and files are read whole"):
        hf.job(spec("source: trips.csv, query: SELECT * FROM trips")).release()


def test_duckdb_files_are_opened_without_anything_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.csv").write_text("zone,rider\na,1\n")
    with duckdb.connect("trips.duckdb") as engine:
        engine.execute("CREATE TABLE trips AS SELECT 'a' AS zone, 1 AS rider")
        engine.execute("CREATE VIEW v AS SELECT lower(zone) AS zone, rider FROM trips WHERE rider > 0")
        engine.execute("CREATE VIEW outside AS FROM 'other.csv'")
        engine.execute("CREATE VIEW read AS FROM read_csv('other.csv')")
        engine.execute("CREATE VIEW big AS SELECT * FROM trips WHERE (SELECT count(*) FROM trips) > 64")
        engine.execute("CREATE TABLE by_chance (zone VARCHAR, rider INTEGER, luck AS (random()))")
    assert hf.job(spec("source: trips.duckdb, table: v")).check().records == 1
    for name in ("outside", "read"):
        for said in ("", ASSERTED):
            with pytest.raises(Refused, match="reads other files, which a source must not"):
                hf.job(spec(f"source: trips.duckdb, table: {name}{said}")).check()
    for name, sentence in (("big", "in the view 'big', a SELECT within"), ("by_chance", "the function 'random'")):
        with pytest.raises(Refused, match=sentence):
            hf.job(spec(f"source: trips.duckdb, table: {name}")).check()
    with duckdb.connect("trips.duckdb") as engine:  # a macro takes the place of a function of the system
        engine.execute("CREATE MACRO lower(x) AS (SELECT count(*)::VARCHAR FROM trips)")
    with pytest.raises(Refused, match="functions, operators or casts that were made in the database"):
        hf.job(spec("source: trips.duckdb, table: v")).check()
    assert hf.job(spec("source: trips.duckdb, table: trips")).check().records == 1


@pytest.mark.parametrize(
    ("view", "violated"),
    [
        (COUNTING, True),
        (SELF_JOIN, True),
        ("SELECT zone, rider FROM trips LIMIT 5", True),
        ("SELECT zone, max(rider) AS rider FROM trips GROUP BY zone, rider / 2", True),
        ("SELECT zone, rider FROM trips WHERE rider > (SELECT avg(rider) FROM trips)", True),
        ("SELECT zone, rider FROM trips WHERE rider < 7", False),
    ],
)
def test_the_source_is_run_on_made_up_neighbours(tmp_path, monkeypatch, view, violated):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, f"CREATE VIEW v AS {view}")
    with duckdb.connect("trips.duckdb") as engine:
        engine.execute("CREATE TABLE trips (zone VARCHAR, rider INTEGER)")
        engine.execute(f"CREATE VIEW v AS {view}")
    duck = ["trips.duckdb, table: v"] if view in (COUNTING, SELF_JOIN) else []
    for words in ("trips.sqlite, table: v", f"trips.sqlite, query: '{view}'", *duck):
        report = audit_source(hf.job(spec(f"source: {words}{ASSERTED}")).made, 200 if violated else 5)
        assert report.violated == violated, (words, str(report))
        assert violated or report.pairs >= 5


def test_the_audit_of_a_job_tells_of_its_source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, f"CREATE VIEW v AS {SELF_JOIN}")
    (tmp_path / "trips.csv").write_text("zone,rider\na,1\n")
    text = spec(f"source: trips.sqlite, table: v{ASSERTED}", "unit: record")
    found = hf.job(text).audit(seconds=4, source=True)
    assert found.violated
    assert found.as_mapping()["tables"][0]["violated"]
    assert "the source: VIOLATED: one record more in 'trips'" in str(found)
    plain = hf.job(spec("source: trips.csv")).audit(seconds=2, source=True)
    assert "the source: not audited: the rows of a file are the records" in str(plain)
    assert not plain.violated
    (tmp_path / "spec.yaml").write_text(text)
    assert CliRunner().invoke(app, ["audit", "spec.yaml", "--source", "--seconds", "4"]).exit_code == 6
    with pytest.raises(Refused, match="a database at an address is not audited"):
        hf.job(spec("source: 'postgresql://db.example.org/x', table: v")).audit(seconds=1, source=True)
