"""A mechanism of the user's own, projected so that exact figures hold (SDP Thm 10)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import LARGEST, Refused, reals, whole
from holdfast.constraints import Constraint, System
from holdfast.constraints.system.rows import products
from holdfast.mechanism.checking import a_query, equalities, refuse_violated
from holdfast.mechanism.processed import Promising
from holdfast.mechanism.release import Release
from holdfast.noise import Gaussian, Independent
from holdfast.privacy import Additive, Differences, Guarantee, Promise, for_records
from holdfast.privacy.composition import for_all_changes
from holdfast.privacy.invariants import NO_MOVE, published, sharing
from holdfast.queries import Moves, Query

CLAIMED = "rests on the guarantee claimed for a mechanism that is not holdfast's and was not checked"
BECAUSE = "orthogonal projection of a private answer (SDP Thm 10)"


@dataclass(frozen=True, eq=False, repr=False)
class Projected(Promising):
    """Another mechanism's answers, moved orthogonally so that every exact figure holds. Made by `project`.

    Args:
        answer: the mechanism: a function from the truth to one private answer.
        query: what it answers.
        constraint: what must hold.
        system: its equalities.
        claimed: what is claimed for the mechanism.

    Law:
        q(x) + Π_N(M(x) − q(x)).
    Guarantee:
        M's own, for all neighbours, about the part of the answer in N.

    Example:
        >>> import holdfast as hf
        >>> from holdfast.mechanism import project
        >>> claim = hf.Guarantee(epsilon=1, neighbours="add-remove", because="my proof")
        >>> made = project(lambda truth: truth, hf.histogram(2), hf.invariant([[1, 1]]), guarantee=claim)
        >>> made.guarantee.scope
        'subspace'
    """

    answer: Callable[[npt.NDArray[np.float64]], Any]
    query: Query
    constraint: Constraint
    system: System
    claimed: Guarantee

    def __repr__(self) -> str:
        return f"<Mechanism: a mechanism of your own on {self.query!r}, projected onto {self.constraint}>"

    @cached_property
    def promise(self) -> Promise:
        """The claim, for what the exact figures leave open."""
        base = Additive(self.query, Independent((Gaussian(Fraction(1)),), None, self.query.n), self.claimed.neighbours)
        statement = replace(
            self.claimed,
            because=f"{self.claimed.because.rstrip('. ')}; {BECAUSE}",
            caveats=(*self.claimed.caveats, CLAIMED),
            exact=False,
        )

        def state(differences: Differences, **words: Any) -> Guarantee:
            relation = differences.neighbours
            # A replaced record is one that goes and one that comes.
            steps = relation.records * (2 if base.neighbours.adds and not relation.adds else 1)
            several = for_records(statement, max(steps, base.neighbours.records))
            return replace(
                several,
                neighbours=relation,
                scope=words["scope"],
                unprotected=(*self.claimed.unprotected, *words["unprotected"]),
                caveats=(*several.caveats, *words.get("caveats", ())),
            )

        statements = sharing(base, self.system, state)
        if not any(each.scope == "all" for each in statements):
            unprotected = (*self.claimed.unprotected, *published(self.system, base.query))
            statements.append(replace(statement, scope="subspace", unprotected=unprotected))
        return Promise.of(statements, NO_MOVE)

    @property
    def held(self) -> System:
        """What must hold in the output."""
        return self.system

    def statement_about(self, moves: Moves, **words: Any) -> Guarantee:
        """The claim, for those changes of so many records that keep every exact figure."""
        return for_all_changes(self.guarantees, moves.neighbours, **words)

    def simulate(self, truth: npt.ArrayLike, size: int) -> npt.NDArray[np.float64]:
        """The values of `size` independent releases of this truth, (size, n): for planning, tests and studies."""
        checked = self._truth(truth)
        return np.stack([self._values(checked) for _ in range(whole("size", size, at_least=1))])

    def release(self, truth: npt.ArrayLike) -> Release:
        """Ask the mechanism once for `truth` and release its projected answer; the law of its errors is not known."""
        values = self._values(self._truth(truth))
        return Release(values, self.guarantees, self.query, "projection of a mechanism of your own", _unknown)

    def _truth(self, truth: npt.ArrayLike) -> npt.NDArray[np.float64]:
        checked = reals("truth", truth, (self.query.n,))
        refuse_violated(checked, [self.system], Fraction(1))
        return checked

    def _values(self, truth: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        noisy = reals("the mechanism's answer", self.answer(truth.copy()), (self.query.n,))
        # Formed from the answer and the exact figures alone: the same two give the same bits, whatever the truth is.
        space = self.system.null_space()
        if space.rank == 0:
            return noisy
        rows = space.sound.rows
        residual = _products(rows, noisy) - _products(rows, truth)
        return np.asarray(noisy - space.sound.correction(residual[:, None])[:, 0])


def _products(rows: Any, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """A·values, rounded once: two values with the same exact product have the same one here."""
    if (values == np.rint(values)).all() and np.abs(values).max(initial=0.0) < LARGEST:
        return products(rows, values.astype(np.int64)[:, None])[:, 0].astype(np.float64)
    exact = [Fraction(value) for value in values.tolist()]
    places, entries = rows.indices.tolist(), rows.data.tolist()
    sums = (sum((entries[k] * exact[places[k]] for k in range(*each)), Fraction(0)) for each in pairwise(rows.indptr))
    return np.array([float(value) for value in sums])


def _unknown(*_: Any) -> None:
    """The law of the errors is not known."""


def project(
    answer: Callable[[npt.NDArray[np.float64]], npt.ArrayLike],
    query: Query,
    constraint: Constraint,
    *,
    guarantee: Guarantee,
) -> Projected:
    """Make exact figures hold in the answers of a private mechanism of your own (SDP Thm 10).

    Args:
        answer: `answer(truth)` returns one private answer of n numbers; its randomness is its own.
        query: what it answers.
        constraint: what must hold: an invariant, with structural equalities.
        guarantee: what is claimed for it and all neighbours. Nothing here can check the claim.

    Law:
        q(x) + Π_N(M(x) − q(x)): the error is projected orthogonally onto what the exact figures leave open.
    Guarantee:
        The claimed one, for the part of the answer that the exact figures leave open.

    Example:
        >>> import numpy as np
        >>> import holdfast as hf
        >>> noise = np.random.default_rng(1)
        >>> claim = hf.Guarantee(epsilon=1, neighbours="add-remove", because="my proof")
        >>> total = hf.invariant([1, 1, 1])
        >>> made = project(lambda truth: truth + noise.laplace(size=3), hf.histogram(3), total, guarantee=claim)
        >>> round(float(made.release([5, 0, 7]).values.sum()), 9)
        12.0
    """
    if not callable(answer):
        raise Refused(f"answer must be a function from the truth to a private answer, found {type(answer).__name__}")
    a_query(query)
    if not isinstance(guarantee, Guarantee):
        raise Refused(f"guarantee must be a Guarantee, found {type(guarantee).__name__}")
    if guarantee.void or guarantee.scope != "all":
        raise Refused("guarantee must say something about all neighbours: a void or narrower one cannot be projected")
    system = equalities("project()", query, constraint)
    if not system.invariants.count:
        raise Refused("project() is for exact figures: pass an invariant, alone or with equalities the answers obey")
    return Projected(answer, query, constraint, system, guarantee)
