"""Counting records: every kind of source gives the same counts, and nothing confidential leaves with a refusal."""

import gzip
import io
import stat
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast import progress
from holdfast.arguments import Refused
from holdfast.release.job import errors
from holdfast.release.records.check import check
from holdfast.release.records.tabulate import tabulate
from holdfast.release.storage import engine as engine_module
from holdfast.release.storage.engine import PREFIX, scratch, scratch_folder
from jobs import cube, job, tree

ZONES = ["N1", "N2", "S1", "S2", "S3"]
PLACES = [*ZONES[:2], "S1", "S1", "S3", "N2", "S3", "S3"]
COUNTS = [1, 2, 2, 0, 3]


@pytest.fixture(autouse=True)
def few_simulated_tables(monkeypatch):
    """Errors are not looked at here."""
    monkeypatch.setattr(errors, "TABLES", 20)


def frame(zones: list[object], **more: list[object]) -> pl.DataFrame:
    return pl.DataFrame({"zone": zones, **more}, schema_overrides={"zone": pl.String}, strict=False)


def files(folder, data: pl.DataFrame) -> dict[str, str]:
    """The same records in every kind of file: name to the words of the spec."""
    data.write_parquet(folder / "trips.parquet")
    data.write_csv(folder / "trips.csv")
    (folder / "trips.csv.gz").write_bytes(gzip.compress((folder / "trips.csv").read_bytes()))
    with duckdb.connect(str(folder / "trips.duckdb")) as engine:
        engine.execute("CREATE TABLE trips AS FROM data")
        engine.execute("CREATE TABLE other AS SELECT 1 AS x")
    return {
        "parquet": "source: trips.parquet",
        "csv": "source: trips.csv",
        "gz": "source: trips.csv.gz",
        "duckdb": "source: trips.duckdb, table: trips",
        "many": "source: tri*.parquet",
    }


@pytest.mark.slow
def test_every_kind_of_source_gives_the_same_counts(tmp_path):
    data = frame(PLACES, fare=[1.5] * 8)
    for name, words in files(tmp_path, data).items():
        made = job(tmp_path, tree().replace("source: trips.parquet", words))
        assert tabulate(made)[0].tolist() == COUNTS, name
    made = job(tmp_path, tree())
    frames = {
        "polars": data,
        "lazy polars": data.lazy(),
        "pandas": data.to_pandas(),
        "categorical pandas": data.to_pandas().astype({"zone": "category"}),
        "pyarrow": data.to_arrow(),
        "duckdb": duckdb.sql("FROM data"),
        "empty": data.clear(),
    }
    for name, source in frames.items():
        assert tabulate(made, source)[0].tolist() == (COUNTS if name != "empty" else [0] * 5), name


def test_numbers_of_any_type_are_names(tmp_path):
    text = "data: {name: x, values: {age: [1, 2, 30]}}\nprivacy: {epsilon: 1}\ntable: {histogram: age}\n"
    made = job(tmp_path, text)
    ages = [1, 30, 30, 2, 1, 1]
    for values in (
        pa.array(ages, pa.int8()),
        pa.array(ages, pa.float64()),
        pa.array(ages, pa.float32()),
        pa.array([str(age) for age in ages]),
        pa.array([f"{age}.00" for age in ages]).cast(pa.decimal128(10, 2)),
        pa.array(ages, pa.uint64()),
    ):
        assert tabulate(made, pa.table({"age": values}))[0].tolist() == [3, 1, 2], values.type


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    records=st.lists(
        st.tuples(st.sampled_from([*ZONES, None, "X"]), st.sampled_from(["F", "M", None, ""])), max_size=30
    ),
    nulls=st.sampled_from(["drop", "{category: S3}"]),
    outside=st.sampled_from(["drop", "{category: S2}"]),
)
def test_categories_of_a_hierarchy_are_counted_as_the_spec_says(tmp_path, records, nulls, outside):
    text = tree(
        f"values: {{sex: [F, M, S2, S3]}}, nulls: {nulls}, outside: {outside}", table="categories: sex", rest=""
    )
    made = job(tmp_path, text)
    found = tabulate(made, pl.DataFrame(records, schema={"zone": pl.String, "sex": pl.String}, orient="row"))[0]
    expected: Counter[tuple[str, str]] = Counter()
    for record in records:
        named = []
        for value, known in zip(record, (ZONES, ["F", "M", "S2", "S3"]), strict=True):
            if not value:
                named.append(None if nulls == "drop" else "S3")
            else:
                named.append(value if value in known else None if outside == "drop" else "S2")
        if None not in named:
            expected[named[0], named[1]] += 1
    table = {(z, s): int(found[i * 4 + j]) for i, z in enumerate(ZONES) for j, s in enumerate(["F", "M", "S2", "S3"])}
    assert {key: count for key, count in table.items() if count} == dict(expected)


