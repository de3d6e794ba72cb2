"""Mechanisms: noise for a query, and the two verbs that change the belief it expresses.

`given` keeps the possible worlds and renormalises (revision); `onto` moves each world to the nearest one that is
allowed (update). Both only build an expression: nothing is drawn before `release`, `noise` or `simulate`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from holdfast import given as revision
from holdfast import onto as update
from holdfast.arguments import Amount, Refused, one_of
from holdfast.constraints import Constraint, System
from holdfast.evidence import Evidence
from holdfast.mechanism import calibrating, checking
from holdfast.mechanism import onto_moves as moving
from holdfast.mechanism.noise_source import UNMEASURED, Conditioned, Source, of_neighbours, refuse_second_law
from holdfast.mechanism.onto_moves import Move
from holdfast.mechanism.processed import Promising
from holdfast.mechanism.published.error_bars import ErrorBars
from holdfast.mechanism.published.linear_estimates import error_bars, input_is_free, linear_part
from holdfast.mechanism.release import Release
from holdfast.noise.spread import Spread
from holdfast.privacy import Additive, Differences, Guarantee, Promise
from holdfast.privacy.assumptions import assumptions
from holdfast.privacy.protection import Protection, columns_of, protection
from holdfast.queries import Neighbours, Query
from holdfast.queries.co_changes.by_column import Column
from holdfast.randomness import Stream

DATA_DEPENDENT = "the law of the noise depends on the data here; use simulate() with a public guess of the truth"


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(Promising):
    """A query's answer plus noise (`source`), perhaps moved (`moves`); see `laplace`, `gaussian`, `extend`.

    >>> import holdfast as hf
    >>> int(hf.laplace(hf.histogram(2), epsilon=1).given(hf.equals([[1, 1]], [8])).release([5, 3]).values.sum())
    8
    """

    source: Source
    moves: tuple[Move, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        # What was computed on the way is not part of the mechanism.
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def __repr__(self) -> str:
        return f"<Mechanism: {', '.join([str(self.source), *(f'onto {move.constraint}' for move in self.moves)])}>"

    @property
    def base(self) -> Additive:
        """The query, its neighbours and the scale of the noise."""
        return self.source.base

    @property
    def query(self) -> Query:
        """What is asked."""
        return self.base.query

    def given(self, constraint: Constraint, method: str | None = None) -> Mechanism:
        """Belief revision: this mechanism's law, conditioned on the constraint. given(a).given(b) is given(a & b).

        `method`: None is the best way that is known; all draw the very law. "metropolis", the papers' baseline, comes
        near it and promises nothing.
        """
        joint = self._asked_besides(constraint, moved=False)
        if self.moves:
            raise Refused("given() after onto() has no known law: condition first, then move")
        if method is not None:
            one_of("method", method, [revision.name_of(way) for way in revision.ways()])
        system = checking.written_out(joint, self.base)
        return replace(self, source=Conditioned(self.base, joint, system, method))

    def onto(
        self,
        constraint: Constraint,
        norm: str = "l2",
        weights: Literal["noise"] | npt.ArrayLike | None = "noise",
        integer: bool | None = None,
        method: str | None = None,
    ) -> Mechanism:
        """Belief update: every noisy answer is moved to the nearest point that satisfies the constraint.

        What was asked before goes on to hold: given(a).onto(b) moves onto a & b. `norm`: "l2" or "l1". `weights`:
        "noise" weighs each output by its variance, None all alike, an array as it says. `integer`: None is as the base,
        and real for an invariant. `method`: None is the nearest point; "topdown" and "bluedown" go level by level.
        """
        joint = self._asked_besides(constraint)
        move = moving.move_onto(
            self.base, self.moves, joint, norm, weights, integer, method, new_invariants=constraint.has_invariants
        )
        return replace(self, moves=(*self.moves, move))

    def _asked_besides(self, constraint: Constraint, *, moved: bool = True) -> Constraint:
        """Everything that was asked of the output, and this."""
        checking.a_constraint(constraint)
        refuse_second_law(self.source, constraint, moved=moved)
        return constraint if self.asked is None else self.asked & constraint

    def calibrated(
        self, epsilon: Amount = None, delta: Amount = None, rho: Amount = None, scope: str | None = None
    ) -> Mechanism:
        """The same mechanism with its noise rescaled so that the *total* guarantee is this, met from below.

        Say `epsilon`, with `delta` for noise that needs one, or `rho`. The guarantee that counts is the first one
        (`guarantee`), whatever its scope; or the first one of this `scope`.
        """
        return calibrating.calibrated(self, epsilon, delta, rho, scope)

    def over(self, base: Additive) -> Mechanism:
        """The same mechanism with other scales of its noise, or another target."""
        return replace(self, source=self.source.over(base), moves=tuple(move.over(base) for move in self.moves))

    @cached_property
    def promise(self) -> Promise:
        """Every statement that holds, or the sentence why none does."""
        return self._promised().assuming(assumptions(self.query, self.held))

    def _promised(self, neighbours: Neighbours | None = None) -> Promise:
        promise = self.source.promise(neighbours)
        for move in self.moves:
            promise = move.promise(of_neighbours(self.base, neighbours), promise)
        return promise

    @property
    def held(self) -> System | None:
        """What must hold in the output; None where nothing must."""
        return self.moves[-1].problem.system if self.moves else self.source.system

    @property
    def asked(self) -> Constraint | None:
        """Everything that was asked of the output so far; None where nothing was."""
        return self.moves[-1].constraint if self.moves else self.source.constraint

    @property
    def evidence(self) -> Evidence:
        """How good a law is that was made for its constraint."""
        return self.source.evidence

    def about(self, records: int, kind: str | None = None) -> Guarantee | None:
        """The statement about changes of at least so many records together; None where none holds.

        Of those that share the exact figures, where there are such: all allowed changes of at most so many records.
        `kind`: of other neighbours than the noise was made for.
        """
        relation = Neighbours(self.base.neighbours.kind if kind is None else kind, records)
        try:
            found = self._promised(relation)
        except Refused:
            return None
        holds = [each for each in found.statements if each.scope != "subspace" and not each.void]
        first = min(holds, key=lambda each: each.records, default=None)
        return None if first is None else replace(first, assumes=assumptions(self.query, self.held))

    @cached_property
    def protects(self) -> Protection:
        """For every column, how many records must change together before any value can become any other (THEORY §12).

        While every exact figure stays; with the statement about so many records. `str()` is a table in words.
        """
        return self.protection(columns_of(self.query))

    def protection(self, columns: tuple[Column, ...]) -> Protection:
        """The same for other columns of the records."""
        return protection(self.query, self.held, self.base.neighbours.kind, columns, self.about)

    def statement_for(self, differences: Differences, **words: Any) -> Guarantee:
        """What it promises for some of the changes that keep all equalities in `held`, however its noise was made."""
        words.setdefault("assumes", assumptions(self.query, self.held))
        statement = self.source.statement_for(differences, **words)
        return update.passed(statement) if self.moves else statement

    statement_about = statement_for

    @property
    def method(self) -> str:
        """The names of the ways in use."""
        names = [*self.source.names, *(update.name_of(move.way) for move in self.moves)]
        return ", ".join(names) if names else "independent noise"

    def noise(self, size: int, rng: Stream | None = None) -> npt.NDArray[Any]:
        """Draw the noise, (size, n), from `rng`, where its law does not depend on the data; refused otherwise."""
        count = checking.how_many(size, self.query.n)
        if self.depends_on_data:
            raise Refused(DATA_DEPENDENT)
        stream = checking.chosen_stream(rng)
        return self._moved(self._noise(None, count, stream), np.zeros(self.query.n, dtype=np.int64), stream)

    def standard_error(self) -> npt.NDArray[np.float64]:
        """Standard error of every output, before any data is touched; refused where it depends on the data."""
        if self._spread is None:
            raise Refused(DATA_DEPENDENT)
        return self._spread.standard_errors * float(self.base.unit)

    def image(self, noisy: npt.ArrayLike, ties: npt.ArrayLike = 0) -> npt.NDArray[Any]:
        """The map itself of an `onto` mechanism with structural constraints: noisy values (n,) or (size, n).

        `ties`: the coin of 64 bits that decides between equally near whole tables, as a release publishes it.
        """
        return moving.image(self.moves, self.query, noisy, ties, whole_numbers=self.base.law.integer)

    def simulate(self, truth: npt.ArrayLike, size: int, rng: Stream | None = None) -> npt.NDArray[Any]:
        """The values of `size` releases of `truth`, independent, by `rng`, (size, n): for studies; no promise."""
        count = checking.how_many(size, self.query.n)
        checked, stream = self.checked(truth), checking.chosen_stream(rng)
        return self._moved(self._noisy(checked, count, stream), checked, stream)

    def release(self, truth: npt.ArrayLike, rng: Stream | None = None) -> Release:
        """Release one table of `truth`, checked again before it leaves; `rng=None` is the secure stream.

        Law: the one the verbs describe. Guarantee: `guarantees`; refused when no statement holds.
        """
        self.guarantee  # noqa: B018 (refused before data is looked at)
        checked, stream = self.checked(truth), checking.chosen_stream(rng)
        return moved_release(self, checked, self._noisy(checked, 1, stream)[0], stream)

    def checked(self, truth: npt.ArrayLike) -> npt.NDArray[Any]:
        """The confidential answer in steps; a refusal names a row or a position, never a value."""
        for move in self.moves:
            _ = move.way  # what no point can satisfy is refused before data is looked at
        checked = self.query.in_steps("truth", truth, (self.query.n,), whole=self.base.law.integer)
        systems = [self.source.system, *(move.problem.system for move in self.moves)]
        checking.refuse_violated(checked, systems, self.base.unit)
        return checked

    @property
    def depends_on_data(self) -> bool:
        """Whether the law of the errors depends on the confidential truth."""
        return self.source.depends_on_data or any(move.problem.depends_on_data for move in self.moves)

    @cached_property
    def _spread(self) -> Spread | None:
        """Errors in units of the grid, where they are known before data is seen."""
        known = self.source.system is None and self.source.law is None  # what a way knows of independent noise
        if self.depends_on_data or len(self.moves) > 1 or (self.moves and not known):
            return None
        if not self.moves:
            return self.source.spread()
        return self.moves[0].way.spread(self.moves[0].problem, self.base.law)

    def unit_spread(self) -> Spread | None:
        """Errors in the units of the query, where they are known before data is seen."""
        return None if self._spread is None else self._spread.times(float(self.base.unit))

    @cached_property
    def linear_part(self) -> Mechanism | None:
        """The mechanism of the draw that is published with a table and has a public law; None where there is none."""
        return linear_part(self)

    def error_bars(self, values: npt.NDArray[Any], draw: npt.NDArray[Any] | None = None) -> ErrorBars:
        """What published values, and the draw published beside them, tell about the truth (THEORY H10)."""
        return error_bars(self, values, draw)

    def _moved(self, values: npt.NDArray[Any], truth: npt.NDArray[Any], stream: Stream) -> npt.NDArray[Any]:
        ties = moving.coins(self.moves, len(values), stream)
        return self.query.in_units(moving.moved(self.moves, values, truth, ties))

    def _noise(self, truth: npt.NDArray[Any] | None, size: int, stream: Stream) -> npt.NDArray[Any]:
        if self.held is None and None in self.base.law.laws:
            raise Refused(UNMEASURED)
        return self.source.noise(truth, size, stream)

    def _noisy(self, truth: npt.NDArray[Any], size: int, stream: Stream) -> npt.NDArray[Any]:
        """The truth with its noise, conditioned but not moved."""
        values = self._noise(truth, size, stream)
        values += truth if self.source.system is not None else _measured(truth, self.base)
        return values


def _measured(truth: npt.NDArray[Any], base: Additive) -> npt.NDArray[Any]:
    """The truth with 0 where an output is not measured: one that a move determines does not start from its value."""
    return truth * np.isfinite(base.law.variances) if None in base.law.laws else truth


def moved_release(mechanism: Mechanism, checked: npt.NDArray[Any], noisy: npt.NDArray[Any], stream: Stream) -> Release:
    """The release of a checked truth that has its noise; `stream` decides ties."""
    statements = (mechanism.guarantee, *mechanism.guarantees[1:])
    measurements = mechanism.query.in_units(noisy.copy()) if (free := input_is_free(mechanism, statements)) else None
    coins = moving.coins(mechanism.moves, 1, stream)
    coin = None if coins is None else int(coins[0])
    values, evidence = moving.certified(mechanism.moves, noisy, checked, coin)
    del noisy  # a census fills memory
    if mechanism.held is not None:
        checking.last_look(mechanism.held, values, checked, mechanism.base.unit, evidence)
    shown = (
        mechanism.query.in_units(values),
        checking.drawn_from(stream, statements),
        mechanism.query,
        mechanism.method,
    )
    return Release(*shown, mechanism.error_bars, measurements, evidence if free else None, coin)
