"""A query of which only the sensitivities are known."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from holdfast.arguments import Number, Refused, positive, shown, whole
from holdfast.arrays import Array, Bools, Ints
from holdfast.queries.columns import Columns
from holdfast.queries.exact_weights import Bound, Weights, sqrt_up
from holdfast.queries.kinds import Kind
from holdfast.queries.linear_query import Query
from holdfast.queries.neighbours import Neighbours, Relation


@dataclass(frozen=True, eq=False, repr=False)
class UnlistedQuery(Query):
    """A query without cells; `WHOM` says of what else columns, differences and kinds must be asked, and why."""

    WHOM: ClassVar[str]

    @property
    def cells(self) -> None:
        return None

    @cached_property
    def columns(self) -> Columns:
        self._refuse("columns")

    def answer(self, cells: npt.ArrayLike) -> Array:
        del cells
        self._refuse("answer")

    def differences(self, neighbours: Relation = "add-remove") -> Array:
        del neighbours
        self._refuse("differences")

    def mask(self, allowed: npt.ArrayLike | None) -> Bools | None:
        if allowed is not None:
            self._refuse("allowed")
        return None

    def single_kinds(self, which: Ints | None, mask: Bools | None) -> list[Kind]:
        del which, mask
        self._refuse("kinds")

    def pair_kinds(self, which: Ints | None, classes: Ints | None) -> list[Kind]:
        del which, classes
        self._refuse("kinds")

    def _answer(self, cells: Ints) -> Array:
        del cells
        self._refuse("answer")

    def _refuse(self, what: str) -> NoReturn:
        raise Refused(f"{what} must be asked of {self.WHOM}")


@dataclass(frozen=True, eq=False, repr=False)
class BoundedQuery(UnlistedQuery):
    """n answers that one change of a record moves by at most l1 in sum and l2 in length (as declared)."""

    WHOM: ClassVar[str] = "a query with known columns, but only sensitivities were given"

    l1: Fraction
    l2: Fraction
    whole_answers: bool

    @property
    def integer(self) -> bool:
        return self.whole_answers

    @cached_property
    def labels(self) -> npt.NDArray[np.object_]:
        return np.array([f"output {i}" for i in range(self.n)], dtype=object)

    def consistency(self) -> csr_array[Any]:
        return csr_array((0, self.n), dtype=np.int64)

    def single(self, weights: Weights, p: int, mask: Bools | None) -> Bound:
        """Return the largest weight times l1, or times l2²."""
        del mask
        return Bound(max(weights.values) * (self.l1 if p == 1 else self.l2**2), False)

    def pair(self, weights: Weights, p: int, classes: Ints | None) -> Bound:
        """Return the same: the sensitivities are declared for the relation that is used."""
        del classes
        return self.single(weights, p, None)

    def _widest(self, relation: Neighbours) -> Fraction:
        del relation
        return min(self.l1, self.l2)


def query(n: int, l1: Number | None = None, l2: Number | None = None, *, integer: bool = True) -> Query:
    """Describe n answers known only by their sensitivities to one change in the relation that is used.

    Args:
        n: how many answers.
        l1: the largest ‖d‖₁; at least one of the two is given.
        l2: the largest ‖d‖₂; the other follows from ‖d‖₂ ≤ ‖d‖₁ ≤ √n·‖d‖₂.
        integer: whether the answers are whole numbers.

    Guarantee:
        Nothing here can be checked: every statement rests on these numbers.

    Example:
        >>> import holdfast as hf
        >>> hf.laplace(hf.query(5, l1=2), scale=4).guarantee.epsilon
        0.5
    """
    size = whole("n", n, at_least=1)
    if l1 is None and l2 is None:
        raise Refused("l1 or l2 must be given, found neither")
    if not isinstance(integer, bool):
        raise Refused(f"integer must be True or False, found {shown(integer)}")
    sum_of_changes = None if l1 is None else positive("l1", l1)
    length = None if l2 is None else positive("l2", l2)
    if sum_of_changes is None:
        assert length is not None
        sum_of_changes = Fraction(sqrt_up(length**2 * size))
    if length is None:
        length = sum_of_changes
    return BoundedQuery(size, sum_of_changes, min(length, sum_of_changes), integer)
