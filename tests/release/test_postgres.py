"""Records in PostgreSQL, on a real server: counted there, read in one transaction, and nothing secret is printed."""

import logging

import polars as pl
import psycopg
import pytest

import postgres
from holdfast.arguments import Refused
from holdfast.release.job import errors
from holdfast.release.records import databases, sources
from holdfast.release.records.tabulate import tabulate
from jobs import job, tree

TABLE = """
CREATE TABLE trips (zone TEXT, hour TIMESTAMP, trips INTEGER, rider UUID, note JSONB);
INSERT INTO trips
  SELECT (ARRAY['N1','N2','S1','S3'])[1 + i % 4], '2022-01-01'::timestamp + i * interval '1 hour', i % 3,
  ('00000000-0000-0000-0000-' || lpad((i % 20)::text, 12, '0'))::uuid, '{}' FROM generate_series(0, 399) AS i;
CREATE SCHEMA "Other";
CREATE VIEW "Other"."Trips by zone" AS SELECT zone AS "Zone", sum(trips) AS "N" FROM trips GROUP BY zone;
CREATE TABLE one (zone TEXT, number NUMERIC, real DOUBLE PRECISION, big BIGINT);
INSERT INTO one VALUES ('N1', 2, 2, 4611686018427387903), ('S1', 1, 1, 0);
CREATE VIEW named AS SELECT upper(zone) AS zone, hour FROM trips WHERE zone IN ('N1', 'N2') AND zone LIKE 'N%';
CREATE VIEW upon AS SELECT zone FROM named ORDER BY hour;
CREATE VIEW large AS SELECT zone FROM trips WHERE (SELECT count(*) FROM trips) > 64;
CREATE TABLE parts (zone TEXT) PARTITION BY LIST (zone);
CREATE TABLE part PARTITION OF parts FOR VALUES IN ('N1');
INSERT INTO parts VALUES ('N1');
CREATE TABLE hidden (zone TEXT);
ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
CREATE TABLE made (zone TEXT, length INTEGER GENERATED ALWAYS AS (length(zone)) STORED);
INSERT INTO made VALUES ('N1');
"""
#: A function that takes the place of one of the system for texts of limited length, and reads other records.
SHADOW = """
CREATE TABLE short (zone VARCHAR(9));
CREATE FUNCTION public.lower(varchar) RETURNS TEXT LANGUAGE SQL AS 'SELECT count(*)::text FROM trips';
"""
ASSERTED = "rows_depend_on_other_rows: false"
#: One method, so that none are compared.
GIVEN = "hold: [consistent]\nmethod: given"
COUNTS = [99, 100, 101, 0, 99]


@pytest.fixture(scope="module")
def address():
    try:
        with postgres.server() as found:
            with psycopg.connect(f"postgresql://{postgres.USER}:{postgres.PASSWORD}@{found}") as connection:
                connection.execute(TABLE)
            yield found
    except postgres.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(autouse=True)
def signed_in(monkeypatch):
    """The driver reads who signs in from the environment, as everywhere."""
    monkeypatch.setattr(errors, "TABLES", 20)
    monkeypatch.setenv("PGUSER", postgres.USER)
    monkeypatch.setenv("PGPASSWORD", postgres.PASSWORD)


def counted(folder, address: str, words: str, data: str = "") -> list[int]:
    text = tree(data, rest=GIVEN).replace("source: trips.parquet", f"source: 'postgresql://{address}', {words}")
    return tabulate(job(folder, text))[0].tolist()


def test_records_and_counted_rows_of_tables_views_and_queries(tmp_path, address):
    assert counted(tmp_path, address, "table: trips, count: trips") == COUNTS
    assert counted(tmp_path, address, "table: trips, rows_are_records: true") == [100, 100, 100, 0, 100]
    view = "table: Other.Trips by zone, count: N, columns: {zone: Zone}"
    assert counted(tmp_path, address, f"{view}, {ASSERTED}") == COUNTS
    with pytest.raises(Refused, match=r"data.table: rows of this source may depend .*GROUP BY: leave it"):
        counted(tmp_path, address, view)
    assert counted(tmp_path, address, "query: 'SELECT zone FROM trips WHERE trips > 1;'") == [33, 33, 34, 0, 33]
    with pytest.raises(Refused, match="write count: trips, or rows_are_records"):
        counted(tmp_path, address, "table: trips")
    for column in ("number", "real"):
        assert counted(tmp_path, address, f"table: one, count: {column}") == [2, 0, 1, 0, 0]
    assert counted(tmp_path, address, "table: one, count: big") == [2**62 - 1, 0, 0, 0, 0]
    with pytest.raises(Refused, match="add up to 2⁶² or more"):
        counted(tmp_path, address, f"query: 'SELECT zone, 1::bigint << 61 AS big FROM one', {ASSERTED}, count: big")


