"""Statements about more records than a mechanism was made for: never below the losses of all changes, listed."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest

import holdfast as hf
from holdfast.privacy import for_records
from holdfast.privacy.composition import THESE_RECORDS_ONLY


@cache
def changes(n, kind, records):
    """All changes of at most so many records in n cells."""
    steps = np.array(list(itertools.product(range(-records, records + 1), repeat=n)))
    sizes = np.abs(steps).sum(axis=1)
    if kind == "add-remove":
        return steps[sizes <= records]
    return steps[(sizes <= 2 * records) & (steps.sum(axis=1) == 0)]


def largest_loss(A, scales, kind, records):
    """The largest Σ|d|/λ over all changes of at most so many records that keep A d = 0."""
    d = changes(len(scales), kind, records)
    kept = d[~(d @ np.array(A).T).any(axis=1)]
    return float((np.abs(kept) / np.array(scales)).sum(axis=1).max())


def mechanism(A, scales, kind):
    noise = hf.laplace(hf.histogram(len(scales)), scale=scales, neighbours=kind)
    return noise.given(hf.equals(A, [0] * len(A)))


def test_three_equal_totals_say_nothing_about_three_records():
    """A pair can be exchanged (ε = 1), and one record of each pair can come together: their loss is 3, not 2·1."""
    A, scales = [[1, 1, -1, -1, 0, 0], [0, 0, 1, 1, -1, -1]], [1, 10**6, 1, 10**6, 1, 10**6]
    statement = mechanism(A, scales, "add-remove").guarantee
    assert (statement.scope, statement.records) == ("all", 2)
    assert statement.epsilon == pytest.approx(1, abs=1e-5)
    assert largest_loss(A, scales, "add-remove", 3) == 3
    assert THESE_RECORDS_ONLY in statement.caveats
    with pytest.raises(hf.Refused, match="says nothing about 3 records where it names 2"):
        for_records(statement, 3)
    with pytest.raises(hf.Refused, match="differ in 3 records"):
        hf.compose([statement, hf.Guarantee(epsilon=1, neighbours=hf.Neighbours("add-remove", 3), because="a theorem")])


def test_a_cell_that_no_single_record_changes_may_change_with_others():
    A, scales = [[2, -1, 0]], [1, 1, 100]
    statement = mechanism(A, scales, "add-remove").guarantee
    assert (statement.epsilon, statement.records) == (0.01, 1)
    assert largest_loss(A, scales, "add-remove", 3) > 3 * statement.epsilon
    with pytest.raises(hf.Refused, match="says nothing about 3"):
        for_records(statement, 3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["add-remove", "replace-one"])
def test_groups_of_records_are_never_promised_too_much(kind):
    """Random equalities and scales; some allow statements about more records, and these cover every change."""
    random = np.random.default_rng(8)
    promised = refused = 0
    for _ in range(36):
        n = int(random.integers(3, 6))
        A = random.integers(-1, 2, size=(int(random.integers(1, 3)), n)) * random.integers(0, 2, size=n)
        scales = (4.0 ** random.integers(0, 4, size=n)).tolist()
        try:
            statement = mechanism(A.tolist(), scales, kind).guarantee
        except hf.Refused:
            continue
        counted = statement.neighbours.kind
        assert statement.epsilon >= largest_loss(A, scales, counted, statement.records) * (1 - 1e-12)
        for records in range(statement.records + 1, 5):
            try:
                group = for_records(statement, records)
            except hf.Refused:
                refused += 1
                continue
            promised += 1
            assert group.epsilon >= largest_loss(A, scales, counted, records) * (1 - 1e-12)
    assert promised > 12
    assert refused > 6


def test_fixed_cells_and_exchanges_in_one_class_still_add_up():
    """What must hold is one total, or cells that are known: larger changes are sums of smaller ones."""
    total = mechanism([[1, 1, 1]], [1, 2, 4], "add-remove").guarantee
    assert for_records(total, 4).epsilon == 2 * total.epsilon
    known = mechanism([[1, 0, 0]], [1, 2, 4], "add-remove").guarantee
    assert for_records(known, 3).epsilon == 3 * known.epsilon


def test_a_union_is_priced_for_its_own_records_only():
    sides = hf.between(0, 1, at=[0]) | hf.between(5, 6, at=[0])
    statement = hf.laplace(hf.histogram(1), scale=1).given(sides).guarantee
    assert THESE_RECORDS_ONLY in statement.caveats
    with pytest.raises(hf.Refused, match="says nothing about 4"):
        for_records(statement, 4)


def test_priced_bounds_on_sums_of_cells_are_not_carried_over_to_more_records():
    # With 3 ≤ x₁ + 3x₂ ≤ 4 no chain of single records leads from (3, 0) to (0, 1).
    chain = hf.Hierarchy.from_parents([-1, 0])
    mechanism = hf.laplace(hf.workload([[1, 3], [1, 3]]), scale=4).given(hf.consistent(chain) & hf.between(3, 4))
    statement = mechanism.guarantee
    if statement.epsilon < 2 * 6 / 4:  # otherwise it is the bound for all tables, possible or not
        with pytest.raises(hf.Refused, match="says nothing about 4"):
            for_records(statement, 4)
    # Bounds on single cells, or none but the signs, are kept on the way.
    for query in (hf.counts(chain), hf.workload([[1], [1]])):
        held = hf.laplace(query, scale=4).given(hf.consistent(chain) & hf.between(0, 4))
        assert for_records(held.guarantee, 4).epsilon == 4 * held.guarantee.epsilon
    signs = hf.laplace(hf.workload([[1, 3], [1, 3]]), scale=4).given(hf.consistent(chain) & hf.nonnegative())
    assert for_records(signs.guarantee, 2).epsilon == 2 * signs.guarantee.epsilon
