"""A constraint: named parts that must all hold, and possibly a union of sides of which one must hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from holdfast.arguments import MOST_POSITIONS, Refused, whole
from holdfast.constraints.possible.contradiction import common_size, refuse_contradiction
from holdfast.constraints.possible.feasibility import conflict, whole_point
from holdfast.constraints.system.constraint_system import System
from holdfast.constraints.system.exact_figures import ExactMargins, ExactNodes
from holdfast.constraints.system.null_space import TreeShape
from holdfast.constraints.system.parts import Part


@dataclass(frozen=True, eq=False)
class Constraint:
    """What must hold. `c1 & c2` requires both; `c1 | c2` one of two that exclude each other.

    Args:
        parts: what must all hold.
        branches: the sides of a union (none of them a union itself), of which one must hold as well.

    Example:
        >>> import holdfast as hf
        >>> both = hf.nonnegative() & hf.ordered([0, 1])
        >>> len(both.parts)
        2
    """

    parts: tuple[Part, ...]
    branches: tuple[Constraint, ...] = ()

    @property
    def has_invariants(self) -> bool:
        """Whether figures are read from the data and published exactly."""
        return any(part.origin == "invariant" for part in self.parts)

    @property
    def has_inequalities(self) -> bool:
        """Whether there are bounds, orders or other inequalities."""
        kinds = {"nonnegative", "between", "ordered", "at_least"}
        return any(part.kind in kinds for part in self.parts) or any(b.has_inequalities for b in self.branches)

    @property
    def is_union(self) -> bool:
        """Whether this is a union, or one and more."""
        return bool(self.branches)

    @property
    def structural(self) -> Constraint | None:
        """The constraint without its invariants, or None if nothing is left."""
        parts = tuple(part for part in self.parts if part.origin == "structural")
        return Constraint(parts, self.branches) if parts or self.branches else None

    @property
    def invariants(self) -> Constraint | None:
        """The invariants alone, or None if there are none."""
        parts = tuple(part for part in self.parts if part.origin == "invariant")
        return Constraint(parts) if parts else None

    @property
    def n(self) -> int | None:
        """The number of values this is about, if a part knows it."""
        return common_size(self._all_parts())[1]

    @property
    def least_n(self) -> int:
        """The least number of values that all parts fit."""
        return common_size(self._all_parts())[0]

    def _all_parts(self) -> list[Part]:
        return [*self.parts, *(part for branch in self.branches for part in branch.parts)]

    def system(self, n: int) -> System:
        """Write the constraint out for n values; refuse if a part is about another number of them."""
        n = whole("n", n, at_least=1, at_most=MOST_POSITIONS)
        sides = [System.of(self.parts + branch.parts, n) for branch in self.branches]
        return System.of(self.parts, n, sides)

    def integer_obstacle(self) -> str | None:
        """Return why no whole numbers can satisfy this, or None if no reason is known."""
        return self.system(self.n or self.least_n).integer_obstacle()

    def irrational(self) -> str | None:
        """Return the sentence that refuses this where exact rationals are needed, or None."""
        return next((text for part in self._all_parts() if (text := part.irrational_sentence()) is not None), None)

    def disjoint(self, integer: bool) -> bool:
        """Tell whether the sides of the union are known to exclude each other (whole numbers or reals).

        For reals the proof is verified in exact arithmetic. For whole numbers that proof is tried first;
        where it does not exist, branch and bound (in doubles) decides.
        """
        n = self.n or self.least_n
        for left, right in combinations(self.branches, 2):
            both = self._structural_parts() + left.parts + right.parts
            if conflict(both, n) is None and not (integer and whole_point(both, n)[1]):
                return False
        return True

    def _structural_parts(self) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if part.origin == "structural")

    def __and__(self, other: object) -> Constraint:
        if isinstance(other, (ExactNodes, ExactMargins)):
            raise Refused("exact figures become a constraint by invariant(): write invariant(exact_nodes(...))")
        if not isinstance(other, Constraint):
            return NotImplemented
        parts = _distinct([*self.parts, *other.parts])
        sides = [_distinct([*a.parts, *b.parts]) for a in _sides(self) for b in _sides(other)]
        return build(parts, sides if self.branches or other.branches else ())

    def __or__(self, other: object) -> Constraint:
        if not isinstance(other, Constraint):
            return NotImplemented
        if self.has_invariants or other.has_invariants:
            raise Refused("an invariant cannot stand inside a union: combine it with & outside")
        left = [_distinct([*self.parts, *side.parts]) for side in _sides(self)]
        right = [_distinct([*other.parts, *side.parts]) for side in _sides(other)]
        least, known = common_size([part for side in left + right for part in side])
        for a in left:
            for b in right:
                _refuse_overlap(a, b, known or least)
        return Constraint((), tuple(Constraint(tuple(side)) for side in left + right))

    def __bool__(self) -> bool:
        # `a and b` would silently drop a
        raise Refused("a constraint is neither true nor false; combine constraints with & and |, not and / or")

    def __str__(self) -> str:
        texts = [part.name for part in self.parts]
        if self.branches:
            union = " | ".join(_bracketed(branch) for branch in self.branches)
            texts.append(f"({union})" if texts else union)
        return " & ".join(texts)

    def __repr__(self) -> str:
        return f"<Constraint {self}>"


def _bracketed(branch: Constraint) -> str:
    return f"({branch})" if len(branch.parts) > 1 else str(branch)


def _sides(constraint: Constraint) -> tuple[Constraint, ...]:
    """Return the sides of a union, or one side without parts if there is none."""
    return constraint.branches or (Constraint(()),)


def _distinct(parts: Sequence[Part]) -> list[Part]:
    """Return the parts in order, each object once (`c & c` is c), and the consistency of one tree once."""
    found: list[Part] = []
    for part in parts:
        if not any(part is other or _same_tree(part, other) for other in found):
            found.append(part)
    return found


def _same_tree(part: Part, other: Part) -> bool:
    """Whether both parts are the consistency of the same tree with the same categories."""
    one, two = part.source, other.source
    if part.kind != "consistent" or other.kind != "consistent":
        return False
    if not isinstance(one, TreeShape) or not isinstance(two, TreeShape) or one.by != two.by:
        return False
    return one.is_of(two.tree)


def _refuse_overlap(left: list[Part], right: list[Part], n: int) -> None:
    """Refuse two sides of a union if a whole-number point is found that satisfies both."""
    both = _distinct([*left, *right])
    if conflict(both, n) is not None:
        return
    point, _ = whole_point(both, n)
    if point is not None:
        sides = " and ".join(f"({Constraint(tuple(side))})" for side in (left, right))
        raise Refused(f"the two sides of | must be disjoint: {sides} can hold at the same time")


def build(parts: Sequence[Part], sides: Sequence[Sequence[Part]] = ()) -> Constraint:
    """Return the constraint of these parts and sides of a union; refuse it if it contradicts itself.

    A side that contradicts the parts outside the union is dropped; if none is left, the last contradiction is
    refused.
    """
    refuse_contradiction(parts)
    if not sides:
        return Constraint(tuple(parts))
    known: list[Constraint] = []
    refusal: Refused | None = None
    common_size([*parts, *(part for side in sides for part in side)])
    for side in sides:
        try:
            refuse_contradiction(_distinct([*parts, *side]))
        except Refused as found:
            refusal = found
        else:
            known.append(Constraint(tuple(part for part in side if part not in parts)))
    if not known and refusal is not None:
        raise refusal
    if len(known) == 1:
        return Constraint(tuple(_distinct([*parts, *known[0].parts])))
    return Constraint(tuple(parts), tuple(known))