def test_paths_are_matched_by_all_levels(tmp_path):
    made = job(tmp_path, tree("outside: drop", table="match: path"), zones_csv="borough,zone\nNorth,A\nSouth,A\n")
    data = pl.DataFrame({"borough": ["North", "South", "South", "West"], "zone": ["A", "A", "B", "A"]})
    assert tabulate(made, data)[0].tolist() == [1, 1]


def test_columns_can_have_other_names(tmp_path):
    made = job(tmp_path, tree('columns: {zone: "the \\"zone\\""}'))
    assert tabulate(made, frame(PLACES).rename({"zone": 'the "zone"'}))[0].tolist() == COUNTS


def test_records_in_impossible_cells_lie_outside(tmp_path):
    data = pl.DataFrame({"sex": ["F", "M", "M"], "age": ["child", "child", "old"]})
    hold = "hold: [{impossible: [{sex: M, age: old}]}]"
    assert tabulate(job(tmp_path, cube("outside: drop", rest=hold)), data)[0].tolist() == [1, 0, 0, 1, 0, 0]
    with pytest.raises(Refused, match="outside the public domain"):
        tabulate(job(tmp_path, cube(rest=hold)), data)


def test_all_tables_count_the_same_records(tmp_path):
    text = (
        "data: {name: x, values: {sex: [F, M], age: [child, old]}, nulls: drop, outside: drop}\nprivacy: {epsilon: 1}\n"
        "tables: [{name: a, histogram: sex}, {name: b, histogram: age}]\n"
    )
    data = pl.DataFrame({"sex": ["F", "M", None, "F"], "age": ["old", "old", "old", "unborn"]})
    assert [cells.tolist() for cells in tabulate(job(tmp_path, text), data)] == [[1, 1], [0, 2]]


# --- persons -------------------------------------------------------------------------------------------------------

PERSONS = tree(privacy="epsilon: 1, unit: {column: rider, max_records: 2}", rest="hold: [consistent]").replace(
    "source: trips.parquet", "source: trips.parquet, name: trips"
)


def riders(seed: int, people: range) -> pl.DataFrame:
    generator = np.random.default_rng(seed)
    rows = [(f"r{person}", str(generator.choice(ZONES)), i) for person in people for i in range(person % 6)]
    return pl.DataFrame(rows, schema=["rider", "zone", "trip"], orient="row")


def test_a_person_counts_with_at_most_max_records(tmp_path):
    made = job(tmp_path, PERSONS)
    for person in range(6):
        data = riders(1, range(person, person + 1))
        if len(data):
            assert tabulate(made, data)[0].sum() == min(2, len(data))


def test_the_column_of_persons_can_have_another_name(tmp_path):
    renamed = PERSONS.replace("domain: zones.csv", "domain: zones.csv, columns: {rider: who}")
    assert renamed != PERSONS
    data = riders(1, range(40))
    before = tabulate(job(tmp_path, PERSONS), data)[0]
    other = job(tmp_path, renamed)
    assert tabulate(other, data.rename({"rider": "who"}))[0].sum() == before.sum() < len(data)
    with pytest.raises(Refused, match=r"data.columns.rider: the records have no column 'who'"):
        tabulate(other, data)
    nobody = data.rename({"rider": "who"}).with_columns(who=pl.lit(None, pl.String))
    with pytest.raises(Refused, match="some record has no 'who'"):
        tabulate(other, nobody)


def test_the_choice_for_one_person_does_not_depend_on_others(tmp_path):
    made = job(tmp_path, PERSONS)
    alone = riders(2, range(5, 6))
    others = riders(3, range(6, 40))
    together = tabulate(made, pl.concat([others, alone, alone.clear()]))[0]
    assert (together - tabulate(made, others)[0]).tolist() == tabulate(made, alone)[0].tolist()
    # Nor on the order of the records.
    shuffled = pl.concat([others, alone]).sample(fraction=1, shuffle=True, seed=4)
    assert tabulate(made, shuffled)[0].tolist() == together.tolist()


