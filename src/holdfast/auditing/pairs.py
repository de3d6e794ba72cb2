"""Made-up neighbouring data on which mechanisms tend to fail: empty tables, one large cell, corners of bounds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from holdfast.arguments import LARGEST, Refused, array
from holdfast.arrays import Ints
from holdfast.auditing.changes import changes, records_changed
from holdfast.constraints import System
from holdfast.exact.solver import linear_program, solved
from holdfast.queries import Neighbours, Query
from holdfast.queries.areas.linked import LinkedCounts

#: Cells up to which corners of what must hold are searched by a program.
MOST_CELLS = 400
#: Simple tables of which so many fit make corners superfluous.
ENOUGH = 4
#: Nodes after which a program is given up; another corner is then used or none.
NODES = 500
#: Pairs that one statement is tested on at most, and at least where little effort is made.
MOST_PAIRS, FEWEST_PAIRS = 60, 6
#: Cells of a pair that words name one by one.
NAMED = 8


@dataclass(frozen=True, eq=False)
class Pair:
    """Two made-up neighbouring datasets by their answers, and in words. Nothing in them was read from data."""

    one: npt.NDArray[Any]
    other: npt.NDArray[Any]
    words: str

    @property
    def key(self) -> bytes:
        """What tells pairs apart."""
        return self.one.tobytes() + b"|" + self.other.tobytes()


def given_pairs(pairs: Any, n: int | None) -> list[Pair]:
    """Read the pairs of truths that a user passes."""
    try:
        listed = [(one, other) for one, other in pairs]
    except (TypeError, ValueError):
        raise Refused("pairs must be a list of pairs (truth, neighbouring truth)") from None
    if not listed:
        raise Refused("pairs must hold at least one pair of truths, found none")
    found = []
    for k, (one, other) in enumerate(listed):
        ends = [np.atleast_1d(array(f"pair {k}", end)) for end in (one, other)]
        if ends[0].shape != ends[1].shape or ends[0].ndim != 1 or (n is not None and ends[0].size != n):
            wanted = "two truths of the same length" if n is None else f"two truths of {n} numbers"
            raise Refused(f"pair {k} must be {wanted}, found shapes {ends[0].shape} and {ends[1].shape}")
        found.append(Pair(ends[0], ends[1], f"pair {k} as passed"))
    return found


def neighbouring(pair: Pair, query: Query | None, held: System | None, scope: str, relation: Neighbours) -> bool:
    """Whether a statement can be about this pair: as few records as it says lead from one to the other.

    Where cells are not known, the user's word counts.
    """
    difference = pair.other - pair.one
    if scope == "invariant-sharing" and held is not None and held.invariants.count:
        rows = held.invariants.A
        if (np.abs(rows @ difference) > 1e-9 * np.maximum(abs(rows) @ np.abs(difference), 1)).any():
            return False
    if query is None or query.cells is None or query.grid is not None:
        return True
    return _fewest_records(query, difference, relation) <= relation.records


def _fewest_records(query: Query, difference: npt.NDArray[Any], relation: Neighbours) -> float:
    """The least number of records that change the answers by so much; infinite where none do."""
    columns = sparse.csr_array(query.columns)
    both = sparse.hstack([columns, -columns], format="csr")
    rows, sides = [both], [difference.astype(float)]
    if not relation.adds:
        signs = np.concatenate([np.ones(columns.shape[1]), -np.ones(columns.shape[1])])
        rows.append(sparse.csr_array(signs[None, :]))
        sides.append(np.zeros(1))
    side = np.concatenate(sides)
    cost = np.full(both.shape[1], 1.0 if relation.adds else 0.5)
    A = sparse.vstack(rows, format="csr")
    found = solved(linear_program(A, cost, (0.0, np.inf), (side, side), whole=True, mip_max_nodes=NODES))
    return float("inf") if found is None else float(cost @ found) - 1e-6


def searched_pairs(
    query: Query, held: System | None, scope: str, relation: Neighbours, large: int, seed: int, most: int = MOST_PAIRS
) -> list[Pair]:
    """Pairs of possible datasets that a statement is about, the most promising first.

    `large`: a count that is far from every edge for this noise. `most`: so many pairs are enough.
    """
    if isinstance(query, LinkedCounts):
        return _by_households(query, relation, large, most)
    if query.cells is None:
        return _by_sensitivity(query, relation)
    found: dict[bytes, Pair] = {}
    for change, table in _in_order(query, held, _oriented(query, held, scope, relation, seed), large, seed):
        if len(found) >= most:
            break
        one, other = query.answer(table), query.answer(table + change)
        if _possible(held, query, one) and _possible(held, query, other):
            pair = Pair(one, other, _words(table, change, relation))
            found.setdefault(pair.key, pair)
    return list(found.values())


def _by_households(query: LinkedCounts, relation: Neighbours, large: int, most: int) -> list[Pair]:
    """Pairs in which one of the largest households is there or not, or another, beside none and beside many."""
    listed = query.households(most)
    if not listed:
        raise Refused("the households of these tables are too many to list: pass pairs")
    beside = np.sum(listed, axis=0)
    found: list[Pair] = []
    changed = listed if relation.adds else [each - listed[0] for each in listed[1:]]
    for each in changed:
        for times, words in ((1, "few"), (large, "many")):
            one = beside * times
            found.append(Pair(one, one + relation.records * each, f"a large household beside {words} others"))
    return found[:most]


def _oriented(query: Query, held: System | None, scope: str, relation: Neighbours, seed: int) -> list[Ints]:
    both: list[Ints] = []
    for change in changes(query, held, scope, relation, seed):
        both += [change, -change] if not relation.adds or (change < 0).any() else [change]
    return both


def _in_order(
    query: Query, held: System | None, made: list[Ints], large: int, seed: int
) -> Iterator[tuple[Ints, Ints]]:
    """Changes with tables, alternately: the first table of one more change, and one more table of an early change."""
    tables = [_tables(query, held, change, large, k + seed) for k, change in enumerate(made)]
    first = (found for each in tables for found in itertools.islice(each, 1))
    for found in itertools.zip_longest(first, itertools.chain.from_iterable(tables)):
        yield from (each for each in found if each is not None)


def _tables(query: Query, held: System | None, change: Ints, large: int, seed: int) -> Iterator[tuple[Ints, Ints]]:
    """Cell counts from which this change can be made, each with the change; corners where simple ones do not fit."""
    rng = np.random.default_rng(seed)
    fitting = 0
    for table in _simple_tables(change, large, rng):
        yield change, table
        fitting += all(_possible(held, query, query.answer(each)) for each in (table, table + change))
    if held is not None and change.size <= MOST_CELLS and fitting < ENOUGH:
        for table in _corners(query, held, change, large, rng):
            yield change, table


def _simple_tables(change: Ints, large: int, rng: np.random.Generator) -> Iterator[Ints]:
    """Nothing but what the change needs, large counts where it takes, gives or neither, and small counts at random."""
    least = np.maximum(-change, 0)
    yield least
    losing, gaining = change < 0, change > 0
    for chosen in (losing, gaining, ~losing, change == 0, np.ones(change.size, dtype=bool)):
        if chosen.any():
            yield least + large * chosen
    for j in rng.permutation(np.flatnonzero(change == 0))[:3].tolist():
        table = least.copy()
        table[j] += large
        yield table
    yield least + rng.integers(0, 4, change.size)


def _corners(query: Query, held: System, change: Ints, large: int, rng: np.random.Generator) -> Iterator[Ints]:
    """Corners of the tables for which both datasets are possible, by programs with various aims."""
    columns = sparse.csr_array(query.columns)
    moved = columns @ change
    system = held if not held.branches else None
    sides = [system] if system is not None else list(held.branches)
    aims = [
        np.ones(change.size),
        -np.ones(change.size),
        np.where(change < 0, -1.0, 1.0),
        np.where(change > 0, -1.0, 1.0),
    ]
    aims += [rng.normal(size=change.size) for _ in range(2)]
    unit = 1 if query.grid is None else query.grid
    for side in sides:
        low, high = side.integer_bounds(unit)
        stacked = [columns]
        least = [np.where(low > -LARGEST, low - np.minimum(moved, 0), -np.inf)]
        most = [np.where(high < LARGEST, high - np.maximum(moved, 0), np.inf)]
        for rows, equal in ((side.equalities, True), (side.inequalities, False)):
            if rows.count:
                on_cells, right = sparse.csr_array(rows.A @ columns), np.array([float(b) for b in rows.b]) / float(unit)
                slack = 0 if equal else np.minimum(rows.A @ moved, 0)
                stacked.append(on_cells)
                least.append(right - slack)
                most.append(right if equal else np.full(right.size, np.inf))
        program = sparse.vstack(stacked, format="csr"), (np.concatenate(least), np.concatenate(most))
        ends = np.maximum(-change, 0), large + np.abs(change)
        for aim in aims:
            found = solved(linear_program(program[0], aim, ends, program[1], whole=True, mip_max_nodes=NODES))
            if found is not None:
                yield np.rint(found).astype(np.int64)


def _possible(held: System | None, query: Query, answer: npt.NDArray[Any]) -> bool:
    unit = 1 if query.grid is None else query.grid
    steps = query.in_steps("truth", answer, (query.n,), whole=query.integer)
    return held is None or held.violation(steps, unit) is None


def _by_sensitivity(query: Query, relation: Neighbours) -> list[Pair]:
    """Answers that differ by as much as the sensitivities allow, where nothing else is known of a query."""
    found = []
    largest = np.inf
    for p in (1, 2):
        try:
            largest = min(largest, query.sensitivity(p, relation))
        except Refused:
            continue
    step = int(largest) if query.integer else largest
    for base in (0, 1000):
        for at in sorted({0, query.n - 1}):
            one = np.full(query.n, base, dtype=np.int64 if query.integer else np.float64)
            other = one.copy()
            other[at] += step
            found.append(Pair(one, other, f"all answers {base}; answer {at} larger by its sensitivity"))
    return found if np.isfinite(largest) and step else []


def _words(table: Ints, change: Ints, relation: Neighbours) -> str:
    values, times = np.unique(table, return_counts=True)
    usual = int(values[np.argmax(times)])
    unlike = np.flatnonzero(table != usual)
    words = f"made-up counts: {usual} in every cell"
    if unlike.size:
        named = ", ".join(f"{table[j]} in cell {j}" for j in unlike[:NAMED].tolist())
        more = f" and others in {unlike.size - NAMED} more" if unlike.size > NAMED else ""
        words = f"made-up counts: {usual} in every cell but {named}{more}"
    touched = np.flatnonzero(change)
    moved = ", ".join(f"{change[j]:+d} in cell {j}" for j in touched[:NAMED].tolist())
    more = f" and changes in {touched.size - NAMED} more" if touched.size > NAMED else ""
    return f"{words}; against them {moved}{more} ({records_changed(change, relation)} records)"
