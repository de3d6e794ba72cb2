"""What a mechanism promises about the part of its output in a subspace that you name (SDP Def 5).

The output is q(x) + U with U on the space T that the equalities leave: T = Rⁿ for independent noise, T = N where it
is conditioned. Noise moved by t ∈ T with V t = V d moves the part in V as the data do, so the loss of d is at most the
cost of the cheapest such t, and for continuous noise exactly that (docs/theory/subspace.md, section 11).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from flint import fmpq_mat, fmpz_mat
from scipy import sparse

from holdfast.arguments import Matrix, Refused, shown
from holdfast.constraints import NullSpace, System
from holdfast.constraints.system.rows import products
from holdfast.exact.cheapest_rational import cheapest, cheapest_whole, least_squares
from holdfast.exact.rational_matrices import from_fraction
from holdfast.exact.rationals import read_matrix
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.mixed import Mixture
from holdfast.mechanism.projected import Projected
from holdfast.privacy import Additive, Guarantee
from holdfast.privacy.assumptions import assumptions
from holdfast.privacy.invariants import published

#: Outputs, and differences of one record, for which the cheapest vectors are found exactly.
MOST_OUTPUTS, MOST_DIFFERENCES = 200, 2_000

NAMED = "the part of the output in a subspace that you name: {why} (SDP Def 5; docs/theory/subspace.md, section 11)"
CHEAPEST = "max over d of the cheapest noise that moves this part as d does"
NESTED = "what is promised about more holds for a part of it (SDP Prop 7, Cor 8)"
SHOWN = (
    "neighbouring data give the part in this subspace values that never coincide, because exact figures show some of "
    "it (or whole noise its remainders): name a subspace inside what they leave open, or use integer=False"
)
UNKNOWN = (
    "no statement about this subspace is known for this mechanism: name one inside what its exact figures leave open"
)
STILL = "no neighbour changes the part of the output in this subspace, so there is nothing to say about it"


def within(
    mechanism: Mechanism | Mixture | Projected, V: Matrix | None = None, *, normals: Matrix | None = None
) -> Guarantee:
    """Return what holds, for all neighbours, about the part of a release in the subspace that the rows of V span.

    Args:
        mechanism: one of holdfast's.
        V: rational rows of n numbers each. Only this part Π_V z of the release z is spoken of; exact figures outside it
            are published beside it and not protected.
        normals: instead of V, rows to which the subspace is orthogonal.

    Guarantee:
        P(Π_V M(x) ∈ S) ≤ e^ε P(Π_V M(x') ∈ S) + δ for all neighbours x, x' and all S ⊆ V (SDP Def 5). Additive noise,
        alone, projected orthogonally or conditioned on equalities: the largest cost of a cheapest shift. Anything else:
        a statement about everything, or about a subspace around V, holds for V (SDP Prop 7, Cor 8), or it is refused.

    Example:
        >>> import holdfast as hf
        >>> from holdfast.mechanism import within
        >>> cells = hf.gaussian(hf.histogram(2), rho=0.5, integer=False)
        >>> round(within(cells, [[1, 1]]).rho, 6)  # half of it shows in the sum
        0.25
    """
    if not isinstance(mechanism, (Mechanism, Projected)):
        raise Refused(
            f"mechanism must be made by laplace(), gaussian(), extend() or project(), found {shown(mechanism)}"
        )
    rows = _spanning(V, normals, mechanism.query.n)
    statements = [*_additive(mechanism, rows), *_nested(mechanism, rows)]
    best = min(statements, key=_size, default=None)
    if best is None:
        raise Refused(UNKNOWN)
    return best


def _size(statement: Guarantee) -> tuple[float, float]:
    """What statements about one mechanism are compared by."""
    infinite = float("inf")
    return (
        infinite if statement.epsilon is None else statement.epsilon,
        infinite if statement.rho is None else statement.rho,
    )


def _spanning(V: Any, normals: Any, n: int) -> sparse.csr_array:
    """Return whole rows that span the subspace."""
    if (V is None) == (normals is None):
        raise Refused("name the subspace once: V, rows that span it, or normals, rows to which it is orthogonal")
    name, given = ("V", V) if normals is None else ("normals", normals)
    matrix = read_matrix(name, given)
    if matrix.A.shape[1] != n:
        raise Refused(f"{name} must have {n} columns, one for each output, found shape {matrix.A.shape}")
    if not matrix.rational:
        raise Refused(f"{name} must hold rational numbers: give fractions or whole numbers")
    rows = matrix.A
    if normals is not None:
        basis = NullSpace.of(rows).short_basis()
        if basis is None:
            raise Refused("normals hold numbers too large for a whole basis of the subspace: give V itself")
        rows = sparse.csr_array(basis.T)
    if not rows.nnz:
        raise Refused("the subspace must hold more than zero")
    return rows


def _inside(rows: sparse.csr_array, system: System | None) -> bool:
    """Whether the rows lie in the null space N of all equalities."""
    if system is None:
        return True
    return not system.branches and bool(np.all(system.null_space().contains(rows.T.toarray())))


def _nested(mechanism: Any, rows: sparse.csr_array) -> Iterator[Guarantee]:
    """Statements about everything, and about N where V lies in it."""
    inside: bool | None = None
    for statement in mechanism.guarantees:
        if statement.void or statement.scope == "invariant-sharing":
            continue
        if statement.scope == "subspace":
            inside = _inside(rows, mechanism.held) if inside is None else inside
            if not inside:
                continue
        because = NAMED.format(why=f"{statement.because}; {NESTED}")
        yield replace(statement, scope="subspace", because=because, exact=False)


def _additive(mechanism: Any, rows: sparse.csr_array) -> Iterator[Guarantee]:
    """The largest cost of a cheapest shift, where the noise is additive and not too large to search."""
    if not isinstance(mechanism, Mechanism) or mechanism.source.law is not None:
        return
    base, system = mechanism.base, mechanism.held
    if base.query.cells is None or base.query.n > MOST_OUTPUTS or None in base.law.scale_values:
        return
    if system is not None and (system.branches or system.has_inequalities):
        return
    conditioned = mechanism.source.system is not None
    if mechanism.moves and not (_projects(mechanism) and not conditioned and _inside(rows, system)):
        return
    kept = system.null_space().rows if conditioned and system is not None else None
    loss = _loss(base, system, kept, rows)
    if loss is None:
        return
    words: dict[str, Any] = {"scope": "subspace", "exact": False, "neighbours": base.neighbours}
    words["because"] = NAMED.format(why=CHEAPEST)
    words["unprotected"] = () if system is None else published(system, base.query)
    words["assumes"] = assumptions(base.query, system)
    if base.law.kind == "laplace":
        statement = base.pure(loss, **words)
    elif base.law.integer:
        statement = base.integer_gaussian(loss, None, **words)
    else:
        statement = base.continuous_gaussian(loss, **words)
    yield statement


def _projects(mechanism: Mechanism) -> bool:
    """Whether the only move is the orthogonal projection on equalities, to real values."""
    problem = mechanism.moves[0].problem
    return len(mechanism.moves) == 1 and problem.orthogonal and problem.norm == "l2" and not problem.integer


def _loss(base: Additive, system: System | None, kept: Any, rows: sparse.csr_array) -> Fraction | None:
    """The largest cost over all differences, which for k records is k (or k²) times that of one; None: too many."""
    differences = _differences(base, system)
    if differences is None:
        return None
    if not products(rows, differences).any():
        raise Refused(STILL)
    table = rows if kept is None else sparse.csr_array(sparse.vstack([kept, rows], format="csr"))
    held = 0 if kept is None else int(kept.shape[0])
    exact = fmpq_mat(fmpz_mat(table.toarray().tolist()))
    power = 1 if base.law.kind == "laplace" else 2
    scales = [value for value in base.law.scale_values if value is not None]
    which = np.zeros(base.query.n, dtype=np.int64) if base.law.which is None else base.law.which
    weights = [1 / Fraction(scales[k]) for k in which.tolist()]
    worst = Fraction(0)
    for shift, d in zip(products(rows, differences).T.tolist(), differences.T.tolist(), strict=True):
        if not any(shift):
            continue
        sides = [Fraction(0)] * held + [Fraction(value) for value in shift]
        cost = _cost(base, exact, sides, weights, [int(x) for x in d])
        if cost is None:
            raise Refused(SHOWN)
        worst = max(worst, cost)
    return worst * base.neighbours.records**power


def _cost(base: Additive, table: Any, sides: list[Fraction], weights: list[Fraction], d: list[int]) -> Fraction | None:
    """The cost of a cheapest t for one difference, whole for whole noise; None where there is none."""
    if base.law.kind == "laplace":
        cheapest_shift = (cheapest_whole if base.law.integer else cheapest)(table, sides, weights)
        return None if cheapest_shift is None else cheapest_shift.cost
    if not base.law.integer:
        cheapest_shift = least_squares(table, sides, weights)
        return None if cheapest_shift is None else cheapest_shift.cost
    cheapest_shift = cheapest_whole(table, sides, weights)
    if cheapest_shift is None:
        return None
    costs = [sum((w * t * t for w, t in zip(weights, cheapest_shift.t, strict=True)), Fraction(0))]
    image = (table * fmpq_mat([[x] for x in d])).entries()
    if all(value == from_fraction(side) for value, side in zip(image, sides, strict=True)):
        costs.append(sum((w * x * x for w, x in zip(weights, d, strict=True)), Fraction(0)))
    return min(costs)


def _differences(base: Additive, system: System | None) -> Any:
    """The differences of one record, one of each sign, (n, m), in whole steps; None where they do not suffice."""
    columns = base.query.columns
    count = int(columns.shape[1])
    pairs = not base.neighbours.adds
    if columns.dtype.kind != "i" or (count * (count - 1) // 2 if pairs else count) > MOST_DIFFERENCES:
        return None
    dense = columns.toarray().astype(np.int64)
    if pairs:
        chosen = [dense[:, i] - dense[:, j] for i, j in combinations(range(count), 2)]
        dense = np.stack(chosen, axis=1) if chosen else dense[:, :0]
    dense = np.unique(dense, axis=1)
    # Where one record cannot keep the structural equalities, possible changes are no sums of such differences.
    broken = system is not None and bool(products(system.equalities.A, dense).any())
    return None if broken else dense