def test_lazy_frames_keep_the_same_records_and_never_hold_all_of_them(tmp_path, monkeypatch):
    made, data = job(tmp_path, PERSONS), riders(4, range(60))
    expected = tabulate(made, data)[0].tolist()
    assert 0 < sum(expected) < len(data)

    def collected(*_args, **_more):
        raise AssertionError("all records are fetched")

    monkeypatch.setattr(nw.LazyFrame, "collect", collected)
    with duckdb.connect() as other:
        other.register("rides", data.to_arrow())
        for lazy in (data.lazy(), other.sql("FROM rides"), other.sql("FROM rides ORDER BY trip")):
            assert tabulate(made, lazy)[0].tolist() == expected
    assert not list(scratch().iterdir())
    broken = data.lazy().with_columns(zone=pl.col("zone").cast(pl.Int64))
    with pytest.raises(Refused, match="the data frame cannot be read"):
        tabulate(made, broken)
    assert not list(scratch().iterdir())


def test_the_choice_follows_the_key_and_is_fair_among_copies(tmp_path):
    """Ten copies in N1 and ten in S3: over 300 persons both zones are kept about equally often."""
    rows = [(f"p{person}", zone) for person in range(300) for zone in ["N1"] * 10 + ["S3"] * 10]
    data = pl.DataFrame(rows, schema=["rider", "zone"], orient="row")
    made = job(tmp_path, PERSONS)
    first = tabulate(made, data)[0]
    assert first.sum() == 600
    # Hypergeometric: mean 300, standard deviation below 12.3; 6 of them leave a false alarm of 2e-9.
    assert abs(int(first[0]) - 300) < 74
    # Were copies not told apart, every person would keep two of the same zone.
    pairs = [tabulate(made, data.filter(pl.col("rider") == f"p{person}"))[0] for person in range(8)]
    assert any(pair[0] == 1 for pair in pairs)
    other = job(tmp_path, PERSONS.replace("max_records: 2", "max_records: 2, key: another"))
    assert tabulate(other, data)[0].tolist() != first.tolist()
    assert tabulate(made, data)[0].tolist() == first.tolist()


def test_kept_records_are_chosen_before_anything_is_dropped(tmp_path):
    """A person with one good record and many foreign ones: were foreign ones dropped first, it would always count."""
    made = job(tmp_path, PERSONS.replace("name: trips", "name: trips, outside: drop"))
    rows = [(person, zone, i) for person in range(30) for i, zone in enumerate(["N1"] + ["abroad"] * 20)]
    counted = int(tabulate(made, pl.DataFrame(rows, schema=["rider", "zone", "trip"], orient="row"))[0].sum())
    assert 0 < counted < 15  # 30 · 2/21 = 2.9 are expected; the records and the key are fixed


def test_records_of_nobody_are_refused_or_dropped(tmp_path):
    data = pl.DataFrame({"rider": [None, "a"], "zone": ["N1", "N2"]})
    with pytest.raises(Refused, match="has no 'rider'"):
        tabulate(job(tmp_path, PERSONS), data)
    dropping = job(tmp_path, PERSONS.replace("name: trips", "name: trips, nulls: drop"))
    assert tabulate(dropping, data)[0].tolist() == [0, 1, 0, 0, 0]


# --- refusals ------------------------------------------------------------------------------------------------------


def test_refusals_say_neither_how_many_nor_which(tmp_path):
    made = job(tmp_path, tree())
    few = frame([*PLACES, None, "Atlantis"])
    many = pl.concat([frame([None] * 37), frame(["Atlantis", "Eldorado"] * 19), frame(PLACES)])
    only_null, only_foreign = frame([*PLACES, None]), frame([*PLACES, "Atlantis"])
    texts = []
    for data in (few, many, only_null, only_foreign, frame(["Eldorado"] * 500)):
        with pytest.raises(Refused) as caught:
            tabulate(made, data)
        texts.append(str(caught.value))
    assert texts[0] == texts[1] == texts[2]
    assert texts[3] == texts[4]
    for text in texts:
        assert "Atlantis" not in text
        assert "Eldorado" not in text
        assert not set(text.replace("line 3", "")) & set("0123456789")
    assert "data.nulls" in texts[0]
    assert "data.outside" in texts[3]


def test_bounds_that_the_data_violate_are_refused_without_a_place(tmp_path):
    made = job(tmp_path, tree(rest="hold: [consistent, {between: {high: 2, at: zone}}]\nmethod: onto"))
    with pytest.raises(Refused, match="violate what is said to hold") as caught:
        tabulate(made, frame(PLACES))
    assert "S3" not in str(caught.value)
    assert "7" not in str(caught.value)


def test_a_missing_column_is_named_with_the_nearest(tmp_path):
    with pytest.raises(Refused, match=r"no column 'zone'.*did you mean 'zones'"):
        tabulate(job(tmp_path, tree()), frame(PLACES).rename({"zone": "zones"}))
    with pytest.raises(Refused, match="no column 'rider'") as caught:
        tabulate(job(tmp_path, PERSONS), frame(PLACES))
    assert caught.value.key == "privacy.unit.column"
    with pytest.raises(Refused, match="has the type"):
        tabulate(job(tmp_path, tree()), pl.DataFrame({"zone": [["a"]]}))


