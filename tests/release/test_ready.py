"""The job from Python, and what a check shows the curator and nobody else."""

import sqlite3

import polars as pl
import pytest

import holdfast as hf
from holdfast.arguments import Refused
from holdfast.release.job import errors
from holdfast.release.records.cells import nearest
from jobs import ZONES, job, tree
from terminal import command

ROWS = {"zone": ["N1", "n1", " S1", "S1", None, "Atlantis", "S3"], "trips": [4, 3, 2, 1, 5, 6, 0]}
SPEC = {
    "title": "Trips",
    "data": {"name": "trips", "domain": "zones.csv", "count": "trips", "nulls": "drop", "outside": "drop"},
    "privacy": {"epsilon": 1},
    "table": {"hierarchy": ["borough", "zone"], "root": "city"},
    "hold": ["consistent", {"exact": "borough"}],
    "accept_disclosure": True,
    "output": "out",
}
TEXT = """
title: Trips
data: {name: trips, domain: zones.csv, count: trips, nulls: drop, outside: drop}
privacy: {epsilon: 1}
table: {hierarchy: [borough, zone], root: city}
hold: [consistent, {exact: borough}]
accept_disclosure: true
output: out
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.setattr(errors, "TABLES", 20)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zones.csv").write_text(ZONES)
    return tmp_path


@pytest.mark.slow
def test_a_path_a_mapping_and_a_text_are_the_same_job(here):
    (here / "spec.yaml").write_text(TEXT)
    jobs = [hf.job(spec) for spec in (here / "spec.yaml", "spec.yaml", SPEC, TEXT)]
    assert len({made.spec.hash for made in jobs}) == 1
    assert len({str(made.guarantee) for made in jobs}) == 1
    assert jobs[2].plan().tables
    assert "What the release promises" in jobs[2].explain()
    released = jobs[2].release(source=pl.DataFrame(ROWS), output=here / "other")
    assert released.values.tolist() == hf.load(here / "other").values.tolist()
    assert released.values[:3].tolist() == [5, 4, 1]  # the city and its boroughs are exact
    assert not (here / "out").exists()


def test_what_is_wrong_in_a_mapping_has_a_place_without_a_line():
    wrong = {**SPEC, "privacy": {"epsilon": -1}}
    with pytest.raises(Refused, match=r"^spec: privacy.epsilon: must be above 0") as caught:
        hf.job(wrong)
    assert caught.value.line is None
    with pytest.raises(Refused, match=r"^spec, line 3: data.domin: there is no key"):
        hf.job(TEXT.replace("domain", "domin"))
    with pytest.raises(Refused, match="there is no spec"):
        hf.job("nowhere.yaml")
    with pytest.raises(Refused, match="spec must be a path, a mapping or a YAML text"):
        hf.job(5)


def test_plans_and_explanations_are_short_texts_and_need_no_folder(here):
    made = hf.job({key: value for key, value in SPEC.items() if key != "output"})
    assert "made" not in vars(made)  # nothing is calibrated before it is asked for
    assert repr(made).startswith("job('")
    planned = repr(made.plan())
    assert "expected absolute error by level" in planned
    assert "exact (published exactly)" in planned
    assert len(planned) < 2000
    assert "\n  " in repr(made.explain())
    assert "<" in made.explain()._repr_html_()
    with pytest.raises(Refused, match="names no folder for the release"):
        made.release(source=pl.DataFrame(ROWS))


def test_a_column_under_another_name_is_refused_with_the_remedy(here):
    made = hf.job(SPEC)
    with pytest.raises(Refused, match=r"write columns: \{zone: Zone\} under data .*did you mean 'Zone'"):
        made.check(pl.DataFrame(ROWS).rename({"zone": "Zone"}))
    assert "made" not in vars(made)


# --- check ---------------------------------------------------------------------------------------------------------


def test_a_check_names_what_does_not_fit_and_the_nearest_names(here):
    found = hf.job(SPEC).check(pl.DataFrame(ROWS))
    assert (found.records, found.kept, found.nulls) == (21, 5, {"zone": 5})
    (table,) = found.tables
    assert (table.fitting, table.missing, table.outside) == (5, 5, 11)
    assert [(each.value[0], each.records, each.nearest, each.differs_in) for each in table.foreign] == [
        ("Atlantis", 6, None, None),
        ("n1", 3, "N1", "upper and lower case"),
        (" S1", 2, "S1", "spaces"),
    ]
    assert table.figures == {"city / North": 4, "city / South": 1}
    told = str(found)
    assert told.startswith("For the curator's eyes")
    assert "'n1' in 3 records; 'N1' differs only in upper and lower case" in told
    assert "city / South: 1" in told
    assert sorted(path.name for path in here.iterdir()) == ["zones.csv"]
    assert found.as_mapping()["tables"][0]["foreign"][1]["nearest"] == "N1"


def test_an_empty_source_is_valid_and_said_so_here():
    assert "a table of zeros is a valid release" in str(hf.job(SPEC).check(pl.DataFrame(ROWS).clear()))


def test_a_check_of_refused_records_and_of_persons():
    refusing = {
        **SPEC,
        "data": {"name": "x", "domain": "zones.csv"},
        "hold": ["consistent"],
        "accept_disclosure": False,
    }
    refusing["privacy"] = {"epsilon": 1, "unit": {"column": "rider", "max_records": 2}}
    riders = {"rider": ["a", "a", "a", "b", "c", "c", None, ""], "zone": ["N1"] * 5 + ["X", "N1", "N2"]}
    found = hf.job(refusing).check(pl.DataFrame(riders))
    persons = found.persons
    assert (persons.persons, persons.several, persons.above, persons.left_out, persons.nobody) == (3, 2, 1, 1, 2)
    assert (found.records, found.kept) == (5, 4)
    assert "1 record outside the domain: a release is refused" in str(found)


def test_a_check_of_several_tables_says_into_which_each_record_falls():
    spec = {key: SPEC[key] for key in ("title", "privacy", "output")}
    spec["data"] = {"name": "x", "values": {"sex": ["F", "M"], "age": ["child", "old"]}, "outside": {"category": "old"}}
    spec["data"]["values"]["sex"].append("old")
    spec["tables"] = [{"name": "a", "histogram": "sex"}, {"name": "b", "histogram": "age"}]
    found = hf.job(spec).check(pl.DataFrame({"sex": ["F", "x", None], "age": ["old", "old", "unborn"]}))
    assert [(table.fitting, table.missing, table.outside) for table in found.tables] == [(2, 1, 0), (3, 0, 0)]
    assert [list(table.different) for table in found.tables] == [["sex"], ["age"]]
    assert found.kept == 2


def test_a_check_of_paths_looks_at_every_column_and_then_at_their_combinations():
    spec = {**SPEC, "table": {**SPEC["table"], "match": "path"}, "hold": ["consistent"]}
    data = {"borough": ["north", "north", "North", "South"], "zone": ["N1", "N2", "S1", "s1"], "trips": [1, 2, 4, 8]}
    (table,) = hf.job(spec).check(pl.DataFrame(data)).tables
    found = [(each.columns, each.value, each.records, each.nearest) for each in table.foreign]
    assert found[:2] == [(("borough",), ("north",), 3, "North"), (("zone",), ("s1",), 8, "S1")]
    assert found[2][:3] == (("borough", "zone"), ("North", "S1"), 4)
    assert (table.outside, table.different) == (15, {"borough": 1, "zone": 1, "borough / zone": 1})


def test_a_check_of_impossible_cells():
    spec = {**SPEC, "hold": ["consistent", {"impossible": "N2"}]}
    (table,) = (found := hf.job(spec).check(pl.DataFrame({"zone": ["N2", "N1"], "trips": [3, 4]}))).tables
    assert (table.fitting, table.outside, table.foreign) == (4, 3, ())
    assert "They lie in impossible cells." in str(found)


def test_a_check_says_that_counts_break_the_rules(tmp_path):
    made = job(tmp_path, tree(rest="hold: [consistent, {between: {high: 2, at: zone}}]\nmethod: onto"))
    from holdfast.release.records.check import check

    assert check(made, pl.DataFrame({"zone": ["N1"] * 3})).tables[0].violated
    assert "a release is refused" in str(check(made, pl.DataFrame({"zone": ["N1"] * 3})))
    assert not check(made, pl.DataFrame({"zone": ["N1"] * 2})).tables[0].violated


def test_a_check_lists_rows_that_repeat_names_lack_a_count_or_contradict_their_place():
    rows = {
        "borough": ["North", "north", "South", "South", None, "South"],
        "zone": ["N1", "N1", "S1", "S1", "S2", "N2"],
        "trips": [4, 3, 2, None, 1, 5],
    }
    found = hf.job({**SPEC, "hold": ["consistent"]}).check(pl.DataFrame(rows))
    assert vars(found.rows) == {"column": "trips", "repeated": 2, "uncounted": 1, "first": 4}
    assert found.records == 13  # of the groups of names whose counts are all there
    assert found.tables[0].elsewhere == {"borough": (2, "'South' for 'N2', in 'North'")}
    told = str(found)
    assert "2 rows have the names of another row: their counts 'trips' are added up." in told
    assert "(the first is row 4): a release is refused" in told
    assert "2 rows name another 'borough' than the domain gives their lowest place" in told
    assert found.as_mapping()["rows"]["repeated"] == 2
    whole = hf.job({**SPEC, "hold": ["consistent"]}).check(pl.DataFrame({"zone": ["N1", "S1"], "trips": [1, 2]}))
    assert (vars(whole.rows)["repeated"], whole.tables[0].elsewhere) == (0, {})


def test_a_check_says_where_rows_look_like_counts():
    names = [f"B{i}" for i in range(1200)]
    data = {"name": "x", "values": {"block": names}}
    spec = {"title": "T", "data": data, "privacy": {"epsilon": 1}, "table": {"histogram": "block"}, "output": "out"}
    hint = "1,200 of them have names that no other record has"
    assert hint in str(hf.job(spec).check(pl.DataFrame({"block": names})))
    known = {**spec, "data": {**data, "rows_are_records": True}}
    assert "no other record" not in str(hf.job(known).check(pl.DataFrame({"block": names})))
    for rows in (names[:900], names + names[:300]):
        assert "no other record" not in str(hf.job(spec).check(pl.DataFrame({"block": rows})))


def test_a_source_without_a_column_is_refused_before_methods_are_compared(here):
    (here / "trips.csv").write_text("Zone,trips\nN1,4\n")
    made = hf.job({**SPEC, "data": {**SPEC["data"], "source": "trips.csv"}})
    with pytest.raises(Refused, match=r"write columns: \{zone: Zone\}(.|\n)*nothing was charged"):
        made.release()
    assert "made" not in vars(made)
    mended = hf.job({**SPEC, "data": {**SPEC["data"], "source": "trips.csv", "columns": {"zone": "Zone"}}})
    assert mended.release().values[0] == 4


@pytest.mark.parametrize(
    ("value", "name", "why"),
    [
        ("queens", "Queens", "upper and lower case"),
        ("Staten  Island", "Staten Island", "spaces"),
        ("007", "7", "leading zeros"),
        ("7.0", "7", "leading zeros"),
        ("MÃ¼nchen", "München", "encoding"),
        ("Mu\u0308nchen", "München", "encoding"),
        ("Munchen", "München", "accents"),
        (" STATEN ISLAND", "Staten Island", "case, spaces, zeros, encoding and accents"),
        ("Quens", "Queens", "spelling"),
    ],
)
def test_the_nearest_name_and_in_what_it_differs(value, name, why):
    assert nearest(value, ["Queens", "Staten Island", "7", "München", "A", "a"]) == (name, why)


def test_no_name_is_near_where_several_are_as_near():
    assert nearest("á", ["A", "a"]) == ("a", "accents")
    assert nearest(" a", ["A", "a"]) == ("a", "spaces")
    assert nearest("b.", ["B", "c"]) is None


# --- the command ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_shows_a_check_to_a_terminal_only_and_tells_of_dropped_records_there(here):
    (here / "spec.yaml").write_text(TEXT.replace("name: trips", "source: trips.csv"))
    pl.DataFrame(ROWS).write_csv(here / "trips.csv")
    code, told, wrong = command("check", "spec.yaml", terminal=False)
    assert (code, told) == (3, "")
    assert "use a terminal, or write --even-to-a-file" in wrong
    code, told, _ = command("check", "spec.yaml", "--even-to-a-file", terminal=False)
    assert code == 0
    assert "'n1' in 3 records" in told
    code, told, _ = command("check", "spec.yaml", terminal=True)
    assert code == 0
    assert "For the curator's eyes" in told
    code, told, _ = command("release", "spec.yaml", terminal=True)
    assert code == 0, told
    assert "some records were dropped" in told
    code, told, wrong = command("release", "spec.yaml", "--output", "again", terminal=False)
    assert code == 0
    assert "dropped" not in told + wrong


@pytest.mark.parametrize("kind", ["trips.csv", "sqlite"])
def test_init_reads_the_names_of_the_columns_and_no_record(here, kind):
    (here / "trips.csv").write_text("ZONE,n,rider\nN1,4,secret\n")
    more = []
    source = "trips.csv"
    if kind == "sqlite":
        source = f"sqlite:///{here / 'trips.db'}"
        with sqlite3.connect(here / "trips.db") as database:
            database.execute("CREATE TABLE rides (ZONE TEXT, n INTEGER, rider TEXT)")
            database.execute("INSERT INTO rides VALUES ('N1', 4, 'secret')")
        more = ["--table", "rides"]
    code, told, wrong = command("init", "zones.csv", "--source", source, *more, terminal=False)
    assert code == 0, wrong
    text = (here / "spec.yaml").read_text()
    assert "secret" not in text + told + wrong
    data = hf.job(here / "spec.yaml").spec.data
    assert (data.columns, data.count, data.table) == ({"zone": "ZONE"}, "n", more[-1] if more else None)
    assert hf.job(here / "spec.yaml").check().records == 4
    assert "next: holdfast plan spec.yaml" in told


def test_init_names_further_columns_and_asks_for_a_public_file(here):
    (here / "trips.csv").write_text("borough,zone,rider,age\nNorth,N1,secret,4\n")
    code, _, wrong = command("init", "zones.csv", "--from", "trips.csv", terminal=False)
    assert code == 0, wrong
    text = (here / "spec.yaml").read_text()
    assert "# the records also have: rider, age (" in text
    assert "secret" not in text
    code, _, wrong = command("init", "--from", "trips.csv", "--spec", "other.yaml", terminal=False)
    assert code == 3
    assert "holdfast init blocks.csv --from trips.csv" in wrong
    assert not (here / "other.yaml").exists()
