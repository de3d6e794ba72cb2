"""The public domain: what its files must be, how outputs are named, and what the names of a spec mean."""

import numpy as np
import pytest

from holdfast.release.job import errors
from holdfast.release.spec.places import SpecError
from jobs import cube, job, tree


@pytest.fixture(autouse=True)
def few_simulated_tables(monkeypatch):
    """Errors are not looked at here."""
    monkeypatch.setattr(errors, "TABLES", 20)


WRONG_DOMAINS = [
    ("borough,zone\nNorth,N1\nNorth,N1\n", "rows 1 and 2 .* both name 'North / N1'"),
    ("borough,zone\nNorth,N1\nSouth,N1\n", "'N1' lies in both 'North' and 'South'.*match: path"),
    ("borough,zone\nNorth,N1\n,S1\n", "row 2 .* has no 'borough'"),
    ("borough,zone\n", "has no rows"),
]


@pytest.mark.parametrize(("content", "words"), WRONG_DOMAINS)
def test_a_wrong_domain_is_refused_with_its_line(tmp_path, content, words):
    with pytest.raises(SpecError, match=words) as caught:
        job(tmp_path, tree(), zones_csv=content)
    assert caught.value.key == "data.domain"
    assert caught.value.line == 3


def test_a_level_that_the_domain_lacks_is_refused_where_it_is_asked_for(tmp_path):
    with pytest.raises(SpecError, match=r"the file 'zones.csv' has no column 'zone'.*did you mean 'zon'") as caught:
        job(tmp_path, tree(), zones_csv="borough,zon\nNorth,N1\n")
    assert (caught.value.key, caught.value.line) == ("table.hierarchy", 5)


def test_unreadable_public_files_are_refused(tmp_path):
    with pytest.raises(SpecError, match=r"no file 'zoned.csv'.*did you mean 'zones.csv'"):
        job(tmp_path, tree().replace("zones.csv", "zoned.csv"))
    (tmp_path / "zones.parquet").write_bytes(b"PAR1 this is not Parquet PAR1")
    with pytest.raises(SpecError, match="not readable as Parquet"):
        job(tmp_path, tree().replace("zones.csv", "zones.parquet"))
    with pytest.raises(SpecError, match=r"must end in .parquet or .csv"):
        job(tmp_path, tree().replace("zones.csv", "zones.txt"))
    with pytest.raises(SpecError, match="must be public"):
        job(tmp_path, "data: {source: a.csv}\nprivacy: {epsilon: 1}\ntable: {histogram: zone}\n")
    with pytest.raises(SpecError, match="'F' occurs twice"):
        job(tmp_path, cube().replace("[F, M]", "[F, F]"))
    with pytest.raises(SpecError, match="rename it"):
        job(tmp_path, cube().replace("sex", "value"))


@pytest.mark.parametrize(
    "content", ["\n{}\r\n{}\n{}", "\r\n{}\n{}\r\n{}\r\n", "\n{}\r{}\n{}", "\r{}\r{}\r\n{}", "\n{}\r\n\r\n{}\n{}"]
)
def test_lines_of_a_public_file_may_end_in_different_ways(tmp_path, content):
    (tmp_path / "mixed.csv").write_bytes(
        ("borough,zone" + content.format("North,N1", '"So,uth",S1', "West,W1")).encode()
    )
    made = job(tmp_path, tree().replace("zones.csv", "mixed.csv")).tables[0]
    assert [*made.layout.columns["zone"]] == [None, None, None, None, "N1", "S1", "W1"]
    assert [*made.layout.columns["borough"]][1:4] == ["North", "So,uth", "West"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"North,N2,N3", "does not have 2 values, as the first has"),
        (b"North", "does not have 2 values, as the first has"),
        (b'North,"N2', "cannot be read"),
        (b"North,N\xff2", "cannot be read: a CSV file is UTF-8"),
    ],
)
def test_a_wrong_line_of_a_public_file_is_named(tmp_path, line, why):
    (tmp_path / "wrong.csv").write_bytes(b"borough,zone\nNorth,N1\n" + line + b"\nSouth,S1\n")
    with pytest.raises(SpecError, match=rf"data.domain: line 3 of 'wrong.csv' {why}"):
        job(tmp_path, tree().replace("zones.csv", "wrong.csv"))


def test_levels_that_stand_upside_down_are_refused_with_the_order_that_works(tmp_path):
    content = "county,tract,block\nA,A1,A11\nA,A1,A12\nA,A2,A21\nB,B1,B11\n"
    right = "[county, tract, block]"
    for order in ("[tract, county, block]", "[block, tract, county]", "[county, block, tract]"):
        with pytest.raises(SpecError, match=rf"write the larger places first, hierarchy: \{right}") as caught:
            job(tmp_path, tree().replace("[borough, zone]", order), zones_csv=content)
        assert caught.value.key == "table.hierarchy"
    assert job(tmp_path, tree().replace("[borough, zone]", right), zones_csv=content)
    crossed = "kind,borough,zone\nold,N,N1\nnew,N,N2\nold,S,S1\nnew,S,S2\nold,W,W1\n"  # neither lies in the other
    for order in ("[kind, borough, zone]", "[borough, kind, zone]"):
        assert job(tmp_path, tree().replace("[borough, zone]", order), zones_csv=crossed)