def test_unreadable_sources_are_refused_without_their_content(tmp_path):
    made = job(tmp_path, tree())
    with pytest.raises(Refused, match=r"no file 'trips.parquet'"):
        tabulate(made)
    (tmp_path / "trips.parquet").write_bytes(b"PAR1 secret PAR1")
    with pytest.raises(Refused, match="cannot be read") as caught:
        tabulate(made)
    assert "secret" not in str(caught.value)
    assert "CSV" not in str(caught.value)
    (tmp_path / "trips.parquet").unlink()
    (tmp_path / "trips.parquet").mkdir()
    with pytest.raises(Refused, match=r"the folder \'trips.parquet\' has no files that end in .parquet"):
        tabulate(made)
    (tmp_path / "trips.parquet").rmdir()
    for end, words in ((".txt", "must end in one of"), (".duckdb", "not a DuckDB file")):
        (tmp_path / f"trips{end}").write_text("secret")
        with pytest.raises(Refused, match=words):
            tabulate(job(tmp_path, tree().replace("trips.parquet", f"trips{end}")))
    (tmp_path / "trips.duckdb").unlink()
    files(tmp_path, frame(PLACES))
    with pytest.raises(Refused, match=r"needs data.table.*other, trips"):
        tabulate(job(tmp_path, tree().replace("trips.parquet", "trips.duckdb")))
    with pytest.raises(Refused, match=r"no table 'trip'.*did you mean 'trips'"):
        tabulate(job(tmp_path, tree().replace("trips.parquet", "trips.duckdb, table: trip")))


def test_a_truncated_parquet_file_is_refused(tmp_path):
    path = tmp_path / "trips.parquet"
    frame(PLACES * 1000).write_parquet(path)
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(Refused, match="damaged"):
        tabulate(job(tmp_path, tree()))


def test_frames_of_mixed_types_are_refused_without_their_values(tmp_path):
    made = job(tmp_path, tree())
    with pytest.raises(Refused, match="mixed types") as caught:
        tabulate(made, pd.DataFrame({"zone": ["N1", 987654, b"secret"]}))
    assert "secret" not in str(caught.value)
    assert "987654" not in str(caught.value)
    for source in (5, {"zone": ["N1"]}):
        with pytest.raises(Refused, match="data frame"):
            tabulate(made, source)


def test_database_files_are_let_go(tmp_path):
    files(tmp_path, frame(PLACES))
    made = job(tmp_path, tree().replace("trips.parquet", "trips.duckdb, table: trips"))
    assert tabulate(made)[0].tolist() == COUNTS
    assert tabulate(made)[0].tolist() == COUNTS
    with duckdb.connect(str(tmp_path / "trips.duckdb")) as engine:  # for writing, so nobody else may hold it
        engine.execute("INSERT INTO trips BY NAME SELECT 'S2' AS zone")
    assert tabulate(made)[0].tolist() == [1, 2, 2, 1, 3]


def test_sessions_see_nothing_of_each_other(tmp_path):
    """Threads count different records with the same engine; temporary tables are their own."""
    made = job(tmp_path, tree())
    sizes = range(1, 9)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda size: tabulate(made, frame(PLACES * size))[0].tolist(), sizes))
    assert found == [[count * size for count in COUNTS] for size in sizes]


def test_no_record_is_left_in_the_temporary_folder(tmp_path):
    made = job(tmp_path, tree())
    tabulate(made, frame(PLACES))
    with pytest.raises(Refused):
        tabulate(made, frame([None]))
    folder = scratch()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not list(folder.iterdir())


def test_the_temporary_folder_goes_with_its_process_and_no_other(tmp_path):
    """A forked process that ends leaves its parent's folder alone; the parent removes it."""
    code = (
        "import os, tempfile, sys\n"
        f"tempfile.tempdir = {str(tmp_path)!r}\n"
        "from holdfast.release.storage.engine import session\n"
        "from holdfast.release.storage.engine import scratch\n"
        "folder = scratch()\n"
        "session().close()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    sys.exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "assert folder.is_dir()\n"
    )
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", code]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    assert not list(tmp_path.glob("holdfast-*"))


