"""Shared moves: the changes of records that keep every invariant, and how far they move the answers.

A statement about neighbours that share the invariants (THEORY §2) is a statement about these moves. Every
number here errs on the safe side: `largest` is never too small, `frozen` never lists too few outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from holdfast.arguments import one_of
from holdfast.arrays import Ints
from holdfast.queries.kinds import Kind
from holdfast.queries.neighbours import Neighbours
from holdfast.queries.weights import NOTHING, Bound, Weights, groups_of


@dataclass(frozen=True, eq=False, repr=False)
class Moves:
    """All changes of at most `records` records, counted by `neighbours`, that keep the invariants.

    everything: the whole original difference set keeps them, so nothing is lost (scope "all"). empty: no such
    move was found up to the searched size. exact: `largest` is attained. frozen: the outputs that no listed
    move changes although some change of records alters them; they are not protected at all.
    """

    neighbours: Neighbours
    everything: bool
    empty: bool
    exact: bool
    frozen: Ints
    n: int
    bound_of: Callable[[Weights, int], Bound]
    kinds_of: Callable[[Ints | None], list[Kind]]

    @property
    def records(self) -> int:
        """How many records change together at most, in the relation `neighbours`."""
        return self.neighbours.records

    def bound(self, values: Sequence[Any], which: Any, p: int) -> Bound:
        """Return max over the moves of Σ_i values[which[i]]·|d_i|^p with whether it is attained."""
        one_of("p", p, [1, 2])
        return self.bound_of(Weights.of(values, which, self.n), p)

    def largest(self, values: Sequence[Any], which: Any, p: int) -> Fraction:
        """Return max over the moves of Σ_i values[which[i]]·|d_i|^p; never too small."""
        return self.bound(values, which, p).value

    def kinds(self, which: Any = None) -> list[Kind]:
        """Return the maximal multisets of (|d_i|, which[i]) over the moves; refused when too many to list."""
        return self.kinds_of(groups_of(which, self.n))

    def __repr__(self) -> str:
        if self.empty:
            return f"Moves(none found with {self.neighbours})"
        return f"Moves({self.neighbours}, {self.frozen.size} outputs frozen)"


def no_moves(neighbours: Neighbours, n: int, frozen: Ints) -> Moves:
    """Return the empty set of moves: every output that records can alter is frozen."""
    return Moves(neighbours, False, True, True, frozen, n, lambda _weights, _p: NOTHING, lambda _which: [])
