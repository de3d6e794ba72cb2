"""A census in one spec: margins of a cube in every area of a hierarchy, from records to what an analyst computes."""

import csv
import itertools

import numpy as np
import pytest

import holdfast as hf
from holdfast.onto.ways import areas
from holdfast.release.facts import TableCertificate
from holdfast.release.job import sharing
from holdfast.release.spec.places import SpecError
from holdfast.release.spec.table import MINIMISE
from holdfast.release.storage.tables import texts
from holdfast.trees.normal import split
from tampering import not_adding_up
from town import BLOCKS, VALUES, job, write

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    folder = tmp_path_factory.mktemp("town")
    write(folder)
    return folder


@pytest.fixture(scope="module")
def released(town):
    return job(town).release()


def counted(town, named):
    quarter = {block: place for place, block in BLOCKS}
    with (town / "persons.csv").open(newline="") as file:
        rows = [row | {"quarter": quarter[row["block"]], "town": "town"} for row in csv.DictReader(file)]
    return sum(all(row[name] == value for name, value in named.items()) for row in rows)


def test_a_release_of_margins_in_areas(town, released):
    table = released.table()
    own = table.certificate
    assert (own.kind, own.places) == ("areas", ["town", "quarter", "block"])
    assert own.levels[1] == "quarter: sex × age"
    names = ["quarter", "block", *VALUES]
    inside = []
    for row, (low, high) in zip(table.frame("polars").iter_rows(named=True), table.interval().tolist(), strict=True):
        truth = counted(town, {name: row[name] for name in names if row[name] is not None})
        inside.append(low <= truth <= high)
    assert np.mean(inside) > 0.93
    assert (table.values >= 0).all()
    records = table.records("polars")
    assert len(records) == table.values[table.names["level"] == "town: sex × age × lives"].sum()
    assert set(records.columns) == {"town", *names}


def test_names_mean_the_smallest_margin_that_has_them(released):
    table = released.table()
    level = table.names["level"]
    here = (level == "quarter: sex × age") & (table.names["quarter"] == "Q1") & (table.names["sex"] == "F")
    assert table.estimate(where={"quarter": "Q1", "sex": "F"}).value == table.values[here].sum()
    assert (
        table.estimate(where={"quarter": "Q1"}).value
        == table.estimate(where={"quarter": "Q1", "sex": ["F", "M"]}).value
    )
    # Not measured in quarters: the blocks tell it.
    pair = table.estimate(where={"quarter": "Q1", "sex": "F", "lives": "alone"})
    blocks = (level == "block: sex × age × lives") & (table.names["quarter"] == "Q1")
    blocks &= (table.names["sex"] == "F") & (table.names["lives"] == "alone")
    assert pair.value == table.values[blocks].sum()
    with pytest.raises(hf.Refused, match="no value 'X'"):
        table.estimate(where={"sex": "X"})


def test_the_mechanism_of_a_folder_has_the_law_of_the_job(town, released):
    table, made = released.table(), job(town).made.tables[0].mechanism
    assert np.allclose(table.mechanism.linear_part.standard_error(), made.linear_part.standard_error())
    assert table.mechanism.query.groups == made.query.groups


def test_every_changed_figure_is_seen(released):
    table = released.table()
    own: TableCertificate = table.certificate
    names = {name: texts(column).tolist() for name, column in table.names.items()}
    assert not_adding_up(names, table.values.tolist(), own.places) is None
    for row in range(0, len(table.values), 7):
        changed = table.values.copy()
        changed[row] += 1
        assert not_adding_up(names, changed.tolist(), own.places), row


def test_errors_are_those_of_the_best_linear_estimate(tmp_path):
    write(tmp_path)
    made = job(tmp_path, ("hold:", "method: onto\nhold:"))
    table = made.made.tables[0]
    found = table.errors
    assert [level.absolute for level in found.levels] == list(table.errors.absolute)
    drawn = np.abs(table.mechanism.linear_part.noise(200, hf.seeded(2)))
    for number, level in enumerate(found.levels):
        share = (drawn[:, table.layout.level_of == number] <= level.within(0.9)).mean()
        assert abs(share - 0.9) < 0.06
        assert np.isclose(level.bars.sum(), 0.99)


def test_plan_and_explain_speak_of_levels_and_margins(town):
    made = job(town)
    levels = made.plan().tables[0].levels
    assert [level.level for level in levels][:2] == ["town: sex × age × lives", "quarter: sex × age"]
    assert all(0 < level.expected_absolute_error < 50 for level in levels)
    assert "areas" in str(made.explain())


def test_unmeasured_levels_and_a_guess(tmp_path):
    write(tmp_path)
    made = job(
        tmp_path,
        ("town: all, quarter: [[sex, age], lives, total], ", "town: [total], "),
        ("shares: best", "guess: 3\n  shares: {town: 1, block: {total: 1, all: 2}}"),
        ("{folder: out, records: true}", "out"),
    )
    assert made.plan().tables[0].errors.basis.startswith("are those at the public guess")
    table = made.release().table()
    assert table.certificate.levels == ["town: total", "block: total", "block: sex × age × lives"]
    shares = [level.share for level in table.certificate.noise_by_level]
    assert shares == ["1", "1", "2"]