def test_folders_of_killed_processes_are_removed_and_those_of_others_are_not(tmp_path, monkeypatch):
    code = (
        "import os, tempfile, time\n"
        f"tempfile.tempdir = {str(tmp_path)!r}\n"
        "from holdfast.release.storage.engine import scratch_folder\n"
        "(scratch_folder() / 'spilled').write_text('a record')\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-c", code]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as killed,
        subprocess.Popen(command, stdout=subprocess.PIPE) as alive,
    ):
        assert killed.stdout is not None
        assert alive.stdout is not None
        killed.stdout.readline()
        alive.stdout.readline()
        killed.kill()
        killed.wait()
        (tmp_path / "holdfast-demo.x").mkdir()  # somebody else's
        assert len(list(tmp_path.glob(f"{PREFIX}*"))) == 2
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        own = scratch_folder()
        left = set(tmp_path.glob(f"{PREFIX}*"))
        assert len(left) == 2
        assert own in left
        assert (left - {own}).pop().joinpath("spilled").exists()
        assert (tmp_path / "holdfast-demo.x").exists()
        alive.kill()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_counting_shows_how_far_it_is_on_a_terminal_only(tmp_path, monkeypatch):
    made = job(tmp_path, tree())
    data = frame(PLACES * 100_000)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "PAUSE", 0.0)
    monkeypatch.setattr(engine_module, "PAUSE", 0.001)
    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        assert tabulate(made, data)[0].tolist() == [count * 100_000 for count in COUNTS]
        assert ("holdfast: counting" in stream.getvalue()) == shown
        assert stream.getvalue().endswith("\r") or not shown  # the line is wiped


@pytest.mark.parametrize("name", ["r", "holdfast_row", "holdfast_person", "person", "record", "copy", "c0"])
def test_no_name_of_a_column_changes_who_keeps_which_records(tmp_path, name):
    """Three different records of one person that are alike in this column: one is kept, whatever their order."""
    text = tree(privacy="epsilon: 1, unit: {column: rider, max_records: 1}")
    rows = [("N1", "a", 0), ("N2", "a", 0), ("S1", "a", 0), ("S2", "b", 1)]
    kept = set()
    for order in (rows, rows[::-1]):
        data = pl.DataFrame(order, schema=["zone", "rider", name], orient="row")
        kept.add(tuple(tabulate(job(tmp_path, text), data)[0].tolist()))
    assert len(kept) == 1
    assert sum(next(iter(kept))) == 2


@pytest.mark.parametrize("nobody", [pl.Series([1.0, float("nan")]), pl.Series(["a", ""]), pl.Series(["a", None])])
def test_nobody_is_no_person(tmp_path, nobody):
    text = tree(privacy="epsilon: 1, unit: {column: rider, max_records: 1}")
    data = pl.DataFrame({"zone": ["N1", "N2"], "rider": nobody})
    with pytest.raises(Refused, match="has no 'rider'"):
        tabulate(job(tmp_path, text), data)
    dropped = tree("nulls: drop", privacy="epsilon: 1, unit: {column: rider, max_records: 1}")
    assert tabulate(job(tmp_path, dropped), data)[0].tolist() == [1, 0, 0, 0, 0]


def test_a_column_may_be_called_like_the_count_of_a_lazy_frame(tmp_path):
    text = (
        "data: {name: x, values: {holdfast_count: [5, 6]}}\nprivacy: {epsilon: 1}\ntable: {histogram: holdfast_count}\n"
    )
    assert tabulate(job(tmp_path, text), pl.LazyFrame({"holdfast_count": [5, 5, 6]}))[0].tolist() == [2, 1]


def test_a_person_is_the_same_however_the_key_is_written(tmp_path):
    keys = ["1", "1.0", " 1", "1 ", "1.", "\t1\u00a0", "2", "2.5", "01", "a.0"]
    rows = "".join(f"N1,{key}\n" for key in keys)
    (tmp_path / "trips.csv").write_text(f"zone,rider\n{rows}", encoding="utf-8")
    text = tree("", privacy="epsilon: 1, unit: {column: rider, max_records: 1}").replace("trips.parquet", "trips.csv")
    made = job(tmp_path, text)
    assert tabulate(made)[0].tolist() == [5, 0, 0, 0, 0]  # 1, 2, 2.5, 01 and a.0
    assert tabulate(made, pl.DataFrame({"zone": ["N1"] * 10, "rider": keys}))[0].tolist() == [5, 0, 0, 0, 0]
    numbers = pl.DataFrame({"zone": ["N1"] * 3, "rider": [1.0, 1.0, 2.5]})
    assert tabulate(made, numbers)[0].tolist() == [2, 0, 0, 0, 0]
    assert check(made).persons.persons == 5
    (tmp_path / "trips.csv").write_text("zone,rider\nN1, \n")
    with pytest.raises(Refused, match="some record has no 'rider'"):
        tabulate(made)
