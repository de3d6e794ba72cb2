"""Statements about sums (docs/theory/sums.md) against every pair of neighbouring tables of small domains."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import holdfast as hf
from holdfast.release.job.job import Job
from holdfast.release.job.steps import Moved, SumDifferences
from holdfast.release.spec.spec import read_spec

DOMAIN = {"hierarchy": "region,place\nA,A1\nA,A2\nB,B1\n", "histogram": "place\nA1\nA2\nB1\n"}
#: Cells up to which conditioned tables are listed: what is beyond weighs less than the figures are compared to.
FAR = 60
SHAPES = {"hierarchy": {"hierarchy": ["region", "place"], "root": "all"}, "histogram": {"histogram": "place"}}


def job(folder, kind, figures, privacy, **more):
    (folder / "domain.csv").write_text(DOMAIN[kind])
    hold = ["consistent"] if kind == "hierarchy" else []
    more = {"hold": [*hold, "nonnegative"], "method": "auto", **more}
    return Job.from_spec(
        read_spec(
            {
                "title": "Sums",
                "output": str(folder / "out"),
                "data": {"source": "none.csv", "domain": str(folder / "domain.csv"), "rows_are_records": True},
                "privacy": privacy,
                "table": {**SHAPES[kind], "figures": figures, **more},
            }
        )
    )


def summed(low, high, step=1, column="x"):
    return {"sum": column, "between": [low, high], "step": step}


def changes(kind, cells, ends, records):
    """What the cells of a table change by when so many records come, go or are replaced, each with any number."""
    low, high = ends
    there = {
        tuple(number if own == cell else 0 for own in range(cells))
        for cell, number in itertools.product(range(cells), range(low, high + 1))
    }
    gone = {tuple(-each for each in change) for change in there}
    single = {(0,) * cells} | there | gone
    if kind == "replace-one":
        single = {tuple(map(sum, zip(a, b, strict=True))) for a in there for b in gone}
    found = {(0,) * cells}
    for _ in range(records):
        found = {tuple(map(sum, zip(a, b, strict=True))) for a in found for b in single}
    return found


def worst_of_noise(table, found):
    """The exact ε, or ρ, of the noise for the worst of some changes of cells."""
    law, query = table.mechanism.base.law, table.layout.query
    which = np.zeros(query.n, dtype=int) if law.which is None else law.which
    values = [law.scale_values[number] for number in which]
    worst = Fraction(0)
    for change in found:
        answer = (query.columns @ np.array(change)).tolist()
        if law.kind == "laplace":
            lost = sum(Fraction(abs(a)) / Fraction(v) for a, v in zip(answer, values, strict=True) if v is not None)
        else:
            lost = sum(Fraction(a * a, 2) / Fraction(v) for a, v in zip(answer, values, strict=True) if v is not None)
        worst = max(worst, lost)
    return worst


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("kind", ["hierarchy", "histogram"])
@pytest.mark.parametrize("ends", [(0, 4), (2, 5), (-3, 2)])
def test_noise_hides_every_record_with_every_number(tmp_path, kind, ends, neighbours):
    made = job(tmp_path, kind, [summed(*ends)], {"epsilon": 1.0, "neighbours": neighbours}, method="onto")
    (table,) = made.tables
    truth = worst_of_noise(table, changes(neighbours, 3, ends, 1))
    assert table.counted.neighbours == hf.Neighbours(neighbours)
    assert truth <= Fraction(table.counted.epsilon)
    assert table.counted.epsilon <= 1.1 * truth


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_gaussian_noise_hides_every_record(tmp_path, neighbours):
    made = job(tmp_path, "hierarchy", [summed(0, 4)], {"rho": 0.5, "neighbours": neighbours}, method="onto")
    (table,) = made.tables
    truth = worst_of_noise(table, changes(neighbours, 3, (0, 4), 1))
    assert truth <= Fraction(table.counted.rho)
    assert table.counted.rho <= 1.1 * truth


def test_a_person_is_all_records_that_are_kept(tmp_path):
    unit = {"column": "person", "max_records": 2}
    made = job(tmp_path, "hierarchy", [summed(0, 3)], {"epsilon": 1.0, "unit": unit}, method="onto")
    (table,) = made.tables
    truth = worst_of_noise(table, changes("add-remove", 3, (0, 3), 2))
    assert table.counted.records == 2
    assert truth <= Fraction(table.counted.epsilon) <= 1.1 * truth
    assert "one person" in str(made.guarantee).lower()


def test_figures_of_one_record_are_composed(tmp_path):
    """One record moves the count by one and every sum by its own number, all at once."""
    figures = ["count", summed(0, 3), {**summed(0, 10, 5, "y"), "share": 2}]
    made = job(tmp_path, "histogram", figures, {"epsilon": 1.0}, method="onto")
    counts, first, second = made.tables
    each = [
        worst_of_noise(table, changes("add-remove", 3, ends, 1))
        for table, ends in zip((counts, first, second), ((1, 1), (0, 3), (0, 2)), strict=True)
    ]
    assert sum(each) <= Fraction(made.guarantee.epsilon) <= 1.1 * sum(each)
    assert made.guarantee.records == 1
    assert float(each[2]) == pytest.approx(2 * float(each[1]), rel=0.05)


@pytest.mark.parametrize("kind", ["hierarchy", "histogram"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_conditioned_sums_hide_every_record(tmp_path, kind, neighbours):
    """The law of the released sums of tables near 0, listed whole, for every pair of neighbours among them."""
    ends = (0, 2)
    made = job(tmp_path, kind, [summed(*ends)], {"epsilon": 2.0, "neighbours": neighbours}, method="given")
    (table,) = made.tables
    law, query = table.mechanism.base.law, table.layout.query
    which = np.zeros(query.n, dtype=int) if law.which is None else law.which
    rates = np.array([1 / float(law.scale_values[number]) for number in which])
    axes = np.meshgrid(*[np.arange(FAR)] * 3, indexing="ij")
    outputs = np.asarray(query.columns @ np.stack(axes).reshape(3, -1)).T

    def law_of(cells):
        logs = -np.abs(outputs - query.answer(list(cells))) @ rates
        return logs - np.logaddexp.reduce(logs)

    tables = [cells for cells in itertools.product(range(5), repeat=3) if sum(cells) <= 5]
    known = {cells: law_of(cells) for cells in tables}
    worst = 0.0
    for change in changes(neighbours, 3, ends, 1):
        for cells in tables:
            other = tuple(map(sum, zip(cells, change, strict=True)))
            if other in known:
                worst = max(worst, float(np.abs(known[cells] - known[other]).max()))
    assert 0 < worst <= table.counted.epsilon + 1e-6
    assert table.method == "given"


# --- how far records and persons move sums, on every kind of table, against every change -----------------------------

CITY = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 1, 2, 2, 2])
QUERIES = {
    "histogram": hf.histogram(4),
    "tree": hf.counts(CITY),
    "forest": hf.counts(hf.Hierarchy.from_parents([-1, -1, 0, 0, 1, 1, 1])),
    "categories": hf.counts(hf.Hierarchy.from_parents([-1, 0, 0]), by=3),
    "margins": hf.margins((2, 3), keep=[(0,), (1,)]),
    "cube": hf.margins((3, 2, 2), keep=[(0, 1), (2,), ()]),
    "areas": hf.counts(hf.Hierarchy.from_parents([-1, 0, 0, 0]), by=(2, 3), keep=[(0,), (1,), ()]),
}
#: A weight for every level, and one output after the other.
WEIGHTS = [[1] * 9, [1, 2, 5, 1, 2, 5, 1, 2, 5], [7, 1, 1, 3, 1, 1, 3, 1, 1]]


def largest(query, values, which, power, found):
    weights = np.array([values[number] for number in which])
    return int((np.abs(query.columns.toarray() @ np.array(sorted(found)).T) ** power * weights[:, None]).sum(0).max())


def of_persons(cells, ends, groups):
    """What persons add to so many cells at most: the ends of every number, since norms are convex."""
    chosen = (some for many in range(1, groups + 1) for some in itertools.combinations(range(cells), many))
    found = set()
    for some in chosen:
        for numbers in itertools.product(ends, repeat=len(some)):
            change = [0] * cells
            for cell, number in zip(some, numbers, strict=True):
                change[cell] = number
            found.add(tuple(change))
    return found


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("by_level", [True, False])
@pytest.mark.parametrize("kind", QUERIES)
def test_no_change_of_a_record_is_larger_than_is_said(kind, by_level, power):
    query = QUERIES[kind]
    which = query.level_of if by_level and query.level_of is not None else np.arange(query.n) % 9
    for ends, values in itertools.product([(0, 3), (1, 3), (-2, 3), (-3, -1)], WEIGHTS):
        there = of_persons(query.cells, ends, 1)
        both = there | {tuple(-each for each in change) for change in there}
        replaced = {tuple(np.subtract(one, other)) for one in there for other in there}
        for neighbours, found in (("add-remove", both), ("replace-one", replaced)):
            truth = largest(query, values, which, power, found)
            for records in (1, 3):  # records of one kind change in one way: so many times as far
                said = SumDifferences(query, hf.Neighbours(neighbours, records), Moved(*ends))
                value, exact = said.bound(list(map(Fraction, values)), which, power)
                assert truth * records**power <= value
                assert not exact or truth * records**power == value
                if values == WEIGHTS[0]:
                    assert value <= Fraction(11, 10) * truth * records**power


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("kind", QUERIES)
def test_no_person_moves_more_groups_than_is_said(kind, groups, power):
    query = QUERIES[kind]
    which = np.zeros(query.n, dtype=int) if query.level_of is None else query.level_of
    for ends, values in itertools.product([(0, 3), (-2, 3)], WEIGHTS):
        found = of_persons(query.cells, ends, groups)
        truth = largest(query, values, which, power, found)
        said = SumDifferences(query, hf.Neighbours("add-remove"), Moved(*ends, groups))
        value, exact = said.bound(list(map(Fraction, values)), which, power)
        assert truth <= value
        assert not exact
        if values == WEIGHTS[0]:
            assert value <= Fraction(13, 10) * truth
        records = SumDifferences(query, hf.Neighbours("add-remove", groups), Moved(*ends))
        assert value <= records.bound(list(map(Fraction, values)), which, power).value
        away = SumDifferences(query, hf.Neighbours("replace-one"), Moved(*ends, groups))
        if len(found) < 400:
            replaced = {tuple(np.subtract(one, other)) for one in found for other in found}
            assert largest(query, values, which, power, replaced) <= away.bound(values, which, power).value
