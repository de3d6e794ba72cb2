"""Records that must change together, by the classes of cells that add the same to everything that is kept.

A class is *rich* if two of its cells differ in the answer. Within a class one record changes alone. A record that goes
from one class to another needs a way back: one more record if either class is rich, two more by way of any rich class.
These numbers always suffice; they are the least where the distinct signatures are linearly independent, since every
allowed change is then a union of circles through different classes (docs/theory/what-can-change.md, Proposition 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from holdfast.arrays import Bools, Ints
from holdfast.queries.together.together import Column, Groups, Together, distinct_pairs, told

#: Groups of values of which every two are looked at.
MOST_GROUPS = 3_000


@dataclass(frozen=True, eq=False)
class Classes:
    """The class of every cell (−1: none), which classes are rich, and the class of signature 0 under add-remove."""

    of: Ints
    rich: Bools
    zero: int | None
    independent: bool

    @property
    def moves(self) -> bool:
        """Whether some change of records alters the answer within a class."""
        return bool(self.rich.any())

    @property
    def settles(self) -> bool:
        """Whether the classes say how many records are enough for everything."""
        return self.moves or self.independent


def classes_together(kind: str, classes: Classes, columns: tuple[Column, ...]) -> tuple[Together, ...]:
    """Return what each column needs; cells must differ in the answer."""
    return tuple(_of_column(kind, classes, column) for column in columns)


def _of_column(kind: str, classes: Classes, column: Column) -> Together:
    adds = classes.zero is not None
    used = (classes.of >= 0) & (column.codes >= 0)
    pairs = distinct_pairs(column.codes[used], classes.of[used])
    members, incidence = _grouped(pairs, classes.rich.size)
    touches = np.asarray(incidence @ classes.rich.astype(np.int64) > 0)
    apart = np.full(len(members), _otherwise(classes), np.int64)
    apart[touches] = 4 if adds else 2
    if adds:
        of_zero = np.zeros(classes.rich.size, np.int64)
        of_zero[classes.zero] = 1
        apart[np.asarray(incidence @ of_zero > 0)] = 3
    alone = np.full(len(members), 2 if adds else 1, np.int64)
    between = None
    if int(np.asarray(incidence.sum(axis=0)).max(initial=0)) > 1 and len(members) <= MOST_GROUPS:
        lowest = np.where(apart == 0, 99, apart)
        between = np.minimum(lowest[:, None], lowest[None, :])
        between = np.where((incidence @ incidence.T).toarray() > 0, alone[0] if alone.size else 1, between)
        between = np.where(between == 99, 0, between)
    # One record alone, and a way back through a class of its own, are the least in any case.
    sure = dict.fromkeys((4, 5, 6) if adds else (3,), classes.independent)
    if between is None and len(members) > MOST_GROUPS and int(np.asarray(incidence.sum(axis=0)).max(initial=0)) > 1:
        sure |= {2: False, 3: False}  # values may share a class that was not looked at
    return told(column, kind, Groups(members, alone, between, apart), sure)


def _otherwise(classes: Classes) -> int:
    """What a record needs that goes between two classes neither of which is rich; 0: it never can."""
    if classes.zero is None:
        return 3 if classes.moves else 0
    if classes.rich[classes.zero]:
        return 5
    return 6 if classes.moves else 0


def _grouped(pairs: Ints, classes: int) -> tuple[tuple[Ints, ...], csr_array[Any]]:
    """Group the values (of pairs of value and class, sorted) by the sets of their classes."""
    values, start = np.unique(pairs[0], return_index=True)
    length = np.diff(np.append(start, pairs.shape[1]))
    key: dict[bytes, int] = {}
    group = np.empty(values.size, np.int64)
    single = length == 1
    found, inverse = np.unique(pairs[1][start[single]], return_inverse=True)
    group[single] = inverse.ravel()
    sets = [np.array([each]) for each in found]
    for i in np.flatnonzero(~single).tolist():
        chosen = pairs[1][start[i] : start[i] + length[i]]
        place = key.setdefault(chosen.tobytes(), len(sets))
        if place == len(sets):
            sets.append(chosen)
        group[i] = place
    order = np.argsort(group, kind="stable")
    cuts = np.searchsorted(group[order], np.arange(1, len(sets)))
    members = tuple(values[part] for part in np.split(order, cuts)) if sets else ()
    rows = np.repeat(np.arange(len(sets)), [each.size for each in sets])
    listed = np.concatenate(sets) if sets else np.zeros(0, np.int64)
    return members, csr_array((np.ones(listed.size, np.int64), (rows, listed)), shape=(len(sets), classes))
