"""What rejection on crossed tables rests on, by enumeration: limits of P_r, moments given margins, acceptance."""

import itertools

import numpy as np
import pytest

import holdfast as hf
from holdfast.given import Problem
from holdfast.given.near import two_way
from holdfast.given.near.rows_in_turn import _messages
from holdfast.given.near.two_way import crossed_table
from listed_noise import listed


def problem(shape, law):
    constraint = hf.invariant(hf.exact_margins(shape, [(0,), (1,)]))
    return Problem(law.base.law, constraint.system(int(np.prod(shape))))


LAWS = {
    "Laplace 1": lambda n: hf.laplace(hf.histogram(n), scale=1),
    "Laplace 1/3": lambda n: hf.laplace(hf.histogram(n), scale=0.35),
    "Laplace 4": lambda n: hf.laplace(hf.histogram(n), scale=4),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("rows", [3, 4, 6])
def test_no_need_of_the_columns_makes_a_row_more_likely_than_its_limit(name, rows):
    columns = 3
    layout = two_way.Layout.of(problem((rows, columns), LAWS[name](rows * columns)))
    layout = (
        layout
        if layout.cells.shape == (rows, columns)
        else two_way.Layout(
            np.arange(rows * columns).reshape(rows, columns),
            layout.scales,
            np.zeros(columns, dtype=np.int64),
        )
    )
    found = two_way.Proposals.of(layout)
    table = found.table
    shares = np.empty((columns, table.weights.shape[2]))
    sums = np.empty((columns + 1, 2 * table.widths.max() + 1))
    largest = np.zeros(rows - 1)
    for a, b in itertools.product(range(-9, 10), repeat=2):
        needed = np.array([a, b, -a - b])
        for r in range(rows - 1):
            largest[r] = max(largest[r], _messages(table, r, needed, shares, sums) / found.limits[r])
    assert (largest <= 1).all()
    assert (largest > 0.5).all()


def test_a_row_is_less_likely_than_its_limit_somewhere():
    """Otherwise the limits would prove nothing: P falls when columns need much."""
    found = two_way.Proposals.of(two_way.Layout.of(problem((3, 3), LAWS["Laplace 1"](9))))
    shares, sums = np.empty((3, found.table.weights.shape[2])), np.empty((4, 2 * found.table.widths.max() + 1))
    needed = np.array([5, -5, 0])
    assert _messages(found.table, 1, needed, shares, sums) < 0.8 * found.limits[1]


@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_moments_given_margins_do_not_exceed_those_of_free_noise(scale):
    asked = problem((3, 3), hf.laplace(hf.histogram(9), scale=scale))
    noise, chances = listed(asked.space.lattice_basis().toarray(), "laplace", scale, 8)
    places = np.arange(-60, 61)
    free = np.exp(-np.abs(places) / scale)
    free /= free.sum()
    for cells in ([0], [0, 1], [0, 3], [0, 4, 8]):
        for tilt in (0.2 / scale, 0.6 / scale, 0.9 / scale):
            given = (chances * np.exp(tilt * noise[:, cells].sum(axis=1))).sum()
            bound = (free * np.exp(tilt * places)).sum()
            assert given <= bound ** len(cells) * (1 + 1e-9)


def test_windows_leave_out_less_than_their_share():
    asked = problem((3, 4), LAWS["Laplace 1"](12))
    sizes = two_way.Layout.of(asked).table()
    noise, chances = listed(asked.space.lattice_basis().toarray()[:, :], "laplace", 1.0, 3)
    tails = [chances[np.abs(noise[:, 0]) > reach].sum() for reach in (2, 4)]
    assert tails[1] < tails[0] < 2 * np.exp(-3) / (1 - np.exp(-1))
    assert 2 * np.exp(-(sizes.core + 1)) / (1 - np.exp(-1)) < two_way.TAIL * 2


def test_tables_are_found_and_others_are_not():
    crossed = hf.invariant(hf.exact_margins((3, 5), [(0,), (1,)])).system(15)
    assert np.array_equal(crossed_table(crossed), np.arange(15).reshape(3, 5))
    turned = hf.invariant(hf.exact_margins((5, 3), [(0,), (1,)])).system(15)
    assert np.array_equal(crossed_table(turned), np.arange(15).reshape(5, 3).T)
    rows = np.kron(np.eye(3, dtype=int), np.ones((1, 3), dtype=int))
    columns = np.kron(np.ones((1, 3), dtype=int), np.eye(3, dtype=int))
    both = hf.equals(2 * rows, [2, 2, 2]) & hf.invariant(-columns)
    assert np.array_equal(crossed_table(both.system(9)), np.arange(9).reshape(3, 3))
    others = [
        hf.invariant(hf.exact_margins((3, 3), [(0,)])),
        hf.invariant(hf.exact_margins((2, 2, 2), [(0, 1), (0, 2), (1, 2)])),
        hf.invariant(rows) & hf.invariant(rows[:, ::-1] * np.arange(1, 10)),
        hf.invariant(hf.exact_margins((3, 3), [(0,), (1,)])) & hf.fixed(0, 0),
        hf.invariant(hf.exact_margins((3, 3), [(0,), (1,)])) & hf.ordered([0, 1]),
        hf.invariant(rows) & hf.invariant(rows[[1, 2, 0]]),
    ]
    for constraint in others:
        assert crossed_table(constraint.system(constraint_size(constraint))) is None


def constraint_size(constraint):
    try:
        constraint.system(9)
    except hf.Refused:
        return 8
    return 9
