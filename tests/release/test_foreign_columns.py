"""Figures about columns that a table lacks: what they determine, against a list of all tables of records."""

import itertools

import numpy as np
import pytest

import jobs
import released
from holdfast.arguments import Refused
from holdfast.release.certificate.verify import verify
from holdfast.release.disclosure.disclosure import given_away, refuse_disclosure, so_far
from holdfast.release.disclosure.figure_rows import NOT_JOINED
from holdfast.release.disclosure.public_words import published, treatment
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.records.tabulate import tabulate
from holdfast.release.run import could_release, release

VALUES = "{sex: [F, M], age: [child, old], state: [X, Y], rest: [a, b]}"
#: The margin of sex and age, exact in a table that has the state too.
FINE = [
    ("cube: [sex, age]", "cube: [sex, age, state]"),
    ("[[sex], [age]]", "[[sex, age]]"),
    ("output: out", "output: first"),
]
AXES = {"sex": ("F", "M"), "age": ("child", "old"), "state": ("X", "Y")}
CELLS = list(itertools.product(*AXES.values()))


def cubes(folder, tables, more="accept_disclosure: true"):
    """A job about sex, age and state: tables are pairs of columns and of exact margins.

    A table in which everything is exact promises nothing, so those with exact margins have a column more.
    """
    listed = []
    for number, (columns, exact) in enumerate(tables):
        held = f"cube: {columns}, method: noise"
        if exact:
            held = f"cube: [{columns[1:-1]}, rest], hold: [{{exact: {exact}}}], method: onto"
        listed.append(f"  - {{name: t{number}, numbers: real, {held}}}")
    text = (
        f"data: {{source: trips.csv, name: trips, values: {VALUES}}}\n"
        "privacy: {epsilon: 1, neighbours: replace-one}\ntables:\n" + "\n".join(listed) + f"\n{more}\n"
    )
    folder.mkdir(exist_ok=True)
    return jobs.job(folder, text)


def margin(counts, columns):
    """The margin of joint counts over the columns, as a flat tuple."""
    axes = tuple(k for k, name in enumerate(AXES) if name not in columns)
    found = np.asarray(counts).reshape(2, 2, 2).sum(axis=axes)
    order = [sorted(columns, key=list(AXES).index).index(name) for name in columns]
    return tuple(found.transpose(order).ravel().tolist()) if columns else (int(found),)


def with_rest(values):
    """The cells of a table with one more column, of which only the first value occurs."""
    return np.stack([values, np.zeros_like(values)], axis=1).ravel()


def fibre(counts, exact):
    """All joint tables of whole counts that have the same exact margins."""
    total = sum(counts)
    wanted = [margin(counts, columns) for columns in exact]
    for cuts in itertools.combinations(range(total + 7), 7):
        ends = (-1, *cuts, total + 7)
        table = tuple(b - a - 1 for a, b in itertools.pairwise(ends))
        if [margin(table, columns) for columns in exact] == wanted:
            yield table


def determined(counts, exact, columns):
    """The cells of a table that have one value in the whole fibre."""
    shown = {margin(table, columns) for table in fibre(counts, exact)}
    return {i for i, values in enumerate(zip(*shown, strict=True)) if len(set(values)) == 1}


