"""The figures of a table as places in the product of its classifications, and the sums that must hold between them.

Every combination of levels that the table has is complete: figures that are not in it stand behind the published ones,
as missing. A sum is a figure and those below it along one column that cover all its leaves; where the table leaves out
a level, the next one below stands in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import Refused, one_of, rational, whole, written_rational
from holdfast.arrays import Bools, Ints
from holdfast.constraints import Constraint, at_least, consistent, equals, fixed, nonnegative
from holdfast.constraints.constraint import build
from holdfast.constraints.possible.contradiction import smallest_conflict
from holdfast.domains import Hierarchy
from holdfast.mending.classifications import Classification, Column
from holdfast.mending.published import columns_of, labels_of
from holdfast.mending.rules import in_steps

#: Figures in all, missing ones included, that are held in memory.
MOST = 20_000_000
#: How many times as many figures as the table has may be missing: more, and columns are read as crossed that are not.
MOST_MISSING = 20


@dataclass(frozen=True, eq=False)
class Sums:
    """Figures that are sums of others along one hierarchy of a column: `parent[i]` is what figure i adds to, or −1."""

    column: int
    parent: Ints

    @cached_property
    def owners(self) -> Ints:
        return np.unique(self.parent[self.parent >= 0])

    @cached_property
    def rows(self) -> sparse.csr_array:
        """One row for each of the owners: the figure less those that add up to it."""
        below = np.flatnonzero(self.parent >= 0)
        which = np.searchsorted(self.owners, self.parent[below])
        count, n = self.owners.size, self.parent.size
        row = np.concatenate([np.arange(count), which])
        column = np.concatenate([self.owners, below])
        data = np.repeat(np.array([1, -1], dtype=np.int64), [count, below.size])
        return sparse.csr_array((data, (row, column)), shape=(count, n))


@dataclass(frozen=True, eq=False)
class Figures:
    """The figures of a table, published ones first and in their order.

    `places` holds for each figure its label in each classification, (n, columns). `given` is how many are published.
    `complete`: every level of a column comes with every level of the others.
    """

    names: tuple[str, ...]
    classifications: tuple[Classification, ...]
    places: Ints
    given: int
    complete: bool

    @property
    def n(self) -> int:
        """The number of figures, missing ones included."""
        return len(self.places)

    def label(self, column: int, figures: Any) -> list[str]:
        labels = self.classifications[column].labels
        return [labels[v] for v in self.places[figures, column].tolist()]

    def name(self, figure: int) -> str:
        """A figure by its labels."""
        labels = [self.label(column, [figure])[0] or "Total" for column in range(len(self.names))]
        return (
            labels[0]
            if len(labels) == 1
            else ", ".join(f"{name}={x}" for name, x in zip(self.names, labels, strict=True))
        )

    @cached_property
    def sums(self) -> tuple[Sums, ...]:
        """All sums, by column and hierarchy; the column with the most labels first."""
        sizes = [each.n if each.sums else 0 for each in self.classifications]
        found = []
        for column in sorted(range(len(sizes)), key=lambda c: -sizes[c]):
            each = self.classifications[column]
            for above, leaves in zip(each.parents, each.weights, strict=True):
                if (above >= 0).any():
                    sums = Sums(column, self._parents(column, above, leaves))
                    if sums.owners.size:
                        found.append(sums)
        return tuple(found)

    @cached_property
    def _keys(self) -> tuple[Ints, Ints, Ints]:
        """The place of each figure as one number, sorted; the order; and what one step along each column adds."""
        sizes = [each.n for each in self.classifications]
        steps = np.array([int(np.prod(sizes[c + 1 :], dtype=np.int64)) for c in range(len(sizes))], dtype=np.int64)
        key = self.places @ steps
        order = np.argsort(key, kind="stable")
        return key[order], order, steps

    def find(self, keys: Ints) -> Ints:
        """The figures at places, −1 where there is none."""
        known, order, _ = self._keys
        at = np.minimum(np.searchsorted(known, keys), known.size - 1)
        return np.where(known[at] == keys, order[at], -1)

    def _parents(self, column: int, above: Ints, leaves: Ints) -> Ints:
        """What each figure adds to along a column: the nearest label above that the table has beside its others."""
        step = self._keys[2][column]
        label = self.places[:, column]
        base = self.places @ self._keys[2] - label * step
        found = np.full(self.n, -1, dtype=np.int64)
        up = above[label]
        open_ = np.flatnonzero(up >= 0)
        while open_.size:
            hit = self.find(base[open_] + up[open_] * step)
            found[open_] = hit
            open_ = open_[hit < 0]
            up[open_] = above[up[open_]]
            open_ = open_[up[open_] >= 0]
        inside = found >= 0
        cover = np.bincount(found[inside], weights=leaves[label[inside]], minlength=self.n)
        whole = cover == leaves[label]
        return np.where(inside & whole[found], found, -1)

    @cached_property
    def needed(self) -> tuple[tuple[Sums, Bools], ...]:
        """Each family of sums with those of its rows that do not follow from the families before it.

        Where the table is complete, a sum along one column whose figures are all sums along an earlier one follows from
        the sums of what adds up to them.
        """
        kept = []
        done = np.zeros(self.n, dtype=bool)
        last = -1
        seen = done.copy()
        for sums in self.sums:
            if sums.column != last:
                done, last = seen.copy(), sums.column
            wanted = ~done[sums.owners] if self.complete else np.ones(sums.owners.size, dtype=bool)
            kept.append((sums, wanted))
            seen[sums.owners] = True
        return tuple(kept)


def placed_figures(
    names: Sequence[str],
    classifications: Sequence[Classification],
    columns: Sequence[Column],
) -> Figures:
    """Give every row its place, refuse places that occur twice, and add those that are missing."""
    rows = []
    for column, each in zip(columns, classifications, strict=True):
        same = each.labels == column.labels
        number = None if same else np.array([each.place[label] for label in column.labels], dtype=np.int64)
        rows.append(column.codes if number is None else number[column.codes])
    places = np.stack(rows, axis=1)
    sizes = [each.n for each in classifications]
    if float(np.prod([float(size) for size in sizes])) >= 2.0**62:
        raise Refused("the columns have too many labels together: leave out columns that add nothing, such as names")
    steps = np.array([int(np.prod(sizes[c + 1 :], dtype=np.int64)) for c in range(len(sizes))], dtype=np.int64)
    key = places @ steps
    order = np.argsort(key, kind="stable")
    twice = np.flatnonzero(np.diff(key[order]) == 0)
    if twice.size:
        one, two = sorted(order[twice[0] : twice[0] + 2].tolist())
        figure = Figures(tuple(names), tuple(classifications), places, len(places), False).name(one)
        raise Refused(f"{figure!r} occurs twice, in rows {one + 1} and {two + 1}: each figure must be published once")
    missing, complete = _missing(classifications, places, key[order], steps)
    return Figures(tuple(names), tuple(classifications), np.concatenate([places, missing]), len(places), complete)


def _missing(classifications: Sequence[Classification], places: Ints, known: Ints, steps: Ints) -> tuple[Ints, bool]:
    """The places that complete every combination of levels that there is; and whether all combinations are there."""
    kinds = np.stack([each.kinds[places[:, c]] for c, each in enumerate(classifications)], axis=1)
    patterns = np.unique(kinds, axis=0)
    members = [
        [np.flatnonzero(each.kinds == kind) for kind in range(int(each.kinds.max()) + 1)] for each in classifications
    ]
    total = 0
    for pattern in patterns.tolist():
        total += int(np.prod([float(members[c][kind].size) for c, kind in enumerate(pattern)]))
    if total > MOST or total > (MOST_MISSING + 1) * len(places) + 1000:
        raise Refused(
            f"the table has {len(places):,} of the {total:,} figures that its columns cross to: leave out columns that "
            "are no dimensions, or say with domain which labels add up"
        )
    found = [places[:0]]
    for pattern in patterns.tolist():
        axes = [members[c][kind] for c, kind in enumerate(pattern)]
        here = np.zeros(1, dtype=np.int64)
        for axis, step in zip(axes, steps.tolist(), strict=True):
            here = (here[:, None] + axis[None, :] * step).ravel()
        at = np.minimum(np.searchsorted(known, here), known.size - 1)
        lacking = here[known[at] != here]
        if lacking.size:
            found.append(
                np.stack(
                    [lacking // step % n for step, n in zip(steps, [e.n for e in classifications], strict=True)], axis=1
                )
            )
    levels = [len(np.unique(patterns[:, c])) for c in range(patterns.shape[1])]
    return np.concatenate(found), len(patterns) == int(np.prod(levels))


# --- what must hold in the mended table: words, exact figures that are known, and constraints on the rows ------------

WORDS = ("consistent", "nonnegative")


@dataclass(frozen=True, eq=False)
class Held:
    """What is asked for: whether sums and signs must hold, figures that are exact by their place, other constraints."""

    consistent: bool
    nonnegative: bool
    exact: dict[int, Fraction | None]
    others: tuple[Constraint, ...]


def read_hold(hold: Any, figures: Figures) -> Held:
    """Read what must hold: one word or constraint, or a list of them with {"exact": …} for figures that are known."""
    entries = [hold] if isinstance(hold, (str, Mapping, Constraint)) else hold
    if not isinstance(entries, Sequence) or not entries:
        raise Refused("hold must say what must hold, such as ['consistent', 'nonnegative']")
    words: set[str] = set()
    exact: dict[int, Fraction | None] = {}
    others = []
    for entry in entries:
        if isinstance(entry, Constraint):
            if entry.has_invariants or entry.branches:
                raise Refused("hold must not have invariants or unions: name figures that are known with {'exact': …}")
            others.append(entry)
        elif isinstance(entry, str):
            words.add(one_of("hold", entry, WORDS))
        elif isinstance(entry, Mapping) and set(entry) == {"exact"}:
            for place, value in _exact(entry["exact"], figures):
                if exact.setdefault(place, value) != value:
                    raise Refused(f"hold gives two exact values for {figures.name(place)!r}")
        elif isinstance(entry, Mapping) and set(entry) == {"rules"}:
            others += _rules(entry["rules"], figures)
        else:
            raise Refused(
                "hold must list 'consistent', 'nonnegative', {'exact': …}, {'rules': …} or constraints, "
                f"found {type(entry).__name__}"
            )
    return Held("consistent" in words, "nonnegative" in words, exact, tuple(others))


#: Relations of rules, and the sign that makes at_least of them.
RELATIONS = {"=": 0, ">=": 1, "<=": -1}


def _rules(said: Any, figures: Figures) -> list[Constraint]:
    """Rules from a file or frame with a row for each term: rule, labels of its figure, factor; relation and value.

    A factor is 1 where none is written; the first row of a rule says its relation ("=") and its value (0).
    """
    columns = {name: labels_of(found) for name, found in columns_of(said).items()}
    named = [name for name in figures.names if name in columns]
    if "rule" not in columns or not named:
        raise Refused("rules must have a column 'rule' and columns of labels, as the table has them")

    def written(name: str, row: int, default: str) -> str:
        return (columns[name][row] if name in columns else "") or default

    rule, terms = Column.of(columns["rule"]), []
    for row in range(rule.codes.size):
        entry = {name: columns[name][row] for name in named if columns[name][row]}
        places = _exact(entry, figures)
        if len(places) != 1:
            raise Refused(f"a rule means {len(places)} figures with {entry!r}: name one by all its labels")
        terms.append((whole("a factor", written_rational("a factor", written("factor", row, "1"))), places[0][0]))
    factors, at = np.array(terms, dtype=np.int64).T
    first = np.unique(rule.codes, return_index=True)[1].tolist()
    signs = np.array([RELATIONS[one_of("a relation", written("relation", row, "="), RELATIONS)] for row in first])
    b = np.array([written_rational("a value", written("value", row, "0")) for row in first], dtype=object)
    A = sparse.csr_array((factors, (rule.codes, at)), shape=(signs.size, figures.n))
    made = [equals(A[signs == 0], b[signs == 0])] if (signs == 0).any() else []
    more = sparse.csr_array(A.multiply(signs[:, None]))[signs != 0]
    return [*made, at_least(more, (signs * b)[signs != 0])] if (signs != 0).any() else made


def _exact(said: Any, figures: Figures) -> list[tuple[int, Fraction | None]]:
    """The figures that an entry means, with their values where it gives one."""
    found: list[tuple[int, Fraction | None]] = []
    for each in [said] if isinstance(said, Mapping) else said:
        if not isinstance(each, Mapping):
            raise Refused("exact must map columns to labels, such as {'exact': {'region': 'Total'}}")
        value = None if "value" not in each or "value" in figures.names else rational("the exact value", each["value"])
        chosen = np.ones(figures.n, dtype=bool)
        for name, labels in each.items():
            if name == "value" and value is not None:
                continue
            one_of("a column of exact", name, figures.names)
            column = figures.names.index(name)
            wanted = [labels] if isinstance(labels, str) or not isinstance(labels, Sequence) else labels
            place = figures.classifications[column].place
            unknown = [label for label in wanted if str(label) not in place]
            if unknown:
                raise Refused(f"exact names {unknown[0]!r}, which is no label of column {name!r}")
            chosen &= np.isin(figures.places[:, column], [place[str(label)] for label in wanted])
        if not chosen.any():
            raise Refused(f"exact means no figure of the table: {dict(each)!r}")
        found += [(int(i), value) for i in np.flatnonzero(chosen)]
    return found


def sums_of(figures: Figures) -> Constraint | None:
    """The sums of a table as one constraint: a forest where one hierarchy says it all; None where there is none."""
    if not figures.sums:
        return None
    if len(figures.sums) == 1:
        return consistent(Hierarchy.from_parents(figures.sums[0].parent))
    rows = [sums.rows[np.flatnonzero(wanted)] for sums, wanted in figures.needed]
    A = sparse.csr_array(sparse.vstack(rows, format="csr"), dtype=np.int64)
    return equals(A, np.zeros(A.shape[0], dtype=np.int64))


def together(figures: Figures, held: Held, exact: Mapping[int, int], unit: Fraction) -> Constraint:
    """All that must hold; refused, with a smallest set of figures, where exact figures contradict each other."""
    parts: list[Any] = [in_steps(each, unit) for each in held.others]
    if held.consistent:
        sums = sums_of(figures)
        if sums is None:
            raise Refused(
                "no column of the table holds a total, so nothing adds up: say with domain which labels add up to "
                f"which ({'; '.join(each.words for each in figures.classifications[:3])})"
            )
        parts.append(sums)
    if held.nonnegative:
        parts.append(nonnegative())
    if exact:
        parts.append(fixed(list(exact), list(exact.values())))
    if not parts:
        raise Refused("hold must say what must hold, such as ['consistent', 'nonnegative']")
    all_parts = [part for one in parts for part in one.parts]
    if exact and not _agree(figures, held, exact):
        _refuse_culprits(figures, all_parts, exact)
    return build(all_parts)


def _agree(figures: Figures, held: Held, exact: Mapping[int, int]) -> bool:
    """Whether exact figures agree with the sums they complete; what this overlooks is found later, and slower."""
    known = np.zeros(figures.n, dtype=bool)
    known[list(exact)] = True
    values = np.zeros(figures.n, dtype=np.int64)
    values[list(exact)] = list(exact.values())
    if held.nonnegative and (values < 0).any():
        return False
    for sums in figures.sums if held.consistent else ():
        used = np.flatnonzero(abs(sums.rows) @ (~known).astype(np.int64) == 0)
        if (sums.rows[used] @ values != 0).any():
            return False
    return True


def _refuse_culprits(figures: Figures, parts: Sequence[Any], exact: Mapping[int, int]) -> None:
    """Name a smallest set of exact figures that cannot hold together."""
    others = [part for part in parts if part.kind != "fixed"]
    suspects = [fixed([place], [value]).parts[0] for place, value in exact.items()]
    found = smallest_conflict([*others, *suspects], figures.n)
    if found is None:
        return
    names = {id(part): place for part, place in zip(suspects, exact, strict=True)}
    culprits = [names[id(part)] for part in found[0] if id(part) in names]
    if culprits:
        listed = "; ".join(f"{figures.name(place)} = {exact[place]}" for place in culprits)
        raise Refused(f"these exact figures cannot hold together: {listed}")
