"""Every kind of source counts itself to the same cells; what is secret is never printed; counted rows."""

import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import openpyxl
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pytest

import released
from holdfast.arguments import Refused
from holdfast.domains.data_frames import text_of
from holdfast.release.job import errors
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.records.tabulate import tabulate
from holdfast.release.run import release
from holdfast.release.storage.engine import as_text
from jobs import job, tree

ROWS = {
    "zone": ["N1", "N2", "S1", "S1", "S3", "N2", "S3"],
    "hour": [0, 1, 0, 1, 0, 2, 1],
    "trips": [1, 1, 2, 0, 3, 1, 2],
}
ASSERTED = "rows_depend_on_other_rows: false"
#: One method, so that none are compared.
GIVEN = "hold: [consistent]\nmethod: given"
COUNTS = [1, 2, 2, 0, 5]
RECORDS = [1, 2, 2, 0, 2]


@pytest.fixture(autouse=True)
def few_simulated_tables(monkeypatch):
    """Errors are not looked at here."""
    monkeypatch.setattr(errors, "TABLES", 20)


def counted(folder: Path, words: str, more: str = "count: trips", source: object = None) -> list[int]:
    made = job(folder, tree(more, rest=GIVEN).replace("source: trips.parquet", words))
    return tabulate(made, source)[0].tolist()


def written(folder: Path) -> list[str]:
    """The same rows in every kind of file: the words of the spec."""
    data = pl.DataFrame(ROWS)
    data.write_parquet(folder / "t.parquet")
    data.write_csv(folder / "t.csv")
    data.write_csv(folder / "t.tsv", separator="\t")
    pyarrow.feather.write_feather(data.to_arrow(), str(folder / "t.feather"))
    with pa.OSFile(str(folder / "t.arrow"), "wb") as file, pa.ipc.new_file(file, data.to_arrow().schema) as out:
        out.write_table(data.to_arrow())
    book = openpyxl.Workbook()
    book.active.title = "trips"
    book.active.append(list(ROWS))
    for row in zip(*ROWS.values(), strict=True):
        book.active.append(row)
    book.create_sheet("notes").append(["nothing"])
    book.save(folder / "t.xlsx")
    with duckdb.connect(str(folder / "t.duckdb")) as engine:
        engine.execute("CREATE TABLE trips AS FROM data")
    with sqlite3.connect(folder / "t.db") as book:
        book.execute("CREATE TABLE trips (zone TEXT, hour INTEGER, trips INTEGER)")
        book.executemany("INSERT INTO trips VALUES (?, ?, ?)", zip(*ROWS.values(), strict=True))
    book.close()
    for hour in (0, 1, 2):
        part = folder / "parts" / f"hour={hour:02}"
        part.mkdir(parents=True)
        data.filter(pl.col("hour") == hour).drop("hour").write_parquet(part / "part.parquet")
    (folder / "parts" / "_SUCCESS").touch()
    named = ["t.parquet", "t.csv", "t.tsv", "t.feather", "t.arrow", "t.duckdb", "t.db", "parts", "parts/*/*.parquet"]
    address = f"'sqlite:///{folder / 't.db'}', table: trips"
    query = f"'sqlite:///{folder / 't.db'}', query: 'SELECT zone, trips FROM trips;'"
    return [f"source: {name}" for name in (*named, "'t.xlsx', table: trips", address, query)]


@pytest.mark.slow
def test_every_kind_of_source_gives_the_same_counts(tmp_path):
    for words in written(tmp_path):
        assert counted(tmp_path, words) == COUNTS, words
        assert counted(tmp_path, words, "rows_are_records: true") == RECORDS, words
    data = pl.DataFrame(ROWS)
    for source in (data, data.lazy(), data.to_pandas(), data.to_arrow(), duckdb.sql("FROM data"), tmp_path / "t.csv"):
        assert counted(tmp_path, "name: x", source=source) == COUNTS, type(source)


def test_folders_named_by_values_are_columns_of_texts(tmp_path):
    written(tmp_path)
    text = "data: {source: parts, values: {hour: ['00', '01', '02']}, count: trips}\nprivacy: {epsilon: 1}\n"
    assert tabulate(job(tmp_path, text + "table: {histogram: hour}\n"))[0].tolist() == [6, 3, 1]
    with pytest.raises(Refused, match="outside the public domain"):
        tabulate(job(tmp_path, text.replace("'00'", "'0'") + "table: {histogram: hour}\n"))


