"""Whole Gaussian noise on N∩Zⁿ with a covariance made for the query (docs/theory/lattice-gaussian.md).

The covariance is that of the continuous law, spherical, correlated or optimal (THEORY H4), for the changes of records
that share all exact figures; it is rounded once, and what is promised is computed from the rounded form over all moves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, sparse

from holdfast.arguments import Refused
from holdfast.arrays import Floats, Ints
from holdfast.constraints import NullSpace, System
from holdfast.evidence import Evidence
from holdfast.noise.draws.lattice_form import LatticeForm
from holdfast.noise.spread import STUDY, Spread, simulated_quantiles
from holdfast.privacy import Additive, AllDifferences, Differences, Guarantee, Promise
from holdfast.privacy.invariants import NO_MOVE, possible, sharing, stages
from holdfast.queries import Moves, Neighbours, Query
from holdfast.queries.co_changes.multisets import joint_moves
from holdfast.queries.co_changes.signatures import signatures
from holdfast.queries.columns import distinct_only, equal_columns
from holdfast.randomness import Stream, seeded
from holdfast.subspace.gaussian_laws import correlated, optimal
from holdfast.subspace.geometry import NOTHING_OPEN, SOMETHING, Geometry, squares
from holdfast.subspace.law import shown

#: The most outputs, and the most directions that the equalities leave open, for which the law is made.
MOST_OUTPUTS = 4_000
MOST_DIRECTIONS = 400

BECAUSE = (
    "Gaussian noise on the lattice of what the exact figures leave open: ρ is the largest dᵀΣ⁻¹d/2 over all changes of "
    "records that share them (Poisson summation, docs/theory/lattice-gaussian.md); ε is converted from ρ"
)


@dataclass(frozen=True, eq=False)
class LatticeGaussian:
    """Law: P(z) ∝ e^{−zᵀΣ⁻¹z/2σ²} on the whole vectors z of N that answers can differ by, zᵀΣ⁻¹z the form `unit`.

    The covariance is at most σ²Σ in every direction, and nearly that for noise well above 1.
    """

    name: str
    unit: LatticeForm
    query: Query
    space: NullSpace
    costs: Floats | None = None
    lower_bound: float = -math.inf
    notes: tuple[str, ...] = ()
    sigma2: Fraction = Fraction(1)
    kind: str = "gaussian"
    _found: dict[Any, tuple[Fraction, bool]] = field(default_factory=dict)

    def at(self, sigma2: Fraction) -> LatticeGaussian:
        return replace(self, sigma2=sigma2)

    @cached_property
    def _form(self) -> LatticeForm:
        return self.unit.times(1 / self.sigma2)

    def loss(self, differences: Differences) -> tuple[Fraction, bool]:
        """The largest dᵀΣ⁻¹d/σ² over differences in N, never too small, and whether it is attained."""
        key = differences.neighbours, bool(getattr(differences, "everything", True))
        if key not in self._found:
            moves, factor = listed_moves(self.query, self.space, differences)
            value, attained = self.unit.largest(self.unit.coordinates(moves))
            self._found[key] = value * factor**2, attained
        value, attained = self._found[key]
        return value / self.sigma2, attained

    @property
    def evidence(self) -> Evidence:
        """The total squared error of the continuous law at loss 1, which this law does not exceed, and its bound."""
        weights = np.ones(self.query.n) if self.costs is None else self.costs
        return shown(float((weights @ self.unit.factor**2).sum()), self.lower_bound, self.notes)

    def refuse_slow(self) -> None:
        """Refuse noise that cannot be drawn in good time, before any data is touched."""
        self._form.refuse_slow()

    def draw(self, size: int, stream: Stream) -> Ints:
        return self._form.draw(size, stream)

    def spread(self) -> Spread:
        """Standard errors from σ²Σ, which the true ones do not exceed; quantiles from simulated draws."""
        factor = self._form.factor
        return Spread(
            np.sqrt((factor**2).sum(axis=1)),
            lambda weights: float(((weights @ factor) ** 2).sum()),
            simulated_quantiles(lambda: self.draw(STUDY, seeded(0))),
            measured=True,
        )


def lattice_gaussian(base: Additive, system: System, law: str, costs: Floats | None) -> LatticeGaussian:
    """Return the law "gaussian" (spherical), "correlated" or "optimal", with loss 1 over the moves it was made for."""
    query, space = base.query, system.null_space()
    if query.cells is None:
        raise Refused(
            "whole noise made for exact figures needs a query with known columns: use gaussian(...).given(...)"
        )
    if query.n > MOST_OUTPUTS:
        raise Refused(_too_large(f"{query.n} outputs", f"{MOST_OUTPUTS} outputs"))
    basis = open_lattice(query, space, base.neighbours)
    if basis.shape[1] == 0:
        raise Refused(NOTHING_OPEN)
    if basis.shape[1] > MOST_DIRECTIONS:
        raise Refused(_too_large(f"{basis.shape[1]} directions", f"{MOST_DIRECTIONS} directions"))
    directions: Floats = np.asarray(linalg.qr(basis.astype(np.float64), mode="economic")[0], dtype=np.float64)
    moves = _spanning(base, system, directions)
    factor, bound, notes = _shape(_geometry(base, space, directions, moves), base.neighbours, law, costs)
    form = LatticeForm.of(basis, factor)
    form = form.times(1 / form.largest(form.coordinates(moves))[0])
    name = f"{'spherical' if law == 'gaussian' else law} lattice Gaussian"
    return LatticeGaussian(name, form, query, space, costs, bound, notes)


def _geometry(base: Additive, space: NullSpace, directions: Floats, moves: Ints) -> Geometry:
    """The moves in coordinates, as differences of columns where they are just those or whole multiples of them."""
    if not only_pairs(base.query, space, base.neighbours):
        return Geometry(directions, directions.T @ moves, pairs=False, records=1)
    columns = base.query.columns.toarray().astype(np.float64)
    points = directions.T @ (columns - columns.mean(axis=1, keepdims=True))
    times = float((moves**2).sum(axis=0).max()) / float(squares(points, pairs=True).max())
    return Geometry(directions, points, pairs=True, records=round(times**0.5))


def _shape(
    geometry: Geometry, neighbours: Neighbours, law: str, costs: Floats | None
) -> tuple[Floats, float, tuple[str, ...]]:
    """A factor of the covariance, the lower bound of its error at loss 1, and notes."""
    if law == "gaussian":
        return geometry.basis, -math.inf, ()
    made = correlated(geometry, neighbours) if law == "correlated" else optimal(geometry, neighbours, costs)
    return made.factor, made.evidence.lower_bound, made.evidence.notes


def _spanning(base: Additive, system: System, directions: Floats) -> Ints:
    """The moves of the fewest records that reach every direction left open."""
    groups: list[Differences]
    if system.invariants.count:
        groups = [base.everything() if moves.everything else moves for moves, _, _ in stages(base, system)]
    else:
        found = possible(base, system)
        groups = [] if found is None else [found[0]]
    if not groups:
        raise Refused(NO_MOVE)
    for group in groups:
        moves, factor = listed_moves(base.query, system.null_space(), group)
        inside = directions.T @ moves
        lengths = linalg.eigvalsh(inside @ inside.T)
        if lengths[0] > SOMETHING**2 * lengths[-1]:
            return moves * factor
    raise Refused(
        "changes of a few records do not reach every direction that these equalities leave open: use "
        "gaussian(...).given(...), or ask for fewer equalities"
    )


def lattice_promise(base: Additive, law: LatticeGaussian, system: System) -> Promise:
    """Return the statements about data that share all exact figures; nothing is claimed about other neighbours."""

    def state(differences: Differences, **words: Any) -> Guarantee:
        loss, attained = law.loss(differences)
        # With right-hand sides other than 0 the worst data need not exist: the figure is then only a bound.
        reached = attained and not np.asarray(system.equalities.b != 0).any()
        words = {"neighbours": differences.neighbours, "exact": reached} | words
        return base.integer_gaussian(loss, None, because=BECAUSE, **words)

    if system.invariants.count:
        return Promise.of(sharing(base, system, state), NO_MOVE)
    found = possible(base, system)
    if found is None:
        return Promise.of([], NO_MOVE)
    differences, words = found
    return Promise.of([state(differences, **words)])


def _too_large(found: str, most: str) -> str:
    return (
        f"whole noise made for exact figures is drawn for at most {most}, found {found}: use gaussian(...).given(...), "
        "or integer=False"
    )


#: Numbers in the table of all moves.
MOST_ENTRIES = 3 * 10**7

TOO_MANY = (
    "the changes of records that keep these equalities are too many to list: use gaussian(...).given(...), or "
    "integer=False"
)


def listed_moves(query: Query, space: NullSpace, differences: Differences) -> tuple[Ints, int]:
    """Return all these differences as columns (n, m), one of d and −d each, up to a whole factor.

    The factor is above 1 only where every neighbour keeps the equalities: several records then multiply the norms of
    one by their number (docs/theory/difference-sets.md, Proposition 1).
    """
    relation, factor = differences.neighbours, 1
    if isinstance(differences, AllDifferences) or (isinstance(differences, Moves) and differences.everything):
        relation, factor = Neighbours(relation.kind), relation.records
    columns = query.columns
    cells = np.flatnonzero(distinct_only(columns, np.zeros(columns.shape[1], dtype=np.int64)) >= 0)
    signature = signatures(space.rows, columns, None).matrix
    moves, complete = joint_moves(signature[:, cells], columns[:, cells], relation)
    if not complete or moves.shape[0] * moves.shape[1] > MOST_ENTRIES:
        raise Refused(TOO_MANY)
    return np.asarray(moves.toarray(), dtype=np.int64), factor


def only_pairs(query: Query, space: NullSpace, neighbours: Neighbours) -> bool:
    """Whether the smallest moves are the differences of any two columns: all records add the same to the figures."""
    classes = signatures(space.rows, query.columns, None).classes
    return bool((classes == classes[0]).all() and (classes[0] > 0 or not neighbours.adds))


def open_lattice(query: Query, space: NullSpace, neighbours: Neighbours) -> Ints:
    """Return a lattice basis (n, d) of the whole vectors in N that changes of any number of records can add up to."""
    kept = query.consistency() if neighbours.adds else _never_changed(query)
    rows = sparse.vstack([space.rows, kept], format="csr")
    basis = NullSpace.of(sparse.csr_array(rows)).lattice_basis()
    return np.asarray(basis.toarray(), dtype=np.int64)


def _never_changed(query: Query) -> Any:
    """Whole rows that no replaced record changes: those of consistency, and that of the number of records."""
    columns = query.columns[:, np.unique(equal_columns(query.columns), return_index=True)[1]]
    if columns.shape[0] * columns.shape[1] > MOST_ENTRIES or columns.dtype.kind != "i":
        raise Refused(TOO_MANY)
    first = sparse.hstack([columns[:, [0]]] * (columns.shape[1] - 1), format="csc")
    return NullSpace.of(sparse.csr_array((columns[:, 1:] - first).T)).lattice_basis().T
