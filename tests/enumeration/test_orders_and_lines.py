"""What orders, one sum and one free direction cost: never below the enumerated loss, and not far above it.

Everything is recomputed here from the definition: all tables in a small box, their neighbours record by record, the
weight of what is allowed seen from each of them, summed over every output in a wide window.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import holdfast as hf

#: Outputs this many scales away from every truth weigh below e^-24 of it.
REACH = 24


def weights_seen(truths, allowed, axes, scales):
    """Σ of e^{−Σ|z−x|/λ} over the allowed outputs z of a grid, for each truth x."""
    found = {}
    for truth in truths:
        total = allowed.astype(float)
        for k, (axis, scale) in enumerate(zip(axes, scales, strict=True)):
            shape = [1] * len(axes)
            shape[k] = axis.size
            total = total * np.exp(-np.abs(axis - truth[k]) / scale).reshape(shape)
        found[truth] = total.sum()
    return found


def changes(cells, kind, records):
    unit = np.eye(cells, dtype=int)
    single = [*unit, *-unit] if kind == "add-remove" else [a - b for a in unit for b in unit if (a != b).any()]
    found = {(0,) * cells}
    for _ in range(records):
        found |= {tuple(np.add(c, s).tolist()) for c in found for s in single}
    return sorted(found - {(0,) * cells})


def enumerated(constraint, scales, kind, records, box, invariants=None):
    """The largest log ratio over all pairs of neighbouring tables in the box that are allowed; 0 without a pair."""
    n, system = len(scales), constraint.system(len(scales))
    reach = [math.ceil(REACH * s) for s in scales]
    axes = [np.arange(box[0] - r, box[1] + r + 1) for r in reach]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    allowed = np.asarray(system.holds(grid.reshape(-1, n))).reshape(grid.shape[:-1])
    tables = [
        t for t in itertools.product(range(box[0], box[1] + 1), repeat=n) if system.violation(np.array(t)) is None
    ]
    if invariants is None:
        seen = weights_seen(tables, allowed, axes, scales)
    else:
        rows = np.array(invariants)
        seen = {}
        for table in tables:
            kept = allowed & (grid @ rows.T == rows @ np.array(table)).all(axis=-1)
            seen |= weights_seen([table], kept, axes, scales)
    worst = 0.0
    for table in tables:
        for change in changes(n, kind, records):
            other = tuple(np.add(table, change).tolist())
            if other not in seen or (invariants is not None and (rows @ np.array(change)).any()):
                continue
            loss = sum(abs(c) / s for c, s in zip(change, scales, strict=True))
            worst = max(worst, loss + math.log(seen[other] / seen[table]))
    return worst


def claimed(constraint, scales, kind, records):
    exact = [Fraction(s).limit_denominator(100) for s in scales]
    mechanism = hf.laplace(hf.histogram(len(scales)), scale=exact, neighbours=hf.Neighbours(kind, records))
    try:
        return mechanism.given(constraint).guarantee
    except hf.Refused:
        return None


def random_order(rng):
    """Bounds on differences and on cells, two or three cells."""
    n = int(rng.integers(2, 4))
    parts = []
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    for k in rng.permutation(len(pairs))[: int(rng.integers(1, 4))]:
        row = np.zeros(n, dtype=int)
        row[pairs[k][0]], row[pairs[k][1]] = 1, -1
        parts.append(hf.at_least([row * int(rng.integers(1, 3))], [int(rng.integers(-3, 2))]))
    for j in range(n):
        choice = rng.integers(6)
        if choice == 0:
            parts.append(hf.nonnegative(at=[j]))
        elif choice == 1:
            parts.append(hf.between(0, int(rng.integers(1, 4)), at=[j]))
        elif choice == 2:
            parts.append(hf.between(None, 2, at=[j]))
    return n, parts


def together(parts):
    """All parts; None where they contradict each other."""
    try:
        result = parts[0]
        for part in parts[1:]:
            result = result & part
    except hf.Refused:
        return None
    return result


def check_order(seed):
    rng = np.random.default_rng([14, seed])
    n, parts = random_order(rng)
    constraint = together(parts)
    scales = [float(rng.choice([0.25, 0.5, 1.0])) for _ in range(n)]
    kind, records = ["add-remove", "replace-one"][rng.integers(2)], int(rng.integers(1, 3))
    statement = None if constraint is None else claimed(constraint, scales, kind, records)
    if statement is None:
        return
    if statement.neighbours.records != records:  # nothing changes alone: about more records
        records = statement.neighbours.records
    worst = enumerated(constraint, scales, kind, records, (-2, 4))
    assert worst <= statement.epsilon + 1e-9, (str(constraint), scales, kind, records, worst, statement.epsilon)


@pytest.mark.parametrize("seed", range(24))
def test_orders_never_lose_more_than_they_say(seed):
    check_order(seed)


REFERENCES = [
    (hf.ordered([0, 1]), 2, "add-remove", 0.24986),
    (hf.ordered([0, 1, 2]), 3, "add-remove", 0.34855),
    (hf.ordered([0, 1, 2, 3]), 4, "add-remove", 0.39196),
    (hf.ordered([0, 1]) & hf.nonnegative(), 2, "add-remove", 0.36020),
    (hf.ordered([0, 1]), 2, "replace-one", 0.49971),
    (hf.ordered([0, 1, 2]), 3, "replace-one", 0.69709),
]


@pytest.mark.parametrize(("constraint", "n", "kind", "price"), REFERENCES)
def test_orders_cost_what_theory_says(constraint, n, kind, price):
    """THEORY H12, base ε = 1 for each record that comes or goes."""
    base = 1 if kind == "add-remove" else 2
    assert claimed(constraint, [1] * n, kind, 1).epsilon == pytest.approx(base + price, abs=6e-6)


@pytest.mark.parametrize(
    "constraint",
    [
        hf.ordered([0, 1]),
        hf.ordered([0, 1]) & hf.nonnegative(),
        hf.ordered([0, 1]) & hf.between(0, 2),
        hf.at_least([[-1, 1], [1, -1]], [-1, -2]),
        hf.at_least([[-1, 1, 0], [0, 1, -1]], [0, 1]),
        hf.ordered([0, 2]) & hf.ordered([1, 2]) & hf.between(0, 3, at=[0, 2]),
    ],
)
def test_one_record_in_an_order_costs_its_worst_table(constraint):
    """The worst table lies in the box that is enumerated, or is a limit that the tables in it come near."""
    n = constraint.n or constraint.least_n
    scales = [0.5, 0.8, 0.7][:n]
    worst = enumerated(constraint, scales, "add-remove", 1, (-1, 4))
    assert worst - 1e-9 <= claimed(constraint, scales, "add-remove", 1).epsilon <= worst + 2e-3


@pytest.mark.slow
def test_a_long_chain_is_priced_and_calibrated():
    chain = hf.laplace(hf.histogram(100), scale=1).given(hf.ordered(list(range(100))))
    assert 1.42 < chain.guarantee.epsilon < 1.43
    assert chain.calibrated(epsilon=1).guarantee.epsilon == pytest.approx(1, abs=1e-9)


def check_row(seed):
    rng = np.random.default_rng([15, seed])
    n = int(rng.integers(2, 4))
    row = rng.choice([-1, 0, 1], size=n)
    row[0] = 1
    if (row != 0).sum() < 2:
        row[1] = -1
    constraint = hf.at_least([row], [int(rng.integers(-2, 3))])
    scales = [float(rng.choice([0.25, 0.5, 1.0])) for _ in range(n)]
    kind, records = ["add-remove", "replace-one"][rng.integers(2)], int(rng.integers(1, 3))
    statement = claimed(constraint, scales, kind, records)
    worst = enumerated(constraint, scales, kind, records, (-2, 3))
    assert worst <= statement.epsilon + 1e-9
    assert statement.epsilon <= 1.5 * worst


@pytest.mark.parametrize("seed", range(20))
def test_one_sum_never_loses_more_than_it_says(seed):
    check_row(seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "scales", "kind", "bounds"),
    [
        ([[1, 1]], [1.0, 0.5], "replace-one", hf.nonnegative()),
        ([[1, 1]], [1.0, 0.5], "replace-one", hf.between(0, 5)),
        ([[1, 1, 0], [0, 1, 1]], [1.0, 1.0, 0.5], "add-remove", hf.nonnegative()),
        ([[1, 2]], [0.5, 0.5], "replace-one", hf.nonnegative()),
    ],
)
def test_one_free_direction_never_loses_more_than_it_says(rows, scales, kind, bounds):
    statement = claimed(hf.invariant(rows) & bounds, scales, kind, 1)
    if statement is None:
        return
    box = (0, 9 if len(scales) == 2 else 5)
    worst = enumerated(bounds, scales, statement.neighbours.kind, statement.neighbours.records, box, rows)
    assert worst <= statement.epsilon + 1e-9
    assert statement.epsilon <= worst + 0.02 or bounds.parts[0].kind == "between"


def test_a_table_of_two_by_two_with_exact_margins():
    """A swap at base ε = 1: log(1 + β(1 − β)) as the far end moves away (THEORY §2, one line)."""
    margins = hf.invariant([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]]) & hf.nonnegative()
    beta = math.exp(-1)
    assert claimed(margins, [4] * 4, "replace-one", 1).epsilon == pytest.approx(1 + math.log(1 + beta * (1 - beta)))
    real = hf.laplace(hf.histogram(4), scale=4, integer=False, neighbours="replace-one").given(margins)
    assert real.guarantee.epsilon == pytest.approx(1 + math.log(2 - beta))


def check_any_shape(seed):
    """Inequalities of any shape, or bounds with exact sums."""
    rng = np.random.default_rng([17, seed])
    n = int(rng.integers(2, 4))
    scales = [float(rng.choice([0.25, 0.5, 1.0])) for _ in range(n)]
    kind, records = ["add-remove", "replace-one"][rng.integers(2)], 1
    if rng.integers(3) == 0:
        rows = [rng.integers(0, 3, size=n).tolist()]
        rows = rows if any(rows[0]) else [[1] * n]
        bounds = [hf.nonnegative(), hf.between(0, 3), hf.nonnegative(at=[0])][rng.integers(3)]
        constraint, invariants = hf.invariant(rows) & bounds, rows
    else:
        rows = [rng.integers(-2, 3, size=n).tolist() for _ in range(int(rng.integers(1, 3)))]
        parts = [hf.at_least([row], [int(rng.integers(-4, 3))]) for row in rows if any(row)]
        parts += [hf.nonnegative(at=[j]) for j in range(n) if rng.integers(2)] or [hf.nonnegative(at=[0])]
        constraint, invariants = together(parts), None
        bounds = constraint
    statement = None if constraint is None else claimed(constraint, scales, kind, records)
    if statement is None:
        return None
    worst = enumerated(bounds, scales, kind, statement.neighbours.records, (0, 4), invariants)
    assert worst <= statement.epsilon + 1e-9, (str(constraint), scales, kind, worst, statement)
    if worst:
        assert statement.epsilon <= 1.5 * worst, (str(constraint), scales, kind, worst, statement)
    return worst, statement


@pytest.mark.parametrize("seed", range(30))
def test_inequalities_of_any_shape_are_never_below_the_loss_nor_far_above(seed):
    check_any_shape(seed)


MARGINS = hf.margins((2, 2), keep=[(0,), (1,)])
PARENT = hf.Hierarchy.from_parents([-1, 0, 0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "constraint", "scale", "kind", "least", "most"),
    [
        (MARGINS, hf.consistent(MARGINS) & hf.nonnegative(), 2, "add-remove", 1.39, 1.5),
        (
            hf.counts(PARENT),
            hf.consistent(PARENT) & hf.nonnegative() & hf.between(None, 10, at=[0]),
            2,
            "add-remove",
            1.25,
            1.5,
        ),
        (
            hf.margins((2, 3)),
            hf.invariant(hf.exact_margins((2, 3), [(0,), (1,)])) & hf.nonnegative(),
            4,
            "replace-one",
            1.37,
            1.72,
        ),
        (hf.histogram(2), hf.at_least([[1, 2]], [3]), 1, "add-remove", 1.2, 1.63),
    ],
)
def test_what_has_no_closed_form_is_not_charged_twice(query, constraint, scale, kind, least, most):
    """At base ε = 1; twice would be 2."""
    base = hf.laplace(query, scale=scale, neighbours=kind)
    assert least < base.given(constraint).guarantee.epsilon < most