# --- counted rows --------------------------------------------------------------------------------------------------


def test_columns_that_look_like_counts_are_refused_with_both_remedies(tmp_path):
    for words in written(tmp_path):
        with pytest.raises(Refused, match="write count: trips, or rows_are_records: true"):
            counted(tmp_path, words, "")
    for name, refused in {"N": True, "Population": True, "passenger_count": False, "fare": False}.items():
        data = pl.DataFrame(ROWS).rename({"trips": name})
        if refused:
            with pytest.raises(Refused, match=f"write count: {name}"):
                counted(tmp_path, "name: x", "", data)
        else:
            assert counted(tmp_path, "name: x", "", data) == RECORDS
    texts = pl.DataFrame(ROWS).with_columns(trips=pl.lit("many"))
    assert counted(tmp_path, "name: x", "", texts) == RECORDS


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [None, -1, 1.5, float("nan"), 2.0**63, "many", "1e3", ""])
def test_counts_that_are_none_are_refused_by_row_and_never_by_value(tmp_path, wrong):
    values = [*ROWS["trips"][:4], wrong, *ROWS["trips"][5:]]
    if isinstance(wrong, str):
        values = [str(value) for value in values]
    data = pl.DataFrame({**ROWS, "trips": pl.Series(values, strict=False)})
    texts = []
    for source in (data, data.to_pandas(), data.to_arrow()):
        with pytest.raises(Refused, match=r"data\.count: the count 'trips' of row 5 is missing, or no whole") as caught:
            counted(tmp_path, "name: x", source=source)
        texts.append(str(caught.value))
    with pytest.raises(Refused, match="of some row is missing, or no whole") as caught:
        counted(tmp_path, "name: x", source=data.lazy())
    texts.append(str(caught.value))
    data.write_parquet(tmp_path / "bad.parquet")
    data.write_csv(tmp_path / "bad.csv")
    for name in ("bad.parquet", "bad.csv"):
        with pytest.raises(Refused, match="of row 5 is missing, or no whole") as caught:
            counted(tmp_path, f"source: {name}")
        texts.append(str(caught.value))
    with closing(sqlite3.connect(tmp_path / "bad.sqlite")) as database, database:
        database.execute(f"CREATE TABLE bad ({', '.join(data.columns)})")
        database.executemany(f"INSERT INTO bad VALUES ({', '.join('?' for _ in data.columns)})", data.rows())
    with pytest.raises(Refused, match="of row 5 is missing, or no whole") as caught:
        counted(tmp_path, f"source: 'sqlite:///{tmp_path / 'bad.sqlite'}', table: bad")
    texts.append(str(caught.value))
    assert not any(str(wrong) in text for text in texts if wrong not in (None, ""))


def test_counts_of_other_types_and_forms_are_read(tmp_path):
    for values in ([1.0, 2.0], ["1", " +2.0"], pl.Series([1, 2], dtype=pl.UInt8), pl.Series([1, 2], dtype=pl.Decimal)):
        data = pl.DataFrame({"zone": ["N1", "S1"], "trips": values})
        assert counted(tmp_path, "name: x", source=data) == [1, 0, 2, 0, 0]
    with pytest.raises(Refused, match="has the type BOOLEAN; whole numbers are needed"):
        counted(tmp_path, "name: x", source=pl.DataFrame({"zone": ["N1"], "trips": [True]}))
    with pytest.raises(Refused, match=r"no column 'trips'.*did you mean 'trip'"):
        counted(tmp_path, "name: x", source=pl.DataFrame({"zone": ["N1"], "trip": [1]}))


def test_counts_beyond_what_a_figure_holds_are_refused(tmp_path):
    """2⁶² − 1 in all are counted exactly, one more is refused; in 64 bits four such rows would come to less than 0."""
    data = pl.DataFrame({"zone": ["N1"] * 4, "trips": [2**61, 2**61 - 2, 1, 0]})
    for source in (data, data.lazy()):
        assert counted(tmp_path, "name: x", source=source) == [2**62 - 1, 0, 0, 0, 0]
    for values in ([2**61, 2**61 - 1, 1, 0], [2**62 - 1] * 4):
        more = pl.DataFrame({"zone": ["N1", "N2"] * 2, "trips": values})
        for source in (more, more.lazy()):
            with pytest.raises(Refused, match="add up to 2⁶² or more"):
                counted(tmp_path, "name: x", source=source)