WRONG = [
    (
        "[consistent, nonnegative]",
        "[consistent, nonnegative, {ordered: [B00, B01]}]",
        "hold",
        "leave the other rules out",
    ),
    ("[[sex, age], lives", "[[sex, agee], lives", "table.measure.quarter", "there is no axis 'agee'"),
    ("quarter: [[", "quartre: [[", "table.measure", "there is no level 'quartre'"),
    ("lives, total]", "lives, lives]", "table.measure.quarter", "listed twice"),
    ("quarter: [[sex, age], lives, total]", "quarter: []", "table.measure.quarter", "a list of margins"),
    (
        "  measure: {town: all, quarter: [[sex, age], lives, total], block: [total, all]}\n",
        "",
        "table.cube",
        "needs measure",
    ),
    ("  cube: [sex, age, lives]\n", "", "table.measure", "goes with hierarchy and cube"),
    ("cube: [sex, age, lives]", "cube: [sex, age, quarter]", "table.cube", "already a level"),
    ("shares: best", "shares: bets", "table.shares", "must be best"),
    ("shares: best", "weights: {town: 1}", "table.weights", "goes with shares: best"),
    ("shares: best", "shares: best\n  weights: {quarter: {sex: 1}}", "table.weights.quarter", "is not measured at"),
    ("shares: best", "shares: best\n  weights: {quarter: 0}", "table.weights", "every weight is 0"),
    ("shares: best", "shares: best\n  weights: {quarter: {sex: -1}}", "table.weights.quarter", "0 or more"),
    ("shares: best", "shares: best\n  minimise: most", "table.minimise", "found"),
    ("shares: best", "shares: {town: 1, quarter: 1}", "table.shares", "nothing that is measured tells"),
    ("shares: best", "shares: {block: {sex: 1}}", "table.shares.block", "is not measured at"),
    ("shares: best", "margins: [[sex]]", "table.margins", "write measure"),
    ("shares: best", "categories: [lives]", "table.categories", "leave categories out"),
    ("cube: [sex, age, lives]", "cube: [sex, age, 'a: b']", "table.cube", "stands between a level"),
    ("[consistent, nonnegative]", "[consistent, {exact: [{quarter: [sx]}]}]", "hold[1].exact", "there is no axis 'sx'"),
    (
        "[consistent, nonnegative]",
        "[consistent, {exact: [{quarter: [sex, lives]}]}]",
        "hold[1].exact",
        "does not follow",
    ),
]


@pytest.mark.parametrize(("old", "new", "key", "sentence"), WRONG, ids=[new[:30] for _, new, _, _ in WRONG])
def test_what_is_wrong_is_named_with_its_place(tmp_path, old, new, key, sentence):
    write(tmp_path)
    with pytest.raises(SpecError, match=sentence) as found:
        _ = job(tmp_path, (old, new)).made
    assert key in str(found.value)


def test_words_of_the_spec_are_those_of_the_library():
    assert MINIMISE == split.MINIMISE


def test_best_shares_make_least_what_is_asked():
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2, 2, 2])
    query = hf.counts(tree, by=(3,), keep=[(), (0,)])
    figures = np.array([query.outputs(g).size for g in range(len(query.groups))])

    def relative(shares):
        share = np.array([float(value) for value in shares.values()])
        found = hf.gaussian(query, rho=0.5, shares=shares, integer=False).given(hf.consistent(query))
        squares = np.bincount(query.level_of, found.standard_error() ** 2)
        return squares * figures, share

    mean = hf.best_shares(query, minimise="mean relative error")
    worst = hf.best_shares(query, minimise="worst relative error")
    parts, _ = relative(mean.shares)
    assert np.isclose(parts.mean(), mean.squared_error, rtol=1e-6)
    assert np.isclose(relative(worst.shares)[0].max(), worst.squared_error, rtol=1e-6)
    assert worst.gap <= 2e-3 * worst.squared_error
    rng = np.random.default_rng(1)
    for best, what in ((mean, np.mean), (worst, np.max)):
        for _ in range(20):
            other = {key: float(value) * rng.uniform(0.5, 2) for key, value in best.shares.items()}
            assert what(relative(other)[0]) >= best.squared_error - best.gap
    two = hf.best_shares(query, {(0, ()): 1, (1, (0,)): 3}, minimise="worst relative error")
    held = relative(two.shares)[0][[query.groups.index(group) for group in ((0, ()), (1, (0,)))]] * [1, 3]
    assert np.isclose(held.max(), two.squared_error, rtol=1e-6)
    with pytest.raises(hf.Refused, match="minimise"):
        hf.best_shares(query, minimise="everything")


