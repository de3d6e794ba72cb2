"""Values that mean a public name: check lists them, the spec takes the list, and nobody else sees it."""

import json

import pytest

from holdfast.arguments import Refused
from holdfast.release.records.check import check
from holdfast.release.records.spelling import write
from holdfast.release.records.tabulate import tabulate
from holdfast.release.run import release
from jobs import job, tree

RECORDS = "borough,place\nNorth,N1\nNorth,n1\nNorth,N 2\nSouth,S1\nSouth,S1!\nSouth,Zürich\n"
COLUMNS = "columns: {zone: place}"


def made(folder, more="", records=RECORDS):
    (folder / "trips.csv").write_text(records)
    data = ", ".join(filter(None, (COLUMNS, more)))
    return job(folder, tree(data, rest="hold: [consistent]\nmethod: given").replace("trips.parquet", "trips.csv"))


def listed(folder, *rows, header="column,value,name"):
    (folder / "list.csv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return made(folder, "spelling: list.csv")


def test_check_writes_a_list_that_the_spec_takes(tmp_path):
    found = check(made(tmp_path, "outside: drop"))
    assert sorted(found.spellings) == [
        ("place", "N 2", "N2", "spaces"),
        ("place", "S1!", "S1", "spelling"),
        ("place", "n1", "N1", "upper and lower case"),
    ]
    assert "3 of the values outside the domain may mean public names" in str(found)
    write(tmp_path / "list.csv", found.spellings)
    assert (tmp_path / "list.csv").stat().st_mode & 0o077 == 0
    with pytest.raises(Refused, match="exists already"):
        write(tmp_path / "list.csv", found.spellings)
    taken = made(tmp_path, "outside: drop, spelling: list.csv")
    assert tabulate(taken)[0].tolist() == [2, 1, 2, 0, 0]
    again = check(taken)
    assert again.spellings == []
    assert (again.kept, again.records) == (5, 6)
    folder = release(taken)
    told = json.loads((folder / "certificate.json").read_text())
    assert any("takes the list as fixed" in each for each in told["caveats"])
    written = "".join(each.read_text(errors="ignore") for each in folder.iterdir() if each.suffix != ".parquet")
    assert not any(word in written for word in ("list.csv", "S1!", "N 2"))


def test_every_value_is_listed_and_many_take_no_time(tmp_path):
    places = [f"Place {i}" for i in range(3000)]
    (tmp_path / "places.csv").write_text("zone\n" + "\n".join(places) + "\n")
    (tmp_path / "trips.csv").write_text("zone\n" + "\n".join(each.upper() for each in places) + "\n")
    text = "data: {source: trips.csv, domain: places.csv}\nprivacy: {epsilon: 1}\ntable: {histogram: zone}\n"
    found = check(job(tmp_path, text))
    assert sorted(found.spellings) == sorted(("zone", each.upper(), each, "upper and lower case") for each in places)


def test_a_list_names_columns_as_the_spec_or_the_records_do(tmp_path):
    for column in ("zone", "place"):
        counts = tabulate(
            listed(tmp_path, f"{column},n1,N1", f"{column},N 2,N2", f"{column},S1!,S1", f"{column},Zürich,S3")
        )
        assert counts[0].tolist() == [2, 1, 2, 0, 1]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("rider,n1,N1", "line 2 of the list of spellings is about a column that no table has"),
        ("zone,n1,N9", "line 2 of the list of spellings has a name that is not public"),
        ("zone,N1,N2", "a public name itself"),
        ("zone,,N2", "is empty"),
        ('zone,"n1,N1', "cannot be read"),
    ],
)
def test_a_list_that_says_something_else_is_refused_without_a_value(tmp_path, row, sentence):
    with pytest.raises(Refused, match=sentence) as caught:
        tabulate(listed(tmp_path, row))
    assert caught.value.key == "data.spelling"
    assert "n1" not in str(caught.value)


def test_a_list_that_a_spreadsheet_wrote_is_read(tmp_path):
    meant = ("zone,n1,N1", "zone,N 2,N2", "zone,S1!,S1", "zone,Zürich,S3")
    assert tabulate(listed(tmp_path, *meant, header="\ufeffcolumn,value,name"))[0].sum() == 6


def test_a_value_with_two_names_no_file_and_other_columns_are_refused(tmp_path):
    with pytest.raises(Refused, match=r"line 3 .* listed with another name"):
        tabulate(listed(tmp_path, "zone,n1,N1", "zone,n1,N2"))
    with pytest.raises(Refused, match="needs the columns column, value, name"):
        tabulate(listed(tmp_path, "zone,n1,N1", header="column,old,new"))
    with pytest.raises(Refused, match="cannot be read"):
        tabulate(made(tmp_path, "spelling: nowhere.csv"))


def test_a_list_changes_each_value_by_itself(tmp_path):
    """What one record is read as does not depend on others: counts of a part and the rest add up to those of all."""
    head, *rows = RECORDS.splitlines()
    more = ("zone,n1,N1", "zone,N 2,N2", "zone,S1!,S1", "zone,Zürich,S3")
    listed(tmp_path, *more)
    counts = [
        tabulate(made(tmp_path, "spelling: list.csv", "\n".join([head, *part]) + "\n"))[0]
        for part in (rows, rows[:2], rows[2:])
    ]
    assert (counts[0] == counts[1] + counts[2]).all()