def test_counted_rows_say_nothing_of_persons(tmp_path):
    with pytest.raises(Refused, match=r"data\.count: a counted row does not say whose records it stands for"):
        job(tmp_path, tree("count: trips", privacy="epsilon: 1, unit: {column: rider, max_records: 2}"))
    with pytest.raises(Refused, match="rows are records or have a count, found both"):
        job(tmp_path, tree("count: trips, rows_are_records: true"))


# --- what is secret, what is missing, what is wrong ----------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:s3cret@db/trips",
        "postgresql+psycopg://me:s3cret@db:5432/trips",
        "postgresql://db/trips?password=s3cret",
        "me:s3cret@db/trips",
    ],
)
def test_a_password_in_the_spec_is_refused_without_printing_it(tmp_path, address):
    with pytest.raises(Refused, match="a password has no place in a spec") as caught:
        job(tmp_path, tree().replace("trips.parquet", f"'{address}', table: trips"))
    assert "s3cret" not in str(caught.value.as_mapping())


def test_addresses_come_from_the_environment_or_a_file_and_are_never_printed(tmp_path, monkeypatch):
    written(tmp_path)
    address = f"sqlite:///{tmp_path / 't.db'}"
    monkeypatch.setenv("TRIPS", address)
    (tmp_path / "address").write_text(f"{address}\n")
    for words in ("{env: TRIPS}", "{file: address}"):
        assert counted(tmp_path, f"source: {words}, name: x, table: trips") == COUNTS
    monkeypatch.setenv("TRIPS", "postgresql+psycopg://me:s3cret@127.0.0.1:1/trips")
    with pytest.raises(Refused, match="the database cannot be reached") as caught:
        counted(tmp_path, "source: {env: TRIPS}, name: x, table: trips")
    assert "s3cret" not in str(caught.value.as_mapping())
    assert caught.value.__cause__ is None
    monkeypatch.setenv("TRIPS", "no/such/s3cret.csv")
    with pytest.raises(Refused, match="there is no file that is written elsewhere") as caught:
        counted(tmp_path, "source: {env: TRIPS}, name: x")
    assert "s3cret" not in str(caught.value.as_mapping())
    with pytest.raises(Refused, match="'NOWHERE' is not set"):
        counted(tmp_path, "source: {env: NOWHERE}, name: x")
    with pytest.raises(Refused, match="'nowhere' cannot be read"):
        counted(tmp_path, "source: {file: nowhere}, name: x")
    with pytest.raises(Refused, match="one of env and file"):
        counted(tmp_path, "source: {}, name: x")
    made = job(tmp_path, tree().replace("source: trips.parquet", "source: {env: TRIPS}"))
    with pytest.raises(Refused, match=r"needs data\.name"):
        _ = made.dataset
    plain = job(tmp_path, tree().replace("source: trips.parquet", "source: 'postgresql://me@db/trips'"))
    assert plain.dataset == "postgresql://db/trips"


def test_a_record_that_stands_where_names_should_is_not_shown(tmp_path, monkeypatch):
    (tmp_path / "headless.csv").write_text("N1,Mrs Secret\nN2,Mr Secret\n")
    monkeypatch.setenv("TRIPS", "headless.csv")
    for words, source in [("source: {env: TRIPS}, name: x", None), ("name: x", tmp_path / "headless.csv")]:
        with pytest.raises(Refused, match="no column 'zone'; the first line of a CSV file") as caught:
            counted(tmp_path, words, "", source)
        assert "Secret" not in str(caught.value.as_mapping())
    (tmp_path / "uneven.csv").write_text("zone,x\nN1\n")
    with pytest.raises(Refused, match=r"uneven.csv' cannot be read: every row of a CSV file"):
        counted(tmp_path, "source: other.parquet", "", tmp_path / "uneven.csv")


def test_missing_packages_are_named(tmp_path, monkeypatch):
    written(tmp_path)
    for name, words in {
        "openpyxl": "source: t.xlsx",
        "pyarrow": "source: t.feather",
        "psycopg": "source: 'postgresql://db/x'",
    }.items():
        with monkeypatch.context() as without:
            without.setitem(sys.modules, name, None)
            with pytest.raises(Refused, match=f"needs {name}, which is not installed: install holdfast"):
                counted(tmp_path, words)


