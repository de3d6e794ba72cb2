"""Sensitivity after projection on a null space, against dense projectors and every difference."""

from __future__ import annotations

import itertools
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

from holdfast.arguments import Refused
from holdfast.constraints import NullSpace
from holdfast.domains import Cube, Hierarchy
from holdfast.privacy.projected_losses import sensitivity_within
from holdfast.queries import Neighbours, counts, histogram, margins, query, workload

NORMS = [1, 2, np.inf]


def dense(rows):
    rows = np.asarray(rows, dtype=float)
    return np.eye(rows.shape[1]) - np.linalg.pinv(rows) @ rows


def space(rows, **more):
    projector = dense(rows)
    return SimpleNamespace(enclosed=lambda d: near(projector @ d), rows=csr_array(np.asarray(rows)), **more)


def near(values):
    return SimpleNamespace(values=values, radius=1e-15 * np.ones_like(values))


def refusing(rows, **more):
    def enclosed(_columns):
        raise AssertionError("a closed form was expected")

    return SimpleNamespace(enclosed=enclosed, rows=csr_array(np.asarray(rows)), **more)


def truth(asked, p, kind, rows):
    differences = asked.differences(kind)
    return np.linalg.norm(dense(rows) @ differences.T, p, axis=0).max() if len(differences) else 0.0


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("kind", ["add-remove", "replace-one"])
def test_general_rows_are_projected_numerically_and_rounded_up(p, kind):
    rng = np.random.default_rng(51)
    for _ in range(25):
        n = int(rng.integers(2, 7))
        asked = [histogram(n), workload(rng.integers(-2, 3, (n, 5)))][int(rng.integers(2))]
        rows = rng.integers(-1, 2, (int(rng.integers(1, 3)), n))
        expected = truth(asked, p, kind, rows)
        for records in (1, 3):
            found = sensitivity_within(asked, p, Neighbours(kind, records), space(rows))
            assert found == pytest.approx(records * expected, rel=2e-9, abs=1e-12)
            assert found >= records * expected * (1 - 1e-13)


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("kind", ["add-remove", "replace-one"])
def test_equalities_that_share_no_cell(p, kind):
    rng = np.random.default_rng(52)
    for _ in range(40):
        n = int(rng.integers(2, 8))
        owner = rng.integers(-1, 3, n)
        rows = np.array([(owner == r) * rng.integers(1, 4, n) * rng.choice([-1, 1], n) for r in range(3)])
        found, expected = sensitivity_within(histogram(n), p, kind, space(rows)), truth(histogram(n), p, kind, rows)
        assert found == pytest.approx(expected, rel=2e-9, abs=1e-12)
        assert found >= expected * (1 - 1e-13)


def test_an_exchange_between_two_equal_equalities():
    rows = np.repeat(np.eye(2, dtype=int), 3, axis=1)
    # Each image is (2/3, −1/3, −1/3) in its own row: 4/3 each, more than the 2 of an exchange in one row.
    assert sensitivity_within(histogram(6), 1, "replace-one", space(rows)) == pytest.approx(8 / 3, rel=1e-9)
    assert truth(histogram(6), 1, "replace-one", rows) == pytest.approx(8 / 3)


@pytest.mark.parametrize("n", [2, 3, 5, 7, 1000, 99_999])
def test_a_histogram_with_exact_total(n):
    within = NullSpace.of(csr_array(np.ones((1, n), int)))
    exact = 2 * (1 - Fraction(1, n))
    for p, power in ((1, exact), (2, exact / 2)):
        found = Fraction(sensitivity_within(histogram(n), p, "add-remove", within)) ** p
        assert power <= found <= power * (1 + Fraction(1, 10**8))
    assert sensitivity_within(histogram(n), 1, "replace-one", within) == pytest.approx(2, rel=1e-8)


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("kind", ["add-remove", "replace-one"])
def test_exact_margins_of_a_cube_have_a_closed_form(p, kind):
    rng = np.random.default_rng(53)
    for _ in range(25):
        shape = tuple(int(s) for s in rng.integers(1, 4, int(rng.integers(1, 4))))
        every = [c for k in range(len(shape) + 1) for c in itertools.combinations(range(len(shape)), k)]
        keep = [every[i] for i in rng.choice(len(every), int(rng.integers(1, len(every) + 1)), replace=False)]
        rows = np.vstack([Cube(shape).margin_rows(axes).toarray() for axes in keep])
        asked = margins(shape)
        found = sensitivity_within(asked, p, kind, refusing(rows, cube_margins=(shape, keep)))
        assert found == pytest.approx(truth(asked, p, kind, rows), rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("kind", ["add-remove", "replace-one"])
def test_pinned_outputs_of_any_query_are_set_to_zero(p, kind):
    rng = np.random.default_rng(54)
    for _ in range(25):
        parents = [int(rng.integers(-1, v)) if v else -1 for v in range(int(rng.integers(1, 9)))]
        tree_counts = counts(Hierarchy.from_parents(parents), by=int(rng.integers(1, 3)))
        asked = [tree_counts, workload(rng.normal(size=(4, 5)))][int(rng.integers(2))]
        pinned = rng.random(asked.n) < 0.4
        if not pinned.any():
            continue
        rows = np.diag(rng.integers(1, 4, asked.n))[pinned]
        found = sensitivity_within(asked, p, kind, refusing(rows))
        assert found == pytest.approx(truth(asked, p, kind, rows), rel=1e-12, abs=1e-12)


def test_exchangeable_cells_are_projected_once_per_class():
    n, asked_for = 2000, []
    rows = np.zeros((2, n), int)
    rows[0, :1500] = 1
    rows[1, 500:] = 1
    projector = np.linalg.pinv(rows.astype(float))

    def enclosed(block):
        asked_for.append(block.shape[1])
        return near(block - projector @ (rows @ block))

    within = SimpleNamespace(enclosed=enclosed, rows=csr_array(rows))
    found = sensitivity_within(histogram(n), 1, "replace-one", within)
    assert sum(asked_for) == 3
    cells = np.eye(n)[:, [0, 600, 1999]]
    images = cells - projector @ (rows @ cells)
    expected = max(2.0, *(np.abs(images[:, i] - images[:, j]).sum() for i, j in [(0, 1), (0, 2), (1, 2)]))
    assert found == pytest.approx(expected, rel=1e-8)


def test_too_much_to_project_is_refused_and_too_many_pairs_are_bounded(monkeypatch):
    asked = workload(np.random.default_rng(55).integers(0, 9, (4, 30)))
    within = space([[1, 1, 1, 1], [1, 2, 3, 4]])
    exact = sensitivity_within(asked, 2, "replace-one", within)
    monkeypatch.setattr("holdfast.privacy.projected_losses.MOST_PAIR_WORK", 10)
    assert sensitivity_within(asked, 2, "replace-one", within) >= exact
    monkeypatch.setattr("holdfast.privacy.projected_losses.MOST_PROJECTED", 10)
    with pytest.raises(Refused, match="30 different columns of 4"):
        sensitivity_within(asked, 2, "add-remove", within)


def test_known_sensitivities_only_shrink_in_length():
    asked = query(4, l1=3, l2=2)
    within = space(np.ones((1, 4)))
    assert sensitivity_within(asked, 2, "add-remove", within) == 2
    assert sensitivity_within(asked, 1, "add-remove", within) == 4  # √4 · 2: the sum of changes may grow
    assert sensitivity_within(asked, np.inf, "add-remove", within) == 2
