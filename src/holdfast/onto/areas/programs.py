"""The small exact programs of one area: whole sums over atoms of its parts, and whole cells inside them.

Both are linear programs whose costs are those of whole steps away from what is near; where the sets of the rules are
nested they are flows, and their vertices are whole. Otherwise whole numbers are searched for. Every answer is tested
in whole numbers before it is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import Refused
from holdfast.arrays import Bools, Floats, Ints
from holdfast.exact.solver import OPTIMAL, linear_program
from holdfast.queries.areas.rules import NO_LIMIT, Rules

#: Numbers of the largest program that looks ahead to all leaves below an area.
MOST_AHEAD = 400_000
#: Cells below this are first tried as 0.
NOTHING = 1e-2
#: Nodes of a search for whole numbers where a program is no flow.
MOST_NODES = 2_000


def nearest_whole(
    near: Floats, rows: Any, low: Any, high: Any, caps: Ints, coins: Floats, beyond: Any = None
) -> Ints | None:
    """Return whole numbers x ≥ 0, x ≤ caps, low ≤ rows·x (+ beyond·w, w ≥ 0) ≤ high, near to real ones; None: none.

    The cost of a step away from `near` is the growth of the squared distance, for the first step to either side.
    """
    base = np.minimum(np.floor(near + 1e-7), caps).astype(np.int64)
    part = np.clip(near - base, 0.0, None)
    k = near.size
    costs = np.concatenate([1 - 2 * part, 3 - 2 * part, 1 + 2 * part]) + 1e-4 * np.tile(coins, 3)
    ends = np.zeros(3 * k), np.concatenate([np.minimum(caps - base, 1), np.maximum(caps - base - 1, 0), base])
    held = sparse.csr_array(rows)
    wide = [held, held, -held]
    if beyond is not None:
        wide.append(beyond)
        costs = np.concatenate([costs, np.zeros(beyond.shape[1])])
        ends = tuple(
            np.concatenate([end, np.full(beyond.shape[1], limit)])
            for end, limit in zip(ends, (0.0, np.inf), strict=True)
        )  # type: ignore[assignment]
    shift = held @ base
    least = np.where(low <= -NO_LIMIT, -np.inf, low - shift)
    most = np.where(high >= NO_LIMIT, np.inf, high - shift)
    matrix = sparse.hstack(wide, format="csr")
    for whole in (False, np.arange(matrix.shape[1]) < 3 * k):
        options: dict[str, Any] = {"mip_max_nodes": MOST_NODES} if np.any(whole) else {"solver": "simplex"}
        solver = linear_program(matrix, costs, ends, (least, most), whole=whole, **options)
        solver.run()
        if solver.getModelStatus() != OPTIMAL and not np.any(whole):
            return None
        values = np.array(solver.getSolution().col_value)[: 3 * k]
        if values.size < 3 * k:
            return None
        steps = np.rint(values).astype(np.int64)
        found = base + steps[:k] + steps[k : 2 * k] - steps[2 * k :]
        sums = held @ found
        alone = np.ones(sums.size, bool) if beyond is None else np.diff(sparse.csr_array(beyond).indptr) == 0
        settled = bool(((sums >= low) & (sums <= high))[alone].all())
        if np.abs(values - steps).max(initial=0.0) < 1e-6 and settled and found.min(initial=0) >= 0:
            return np.asarray(found)
    return None


def shared_atoms(rules: Rules, parts: Ints, above: Ints | None, near: Floats, coins: Floats) -> Ints:
    """Return whole sums over atoms, (parts, atoms), near to real ones, within all limits, adding up to those above."""
    low, high, atom_low, atom_high = rules.limits
    count, atoms = near.shape
    place = np.arange(count * atoms).reshape(count, atoms)
    blocks, least, most = [], [], []
    if above is not None:
        blocks.append(sparse.hstack([sparse.identity(atoms, format="csr", dtype=np.int64)] * count, format="csr"))
        least.append(above)
        most.append(above)
    asked, members = np.nonzero((low[parts] > 0) | (high[parts] < NO_LIMIT))
    rows = sparse.csr_array(rules.inside[members].astype(np.int64))
    entry = rows.tocoo()
    blocks.append(
        sparse.csr_array(
            (entry.data, (entry.coords[0], place[asked[entry.coords[0]], entry.coords[1]])),
            shape=(members.size, count * atoms),
        )
    )
    least.append(low[parts][asked, members])
    most.append(high[parts][asked, members])
    caps = atom_high[parts].ravel()
    floor = atom_low[parts].ravel()
    ahead = None if rules.parts_suffice else _ahead(rules, parts, atoms)
    matrix, low_all, high_all = sparse.vstack(blocks, format="csr"), np.concatenate(least), np.concatenate(most)
    shift = matrix @ floor
    beyond = None
    if ahead is not None:
        more, beyond, more_low, more_high = ahead
        beyond = sparse.vstack([sparse.csr_array((matrix.shape[0], beyond.shape[1])), beyond], format="csr")
        matrix = sparse.vstack([matrix, more], format="csr")
        low_all, high_all = np.concatenate([low_all, more_low]), np.concatenate([high_all, more_high])
        shift = matrix @ floor
    found = nearest_whole(
        np.maximum(near.ravel() - floor, 0),
        matrix,
        _less(low_all, shift),
        _less(high_all, shift),
        caps - floor,
        coins.ravel(),
        beyond,
    )
    if found is None:
        tree = rules.query.hierarchy
        raise Refused(
            f"no whole numbers were found that hold what must hold in {' / '.join(tree.path(int(parts[0])))} "
            "and the areas beside it: ask for fewer exact figures or bounds there"
        )
    return (found + floor).reshape(count, atoms)


def _less(limits: Ints, shift: Ints) -> Ints:
    return np.where(np.abs(limits) >= NO_LIMIT, limits, limits - shift)


def _ahead(rules: Rules, parts: Ints, atoms: int) -> tuple[Any, Any, Ints, Ints] | None:
    """Rows that let the leaves below the parts fill their sums within all their own rules; None: too many, or leaves.

    Returned: what the rows say about the sums of the parts, and about the sums of the leaves; and their limits.
    """
    tree, paths = rules.query.hierarchy, rules.query.paths()
    first, owner = int(tree.depth[parts[0]]), np.full(tree.n, -1, np.int64)
    owner[parts] = np.arange(parts.size)
    above = np.where(paths[first] >= 0, owner[paths[first]], -1)
    leaves = np.flatnonzero(above >= 0)
    wide = leaves.size * atoms
    if (tree.depth[tree.leaves[leaves]] == first).all() or wide > MOST_AHEAD:
        return None
    filled = above[leaves][:, None] * atoms + np.arange(atoms)
    rows, columns, count = [filled.ravel()], [np.arange(wide)], parts.size * atoms
    signs = [np.full(wide, -1.0)]
    low, high = [np.zeros(count, np.int64)], [np.zeros(count, np.int64)]
    for depth in range(first + 1, len(tree.levels)):
        here, place = np.unique(paths[depth][leaves], return_inverse=True)
        order = np.argsort(place, kind="stable")
        ends = np.searchsorted(place[order], np.arange(here.size + 1))
        known = here >= 0
        asked, members = np.nonzero(((rules.low[here] > 0) | (rules.high[here] < NO_LIMIT)) & known[:, None])
        for a, s in zip(asked.tolist(), members.tolist(), strict=True):
            chosen = (order[ends[a] : ends[a + 1]][:, None] * atoms + np.flatnonzero(rules.inside[s])).ravel()
            rows.append(np.full(chosen.size, count))
            columns.append(chosen)
            signs.append(np.ones(chosen.size))
            count += 1
        low.append(rules.low[here[asked], members])
        high.append(rules.high[here[asked], members])
    entries = (np.concatenate(rows), np.concatenate(columns))
    beyond = sparse.csr_array((np.concatenate(signs), entries), shape=(count, wide))
    own = sparse.csr_array(sparse.eye_array(count, parts.size * atoms, format="csr", dtype=np.int64))
    return own, beyond, np.concatenate(low), np.concatenate(high)


def shared_cells(atom_of: Ints, sums: Ints, above: Ints | None, near: Floats, coins: Floats) -> Ints:
    """Return whole cells, (parts, cells), near to real ones, with these sums over atoms and the cells above as sums.

    The sums over atoms of all parts add up to those of the cells above, so inside every atom this is a transport
    problem that has whole solutions. Cells that are next to nothing are tried without first.
    """
    open_to = sums[:, atom_of] > 0
    if above is not None:
        open_to &= (above > 0)[None, :]
    for chosen in (open_to & (near > NOTHING), open_to):
        found = _transported(atom_of, sums, above, near, coins, chosen)
        if found is not None:
            return found
    raise Refused("no whole cells were found inside whole sums; this is a fault of holdfast")


def _transported(
    atom_of: Ints, sums: Ints, above: Ints | None, near: Floats, coins: Floats, chosen: Bools
) -> Ints | None:
    """Return the same with 0 wherever a cell is not chosen; None where there is none."""
    row, column = np.nonzero(chosen)
    entry, ones = np.arange(row.size), np.ones(row.size, np.int64)
    group = np.flatnonzero(sums.ravel())
    place = np.searchsorted(group, row * sums.shape[1] + atom_of[column])
    blocks = [sparse.csr_array((ones, (place, entry)), shape=(group.size, row.size))]
    sides = [sums.ravel()[group]]
    caps = sums[row, atom_of[column]]
    if above is not None:
        used = np.flatnonzero(above)
        blocks.append(sparse.csr_array((ones, (np.searchsorted(used, column), entry)), shape=(used.size, row.size)))
        sides.append(above[used])
        caps = np.minimum(caps, above[column])
    result, side = np.zeros(near.shape, np.int64), np.concatenate(sides)
    if not row.size:
        return None if side.any() else result
    found = nearest_whole(near[row, column], sparse.vstack(blocks, format="csr"), side, side, caps, coins[row, column])
    if found is None:
        return None
    result[row, column] = found
    return result