def test_wrong_names_of_tables_and_columns_are_one_sentence(tmp_path):
    written(tmp_path)
    database = f"'sqlite:///{tmp_path / 't.db'}'"
    for words, sentence in [
        (f"{database}, table: trps", "no table 'trps' that can be read.*did you mean 'trips'"),
        (f"{database}, query: SELECT nothing", "data.query: rows of the query may depend on other records.*no table"),
        (f"{database}, query: SELECT nothing, {ASSERTED}", "data.query: the database cannot|went away, or refused"),
        ("nowhere://x/y", "no kind of database 'nowhere'"),
        ("'://x'", "address of a database is written"),
        (f"'sqlite:///{tmp_path / 'no.db'}'", "names a SQLite file that is not there"),
        ("t.xlsx", "a workbook needs data.table"),
        ("t.xlsx, table: trp", "the workbook has no table 'trp'"),
        ("t.duckdb, query: SELECT 1", "make a view of the query there"),
        ("t.*", "are of several kinds"),
        ("zones.txt", "there is no file 'zones.txt'"),
    ]:
        with pytest.raises(Refused, match=sentence):
            counted(tmp_path, f"source: {words}")
    assert not (tmp_path / "no.db").exists()
    (tmp_path / "two.csv").write_text("zone,zone,trips\nN1,N2,4\n")
    with pytest.raises(Refused, match="two columns of the records have the same name"):
        counted(tmp_path, "source: two.csv")
    twice = pl.DataFrame(ROWS).to_pandas().rename(columns={"hour": "zone"})
    with pytest.raises(Refused, match="two columns of the records have the same name"):
        counted(tmp_path, "name: x", source=twice)
    with pytest.raises(Refused, match="two columns of the records have the same name"):
        counted(tmp_path, "name: x", source=pa.table([["N1"], ["N2"], [1]], names=["zone", "zone", "trips"]))


def test_a_view_that_does_not_fit_its_table_any_more_is_named(tmp_path):
    with duckdb.connect(str(tmp_path / "v.duckdb")) as engine:
        engine.execute("CREATE TABLE t (zone VARCHAR, trips INTEGER)")
        engine.execute("CREATE VIEW v AS SELECT * FROM t")
        engine.execute("DROP TABLE t")
    with pytest.raises(Refused, match="view 'v' does not fit the tables behind it any more"):
        counted(tmp_path, "source: v.duckdb, table: v")


def test_nothing_is_charged_where_the_records_are_refused(tmp_path):
    (tmp_path / "bad.csv").write_text("zone,trips\nN1,-1\n")
    (tmp_path / "two.csv").write_text("zone,zone\nN1,N2\n")
    for words in ("source: bad.csv, count: trips", "source: bad.csv", "source: two.csv", "source: 'nowhere://x/y'"):
        made = job(tmp_path, tree().replace("source: trips.parquet", words))
        with pytest.raises(Refused):
            release(made)
    book = Ledger(tmp_path / "holdfast-ledger.sqlite")
    assert not book.exists or not book.entries()
    assert not (tmp_path / "out").exists()


def test_an_empty_source_is_a_table_of_zeros(tmp_path):
    (tmp_path / "none.csv").write_text("zone,trips\n")
    assert counted(tmp_path, "source: none.csv") == [0] * 5
    with sqlite3.connect(tmp_path / "none.db") as book:
        book.execute("CREATE TABLE t (zone TEXT, trips INTEGER)")
    book.close()
    assert counted(tmp_path, "source: none.db") == [0] * 5
    assert counted(tmp_path, "name: x", source=pl.DataFrame(ROWS).clear()) == [0] * 5


def test_single_values_are_written_as_the_engine_writes_them():
    values = [True, 7, 7.0, 0.25, Decimal("7.00"), Decimal("12.50"), date(2022, 1, 5), datetime(2022, 1, 5, 6)]
    values += [datetime(2022, 1, 5, 6, 0, 0, 500_000), "x", 1e15]
    for value in values:
        kind = str(duckdb.execute("SELECT typeof(?)", [value]).fetchall()[0][0])
        words = f"SELECT {as_text('v', kind)} FROM (SELECT ? AS v)"
        assert [(text_of(value),)] == duckdb.execute(words, [value]).fetchall(), value
    assert [text_of(value) for value in (None, "", float("nan"))] == [None] * 3
    with pytest.raises(Refused, match="of the type bytes"):
        text_of(b"x")


