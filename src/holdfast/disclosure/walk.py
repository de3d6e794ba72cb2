"""Many whole tables with the same figures, from one of them: steps along vectors that no figure notices.

The tables only witness that values can be attained. Nothing rests on the walk reaching every table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Ints, compiled
from holdfast.constraints.system.null_space import NullSpace
from holdfast.disclosure.figures import CellRows

#: Rounds in which pairs of moves are combined into moves that are no longer, and pairs tried in each: some for every
#: vector of the basis, and at most.
ROUNDS, PAIRS_EACH, MOST_PAIRS = 3, 20, 20_000
#: Steps of one walk: some for every move, and at most.
STEPS_EACH, MOST_STEPS = 100, 2_000_000
#: A move that could be made more often than this is made once: without limits a walk must not run away.
OFTEN = 2**30


def moves_of(rows: CellRows) -> sparse.csc_array | None:
    """Return whole vectors v with A v = 0, a lattice basis and combinations as short as it; None without any."""
    if rows.A.shape[0] == 0:
        return sparse.csc_array(sparse.identity(rows.n, dtype=np.int64, format="csc"))
    try:
        basis = sparse.csc_array(NullSpace.of(rows.A).lattice_basis())
    except Refused:
        return None
    if basis.shape[1] == 0:
        return None
    rng = np.random.default_rng(0)
    found = basis
    pairs = min(PAIRS_EACH * basis.shape[1], MOST_PAIRS)
    for _ in range(ROUNDS):
        one, two = rng.integers(found.shape[1], size=(2, pairs))
        signs = sparse.diags_array(rng.choice([-1, 1], size=pairs), format="csc", dtype=np.int64)
        sums = sparse.csc_array(found[:, one] + found[:, two] @ signs, dtype=np.int64)
        sums.eliminate_zeros()
        sizes, most = np.diff(sums.indptr), np.maximum(np.diff(found.indptr)[one], np.diff(found.indptr)[two])
        kept = np.flatnonzero((sizes > 0) & (sizes <= most))
        found = sparse.csc_array(sparse.hstack([found, sums[:, kept]], format="csc"))
    return found


def walk(rows: CellRows, moves: sparse.csc_array, start: Ints, seed: int) -> tuple[Ints, Ints, Ints]:
    """Return where a walk from a table ends, and the least and largest count it met in every cell."""
    # inequalities are coordinates of their own, which must not fall below 0
    slack = sparse.csr_array(rows.G)
    extended = sparse.csc_array(sparse.vstack([moves, slack @ moves], format="csc")).astype(np.int64)
    low = np.concatenate([rows.low, np.zeros(slack.shape[0], dtype=np.int64)])
    high = np.concatenate([rows.high, np.full(slack.shape[0], LARGEST, dtype=np.int64)])
    x = np.concatenate([start, slack @ start - rows.h])
    least, most = x.copy(), x.copy()
    rng = np.random.default_rng(seed)
    order = rng.integers(moves.shape[1], size=min(STEPS_EACH * moves.shape[1], MOST_STEPS))
    _steps(extended.indptr, extended.indices, extended.data, order, rng.random(order.size), low, high, x, least, most)
    n = rows.n
    return x[:n], least[:n], most[:n]


@compiled
def _steps(  # pragma: no cover (compiled)
    starts: Any, cells: Any, data: Any, order: Any, uniform: Any, low: Any, high: Any, x: Any, least: Any, most: Any
) -> None:
    for step in range(order.size):
        v = order[step]
        down, up = -LARGEST, LARGEST  # how often the move can be made
        for k in range(starts[v], starts[v + 1]):
            j, a = cells[k], data[k]
            below = x[j] - low[j]
            above = LARGEST if high[j] >= LARGEST else high[j] - x[j]
            if a < 0:
                a, below, above = -a, above, below
            down = max(down, -(below // a))
            up = min(up, above // a)
        # ends are visited as often as the middle: they are what is looked for
        down, up = down if down > -OFTEN else -1, up if up < OFTEN else 1
        times = down if uniform[step] < 0.25 else up
        if uniform[step] >= 0.25 and uniform[step] <= 0.75:
            times = min(up, down + int((uniform[step] - 0.25) * 2 * (up - down + 1)))
        if times == 0:
            continue
        for k in range(starts[v], starts[v + 1]):
            j = cells[k]
            x[j] += times * data[k]
            least[j] = min(least[j], x[j])
            most[j] = max(most[j], x[j])
