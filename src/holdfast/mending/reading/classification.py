"""The labels of one column of a published table, and which of them are sums of others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Bools, Ints
from holdfast.domains.breadth_first import breadth_first, sum_towards_roots


@dataclass(frozen=True, eq=False)
class Classification:
    """Labels, and one or more hierarchies over them.

    `parents[h][v]` is the label that label v adds to in hierarchy h, −1 where there is none. Several hierarchies share
    their leaves: a double classification. `words` say where this comes from. `levels` and `paths`: of columns that are
    the levels of one hierarchy their names, and of each label what stands in them.
    """

    labels: tuple[str, ...]
    parents: tuple[Ints, ...]
    words: str
    levels: tuple[str, ...] = ()
    paths: tuple[tuple[str, ...], ...] = ()

    @property
    def n(self) -> int:
        """The number of labels."""
        return len(self.labels)

    @cached_property
    def place(self) -> dict[str, int]:
        """The number of each label."""
        return {label: v for v, label in enumerate(self.labels)}

    @property
    def sums(self) -> bool:
        """Whether any label is a sum of others."""
        return any(bool((above >= 0).any()) for above in self.parents)

    @cached_property
    def _depths(self) -> list[Ints]:
        return [breadth_first(above)[3] for above in self.parents]

    @cached_property
    def kinds(self) -> Ints:
        """A number for each label that equal levels share: the depths in all hierarchies, and whether it has a part."""
        key = np.zeros(self.n, dtype=np.int64)
        for above, depth in zip(self.parents, self._depths, strict=True):
            inside = above >= 0
            inside[above[inside]] = True
            key = key * (int(depth.max()) + 2) + np.where(inside, depth, -1) + 1
        return np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64)

    @cached_property
    def weights(self) -> list[Ints]:
        """For each hierarchy how many leaves each label stands for: sums that cover all of them are whole."""
        found = []
        for above in self.parents:
            start, _, order, *_ = breadth_first(above)
            count = (np.diff(start) == 0).astype(np.int64)[:, None]
            sum_towards_roots(above, order, count, LARGEST)
            found.append(count[:, 0])
        return found

    @cached_property
    def inner(self) -> Bools:
        """Whether each label is a sum of others in some hierarchy."""
        found = np.zeros(self.n, dtype=bool)
        for above in self.parents:
            found[above[above >= 0]] = True
        return found


def flat(labels: Sequence[str], words: str) -> Classification:
    """Labels of which none is a sum of others."""
    return Classification(tuple(labels), (np.full(len(labels), -1, dtype=np.int64),), words)


def from_pairs(pairs: Iterable[tuple[str, str]], words: str) -> Classification:
    """Return the classification of pairs (label, the label it adds to), each label with one parent at most."""
    place: dict[str, int] = {}
    parent_of: dict[int, int] = {}
    for child, parent in pairs:
        v, above = (place.setdefault(label, len(place)) for label in (child, parent))
        if parent_of.setdefault(v, above) != above:
            raise Refused(
                f"domain must let a label add to one other, but {child!r} adds to {list(place)[parent_of[v]]!r} and to "
                f"{parent!r}: give each of the two hierarchies by itself, in a list"
            )
    parents = np.full(len(place), -1, dtype=np.int64)
    parents[list(parent_of)] = list(parent_of.values())
    labels = tuple(place)
    depth = breadth_first(parents)[3]
    if (depth < 0).any():
        raise Refused(f"domain must not make a label part of itself, as {labels[int(np.argmax(depth < 0))]!r} is")
    return Classification(labels, (parents,), words)


def joined(hierarchies: Sequence[Classification], words: str) -> Classification:
    """Return several hierarchies over the same leaves as one classification."""
    labels = tuple(dict.fromkeys(label for each in hierarchies for label in each.labels))
    place = {label: v for v, label in enumerate(labels)}
    parents = []
    for each in hierarchies:
        at = np.array([place[label] for label in each.labels], dtype=np.int64)
        for own in each.parents:
            above = np.full(len(labels), -1, dtype=np.int64)
            above[at] = np.where(own >= 0, at[own], -1)
            parents.append(above)
    return Classification(labels, tuple(parents), words)


def from_children(children: Mapping[Any, Any], words: str) -> Classification:
    """Return the classification of a mapping from labels to the labels that add up to them."""
    pairs = []
    for parent, below in children.items():
        if isinstance(below, str) or not isinstance(below, Iterable):
            raise Refused(f"domain must give for {str(parent)!r} a list of the labels that add up to it")
        pairs += [(str(child), str(parent)) for child in below]
    return from_pairs(pairs, words)


def from_hierarchy(tree: Any, words: str) -> Classification:
    """Return the classification of a hf.Hierarchy whose labels are all different."""
    names = [str(name) for name in tree.names]
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise Refused(f"domain must give every label once, but {twice!r} stands for two nodes of the hierarchy")
    return Classification(tuple(names), (np.asarray(tree.parents, dtype=np.int64),), words)