def test_texts_that_a_database_calls_equal_are_counted_apart(tmp_path):
    """One record more, n1, would give all that are N1 its name."""
    with closing(sqlite3.connect(tmp_path / "t.db")) as book:
        book.execute("CREATE TABLE trips (zone TEXT COLLATE NOCASE, rider TEXT COLLATE NOCASE)")
        book.executemany("INSERT INTO trips VALUES (?, ?)", [("n1", "A"), *[("N1", "a")] * 5])
        book.commit()
    with duckdb.connect(str(tmp_path / "t.duckdb")) as engine:
        engine.execute("CREATE TABLE trips (zone VARCHAR COLLATE NOCASE, rider VARCHAR COLLATE NOCASE)")
        engine.execute("INSERT INTO trips VALUES ('N1', 'A'), ('N1', 'a'), ('N2', 'b')")
    assert counted(tmp_path, "source: t.db, table: trips", "outside: drop") == [5, 0, 0, 0, 0]
    persons = tree(privacy="epsilon: 1, unit: {column: rider, max_records: 1}", rest=GIVEN)
    made = job(tmp_path, persons.replace("source: trips.parquet", "source: t.duckdb, table: trips"))
    assert tabulate(made)[0].tolist() == [2, 1, 0, 0, 0]


def test_the_column_of_counts_is_no_column_of_a_table(tmp_path):
    text = "privacy: {epsilon: 1}\ntable: {histogram: size}\nmethod: noise\n"
    for words in ("count: size", "count: n, columns: {size: n}"):
        with pytest.raises(Refused, match=r"data.count: the column that counts records is no column of a table"):
            job(tmp_path, f"data: {{name: x, {words}, values: {{size: [1, 2]}}}}\n{text}")


COUNTING = """
import sys
from holdfast.arguments import Refused
from holdfast.release.records.tabulate import tabulate
from holdfast.release.spec.spec import read_spec
from holdfast.release.table.laid import laid

made, _ = laid(read_spec(sys.argv[1]))
for source in sys.argv[2:]:
    try:
        print(tabulate(made, source)[0].tolist())
    except Refused as refusal:
        print(refusal)
"""


def test_a_damaged_arrow_file_is_refused_and_does_not_end_the_process(tmp_path):
    job(tmp_path, tree(rest=GIVEN).replace("trips.parquet", "t.arrow"))
    content = pa.table({"zone": ["N1", "N2", "S1"], "rider": pa.array(["a", "b", "a"]).dictionary_encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, content.schema) as out:
        out.write_table(content)
    sound, starts = sink.getvalue().to_pybytes(), np.array([0, 2, 4, 6], np.int32)
    files, refused = [], "cannot be read: an Arrow or Feather file is needed"
    changes = [
        (b"", b""),
        (starts, [0, 2, 1 << 30, 6]),
        (starts, [0, -7, 4, 6]),
        (b"N1N2S1", b"N1\xff\xfeS1"),
        (np.array([0, 1, 0], np.int32), [0, 1 << 30, 0]),  # a text of the column of riders that is not there
    ]
    for number, change in enumerate(changes):
        old, new = (each if isinstance(each, bytes) else np.array(each, np.int32).tobytes() for each in change)
        assert old in sound
        files.append(tmp_path / f"{number}.arrow")
        files[-1].write_bytes(sound.replace(old, new))
    words = [sys.executable, "-c", COUNTING, str(tmp_path / "spec.yaml"), *map(str, files)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    first, *others = done.stdout.splitlines()
    assert first == "[1, 1, 1, 0, 0]", done.stderr[-300:]
    assert [refused in told for told in others] == [True] * 4, done.returncode


def test_a_workbook_with_entities_is_refused(tmp_path):
    """Whatever the reader of workbooks raises while it goes through the rows."""
    book = openpyxl.Workbook()
    book.active.append(["zone"])
    book.active.append(["N1"])
    book.save(tmp_path / "plain.xlsx")
    with zipfile.ZipFile(tmp_path / "plain.xlsx") as plain, zipfile.ZipFile(tmp_path / "t.xlsx", "w") as changed:
        for name in plain.namelist():
            content = plain.read(name)
            if name.endswith("sheet1.xml"):
                content = b'<!DOCTYPE x [<!ENTITY e "aaaa">]>' + content.replace(b"<row", b"<row>&e;&f;</row><row", 1)
            changed.writestr(name, content)
    made = released.job(tmp_path, "histogram", ("source: trips.csv", "source: t.xlsx"))
    with pytest.raises(Refused, match=r"the workbook 't.xlsx' cannot be read"):
        tabulate(made)