def test_only_distinct_values_leave_the_database(tmp_path, address, monkeypatch):
    fetched = []
    monkeypatch.setattr(sources, "text_of", lambda value: fetched.append(value) or str(value))
    assert counted(tmp_path, address, "table: trips, rows_are_records: true") == [100, 100, 100, 0, 100]
    assert sorted(value for value in fetched if isinstance(value, str)) == ["N1", "N2", "S1", "S3"]


@pytest.mark.parametrize("most", [100_000, 4, 3])
def test_groups_are_counted_without_a_cursor_unless_there_are_many(tmp_path, address, monkeypatch, most):
    """A declared cursor has no parallel plan; more groups than memory should hold at once come through one."""
    declared = []
    real = psycopg.ServerCursor.execute
    monkeypatch.setattr(
        psycopg.ServerCursor, "execute", lambda self, *args, **more: declared.append(1) or real(self, *args, **more)
    )
    monkeypatch.setattr(databases, "GROUPS", most)
    assert counted(tmp_path, address, "table: trips, rows_are_records: true") == [100, 100, 100, 0, 100]
    assert len(declared) == (most == 3)


def test_times_and_numbers_are_the_names_that_a_file_has(tmp_path, address):
    values = "values: {hour: ['2022-01-01 00:00:00', '2022-01-01 01:00:00']}, outside: drop"
    text = (
        f"privacy: {{epsilon: 1}}\ntable: {{histogram: hour}}\ndata: {{source: 'postgresql://{address}', table: trips"
    )
    assert tabulate(job(tmp_path, f"{text}, rows_are_records: true, {values}}}\n"))[0].tolist() == [1, 1]


def test_persons_records_are_limited_as_those_of_a_file(tmp_path, address, monkeypatch):
    monkeypatch.setattr(databases, "PIECE", 37)
    with psycopg.connect(f"postgresql://{address}") as connection:
        records = connection.execute("SELECT zone, hour, trips, rider FROM trips").fetchall()
    text = tree("rows_are_records: true", privacy="epsilon: 1, unit: {column: rider, max_records: 3}")
    words = f"source: 'postgresql://{address}', name: trips, query: 'SELECT zone, hour, trips, rider FROM trips'"
    found = tabulate(job(tmp_path, text.replace("source: trips.parquet", words)))[0]
    assert found.sum() == 60
    texts = pl.DataFrame(
        [[str(value) for value in row] for row in records], schema=["zone", "hour", "trips", "rider"], orient="row"
    )
    plain = job(tmp_path, text.replace("source: trips.parquet", "name: trips"))
    assert tabulate(plain, texts)[0].tolist() == found.tolist()


@pytest.mark.parametrize("wrong", ["NULL", "-1", "1.5", "'NaN'::float8", "1e30::float8"])
def test_counts_that_are_none_are_refused(tmp_path, address, wrong):
    query = f"SELECT zone, CASE WHEN zone = ''S1'' THEN {wrong.replace(chr(39), chr(39) * 2)} ELSE 1 END AS n FROM one"
    with pytest.raises(Refused, match=r"the count 'n' of row \d+ is missing, or no whole number") as caught:
        counted(tmp_path, address, f"query: '{query}', {ASSERTED}, count: n")
    assert "NaN" not in str(caught.value)


