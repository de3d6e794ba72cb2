"""How much a linear refinement can tell about a change of the data: the exact ρ of LR Definition 5 (THEORY H5)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import fmpq_mat

from holdfast.arguments import Refused, positions, positive
from holdfast.constraints.rationals import numeric
from holdfast.privacy.rounding import outward
from holdfast.refinement.least_cost import Cheapest, cheapest, cheapest_whole
from holdfast.refinement.linear import LinearRefinement
from holdfast.refinement.rational_matrices import (
    left_null_space,
    made,
    read_entry,
    read_matrix,
)
from holdfast.refinement.subsets import largest_admitted


class Loss(float):
    """A privacy loss ρ, rounded up by one double at most, with what is behind it.

    `exact` is the number itself (None where it is infinite), `outputs` the set of outputs that shows it, `difference`
    the change that it tells apart, and `attained` whether no smaller ρ will do (for whole noise that is not known).
    """

    exact: Fraction | None
    outputs: tuple[int, ...]
    difference: tuple[Fraction, ...]
    attained: bool

    @classmethod
    def of(
        cls, found: Cheapest | None, outputs: tuple[int, ...], difference: tuple[Fraction, ...], attained: bool
    ) -> Loss:
        """Return the loss of one set of outputs; without a vector the values never coincide, and it is infinite."""
        result = cls(math.inf if found is None else outward(found.cost))
        result.exact = None if found is None else found.cost
        result.outputs, result.difference = outputs, difference
        result.attained = attained or found is None
        return result

    @property
    def order(self) -> Fraction | float:
        """What losses are compared by."""
        return math.inf if self.exact is None else self.exact


@dataclass(frozen=True, eq=False)
class Study:
    """A refinement with the noise it gets, ready to be asked for losses."""

    A: fmpq_mat
    weights: list[Fraction]
    integer: bool

    def of_subset(self, difference: tuple[Fraction, ...], outputs: tuple[int, ...]) -> Loss:
        """Return min Σ|tᵢ|/λᵢ over the t with (A t)_S = d_S, t whole for whole noise."""
        rows = self.A.tolist()
        part = fmpq_mat([rows[i] for i in outputs]) if outputs else fmpq_mat(0, self.A.ncols())
        find = cheapest_whole if self.integer else cheapest
        found = find(part, [difference[i] for i in outputs], self.weights)
        return Loss.of(found, outputs, difference, not self.integer)

    def largest(self, difference: tuple[Fraction, ...]) -> Loss:
        """Return the largest loss over the sets of outputs whose values can coincide."""
        best = Loss.of(Cheapest(Fraction(0), ()), (), difference, True)
        for outputs in self.subsets(difference):
            found = self.of_subset(difference, outputs)
            if found.order > best.order or not best.outputs:
                best = found
        return best

    def subsets(self, difference: tuple[Fraction, ...]) -> Iterator[tuple[int, ...]]:
        """Yield the largest sets S for which some real t has (A t)_S = d_S; smaller ones have smaller losses."""
        n = self.A.nrows()
        null = left_null_space(self.A)
        change = [sum((y * d for y, d in zip(vector, difference, strict=True)), Fraction(0)) for vector in null]

        def real(chosen: frozenset[int]) -> bool:
            # d_S lies in the range of A_S unless some y with yᵀA = 0 and no entry outside S has yᵀd ≠ 0, that is,
            # unless the entries outside S leave yᵀd open.
            outside = [[Fraction(vector[i]) for vector in null] for i in range(n) if i not in chosen]
            return _spans(outside, change)

        for chosen in largest_admitted(n, real):
            yield tuple(sorted(chosen))


def _spans(vectors: list[list[Fraction]], target: list[Fraction]) -> bool:
    """Tell whether the target is a combination of the vectors."""
    if not any(target):
        return True
    used = [vector for vector in vectors if any(vector)]
    if not used:
        return False
    return bool(made(used, len(target)).rank() == made([*used, target], len(target)).rank())


def refinement_loss(A: Any, difference: Any, scale: Any, outputs: Any = None, *, integer: bool = False) -> Loss:
    """Return the loss ρ with which refined answers tell a change of the true answers (THEORY H5).

    A: the (n, n) matrix of an unbiased refinement X̂ = A X + D c, or a LinearRefinement. `difference`: μ − μ', (n,),
    or a whole difference set, one per row: the largest loss counts. `scale`: the Laplace scale of the noise, one number
    or one per output. `outputs`: the refined answers that are seen; None: the largest loss over all sets of them whose
    values can coincide (LR Def 5 sets the others aside). Named outputs whose values can never coincide have an infinite
    loss. `integer`: whole noise; ρ is then an upper bound, and infinite where values that real noise would let coincide
    never do, as when a refined answer is always even before a change and odd after it.

    Guarantee: for every event of the outputs, e^−ρ ≤ P(X̂ ∈ Ω)/P(X̂' ∈ Ω) ≤ e^ρ; for continuous noise no smaller ρ
    will do.
    """
    study, n = _study(A, scale, integer)
    changes = _differences(difference, n)
    if outputs is not None:
        seen = tuple(sorted(positions("outputs", outputs, n).tolist()))
        return max((study.of_subset(each, seen) for each in changes), key=lambda loss: loss.order)
    return max((study.largest(each) for each in changes), key=lambda loss: loss.order)


def _study(A: Any, scale: Any, integer: Any) -> tuple[Study, int]:
    if not isinstance(integer, bool):
        raise Refused(f"integer must be True or False, found {integer!r}")
    matrix = A.exact_A if isinstance(A, LinearRefinement) else read_matrix("A", A)
    n = int(matrix.nrows())
    if matrix.ncols() != n:
        raise Refused(f"A must be square, found shape {(n, matrix.ncols())}")
    return Study(matrix, [1 / each for each in read_scales("scale", scale, n)], integer), n


def read_scales(name: str, scale: Any, n: int) -> list[Fraction]:
    """Return one scale above 0 for each output."""
    found = numeric(name, scale)
    if found.ndim == 0:
        return [positive(name, scale)] * n
    if found.shape != (n,):
        raise Refused(f"{name} must be one number or {n} numbers, found shape {found.shape}")
    return [positive(name, value) for value in found.tolist()]


def _differences(difference: Any, n: int) -> list[tuple[Fraction, ...]]:
    """Return the differences, of d and −d one: they have the same loss."""
    found = numeric("difference", difference)
    if found.ndim not in (1, 2) or found.shape[-1] != n or found.size == 0:
        raise Refused(f"difference must have shape ({n},) or (size, {n}), found shape {found.shape}")
    rows = [tuple(read_entry("difference", value) for value in row) for row in found.reshape(-1, n).tolist()]
    distinct: dict[tuple[Fraction, ...], None] = {}
    for row in rows:
        if tuple(-value for value in row) not in distinct:
            distinct[row] = None
    return list(distinct)
