"""How many records must change together before one value of a column can become another (THEORY §12).

Rows are labelled: row r goes from a cell p to a cell q. A change of k rows is *allowed* if everything that is kept
exactly stays. k(a, b) is the least number of records of an allowed change, none of whose proper parts is allowed, that
turns a row's a into b and alters the answer. Under add-remove a row may also come or go, which is one record; a row
that changes its value is two, one that goes and one that comes. Proofs: docs/theory/what-can-change.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arrays import Ints
from holdfast.queries.neighbours import ADD_REMOVE

#: So many pairs of values are named one by one.
NAMED = 6


def distinct_pairs(first: Ints, second: Ints) -> Ints:
    """Return the different pairs of two lists of numbers ≥ 0, as two rows, sorted."""
    width = int(second.max(initial=0)) + 1
    if (int(first.max(initial=0)) + 1) * width < 2**62:
        keys = np.sort(first.astype(np.int64) * width + second)
        keys = keys[np.diff(keys, prepend=-1) > 0]
        return np.stack([keys // width, keys % width])
    return np.unique(np.stack([first, second]), axis=1)


@dataclass(frozen=True, eq=False)
class Column:
    """A column of the records: the number of the value of every cell (−1: the cell cannot hold records), and names."""

    name: str
    codes: Ints
    values: npt.NDArray[np.object_]

    @classmethod
    def of(cls, name: str, codes: Any, values: Iterable[Any]) -> Column:
        """Make a column of numbers and names."""
        return cls(name, np.asarray(codes, np.int64), np.array([str(value) for value in values], dtype=object))


@dataclass(frozen=True)
class Step:
    """Pairs of values of a column that need the same number of records; `exact` False: so many do, fewer may."""

    records: int
    pairs: int
    example: tuple[str, str]
    exact: bool = True

    def as_mapping(self) -> dict[str, Any]:
        """Return plain values."""
        return {"records": self.records, "pairs": self.pairs, "example": list(self.example), "exact": self.exact}


@dataclass(frozen=True)
class Together:
    """How many records must change together, for the pairs of values of one column, the fewest first.

    `kind` is the relation that counts them. `fixed` names the first of the `fixed_pairs` that no number of records
    changes. For `undecided` pairs the search stopped: they need more than `beyond` records, or never change.
    """

    column: str
    kind: str
    steps: tuple[Step, ...]
    fixed: tuple[tuple[str, str], ...] = ()
    fixed_pairs: int = 0
    undecided: int = 0
    beyond: int = 0

    @property
    def records(self) -> int | None:
        """k_column: with so many records every value becomes any other that it can become; None: none can."""
        return self.steps[-1].records if self.steps else None

    @property
    def exact(self) -> bool:
        """Whether fewer records than `records` do not suffice."""
        return not self.undecided and (not self.steps or self.steps[-1].exact)

    @property
    def one(self) -> int:
        """What one record that changes its value counts in this relation."""
        return 2 if self.kind == ADD_REMOVE else 1

    @property
    def alone(self) -> Step | None:
        """The pairs that one record changes by itself."""
        return self.steps[0] if self.steps and self.steps[0].records <= self.one else None

    @property
    def pairs(self) -> int:
        """All pairs of values."""
        return sum(step.pairs for step in self.steps) + self.fixed_pairs + self.undecided

    def as_mapping(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "column": self.column,
            "kind": self.kind,
            "records": self.records,
            "exact": self.exact,
            "steps": [step.as_mapping() for step in self.steps],
            "fixed": [list(pair) for pair in self.fixed],
            "fixed_pairs": self.fixed_pairs,
            "undecided": self.undecided,
            "beyond": self.beyond,
        }


@dataclass(frozen=True)
class Groups:
    """Values of a column that behave alike, and what every two of them need.

    members: the values of each group. within, between: the records that two values of one group, or of two groups,
    need; 0: they never change; −1: not decided. `between` None: what `across` says for each group alone, the least of
    the two (0 counts as most).
    """

    members: tuple[Ints, ...]
    within: Ints
    between: Ints | None
    across: Ints


def told(
    column: Column, kind: str, groups: Groups, exact: Mapping[int, bool] | None = None, beyond: int = 0
) -> Together:
    """Say what groups of values need, in pairs with an example each."""
    counts: dict[int, int] = {}
    examples: dict[int, list[tuple[str, str]]] = {}
    for records, number, firsts in _pairs(groups):
        counts[records] = counts.get(records, 0) + number
        shown = examples.setdefault(records, [])
        for a, b in firsts:
            if len(shown) < NAMED:
                shown.append((str(column.values[a]), str(column.values[b])))
    sure = exact or {}
    steps = tuple(
        Step(records, counts[records], examples[records][0], sure.get(records, True))
        for records in sorted(counts)
        if records > 0
    )
    return Together(column.name, kind, steps, tuple(examples.get(0, ())), counts.get(0, 0), counts.get(-1, 0), beyond)


def _pairs(groups: Groups) -> Iterable[tuple[int, int, list[tuple[int, int]]]]:
    """Yield (records, how many pairs, the first pairs) for pairs within a group and between two."""
    sizes = np.array([members.size for members in groups.members], np.int64)
    for g in np.flatnonzero(sizes > 1).tolist():
        first = groups.members[g]
        listed = [(int(first[0]), int(other)) for other in first[1 : NAMED + 1]]
        yield int(groups.within[g]), int(sizes[g] * (sizes[g] - 1) // 2), listed
    if groups.between is not None:
        a, b = np.triu_indices(sizes.size, 1)
        needed = groups.between[a, b]
        for records in np.unique(needed).tolist():
            chosen = np.flatnonzero(needed == records)
            number = int((sizes[a[chosen]] * sizes[b[chosen]]).sum())
            listed = [(int(groups.members[a[i]][0]), int(groups.members[b[i]][0])) for i in chosen[:NAMED]]
            yield records, number, listed
        return
    # The least of the two: all pairs among groups that need at least so many, less those among the later ones.
    rank = np.where(groups.across == 0, np.iinfo(np.int64).max, groups.across)
    order = np.argsort(rank, kind="stable")
    after = np.concatenate([np.cumsum(sizes[order][::-1])[::-1][1:], [0]])
    for records in np.unique(rank).tolist():
        places = np.flatnonzero(rank[order] == records)
        number = int((sizes[order[places]] * after[places]).sum())
        if number:
            g, others = order[places[0]], order[places[0] + 1 : places[0] + 1 + NAMED]
            listed = [(int(groups.members[g][0]), int(groups.members[h][0])) for h in others]
            yield int(groups.across[g]), number, listed