def test_what_is_wrong_is_one_sentence_without_secrets_or_records(tmp_path, address, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    texts = []
    for words, sentence in [
        ("table: trip", "no table 'trip' that can be read; allowed: .*one, .*; did you mean 'trips'"),
        ("table: Nowhere.trips", "no table 'Nowhere.trips'"),
        ("rows_are_records: true", "a database needs data.table or data.query"),
        ("query: SELECT zne FROM trips", "data.query: rows of the query may .*'zne', which is no column of the table"),
        (f"query: SELECT zne FROM trips, {ASSERTED}", "data.query: the database cannot answer"),
        ("query: 'SELECT zone, zone FROM trips'", "two columns of the records have the same name"),
        ("query: 'SELECT zone::int AS zone FROM trips'", "the database cannot answer|cannot be read"),
        ("query: 'SELECT note AS zone FROM trips'", "has the type STRUCT; texts, whole numbers or dates are needed"),
        ("query: 'DROP TABLE trips'", "something else than a SELECT"),
        (f"query: 'DROP TABLE trips', {ASSERTED}", "the database cannot answer"),
        (f"query: 'SELECT pg_terminate_backend(pg_backend_pid())::text AS zone', {ASSERTED}", "went away, or refused"),
    ]:
        with pytest.raises(Refused, match=sentence) as caught:
            counted(tmp_path, address, words)
        texts.append(str(caught.value))
    for password, sentence in (("wr0ng", "refuses this user or password"), (None, "asks for a password")):
        if password is None:
            monkeypatch.delenv("PGPASSWORD")
        else:
            monkeypatch.setenv("PGPASSWORD", password)
        with pytest.raises(Refused, match=sentence) as caught:
            counted(tmp_path, address, "table: trips")
        assert not caught.value.retry
        texts.append(str(caught.value))
    told = caplog.text + "".join(texts)
    assert not any(word in told for word in (postgres.PASSWORD, "wr0ng", "S1", "S3"))


def test_one_view_of_the_data_although_others_write(tmp_path, address, monkeypatch):
    """Rows that come between the look at the columns and the count are not counted."""
    real = databases.Database.counted

    def late(self, asked):
        with psycopg.connect(f"postgresql://{address}") as other:
            other.execute("INSERT INTO one VALUES ('N2', 1, 1, 1)")
        return real(self, asked)

    monkeypatch.setattr(databases.Database, "counted", late)
    try:
        assert counted(tmp_path, address, "table: one, count: number") == [2, 0, 1, 0, 0]
    finally:
        with psycopg.connect(f"postgresql://{address}") as other:
            other.execute("DELETE FROM one WHERE zone = 'N2'")


def test_views_are_read_and_followed_to_their_tables(tmp_path, address):
    for words, cells in [("table: named", [100, 100, 0, 0, 0]), ("table: upon", [100, 100, 0, 0, 0])]:
        assert counted(tmp_path, address, words) == cells
    assert counted(tmp_path, address, "query: 'SELECT zone FROM upon UNION ALL SELECT zone FROM one'")[2] == 1
    assert counted(tmp_path, address, "table: parts") == [1, 0, 0, 0, 0]
    assert counted(tmp_path, address, "query: SELECT zone FROM made WHERE length > 1") == [1, 0, 0, 0, 0]
    for words, sentence in [
        ("table: large", "in the view 'large', a SELECT within an expression"),
        ("query: SELECT zone FROM large", "in the view 'large', a SELECT within an expression"),
        ("query: 'SELECT zone FROM trips UNION ALL SELECT zone FROM named'", "one table twice"),
        ("query: 'SELECT zone FROM one UNION ALL SELECT zone FROM parts'", "shares its rows with another"),
        ("query: SELECT ctid::text AS zone FROM trips", "'ctid', which is no column of the table"),
        ("query: SELECT relname AS zone FROM pg_class", "'pg_class', which is no table or view"),
        ("query: SELECT trips.upper AS zone FROM trips", "'upper', which is no column of the table"),
        ("query: 'SELECT generate_series(1, 2)::text AS zone FROM trips'", "the function 'generate_series'"),
    ]:
        with pytest.raises(Refused, match=sentence):
            counted(tmp_path, address, words)


def test_what_cannot_be_read_is_assumed_in_words(tmp_path, address):
    origins = []
    text = tree(rest=GIVEN).replace("source: trips.parquet", f"source: 'postgresql://{address}', table: hidden")
    tabulate(job(tmp_path, text), made=origins.append)
    (assumed,) = origins[0].assumes
    assert assumed.endswith("(how 'hidden' is made cannot be read)")


def test_functions_that_take_the_place_of_the_systems_own_are_refused(tmp_path, address):
    query = "query: SELECT lower(zone) AS zone FROM short"
    with psycopg.connect(f"postgresql://{address}", autocommit=True) as connection:
        connection.execute(SHADOW)
        with pytest.raises(Refused, match="functions, operators or casts that were made in the database"):
            counted(tmp_path, address, query)
        connection.execute("DROP FUNCTION public.lower(varchar)")
    assert counted(tmp_path, address, query) == [0, 0, 0, 0, 0]


def test_texts_that_the_server_calls_equal_are_counted_apart(tmp_path, address):
    with psycopg.connect(f"postgresql://{address}", autocommit=True) as connection:
        try:
            connection.execute(
                "CREATE COLLATION fold (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
            )
        except psycopg.Error:
            pytest.skip("this server has no such collations")
        connection.execute("CREATE TABLE folded (zone TEXT COLLATE fold)")
        connection.execute("INSERT INTO folded VALUES ('n1'), ('N1'), ('N1')")
        try:
            assert counted(tmp_path, address, "table: folded, outside: drop") == [2, 0, 0, 0, 0]
        finally:
            connection.execute("DROP TABLE folded")
            connection.execute("DROP COLLATION fold")
