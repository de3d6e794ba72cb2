"""Sums of released values, exact for whole numbers, and which rows add up to which, found from their names alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arrays import Ints
from holdfast.release.storage.tables import missing

Columns = Mapping[str, npt.NDArray[Any]]
Values = npt.NDArray[Any]
#: Below this size 64 bits hold every sum.
SAFE = 2**62
#: Relative error that sums of real numbers may have.
TOLERANCE = 1e-9


def totals(values: Values, group: npt.NDArray[np.int64], count: int) -> tuple[Values, Values]:
    """Return each group's sum, exact for whole numbers, and the sum of sizes that its rounding depends on."""
    sizes = np.zeros(count)
    np.add.at(sizes, group, np.abs(values.astype(np.float64)))
    whole = values.dtype.kind == "i"
    exact = whole and sizes.max(initial=0.0) >= SAFE
    sums = np.zeros(count, dtype=object if exact else values.dtype)
    np.add.at(sums, group, values.astype(object) if exact else values)
    return sums, np.zeros(count) if whole else sizes


def first_unequal(expected: Values, sums: Values, sizes: Values) -> int | None:
    """Return the first place where a value is not its sum, or None."""
    if sizes.any():
        wrong = np.abs(expected - sums) > TOLERANCE * np.maximum(1.0, sizes + np.abs(expected))
    else:
        wrong = np.asarray(expected != sums, dtype=bool)
    places = np.flatnonzero(wrong)
    return int(places[0]) if places.size else None


def named_sums(values: Values, named: Columns, kind: str, levels: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for what does not add up, by the columns that name the rows."""
    names = {name: _codes(column) for name, column in named.items()}
    if kind == "hierarchy":
        yield from _hierarchy(values, names, levels)
    elif kind in ("cube", "areas"):
        yield from _margins(values, names, np.arange(len(values)))
    elif kind == "linked":  # each table by itself: its rows have one name in the first column
        first, *rest = names
        for table in np.unique(names[first]):
            yield from _margins(values, {name: names[name] for name in rest}, np.flatnonzero(names[first] == table))


def disagreement(values: Values, named: Columns, margins: Sequence[Ints]) -> Iterator[str]:
    """Yield a sentence if margins, each given by its rows, do not have the same sums over what they share."""
    names = {name: _codes(column) for name, column in named.items()}
    rows = np.unique(np.concatenate([*margins, np.empty(0, dtype=np.int64)]))
    yield from _margins(values, names, rows)


def _codes(column: npt.NDArray[Any]) -> Ints:
    """Number the names of a column from 1 on; 0 is no name."""
    empty = missing(column)
    codes = np.zeros(len(column), dtype=np.int64)
    _, inverse = np.unique(np.asarray(column)[~empty].astype(str), return_inverse=True)
    codes[~empty] = inverse + 1
    return codes


def _joint(parts: Sequence[Ints], count: int) -> Ints:
    """Number the distinct combinations of several codes."""
    joint, size = np.zeros(count, dtype=np.int64), 1
    for part in parts:
        radix = int(part.max(initial=0)) + 1
        if size * radix >= SAFE:  # number those that occur, which are few
            _, joint = np.unique(joint, return_inverse=True)
            size = int(joint.max(initial=0)) + 1
        joint, size = joint * radix + part, size * radix
    return np.asarray(np.unique(joint, return_inverse=True)[1])


def _hierarchy(values: Values, names: Mapping[str, Ints], levels: Sequence[str]) -> Iterator[str]:
    """Check every node against its children: the rows one level below with the same names so far."""
    steps = [name for name in names if name in levels]
    others = [codes for name, codes in names.items() if name not in levels]
    if len(steps) < len(levels):
        yield "the names do not show the hierarchy: a level has no column"
        return
    empty = np.stack([codes == 0 for codes in others]) if others else np.zeros((1, len(values)), dtype=bool)
    whole = np.flatnonzero(empty.all(axis=0) | ~empty.any(axis=0))  # sums over some categories hang below nothing
    values, names = values[whole], {name: codes[whole] for name, codes in names.items()}
    others = [codes[whole] for codes in others]
    filled = np.stack([names[name] > 0 for name in steps])
    depth = filled.sum(axis=0) - 1
    if (depth < 0).any() or (filled != (np.arange(len(steps))[:, None] <= depth)).any():
        yield "the names of a row skip a level"
        return
    for d in range(1, len(steps)):
        path = _joint([*(names[name] for name in steps[:d]), *others], len(values))
        above, below = np.flatnonzero(depth == d - 1), np.flatnonzero(depth == d)
        place = np.full(int(path.max(initial=-1)) + 1, -1, dtype=np.int64)
        place[path[above]] = np.arange(above.size)
        if np.unique(path[above]).size < above.size:
            yield f"two rows of the level {steps[d - 1]} have the same names"
            return
        parent = place[path[below]]
        if (parent < 0).any():
            yield f"row {whole[below[np.argmax(parent < 0)]]} has no row above it"
            return
        inner = np.unique(parent)
        sums, sizes = totals(values[below], parent, above.size)
        wrong = first_unequal(values[above[inner]], sums[inner], sizes[inner])
        if wrong is not None:
            yield f"row {whole[above[inner[wrong]]]} is not the sum of the rows below it"


def _follows(keeps: Sequence[frozenset[str]], i: int, j: int) -> bool:
    """Whether two margins agree because each does with one before both that keeps what they share."""
    shared = keeps[i] & keeps[j]
    return any(k < min(i, j) and shared <= keep for k, keep in enumerate(keeps))


def _margins(values: Values, names: Mapping[str, Ints], rows: Ints) -> Iterator[str]:
    """Check that every two margins have the same sums over the axes that they share."""
    kept = _joint([(codes[rows] > 0).astype(np.int64) for codes in names.values()], rows.size)
    groups = [rows[kept == margin] for margin in range(int(kept.max(initial=-1)) + 1)]
    groups.sort(key=lambda own: -sum(codes[own[0]] > 0 for codes in names.values()))  # most others follow from these
    keeps = [frozenset(name for name, codes in names.items() if codes[rows[0]]) for rows in groups]
    for (i, one), (j, two) in combinations(enumerate(groups), 2):
        both_keep = keeps[i] & keeps[j]
        if _follows(keeps, i, j):
            continue
        shared = [names[name] for name in names if name in both_keep]
        both = np.concatenate([one, two])
        place = _joint([codes[both] for codes in shared], both.size)
        count = int(place.max()) + 1
        left, size = totals(values[one], place[: one.size], count)
        right, more = totals(values[two], place[one.size :], count)
        wrong = first_unequal(left, right, size + more)
        if wrong is not None:
            where = both[np.flatnonzero(place == wrong)]
            yield f"the margins of rows {where[0]} and {where[-1]} have different sums over what they share"
