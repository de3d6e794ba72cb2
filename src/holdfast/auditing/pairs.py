"""Made-up neighbouring data on which mechanisms tend to fail: empty tables, one large cell, corners of bounds."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from holdfast.arguments import LARGEST, Refused, array
from holdfast.arrays import Ints
from holdfast.constraints import NullSpace, System
from holdfast.exact.solver import linear_program, solved
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.mixed import Mixture
from holdfast.mechanism.projected import Projected
from holdfast.privacy import Guarantee
from holdfast.queries import Neighbours, Query
from holdfast.queries.areas.linked import LinkedCounts
from holdfast.randomness import Stream

# --- what is audited: something that draws, the statements about it, and what is publicly known of its data ----------

Values = npt.NDArray[Any]
Draw = Callable[[Values, int, Stream], Values]

NOTHING = "nothing can be audited: {} promises nothing, so there is nothing to refute"


@dataclass(frozen=True, eq=False)
class Subject:
    """A mechanism as the auditor sees it.

    query: what is asked, None where nobody says; held: what every possible dataset, and the output, obeys; listed: the
    mechanism whose law can be written down, None where only draws are known.
    """

    name: str
    statements: tuple[Guarantee, ...]
    draw: Draw
    query: Query | None = None
    held: System | None = None
    listed: Mechanism | None = None

    @classmethod
    def of(cls, mechanism: Any, query: Query | None, guarantee: Guarantee | None) -> Subject:
        """Read a mechanism of holdfast, an object with `simulate`, `guarantee` and `query`, or a plain function."""
        if query is not None and not isinstance(query, Query):
            raise Refused(f"query must be made by counts(), histogram() and the like; found {type(query).__name__}")
        if guarantee is not None and not isinstance(guarantee, Guarantee):
            raise Refused(f"guarantee must be a Guarantee, found {type(guarantee).__name__}")
        statements = (guarantee,) if guarantee is not None else _statements(mechanism)
        kept = tuple(each for each in statements if not each.void)
        if not kept:
            raise Refused(NOTHING.format("a void statement"))
        asked = query if query is not None else getattr(mechanism, "query", None)
        # A subclass may draw from another law than its base says, as does noise made for its constraint.
        is_listed = type(mechanism) is Mechanism and mechanism.source.law is None and query is None
        listed = mechanism if is_listed else None
        return cls(_name(mechanism), kept, _draw(mechanism), asked, _held(mechanism), listed)


def _name(mechanism: Any) -> str:
    if isinstance(mechanism, (Mechanism, Mixture, Projected)):
        return repr(mechanism)
    return str(getattr(mechanism, "__name__", type(mechanism).__name__))


def _statements(mechanism: Any) -> tuple[Guarantee, ...]:
    found = getattr(mechanism, "guarantees", None)
    first = getattr(mechanism, "guarantee", None) if not found else None
    statements = tuple(found) if found else (first,) if first is not None else ()
    if not statements:
        raise Refused(NOTHING.format("it") + "; pass guarantee= for a function of your own")
    for each in statements:
        if not isinstance(each, Guarantee):
            raise Refused(f"a mechanism's guarantees must be of type Guarantee, found {type(each).__name__}")
    return statements


def _held(mechanism: Any) -> System | None:
    if isinstance(mechanism, Mixture):
        return mechanism.parts[0].held
    found = getattr(mechanism, "held", None)
    return found if isinstance(found, System) else None


def _draw(mechanism: Any) -> Draw:
    if isinstance(mechanism, Projected):
        return lambda truth, size, _stream: mechanism.simulate(truth, size)
    if callable(getattr(mechanism, "simulate", None)):
        return lambda truth, size, stream: _table(mechanism.simulate(truth, size, stream), size)
    if not callable(mechanism):
        raise Refused(
            "mechanism must be a mechanism, an object with simulate(truth, size, rng), or a function from the truth to "
            f"one release; found {type(mechanism).__name__}"
        )
    return lambda truth, size, _stream: _table([mechanism(truth.copy()) for _ in range(size)], size)


def _table(values: Any, size: int) -> Values:
    """Draws as an array (size, number of outputs), missing values written as infinite."""
    found = np.asarray(values)
    if found.dtype.kind not in "biuf" or found.shape[:1] != (size,):
        raise Refused(f"simulate() must return {size} rows of numbers, found shape {found.shape}")
    rows = found.reshape(size, -1)
    if rows.dtype.kind == "b":
        return rows.astype(np.int64)
    if rows.dtype.kind == "f" and np.isnan(rows).any():
        return np.where(np.isnan(rows), np.inf, rows)
    return rows


# --- changes of a few records: those a statement is about, found without the library's own difference sets -----------

#: Cells, or vectors of a basis, that are combined with each other at most.
COMBINED = 40
#: Changes that are kept at most.
KEPT = 48


def records_changed(change: Ints, relation: Neighbours) -> int:
    """How many records a change of cell counts takes; more than any statement allows where it cannot be made."""
    if relation.adds:
        return int(np.abs(change).sum())
    return int(np.abs(change).sum()) // 2 if change.sum() == 0 else np.iinfo(np.int64).max


def kept_rows(query: Query, held: System | None, scope: str, relation: Neighbours) -> sparse.csr_array:
    """Rows on the cells that a change must not alter: known equalities, for some scopes exact figures, the total."""
    rows = []
    if held is not None and not held.branches:
        rows.append(sparse.csr_array(held.equalities.A @ query.columns))
        if scope == "invariant-sharing":
            rows.append(sparse.csr_array(held.invariants.A @ query.columns))
    if not relation.adds:
        rows.append(sparse.csr_array(np.ones((1, int(query.cells or 0)), dtype=np.int64)))
    if not rows:
        return sparse.csr_array((0, int(query.cells or 0)), dtype=np.int64)
    stacked = sparse.csr_array(sparse.vstack(rows, format="csr"))
    stacked.eliminate_zeros()
    return sparse.csr_array(stacked[np.diff(stacked.indptr) > 0])


def changes(query: Query, held: System | None, scope: str, relation: Neighbours, seed: int) -> list[Ints]:
    """Changes of at most so many records that keep what must be kept and alter an answer, some of each size."""
    cells = int(query.cells or 0)
    rows = kept_rows(query, held, scope, relation)
    rng = np.random.default_rng(seed)
    basis = _basis(rows, cells, rng)
    found: dict[bytes, Ints] = {}
    for change in _combined(basis, relation):
        if change.any() and not (rows @ change).any() and (query.columns @ change).any():
            found.setdefault(min(change.tobytes(), (-change).tobytes()), change)
    listed = list(found.values())
    # Those that alter the answers most, and some of the others.
    size = np.array([float(np.abs(query.columns @ change).sum()) for change in listed])
    order = np.argsort(-size, kind="stable")
    first, rest = order[: KEPT // 2], order[KEPT // 2 :]
    chosen = rest if len(listed) <= KEPT else rng.permutation(rest)[: KEPT // 2]
    return [listed[i] for i in [*first.tolist(), *chosen.tolist()]]


def _basis(rows: sparse.csr_array, cells: int, rng: np.random.Generator) -> list[Ints]:
    """Some whole vectors of the null space of the rows, dense."""
    if rows.shape[0] == 0:
        chosen = np.arange(cells) if cells <= COMBINED else _spread(cells, rng)
        return [np.bincount([j], minlength=cells).astype(np.int64) for j in chosen.tolist()]
    vectors: list[Ints] = []
    try:
        basis = NullSpace.of(rows).lattice_basis()
    except Refused:
        basis = sparse.csc_array((cells, 0), dtype=np.int64)
    chosen = np.arange(basis.shape[1]) if basis.shape[1] <= COMBINED else _spread(basis.shape[1], rng)
    vectors = [np.asarray(basis[:, [j]].toarray()).ravel().astype(np.int64) for j in chosen.tolist()]
    # One record less in a cell and one more in another that looks the same to all rows.
    _, alike = np.unique(rows.toarray().T if cells <= 4000 else np.arange(cells), axis=0, return_inverse=True)
    for group in itertools.islice((np.flatnonzero(alike == k) for k in range(int(alike.max()) + 1)), COMBINED):
        if group.size > 1:
            vector = np.zeros(cells, dtype=np.int64)
            vector[group[0]], vector[group[-1]] = -1, 1
            vectors.append(vector)
    return vectors


def _spread(count: int, rng: np.random.Generator) -> Ints:
    """The first few, the last few and some between."""
    between = rng.choice(np.arange(4, count - 4), size=COMBINED - 8, replace=False)
    return np.concatenate([np.arange(4), between, np.arange(count - 4, count)]).astype(np.int64)


def _combined(basis: list[Ints], relation: Neighbours) -> list[Ints]:
    """Multiples of the vectors, and sums and differences of two (multiples alike), of at most so many records."""
    found = []
    pairs = [a + sign * b for a, b in itertools.combinations(basis[:COMBINED], 2) for sign in (1, -1)]
    for vector in [*basis, *pairs]:
        one = records_changed(vector, relation)
        if 0 < one <= relation.records:
            found.append(vector * (relation.records // one))
            if relation.records // one > 1:
                found.append(vector)
    return found


#: Cells up to which corners of what must hold are searched by a program.
MOST_CELLS = 400
#: Simple tables of which so many fit make corners superfluous.
ENOUGH = 4
#: Nodes after which a program is given up; another corner is then used or none.
NODES = 500
#: Pairs that one statement is tested on at most, and at least where little effort is made; besides those of a walk.
MOST_PAIRS, FEWEST_PAIRS = 60, 6
#: True counts through which one cell is led, and then the total, where there is time: rules for small counts begin
#: and end here.
WALK = (0, *range(1, 13), 19, 20, 49, 50, 99, 100)
#: What a walk leads.
CELL, TOTAL = "one cell", "the total"
#: Cells of a pair that words name one by one.
NAMED = 8


@dataclass(frozen=True, eq=False)
class Pair:
    """Two made-up neighbouring datasets by their answers, and in words. Nothing in them was read from data."""

    one: npt.NDArray[Any]
    other: npt.NDArray[Any]
    words: str
    #: What a walk led to a count, and the count.
    led: tuple[str, int] | None = None

    @property
    def key(self) -> bytes:
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
    pairs: dict[bytes, Pair] = {}

    def add(table: Ints, change: Ints, led: tuple[str, int] | None = None) -> None:
        one, other = query.answer(table), query.answer(table + change)
        if _possible(held, query, one) and _possible(held, query, other):
            pair = Pair(one, other, _words(table, change, relation), led)
            known = pairs.setdefault(pair.key, pair)
            pairs[pair.key] = known if known.led else pair

    made = _oriented(query, held, scope, relation, seed)
    for change, table in _in_order(query, held, made, large, seed):
        if len(pairs) >= most:
            break
        add(table, change)
    if most >= MOST_PAIRS and made:
        for count in WALK:
            for what, led in _led(made[0]).items():
                add(np.maximum(-made[0], 0) + count * led, made[0], (what, count))
    return list(pairs.values())


def _led(change: Ints) -> dict[str, Ints]:
    """The cells that a walk leads through its counts: one that changes, and one that does not, for the total."""
    cells = {CELL: np.flatnonzero(change > 0)[:1], TOTAL: np.flatnonzero(change == 0)[:1]}
    return {what: np.isin(np.arange(change.size), at).astype(np.int64) for what, at in cells.items() if at.size}


def led_words(pairs: Iterable[Pair]) -> tuple[str, ...]:
    """Say which true counts were tried, for the report."""
    counts: dict[str, list[str]] = {}
    for what, count in (pair.led for pair in pairs if pair.led is not None):
        counts.setdefault(what, []).append(str(count))
    return tuple(f"{what} was tried at the true counts {', '.join(each)}" for what, each in counts.items())


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
