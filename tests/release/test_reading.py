"""Files are read by their names and headers: no record changes how another is read, and none stands in a message."""

import gzip

import duckdb
import pytest

from holdfast.arguments import Refused
from holdfast.release.job import errors
from holdfast.release.records.tabulate import tabulate
from holdfast.release.storage.engine import Unreadable, rows_of
from jobs import job, tree

RECORDS = "zone,note\nN1,a\nS1,b\nN1,c\n"
ODD = ['N1,"a;b|c"', "N1,'", "N1,#", 'N1,a"b', "N1,\\", "N1,\t\t\t"]
BROKEN = ["secret,1,2,3,4", "secret;1;2;3;4", '"secret', "secret|1|2", "\tsecret\t", "secret"]


@pytest.fixture(autouse=True)
def few_simulated_tables(monkeypatch):
    """Errors are not looked at here."""
    monkeypatch.setattr(errors, "TABLES", 20)


@pytest.fixture
def counted(tmp_path):
    def count(content, data="nulls: drop, outside: drop", name="trips.csv"):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return tabulate(job(tmp_path, tree(data).replace("trips.parquet", f"'{name}'")))[0].tolist()

    return count


@pytest.mark.parametrize("record", ODD)
def test_an_odd_record_adds_itself_and_changes_nothing_else(counted, record):
    assert counted(RECORDS) == [2, 0, 1, 0, 0]
    assert counted(RECORDS + record + "\n") == [3, 0, 1, 0, 0]


@pytest.mark.parametrize("record", BROKEN)
def test_a_record_that_does_not_fit_the_header_is_refused_and_not_quoted(counted, record):
    with pytest.raises(Refused, match="cannot be read") as caught:
        counted(RECORDS + record + "\n")
    assert "secret" not in str(caught.value)
    assert "secret" not in str(caught.value.as_mapping())


def test_a_file_without_a_header_does_not_show_its_first_record(counted):
    with pytest.raises(Refused, match="no column 'zone'; the first line of a CSV file") as caught:
        counted("secret,N1\nother,S1\n")
    assert "secret" not in str(caught.value.as_mapping())
    with pytest.raises(Refused, match="did you mean 'zones'"):
        counted("zones,note\nN1,a\n")


@pytest.mark.parametrize(
    "content",
    [
        RECORDS.replace(",", ";"),
        RECORDS.replace(",", "\t"),
        RECORDS.replace("\n", "\r\n"),
        "\ufeff" + RECORDS,
        RECORDS.replace("note", '"no\nte, ""x"""'),
        RECORDS.replace("note", ""),
        RECORDS.replace("zone,note", "zone,ZONE"),
        RECORDS.removesuffix("\n"),
    ],
    ids=[
        "semicolons",
        "tabs",
        "carriage returns",
        "mark",
        "quoted header",
        "nameless",
        "same name",
        "no last line end",
    ],
)
def test_the_header_tells_how_a_file_is_read(counted, content):
    assert counted(content, "") == [2, 0, 1, 0, 0]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"zone\nN1\n\xff\n"])
def test_what_is_no_text_is_refused(counted, content):
    with pytest.raises(Refused, match="cannot be read"):
        counted(content)


def test_a_damaged_archive_is_refused(counted):
    whole = gzip.compress((RECORDS * 1000).encode())
    for content in (b"secret", whole[:20], whole[:-20]):
        with pytest.raises(Refused, match="cannot be read"):
            counted(content, name="trips.csv.gz")


def test_a_name_that_looks_like_a_pattern_means_the_file_of_this_name(counted, tmp_path):
    (tmp_path / "trips1.csv").write_text("zone\nS3\n")
    assert counted(RECORDS, name="trips[1].csv") == [2, 0, 1, 0, 0]
    (tmp_path / "zones1.csv").write_text("borough,zone\nNorth,N1\nSouth,S1\n")
    (tmp_path / "zones[1].csv").write_text((tmp_path / "zones.csv").read_text())
    made = job(tmp_path, tree().replace("zones.csv", "'zones[1].csv'"))
    assert made.tables[0].layout.query.cells == 5
    folder = tmp_path / "a[b]*?"
    folder.mkdir()
    (folder / "x.csv").write_text("k\nx\n")
    assert duckdb.sql(f"FROM {rows_of(folder / 'x.csv')}").fetchall() == [("x",)]


def test_several_files_must_have_one_header(counted, tmp_path):
    (tmp_path / "part-1.csv").write_text(RECORDS)
    (tmp_path / "part-2.csv").write_text(RECORDS)
    text = tree().replace("trips.parquet", "part-*.csv")
    assert tabulate(job(tmp_path, text))[0].tolist() == [4, 0, 2, 0, 0]
    (tmp_path / "part-2.csv").write_text("note,zone\na,N1\n")
    with pytest.raises(Refused, match="cannot be read"):
        tabulate(job(tmp_path, text))
    with pytest.raises(Unreadable):
        rows_of(tmp_path / "part-*.csv")


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT", "DECIMAL(9, 2)", "INTEGER", "VARCHAR"])
def test_numbers_have_one_name_in_the_domain_and_in_the_records(tmp_path, kind):
    text = "data: {source: trips.parquet, domain: keys.parquet}\nprivacy: {epsilon: 1}\ntable: {histogram: key}\n"
    duckdb.sql(f"COPY (SELECT unnest([1, 2])::{kind} AS key) TO '{tmp_path / 'keys.parquet'}'")
    for own in ("DOUBLE", "INTEGER", "DECIMAL(5, 1)"):
        duckdb.sql(f"COPY (SELECT unnest([2, 2, 1])::{own} AS key) TO '{tmp_path / 'trips.parquet'}'")
        assert tabulate(job(tmp_path, text))[0].tolist() == [1, 2]