CASES = [
    ([["sex", "age"]], ["sex"]),
    ([["sex", "age"]], ["state"]),
    ([["sex", "age"]], ["age", "state"]),
    ([["sex", "age"], ["age", "state"]], ["sex", "state"]),
    ([["sex"], ["age"]], ["sex", "state"]),
    ([["sex", "state"], ["age"]], ["age", "state"]),
    ([["sex", "age"], ["age", "state"], ["sex", "state"]], ["sex", "age", "state"]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("exact", "columns"), CASES)
def test_what_other_tables_determine_is_what_the_list_of_all_tables_says(tmp_path, exact, columns):
    """One job: every exact margin in a table of its own, and one table with noise alone.

    Where two margins share a column that the table lacks, they may tell more than their sums, and that is said.
    """
    tables = [(f"[{', '.join(each)}]", f"[[{', '.join(each)}]]") for each in exact]
    made = cubes(tmp_path, [*tables, (f"[{', '.join(columns)}]", None)])
    rng = np.random.default_rng(14)
    for _ in range(6):
        counts = tuple(rng.multinomial(rng.integers(1, 5), np.full(8, 1 / 8)).tolist())
        answers = [*(with_rest(margin(counts, each)) for each in exact), np.array(margin(counts, columns))]
        found = given_away(made, [], answers)[-1]
        shared = exact == [["sex", "age"], ["age", "state"]]
        assert (NOT_JOINED in found.notes) is shared
        assert set(found.rows.tolist()) <= determined(counts, exact, columns)
        assert shared or set(found.rows.tolist()) == determined(counts, exact, columns)
        assert found.open.size == 0


def test_what_shared_foreign_columns_determine_beyond_sums_is_not_looked_for(tmp_path):
    """Children are girls in X, adults in Y: with sex × age and age × state all of sex × state is known."""
    exact = [["sex", "age"], ["age", "state"]]
    tables = [(f"[{', '.join(each)}]", f"[[{', '.join(each)}]]") for each in exact]
    made = cubes(tmp_path, [*tables, ("[sex, state]", None)])
    counts = (2, 0, 0, 1, 0, 0, 0, 3)
    answers = [*(with_rest(margin(counts, each)) for each in exact), np.array(margin(counts, ["sex", "state"]))]
    found = given_away(made, [], answers)[-1]
    assert determined(counts, exact, ["sex", "state"]) == {0, 1, 2, 3}
    assert found.rows.size == 0
    assert NOT_JOINED in found.notes


@pytest.mark.parametrize(("exact", "columns"), CASES[:5])
def test_the_ledger_tells_as_much_as_tables_of_the_same_job(tmp_path, exact, columns):
    later = cubes(tmp_path, [(f"[{', '.join(columns)}]", None), ("[sex]", None)])
    rng = np.random.default_rng(15)
    counts = tuple(rng.multinomial(4, np.full(8, 1 / 8)).tolist())
    earlier = []
    for number, each in enumerate(exact):
        listed = ", ".join(each)
        first = cubes(tmp_path / f"{number}", [(f"[{listed}]", f"[[{listed}]]"), ("[sex]", None)])
        kept = published(first, [with_rest(margin(counts, each)), np.array(margin(counts, ["sex"]))])
        earlier += [{**figures, "release": "'First'"} for figures in kept]
    found = given_away(later, earlier)[0]
    direct = {row for _, rows in found.before for row in rows.tolist()}
    assert set(found.rows.tolist()) | direct == determined(counts, exact, columns)


def test_sums_over_foreign_columns_are_refused_by_name_unless_accepted(tmp_path):
    tables = """
tables:
  - {name: first, cube: [sex, age, state], numbers: real, hold: [{exact: [[sex, age]]}], method: onto}
  - {name: second, histogram: sex}
"""
    full = {("N1", "North", *key): 31 for key in itertools.product("FM", ("child", "adult", "old"), "XY")}
    change = ("\ntable: {histogram: age}\n", tables)
    job = released.job(tmp_path / "plain", "histogram", change, records=full)
    with pytest.raises(
        Refused, match=r"determine 2 other figures of the table 'second' \(.*sums of them: sex \(all 2 figures\)\)"
    ) as told:
        release(job)
    assert "186" not in str(told.value)
    assert not Ledger(job.spec.ledger_file).entries()
    accepted = released.job(tmp_path / "accepted", "histogram", change, records=full, more="accept_disclosure: true")
    folder = release(accepted)
    assert verify(folder).ok
    assert "determined by the exact figures: sex (all 2 figures)" in (folder / "certificate.json").read_text()


def test_sums_of_earlier_figures_are_refused_unless_accepted(tmp_path):
    release(released.job(tmp_path, "contingency", *FINE, more="accept_disclosure: true"))
    later = [("output: out", "output: second"), ("histogram: age", "histogram: sex")]
    with pytest.raises(Refused, match=r"determine 2 other figures.*sex \(all 2 figures\)"):
        release(released.job(tmp_path, "histogram", *later))
    folder = release(released.job(tmp_path, "histogram", *later, more="accept_disclosure: true"))
    assert "determined by the exact figures: sex (all 2 figures)" in (folder / "certificate.json").read_text()
    assert verify(folder).ok


@pytest.mark.slow
@pytest.mark.parametrize(
    ("exact", "table", "determines"),
    [
        ("[borough]", "{histogram: borough}", {0, 1}),
        ("[borough]", "{histogram: sex}", {0, 1}),
        ("[borough]", "{histogram: zone}", {2}),
        ("[[South, S1], [South, S2], [South, S3]]", "{histogram: borough}", {1}),
        ("[[South, S2], [South, S3]]", "{histogram: borough}", {1}),  # S1 is impossible
        ("[[South, S2]]", "{histogram: borough}", set()),
        ("[North, [South, S2], [South, S3]]", "{histogram: sex}", {0, 1}),  # summed over two levels
        ("[North]", "{histogram: sex}", set()),
        ("[city, North]", "{histogram: borough}", {0, 1}),  # the other one is a difference
        ("[borough]", "{cube: [sex, state]}", set()),
    ],
)
def test_levels_of_a_hierarchy_are_columns_of_other_tables(tmp_path, exact, table, determines):
    values = "values: {sex: [F, M], borough: [North, South], zone: [N1, N2, S1, S2, S3],"
    tables = f"""
tables:
  - name: places
    hierarchy: [borough, zone]
    root: city
    categories: [sex]
    hold: [consistent, {{exact: {exact}}}, {{impossible: [{{zone: S1}}]}}]
    method: given
  - {{name: other, {table[1:]}
"""
    job = released.job(
        tmp_path, "histogram", ("values: {sex: [F, M],", values), ("\ntable: {histogram: age}\n", tables)
    )
    answers = [each.layout.query.answer(cells) for each, cells in zip(job.tables, tabulate(job), strict=True)]
    found = given_away(job, [], answers)[1]
    assert set(found.rows.tolist()) == determines
    if determines:
        job = released.job(
            tmp_path, "histogram", ("values: {sex: [F, M],", values), ("\ntable: {histogram: age}\n", tables)
        )
        with pytest.raises(Refused, match=f"determine {len(determines)} other figure"):
            refuse_disclosure(job, [found])


def test_a_column_that_is_coded_otherwise_is_summed_over(tmp_path):
    release(released.job(tmp_path, "contingency", *FINE, more="accept_disclosure: true"))
    coarse = ("age: [child, adult, old]", "age: [young, middle, late]")
    later = released.job(
        tmp_path,
        "histogram",
        ("output: out", "output: second"),
        ("histogram: age", "cube: [sex, age], margins: [[sex], [age], [sex, age]], numbers: real"),
        coarse,
    )
    (found,) = given_away(later, Ledger(later.spec.ledger_file).figures(later.dataset))
    direct = {row for _, rows in found.before for row in rows.tolist()}
    labels = {str(later.tables[0].layout.query.labels[i]) for i in {*found.rows.tolist()} - direct}
    assert labels == {"F", "M"}


def test_part_of_a_margin_is_not_summed(tmp_path):
    """A sum of some of a column's values is no figure about all records."""
    later = cubes(tmp_path, [("[sex]", None), ("[age]", None)])
    group = {"columns": ["sex", "state"], "values": [["F", "X"], ["M", "X"], ["M", "Y"]], "counts": [3, 1, 2]}
    domain = [{"columns": [name], "values": [[text] for text in AXES[name]]} for name in ("sex", "state")]
    entry = {"table": "t", "treatment": treatment(later), "groups": [group], "release": "'First'"}
    found = given_away(later, [{**entry, "implied": [], "domain": domain}])[0]
    assert found.rows.tolist() == [1]


def test_persons_with_clipped_records_are_other_records(tmp_path):
    release(released.job(tmp_path, "contingency", *FINE, more="accept_disclosure: true"))
    unit = ("unit: record, neighbours: replace-one", "unit: {column: zone, max_records: 2}")
    later = released.job(
        tmp_path, "histogram", ("output: out", "output: second"), ("histogram: age", "histogram: sex"), unit
    )
    (found,) = given_away(later, Ledger(later.spec.ledger_file).figures(later.dataset))
    assert found.rows.size == 0
    assert "other rules" in found.notes[0]


def test_a_column_of_the_records_is_the_same_under_another_name(tmp_path):
    release(released.job(tmp_path, "contingency", *FINE, more="accept_disclosure: true"))
    other_name = [
        ("output: out", "output: second"),
        ("histogram: age", "histogram: gender"),
        ("values: {sex:", "columns: {gender: sex}, values: {gender:"),
    ]
    with pytest.raises(Refused, match=r"determine 2 other figures.*gender \(all 2 figures\)"):
        release(released.job(tmp_path, "histogram", *other_name))
    other_column = [
        ("output: out", "output: third"),
        ("histogram: age", "histogram: age"),
        ("values: {sex: [F, M], age: [child, adult, old]", "columns: {age: sex}, values: {age: [F, M]"),
    ]
    job = released.job(tmp_path, "histogram", *other_column)
    (found,) = given_away(job, Ledger(job.spec.ledger_file).figures(job.dataset))
    assert set(found.rows.tolist()) == {0, 1}  # what is called age here is the sex of the records


@pytest.mark.parametrize(("name", "east", "west"), [("ward", "East", "West"), ("borough", "South", "North")])
@pytest.mark.parametrize("own", [False, True])
def test_two_ways_to_group_the_same_leaves(tmp_path, name, east, west, own):
    """North = N1 + N2 was exact. Once N1 is too, N2 is a difference, though it lies in another ward."""
    wards = f"{name},zone\n{east},N1\n{east},S1\n{west},N2\n{west},S2\n{west},S3\n"
    places = "table: {{hierarchy: [{}, zone], root: city}}\nhold: [consistent, {{exact: {}}}]\nmethod: given\n"
    head = "data: {{source: trips.csv, name: trips, domain: {}}}\nprivacy: {{epsilon: 1, neighbours: replace-one}}\n"
    early = jobs.job(tmp_path, head.format("zones.csv") + places.format("borough", "[borough]"))
    later = jobs.job(
        tmp_path, head.format("wards.csv") + places.format(name, f"[{name}, [{east}, N1]]"), wards_csv=wards
    )
    zones = np.random.default_rng(5).integers(20, 90, 5)
    figures = published(early, [early.tables[0].layout.query.answer(zones)])
    truth = later.tables[0].layout.query.answer(zones[[0, 2, 1, 3, 4]])  # in the order of the wards
    (found,) = given_away(later, [{**each, "release": "'First'"} for each in figures], [truth] if own else None)
    labels = {str(later.tables[0].layout.query.labels[i]).rpartition(" / ")[2] for i in found.rows.tolist()}
    assert labels == ({"N2", "S1"} if own else {"city"})
    assert not found.before
    assert not found.notes
    assert all(found.ranges.low[i] == truth[i] for i in found.rows.tolist())


def test_what_release_refuses_whatever_the_data_are_is_foretold(tmp_path):
    tables = """
tables:
  - {name: first, cube: [sex, age, state], numbers: real, hold: [{exact: [[sex, age]]}], method: onto}
  - {name: second, histogram: sex}
"""
    change = ("\ntable: {histogram: age}\n", tables)
    job = released.job(tmp_path, "histogram", change)
    said = so_far(job, [])
    assert "second: whatever the data are, exact figures determine sex (all 2 figures)." in said
    assert any("Release will refuse" in words for words in said)
    with pytest.raises(Refused, match=r"determine sex \(all 2 figures\) of the table 'second', whatever the data are"):
        could_release(job)
    accepted = released.job(tmp_path, "histogram", change, more="accept_disclosure: true")
    assert not any("refuse" in words for words in so_far(accepted, []))
    could_release(accepted)


def test_what_the_own_figures_determine_whatever_the_data_are_is_foretold(tmp_path):
    lonely = jobs.job(
        tmp_path,
        jobs.tree(
            data="name: trips",
            privacy="epsilon: 1, neighbours: replace-one",
            rest="hold: [consistent, {exact: [borough]}]\nmethod: given",
        ),
        zones_csv="borough,zone\nNorth,N1\nSouth,S1\nSouth,S2\n",
    )
    assert any("determine zone (city / North / N1)" in words for words in so_far(lonely, []))
    usual = jobs.job(
        tmp_path,
        jobs.tree(
            data="name: trips",
            privacy="epsilon: 1, neighbours: replace-one",
            rest="hold: [consistent, {exact: [borough]}]\nmethod: given",
        ),
    )
    assert not any("determine" in words and "whatever" in words for words in so_far(usual, []))
    could_release(usual)