def test_equal_names_below_different_parents_are_told_apart_by_path(tmp_path):
    content = "borough,zone\nNorth,A\nSouth,A\n"
    table = job(tmp_path, tree(table="match: path"), zones_csv=content).tables[0]
    assert table.layout.keys[0].columns == ("borough", "zone")
    assert list(table.layout.columns["borough"]) == [None, "North", "South", "North", "South"]


def test_outputs_of_a_hierarchy_have_names(tmp_path):
    table = job(tmp_path, tree("values: {sex: [F, M]}", table="categories: sex")).tables[0]
    assert list(table.layout.columns) == ["level", "city", "borough", "zone", "sex"]
    rows = list(zip(*table.layout.columns.values(), strict=True))
    assert rows[0] == ("city", "city", None, None, "F")
    assert rows[3] == ("borough", "city", "North", None, "M")
    assert rows[-1] == ("zone", "city", "South", "S3", "M")
    assert table.layout.query.labels[3] == "city / North / M"
    assert table.layout.levels == ("city", "borough", "zone")
    assert [table.layout.levels[i] for i in table.layout.level_of] == [row[0] for row in rows]


def test_outputs_of_margins_have_names(tmp_path):
    table = job(tmp_path, cube(table="margins: [[age], [age, sex], []]")).tables[0]
    assert table.layout.levels == ("age", "sex × age", "total")
    rows = list(zip(*table.layout.columns.values(), strict=True))
    assert rows[0] == ("age", None, "child")
    assert rows[4] == ("sex × age", "F", "adult")
    assert rows[-1] == ("total", None, None)
    assert table.layout.query.n == 3 + 6 + 1
    # What the names say is what the query counts: one record of an old man.
    one = np.zeros((2, 3), dtype=np.int64)
    one[1, 2] = 1
    counted = {rows[i] for i in np.flatnonzero(table.layout.query.answer(one))}
    assert counted == {("age", None, "old"), ("sex × age", "M", "old"), ("total", None, None)}


@pytest.mark.slow
def test_exact_figures_are_found_by_name(tmp_path):
    def exact(text: str) -> dict:
        return {
            figure["figure"]: figure["rows"]
            for figure in job(tmp_path, text).tables[0].holding.holds.model_dump()["exact"]
        }

    assert exact(tree(rest="hold: [consistent, {exact: [borough]}]")) == {"borough": [[1], [2]]}
    assert exact(tree(rest="hold: [consistent, {exact: [North, [South, S2]]}]")) == {
        "North": [[1]],
        "South / S2": [[6]],
    }
    assert exact(tree(rest="hold: [consistent, {exact: [[city, South]]}]")) == {"city / South": [[2]]}
    assert exact(cube(rest="hold: [{exact: [sex]}]")) == {"sex": [[0, 1, 2], [3, 4, 5]]}
    assert exact(cube(rest="hold: [{exact: total}]")) == {"total": [[0, 1, 2, 3, 4, 5]]}
    margins = cube(table="margins: [[sex, age], [sex]], numbers: real", rest="hold: [consistent, {exact: [age]}]")
    assert exact(margins) == {"age": [[0, 3], [1, 4], [2, 5]]}


def test_statements_call_exact_figures_by_name(tmp_path):
    statement = job(tmp_path, tree(rest="hold: [consistent, {exact: [South, North]}]")).guarantee
    assert statement.unprotected[0] == "city / North, city / South (published exactly)"
    statement = job(tmp_path, cube(rest="hold: [{exact: [sex]}]")).guarantee
    assert statement.unprotected[0] == "F, M (published exactly)"


