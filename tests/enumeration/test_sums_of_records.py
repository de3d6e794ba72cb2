"""Statements about sums (docs/theory/sums.md) against every pair of neighbouring tables of small domains."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import holdfast as hf
from holdfast.release.job.job import Job
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
    one = [[(0,) * cells]]
    for cell, number in itertools.product(range(cells), range(low, high + 1)):
        change = [0] * cells
        change[cell] = number
        one.append([tuple(change), tuple(-each for each in change)])
    single = {each for some in one for each in some}
    if kind == "replace-one":
        gone = {tuple(-each for each in change) for change in single}
        single = {tuple(map(sum, zip(a, b, strict=True))) for a in single for b in gone}
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
    # Of a record that is replaced the sum over all moves less than its parts.
    if neighbours == "add-remove" or kind == "histogram":
        assert table.counted.epsilon <= 1.1 * truth


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_gaussian_noise_hides_every_record(tmp_path, neighbours):
    made = job(tmp_path, "hierarchy", [summed(0, 4)], {"rho": 0.5, "neighbours": neighbours}, method="onto")
    (table,) = made.tables
    truth = worst_of_noise(table, changes(neighbours, 3, (0, 4), 1))
    assert truth <= Fraction(table.counted.rho)
    assert neighbours == "replace-one" or table.counted.rho <= 1.1 * truth


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