def test_all_pairs_of_figures_are_compared_where_margins_are_many():
    axes = ("a", "b", "c")
    margins = [chosen for count in range(4) for chosen in itertools.combinations(axes, count)]
    rng = np.random.default_rng(0)
    cube = rng.integers(0, 9, (2, 2, 2))
    rows, values = [], []
    for kept in margins:
        totals = cube.sum(axis=tuple(i for i, axis in enumerate(axes) if axis not in kept))
        for point in np.ndindex(totals.shape):
            rows.append([dict(zip(kept, point, strict=True)).get(axis) for axis in axes])
            values.append(int(totals[point]))
    named = {"level": [""] * len(rows)} | {axis: [row[i] for row in rows] for i, axis in enumerate(axes)}
    whole = np.array(values)
    assert not_adding_up(named, whole.tolist()) is None
    for row in range(len(rows)):
        changed = whole.copy()
        changed[row] += 1
        assert not_adding_up(named, changed.tolist()), row


def test_cells_known_to_be_empty_in_a_spec(tmp_path):
    write(tmp_path)
    made = job(
        tmp_path,
        ("[consistent, nonnegative]", "[consistent, nonnegative, {impossible: [{age: child, lives: alone}]}]"),
    )
    assert made.made.tables[0].mechanism.method in ("areas", "lattice, areas")
    held = made.made.tables[0].holding.holds.model_dump()["impossible"]
    columns = made.made.tables[0].layout.columns
    assert {(columns["age"][row], columns["lives"][row]) for row in held} == {("child", "alone")}
    with pytest.raises(hf.Refused, match="outside the public domain"):  # some children live alone
        made.release()


def test_exact_figures_and_bounds_in_areas(tmp_path, monkeypatch):
    monkeypatch.setattr(areas, "MOST_RULED", 300)
    write(tmp_path)
    rules = "{exact: [{quarter: total}, {town: [sex]}]}, {between: {low: 1, at: [town]}}"
    made = job(tmp_path, ("[consistent, nonnegative]", f"[consistent, nonnegative, {rules}]"))
    assert made.made.tables[0].mechanism.method in ("areas", "lattice, areas")
    assert "quarter: total: exact" in str(made.plan())
    table = made.release().table()
    level = table.names["level"]
    for quarter in ("Q0", "Q1", "Q2"):
        here = (level == "quarter: total") & (table.names["quarter"] == quarter)
        assert table.values[here] == counted(tmp_path, {"quarter": quarter})
    town = level == "town: sex × age × lives"
    for sex in VALUES["sex"]:
        assert table.values[town & (table.names["sex"] == sex)].sum() == counted(tmp_path, {"sex": sex})
    assert table.values[town].min() >= 1


LAPLACE = """\
title: Trips
data: {source: none.csv, name: trips, domain: blocks.csv}
privacy: {epsilon: 1}
table: {hierarchy: [quarter, block], root: town, shares: best}
hold: [consistent]
output: out
"""


@pytest.mark.parametrize("minimise", [MINIMISE[0], pytest.param(MINIMISE[2], marks=pytest.mark.slow)])
def test_the_best_shares_of_laplace_noise_are_no_worse_than_a_grid(tmp_path, monkeypatch, minimise):
    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sharing, "STEPS", 6)
    monkeypatch.setattr(sharing, "GRID", 10)
    table = hf.job(LAPLACE.replace("shares: best", f"shares: best, minimise: {minimise}")).made.tables[0]
    layout, count = table.layout, np.bincount(table.layout.level_of)

    def error(shares):
        noise = hf.laplace(layout.query, epsilon=1, shares=dict(zip(layout.levels, shares, strict=True)))
        squares = np.bincount(layout.level_of, noise.given(hf.consistent(layout.query)).standard_error() ** 2)
        parts = squares if minimise == MINIMISE[0] else squares * count
        return parts.max() if minimise == MINIMISE[2] else parts.sum()

    least = error(list(table.problem.shares.values()))
    assert least <= error([0.25, 0.25, 0.5])
    assert all(least <= error(shares) * (1 + 1e-4) for shares in sharing.grid(3)[::3])


def test_a_grid_has_all_divisions_into_equal_parts():
    found = sharing.grid(3)
    assert len(found) == len({tuple(shares) for shares in found}) <= sharing.GRID
    assert all(np.isclose(shares.sum(), 1) and shares.min() > 0 for shares in found)
    assert len(sharing.grid(2)) == sharing.GRID
    assert len(sharing.grid(20)) <= sharing.GRID


def test_a_search_ends_at_the_least_error_it_saw():
    def error(shares):
        return float((np.array([1, 4, 9]) / np.maximum(shares, 1e-12)).sum())  # least at (1, 2, 3)/6: 36

    shares, least = sharing.searched(error, np.array([1.0, 1.0, 1.0]))
    assert least == error(shares) <= min(map(error, sharing.grid(3)))
    assert least == pytest.approx(36, rel=1e-3)
    with pytest.raises(hf.Refused, match="write shares"):
        sharing.searched(lambda _: np.inf, np.ones(2))


def test_a_search_that_is_led_asks_for_the_slow_error_seldom():
    asked = []

    def near(shares):
        return float((np.array([1, 4, 8]) / shares).sum())

    def error(shares):
        asked.append(shares)
        return float((np.array([1, 4, 9]) / shares).sum())

    _, least = sharing.searched(error, np.array([1.0, 1.0, 1.0]), near)
    assert least == pytest.approx(36, rel=1e-3)
    assert len(asked) <= 3 + sharing.STEPS < 40