WRONG_NAMES = [
    (tree(rest="hold: [{exact: [borogh]}]"), "hold[0].exact[0]", "borough"),
    (tree(rest="hold: [{exact: [[South, N1]]}]"), "hold[0].exact[0]", None),
    (tree(rest="hold: [{between: {high: 5, at: [zones]}}]"), "hold[0].between.at[0]", "zone"),
    (tree(rest="hold: [{impossible: [Soutt]}]"), "hold[0].impossible[0]", "South"),
    (tree(rest="hold: [{impossible: [{borough: Nort}]}]"), "hold[0].impossible[0].borough", "North"),
    (tree(rest="hold: [{impossible: [{boro: North}]}]"), "hold[0].impossible[0].boro", "borough"),
    (tree(table="shares: {zones: 1}"), "table.shares.zones", "zone"),
    (cube(rest="hold: [{exact: [agee]}]"), "hold[0].exact[0]", "age"),
    (cube(rest="hold: [{impossible: [F]}]"), "hold[0].impossible[0]", None),
    (cube(table="margins: [[sx]]"), "table.margins[0]", "sex"),
    (cube(table="margins: [[sex], [sex]]"), "table.margins[1]", None),
    (cube(table="margins: [[sex]]", rest="hold: [{exact: [age]}]"), "hold[0].exact[0]", None),
    (cube(table="shares: {sex: 1}"), "table.shares", None),
    (cube("nulls: {category: none}"), "data.nulls", None),
    (cube(rest="hold: [{impossible: [{sex: [F, M]}]}]"), "hold", None),
    (cube(rest="hold: [nonnegative, {between: {high: -1}}]"), "hold[1]", None),
]


@pytest.mark.parametrize(("text", "key", "nearest"), WRONG_NAMES)
def test_wrong_names_are_refused_with_the_nearest_one(tmp_path, text, key, nearest):
    with pytest.raises(SpecError) as caught:
        job(tmp_path, text)
    assert (caught.value.key, caught.value.nearest) == (key, nearest), str(caught.value)
    assert caught.value.line is not None


def test_an_ambiguous_node_needs_its_path(tmp_path):
    content = "borough,zone\nNorth,A\nSouth,A\n"
    text = tree(table="match: path", rest="hold: [{exact: [A]}]")
    with pytest.raises(SpecError, match="2 nodes are called 'A'"):
        job(tmp_path, text, zones_csv=content)


def test_impossible_cells_fix_every_figure_they_alone_make_up(tmp_path):
    text = tree(
        "values: {sex: [F, M]}",
        table="categories: sex",
        rest="hold: [consistent, {impossible: [{borough: North, sex: M}, S2]}]",
    )
    table = job(tmp_path, text).tables[0]
    rows = list(zip(*table.layout.columns.values(), strict=True))
    assert {rows[i][2:] for i in table.holding.holds.model_dump()["impossible"]} == {
        ("North", None, "M"),
        ("North", "N1", "M"),
        ("North", "N2", "M"),
        ("South", "S2", "F"),
        ("South", "S2", "M"),
    }
    draws = table.mechanism.noise(50)
    assert not draws[:, table.holding.holds.model_dump()["impossible"]].any()
    assert draws.any()


def test_sums_in_the_account_are_those_of_the_tree(tmp_path):
    table = job(tmp_path, tree("values: {sex: [F, M]}", table="categories: sex")).tables[0]
    values = table.layout.query.answer(np.arange(10))
    sums = table.holding.holds.model_dump()["sums"]
    assert len(sums) == 3 * 2
    assert all(values[i] == values[below].sum() for i, below in sums)


def test_whole_numbers_and_texts_are_one_name(tmp_path):
    table = job(
        tmp_path, "data: {source: a.csv, values: {age: [1, '2']}}\nprivacy: {epsilon: 1}\ntable: {histogram: age}\n"
    )
    assert list(table.tables[0].layout.keys[0].values[0]) == ["1", "2"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("root: city", "root: Value", "the root must not be called 'Value'"),
        ("root: city", "root: level", "the root must not be called 'level'"),
        ("root: city", "root: BOROUGH", "'borough', which is taken already"),
        ("[borough, zone], root: city", "[borough, Zone], root: zone", "'Zone', which is taken already"),
        ("hierarchy: [borough, zone], root: city", "cube: [zone, Low]", "'Low', which the released files use"),
        ("hierarchy: [borough, zone], root: city", "cube: [zone, a × b]", "'a × b', since × stands between"),
        ("hierarchy: [borough, zone], root: city", "cube: [zone, total]", "'total', which means a sum"),
    ],
)
def test_names_that_the_released_files_could_not_tell_apart_are_refused(tmp_path, old, new, words):
    text = tree()
    assert old in text
    with pytest.raises(SpecError, match=words):
        job(tmp_path, text.replace(old, new))


@pytest.mark.parametrize("kind", ["hierarchy", "cube"])
def test_a_table_without_columns_is_refused(tmp_path, kind):
    with pytest.raises(SpecError, match="at least one column"):
        job(tmp_path, f"data: {{domain: zones.csv, name: x}}\nprivacy: {{epsilon: 1}}\ntable: {{{kind}: []}}\n")


@pytest.mark.parametrize("guess", ["1e30", "4000000000000000000"])
def test_a_guess_beyond_all_counts_is_refused_with_its_line(tmp_path, guess):
    with pytest.raises(SpecError, match="too large") as caught:
        job(tmp_path, tree(table=f"guess: {guess}"))
    assert caught.value.key == "table.guess"
