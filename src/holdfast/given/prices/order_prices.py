"""The price of orders: independent noise on cells given bounds on differences of two cells and on cells (THEORY H12).

c(x) = P(x + U ∈ C) is log-supermodular, also together with the origin. So log c rises fastest in x_j where x_j is as
small as C lets it be and all others are as large as C then lets them be. There c is summed cell by cell, in balls, if
the bounds on differences connect the cells as a tree. Proofs: docs/theory/orders-and-lines.md, §§1–2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb

from holdfast.arrays import Ints
from holdfast.constraints import System
from holdfast.given.prices.differences import NONE, DifferenceBounds, read
from holdfast.given.prices.order_sums import Message, Sums, Table
from holdfast.noise.precision import PRICE_BITS, working_precision
from holdfast.privacy import Additive, Differences, Guarantee

#: Cells that are connected by bounds on differences, and cells in all, up to which prices are summed.
MOST_CONNECTED, MOST_CELLS = 500, 20_000
#: Losses of replaced records are compared pair by pair up to so many cells; beyond, the largest of both are added.
MOST_PAIRED = 600
#: Stands for the price of a cell that no possible table lets rise.
NEVER = arb(0)


def order_price(base: Additive, system: System, differences: Differences, **words: Any) -> Guarantee | None:
    """The guarantee of independent integer noise given bounds on differences and on cells; None where none is proved.

    Guarantee (docs/theory/orders-and-lines.md). Laplace, k records added or removed: k·max_j (1/λ_j + the price of
    raising or lowering cell j by 1), for k = 1 the supremum; k replaced: k·max_{i≠j} of raising j and lowering i
    (Propositions 1 and 2). Gaussian: ρ at integer Rényi orders (Proposition 3).
    """
    if not base.law.integer or None in base.law.scale_values or base.query.n > MOST_CELLS:
        return None
    if not each_cell_its_own_output(base) or differences.neighbours != base.neighbours:
        return None
    parts = read(system)
    if parts is None or max(cells.size for cells, _ in parts) > MOST_CONNECTED:
        return None
    if base.law.kind == "gaussian":
        because = "integer Gaussian noise given an order keeps ρ at integer orders (docs/theory/orders-and-lines.md)"
        return base.integer_gaussian(
            base.loss(differences).value, None, **(words | {"because": because, "orders": "integer"})
        )
    with working_precision(PRICE_BITS):
        worst = _worst(base, parts)
        if worst is None:
            return None
        words["because"] = "the price of an order: raising a cell from its lowest table (THEORY H12)"
        return base.pure(worst * base.neighbours.records, **words)


def each_cell_its_own_output(base: Additive) -> bool:
    """Whether output j counts the records of cell j and nothing else."""
    query = base.query
    if query.cells != query.n or query.grid is not None:
        return False
    columns, places = query.columns, np.arange(query.n)
    one_each = columns.nnz == query.n and np.array_equal(columns.indptr[:-1], places)
    return one_each and np.array_equal(columns.indices, places) and bool((columns.data == 1).all())


@dataclass(frozen=True, eq=False)
class _Change:
    """One cell, and what raising and lowering it by 1 loses at most; None where it cannot."""

    cell: int
    raised: arb | None
    lowered: arb | None


def _worst(base: Additive, parts: list[tuple[Ints, DifferenceBounds]]) -> arb | None:
    """The largest loss of one record; None where cells are not connected as trees, or sums are too long."""
    which = base.law.complete.astype(np.int64)
    sums = Sums(base.inverse_scales)
    alike: dict[tuple[Any, ...], int] = {}
    changes: list[_Change] = []
    for cells, bounds in parts:
        if cells.size == 1:
            # Cells that stand alone are alike where their law and their bounds are; a replaced record changes two.
            key = (int(which[cells[0]]), int(bounds.low[0]), int(bounds.high[0]))
            alike[key] = alike.get(key, 0) + 1
            if alike[key] > 2:
                continue
        rises, falls = (_rises(sums, side, which[cells]) for side in (bounds, bounds.mirrored))
        if rises is None or falls is None:
            return None
        changes += [_Change(*each) for each in zip(cells.tolist(), rises, falls, strict=True)]
    raised = [(change.cell, change.raised) for change in changes if change.raised is not None]
    lowered = [(change.cell, change.lowered) for change in changes if change.lowered is not None]
    if base.neighbours.adds:
        return _largest([loss for _, loss in raised + lowered])
    if len(changes) > MOST_PAIRED:
        up, down = _largest([loss for _, loss in raised]), _largest([loss for _, loss in lowered])
        return None if up is None or down is None else up + down
    return _largest([up + down for i, up in raised for j, down in lowered if i != j])


def _largest(losses: list[arb]) -> arb | None:
    worst = None
    for loss in losses:
        worst = loss if worst is None else worst.max(loss)
    return worst


def _rises(sums: Sums, bounds: DifferenceBounds, laws: Ints) -> list[arb | None] | None:
    """What raising each cell by 1 loses at most; None at a cell that cannot rise, and at all where that is unknown."""
    open_ends = bool((bounds.low <= -NONE).all() and (bounds.high >= NONE).all())
    if open_ends and len(bounds.edges) == laws.size - 1:
        prices = _rises_in_tree(sums, bounds, laws)
    else:
        prices = [
            sums.rise(_worst_table(bounds, j), laws, j) if _can_rise(bounds, j) else NEVER for j in range(laws.size)
        ]
    losses: list[arb | None] = []
    for law, price in zip(laws.tolist(), prices, strict=True):
        if price is None:
            return None
        losses.append(None if price is NEVER else sums.rates[law] + price)
    return losses


def _rises_in_tree(sums: Sums, bounds: DifferenceBounds, laws: Ints) -> list[arb | None]:
    """The prices of all cells without ends that one tree connects: only the cells below matter, and they are shared."""
    below: list[list[int]] = [[] for _ in range(laws.size)]
    for i, j in bounds.edges:
        below[j].append(i)
    prices: list[arb | None] = [None] * laws.size
    messages: dict[int, Message | None] = {}
    for j in np.argsort((bounds.within < NONE // 2).sum(axis=0), kind="stable").tolist():  # from below
        own = [(message, NONE, 0) for i in below[j] if (message := messages[i]) is not None]
        if len(own) < len(below[j]):
            break
        prices[j] = sums.last(int(laws[j]), (-NONE, NONE), own)
        messages[j] = sums.message(int(laws[j]), (-NONE, NONE), own)
    return prices


def _can_rise(bounds: DifferenceBounds, j: int) -> bool:
    """Whether some table in C stays in it when cell j is raised by 1."""
    start, table = _table(bounds, j)
    room = np.where(table < NONE, table, NONE) + np.where(bounds.within[j] < NONE // 2, bounds.within[j], NONE)
    room[j] = NONE
    open_above = bounds.low[j] <= -NONE or start + 1 <= bounds.high[j]
    return bool(open_above and (room >= start + 1).all())


def _table(bounds: DifferenceBounds, j: int) -> tuple[int, Ints]:
    """The lowest value of cell j (0 where it has none) and the largest values of all cells then; NONE without end."""
    within = bounds.within[:, j]
    if bounds.low[j] <= -NONE:  # far below all upper ends
        return 0, np.where(within < NONE // 2, within, NONE)
    start = int(bounds.low[j])
    return start, np.minimum(bounds.high, np.where(within < NONE // 2, start + within, NONE))


def _worst_table(bounds: DifferenceBounds, j: int) -> Table:
    """The table at which log c rises fastest in x_j, and the ends of each cell seen from there."""
    _, at = _table(bounds, j)
    near = at < NONE
    if bounds.low[j] <= -NONE:
        low, high = np.full(at.size, -NONE), np.full(at.size, NONE)
    else:
        low = np.where(bounds.low > -NONE, bounds.low - np.where(near, at, 0), -NONE)
        high = np.where(bounds.high < NONE, bounds.high - np.where(near, at, 0), NONE)
    edges = [(i, k, int(at[k] + bounds.within[i, k] - at[i])) for i, k in bounds.edges if near[i] and near[k]]
    return Table(low, high, tuple(edges))
