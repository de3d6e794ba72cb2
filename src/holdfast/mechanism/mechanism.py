"""Mechanisms: noise for a query, and the two verbs that change the belief it expresses.

`given` keeps the possible worlds and renormalises (revision); `onto` moves each world to the nearest one that is
allowed (update). Both only build an expression: nothing is drawn before `release`, `noise` or `simulate`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast import given as revision
from holdfast import onto as update
from holdfast.arguments import Refused, known, one_of, positive, probability, reals, whole
from holdfast.constraints import Constraint, ExactMargins, ExactNodes, System, revealed
from holdfast.constraints.possible.contradiction import refuse_whole_contradiction
from holdfast.mechanism.processed import Processed, then
from holdfast.mechanism.release import Release
from holdfast.noise.spread import Spread, independent_spread
from holdfast.privacy import Additive, AllDifferences, Differences, Guarantee, Promise, Target, gaussian_mu
from holdfast.privacy.assumptions import assumptions
from holdfast.privacy.budget import gaussian_base, laplace_base, one_budget
from holdfast.privacy.factor import factor_meeting
from holdfast.privacy.guarantee import SCOPES
from holdfast.privacy.protection import Protection, columns_of, protection
from holdfast.privacy.rounding import inward
from holdfast.queries import Moves, Neighbours, Query
from holdfast.queries.together.together import Column
from holdfast.randomness import Stream, secure

NORMS = ("l2", "l1")
#: Numbers that one call of `noise` or `simulate` returns at most: 32 GiB of them.
MOST_NUMBERS = 2**32
NOT_SECRET = (
    "made with a reproducible stream: whoever knows the seed can remove the noise, and two releases with one seed show "
    "the exact difference of their truths even to those who do not know it"
)
UNMEASURED = "some outputs are not measured: use given() or onto() with what determines them"
DATA_DEPENDENT = "the law of the noise depends on the data here; use simulate() with a public guess of the truth"


@dataclass(frozen=True, eq=False)
class _Condition:
    """What the noise is conditioned on."""

    constraint: Constraint
    system: System
    method: str | None
    tau: float | None = None

    def __str__(self) -> str:
        within = "" if self.tau is None else f" within {self.tau:.3g}"
        return f"given {self.constraint}{within}"


@dataclass(frozen=True, eq=False)
class _Move:
    """What noisy values are moved onto, and how: everything asked so far, the newest part included."""

    constraint: Constraint
    new_invariants: bool
    problem: update.Problem
    method: str | None
    by_noise: bool

    def over(self, base: Additive) -> _Move:
        """The same move for rescaled noise: weights that follow the noise follow it still."""
        return replace(self, problem=replace(self.problem, spreads=base.law.variances)) if self.by_noise else self


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism:
    """A query's answer plus noise, perhaps conditioned, perhaps moved. Made by `laplace`, `gaussian` and the verbs."""

    base: Additive
    condition: _Condition | None = None
    moves: tuple[_Move, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        # What was computed on the way (plans, tables of balls) is not part of the mechanism.
        return {"base": self.base, "condition": self.condition, "moves": self.moves}

    def __repr__(self) -> str:
        law = f"{'integer' if self.base.law.integer else 'continuous'} {self.base.law.kind.capitalize()} noise"
        verbs = [] if self.condition is None else [str(self.condition)]
        verbs += [f"onto {move.constraint}" for move in self.moves]
        return f"<Mechanism: {', '.join([f'{law} on {self.query!r}', *verbs])}>"

    # --- the two verbs -----------------------------------------------------------------------------------------

    def given(self, constraint: Constraint, method: str | None = None, tau: Any = None) -> Mechanism:
        """Belief revision: this mechanism's law, conditioned on the constraint. given(a).given(b) is given(a & b).

        `tau`: how near draws must come to the law, in total variation, where no way is known to draw from it exactly;
        that costs δ = (1 + e^ε)·tau. None: as asked before, or 10⁻⁶, and less where this would cost more than half of
        the δ asked for, or 10⁻⁵ without one (docs/theory/walks.md, §4).
        """
        _constraint(constraint)
        if self.moves:
            raise Refused("given() after onto() has no known law: condition first, then move")
        if method is not None:
            one_of("method", method, [revision.name_of(way) for way in revision.ways()])
        joint = constraint if self.condition is None else self.condition.constraint & constraint
        asked = self.condition.tau if tau is None and self.condition is not None else _tau(tau)
        revision.refuse_tau(method, asked)
        return replace(self, condition=_Condition(joint, self._system(joint), method, asked))

    def onto(
        self,
        constraint: Constraint,
        norm: str = "l2",
        weights: Any = "noise",
        integer: bool | None = None,
        method: str | None = None,
    ) -> Mechanism:
        """Belief update: every noisy answer is moved to the nearest point that satisfies the constraint.

        What was asked before goes on to hold: given(a).onto(b) moves onto a & b.
        `weights`: "noise" weighs each output by its noise variance, None weighs all the same, an array weighs as it
        says. `integer`: None is as the base, and real for an invariant.
        """
        _constraint(constraint)
        one_of("norm", norm, NORMS)
        if method is not None:
            one_of("method", method, [update.name_of(way) for way in update.ways()])
        before = self.moves[-1].constraint if self.moves else self.condition.constraint if self.condition else None
        joint = constraint if before is None else before & constraint
        whole_so_far = self.moves[-1].problem.integer if self.moves else self.base.law.integer
        if integer is None:
            integer = whole_so_far and not joint.has_invariants
        elif not isinstance(integer, (bool, np.bool_)):
            raise Refused(f"integer must be True, False or None, found {integer!r}")
        if integer and not self.base.law.integer:
            raise Refused("whole numbers come from integer noise: make the mechanism with integer=True")
        if integer and not whole_so_far:
            raise Refused("an earlier onto() moves to real values: pass integer=True there too")
        system = self._system(joint) if integer else revealed(joint.system(self.base.query.n), None)
        problem = update.Problem(self.base.query.n, system, norm, self._spreads(weights), bool(integer), self.base.unit)
        move = _Move(joint, constraint.has_invariants, problem, method, isinstance(weights, str))
        return replace(self, moves=(*self.moves, move))

    def then(self, function: Callable[[npt.NDArray[Any]], Any], name: str) -> Processed:
        """Post-processing: release function(values) instead of the values. The function must read nothing else.

        Guarantee: the statements about all neighbours and about those that share the exact figures go on to hold;
        subspace statements do not cover functions that read the exact figures, and go (THEORY §3).
        """
        return then(self, function, name)

    def calibrated(
        self, epsilon: Any = None, delta: Any = None, rho: Any = None, scope: str | None = None
    ) -> Mechanism:
        """The same mechanism with its noise rescaled so that the *total* guarantee is this, met from below.

        The guarantee that counts is the first one (`guarantee`), whatever its scope; or the first one of this scope.
        """
        if one_budget(epsilon=epsilon, rho=rho) == "rho":
            target = positive("rho", rho)
            if delta is not None:
                raise Refused("delta goes with epsilon: give both, or rho alone")
            return self._rescaled(target, lambda statement: statement.rho, "rho", scope, 2 * target)
        target = positive("epsilon", epsilon)
        if delta is None:
            return self._rescaled(target, _epsilon, "epsilon", scope, target)
        limit = probability("delta", delta)
        start = replace(self, base=replace(self.base, target=Target(target, limit)))
        loss = target if self.base.law.kind == "laplace" else Fraction(gaussian_mu(target, limit)) ** 2
        return start._rescaled(target, partial(_epsilon_at, limit), "epsilon and delta", scope, loss)

    # --- what it promises --------------------------------------------------------------------------------------

    @cached_property
    def _promise(self) -> Promise:
        return self._promised(self.base).assuming(assumptions(self.query, self.held))

    def _promised(self, base: Additive) -> Promise:
        """What holds for the same noise and the neighbours of `base`."""
        if self.condition is None:
            promise = Promise((base.statement(),), is_base=True)
        else:
            promise = revision.promise(base, self.condition.system, self._evidence)
        for move in self.moves:
            promise = update.promise(base, promise, move.problem, new_invariants=move.new_invariants)
        return promise

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """Every statement that holds, best first; void ones (ε infinite) last."""
        return self._promise.statements

    @property
    def guarantee(self) -> Guarantee:
        """The best statement that holds; refused where none does."""
        if self._promise.refusal:
            raise Refused(self._promise.refusal)
        return self._promise.statements[0]

    @property
    def held(self) -> System | None:
        """What must hold in the output; None where nothing must."""
        if self.moves:
            return self.moves[-1].problem.system
        return None if self.condition is None else self.condition.system

    def about(self, records: Any) -> Guarantee | None:
        """The statement about changes of at least so many records together; None where none holds.

        Of those that share the exact figures, where there are such: all allowed changes of at most so many records.
        """
        relation = Neighbours(self.base.neighbours.kind, whole("records", records, at_least=1))
        try:
            found = self._promised(replace(self.base, neighbours=relation))
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
        """What it promises for some of the changes that keep all equalities in `held`."""
        words.setdefault("assumes", assumptions(self.query, self.held))
        if self.condition is None:
            statement = self.base.statement(differences, **words)
        else:
            statement = revision.statement_for(self.base, self.condition.system, differences, self._evidence, **words)
        return update.passed(statement) if self.moves else statement

    def statement_about(self, moves: Moves, **words: Any) -> Guarantee:
        """What it promises for changes that keep all its equalities, however its noise was made."""
        differences: Differences = moves
        if moves.everything:
            differences = AllDifferences(self.query, self.base.neighbours)
        return self.statement_for(differences, **words)

    @property
    def asked(self) -> Constraint | None:
        """Everything that was asked of the output so far; None where nothing was."""
        if self.moves:
            return self.moves[-1].constraint
        return None if self.condition is None else self.condition.constraint

    # --- what it draws -----------------------------------------------------------------------------------------

    @property
    def query(self) -> Query:
        """What is asked."""
        return self.base.query

    @property
    def method(self) -> str:
        """The names of the ways in use."""
        names = [] if self.condition is None else list(self._plan.names)
        names += [update.name_of(self._way(move)) for move in self.moves]
        return ", ".join(names) if names else "independent noise"

    def noise(self, size: int, rng: Stream | None = None) -> npt.NDArray[Any]:
        """Draw the noise, (size, n), where its law does not depend on the data; refused otherwise."""
        count = self._count(size)
        if self._depends_on_data:
            raise Refused(DATA_DEPENDENT)
        stream = chosen_stream(rng)
        if self.condition is not None:
            noise = self._plan.draw(None, count, stream)
        else:
            noise = self._measured_draw(count, stream)
        ties = self._ties(count, stream)
        for move in self.moves:
            rows = move.problem.space.rows.shape[0]
            noise = self._way(move).image(move.problem, noise, np.zeros(rows, dtype=np.int64), ties)
        return self._in_units(noise)

    def standard_error(self) -> npt.NDArray[np.float64]:
        """Standard error of every output, before any data is touched; refused where it depends on the data."""
        if self._spread is None:
            raise Refused(DATA_DEPENDENT)
        return self._spread.standard_errors * float(self.base.unit)

    def image(self, noisy: Any, ties: Any = 0) -> npt.NDArray[Any]:
        """The map itself of an `onto` mechanism with structural constraints: noisy values (n,) or (size, n).

        `ties`: the coin of 64 bits that decides between equally near whole tables, as a release publishes it.
        """
        if not self.moves:
            raise Refused("image() is the map of onto(): this mechanism has none")
        if any(move.problem.system.invariants.count for move in self.moves):
            raise Refused(
                "the map onto invariants reads the confidential data: only structural constraints have an image()"
            )
        values = np.atleast_2d(self._from_units("noisy", noisy, None))
        if values.ndim != 2 or values.shape[1] != self.query.n:
            raise Refused(f"noisy must have shape ({self.query.n},) or (size, {self.query.n}), found {np.shape(noisy)}")
        coins = np.full(len(values), whole("ties", ties, at_least=0) % 2**64, dtype=np.uint64)
        for move in self.moves:
            values = self._way(move).image(move.problem, values, move.problem.right_hand_sides(), coins)
        result = self._in_units(values)
        return result[0] if np.ndim(noisy) == 1 else result

    def simulate(self, truth: Any, size: int, rng: Stream | None = None) -> npt.NDArray[Any]:
        """The values of `size` independent releases of this truth, (size, n): for planning, tests and studies.

        It promises nothing: many releases of one truth spend many budgets.
        """
        count = self._count(size)
        checked = self._truth(truth)
        return self._in_units(self._values(checked, count, chosen_stream(rng)))

    def release(self, truth: Any, rng: Stream | None = None) -> Release:
        """Release one table. `rng=None` draws from the secure stream; refused when no statement holds.

        Law: the one the verbs describe. Guarantee: `guarantees`. What must hold is checked again on the values
        themselves before they leave.
        """
        statements = (self.guarantee, *self.guarantees[1:])
        if self.condition is not None:
            revision.forget(self.condition.system)
        checked = self._truth(truth)
        stream = chosen_stream(rng)
        noisy = self._noisy(checked, 1, stream)
        # A move may work in place, and what it was given is published beside it where that is free.
        measurements = noisy[0].copy() if self._measurements_are_free else None
        ties = self._ties(1, stream)
        values, evidence = self._moved_with_evidence(noisy, checked, 0 if ties is None else int(ties[0]))
        self._check(values, checked)
        if evidence is not None:
            self._check_on_grid(values, checked, evidence)
        if stream.reproducible:
            statements = tuple(replace(each, caveats=(*each.caveats, NOT_SECRET)) for each in statements)
        kept = None if measurements is None else self._in_units(measurements)
        shown = (self._in_units(values), statements, self.query, self.method, self._unit_spread, kept)
        coin = None if ties is None else int(ties[0])
        return Release(*shown, evidence if self._measurements_are_free else None, coin)

    # --- within ------------------------------------------------------------------------------------------------

    def _system(self, constraint: Constraint) -> System:
        """Write the constraint out for this query; integer noise asks for rational rows and whole solutions."""
        system = constraint.system(self.base.query.n)
        if self.base.law.integer:
            sentence = constraint.irrational()  # the sides of a union included
            if sentence:
                raise Refused(sentence)
            obstacle = system.integer_obstacle(self.base.unit)
            if obstacle:
                raise Refused(f"integer noise cannot satisfy the constraint: {obstacle}")
        plain = revealed(system, self.base.unit if self.base.law.integer else None)
        if self.base.law.integer and plain is not system and plain.integer_obstacle(self.base.unit):
            refuse_whole_contradiction(system.parts, system.n)  # names the parts where it can
            raise Refused(f"integer noise cannot satisfy the constraint: {plain.integer_obstacle(self.base.unit)}")
        return plain

    def _count(self, size: Any) -> int:
        """Read how many draws are asked for; refuse more numbers than memory could hold before any is drawn."""
        count = whole("size", size, at_least=1)
        most = max(1, MOST_NUMBERS // self.query.n)
        if count > most:
            raise Refused(f"size must be at most {most} for {self.query.n} outputs, found {count}: draw in parts")
        return count

    def _spreads(self, weights: Any) -> npt.NDArray[np.float64]:
        n = self.base.query.n
        if weights is None:
            return np.where(np.isinf(self.base.law.variances), np.inf, 1.0)
        if isinstance(weights, str):
            one_of("weights", weights, ["noise"])
            return self.base.law.variances
        checked = reals("weights", weights, (n,))
        if (checked <= 0).any():
            raise Refused(
                f"weights must be above 0, but the entry at position {np.flatnonzero(checked <= 0)[0]} is not"
            )
        return np.where(np.isinf(self.base.law.variances), np.inf, 1 / checked)

    @cached_property
    def _plan(self) -> revision.Plan:
        assert self.condition is not None
        condition, asked = self.condition, self.condition.tau
        problem = revision.Problem(self.base.law, condition.system, self.base.unit, asked or revision.TAU)
        plan = known(revision.choose(problem, condition.method))
        distance = revision.distance_of(plan.evidence)
        if asked is not None and distance > asked:
            raise Refused(
                f"tau must be at least {float(distance):.3g}, since rounding does not let these draws come nearer to "
                f"their law, found {asked:.3g}"
            )
        if asked is None and distance:
            needed = revision.default_tau(self.base, condition.system)
            if needed < min(float(distance), problem.tau):
                plan = known(revision.choose(replace(problem, tau=needed), condition.method))
        return plan

    @cached_property
    def _way_is_known(self) -> bool:
        """Whether a way to draw is known."""
        try:
            return self.condition is None or bool(self._plan.shares)
        except Refused:
            return False

    @property
    def _evidence(self) -> tuple[revision.Evidence, ...]:
        """How near draws come to their law; nothing where they have it, or no way is known.

        A way that was asked for by name and cannot draw is refused: nothing is said about draws that are not made.
        """
        asked_for = self.condition is not None and self.condition.method is not None
        return self._plan.evidence if asked_for or self._way_is_known else ()

    def _way(self, move: _Move) -> update.Way:
        return known(update.choose(move.problem, move.method))

    @property
    def _depends_on_data(self) -> bool:
        if self.condition is not None and self._plan.problem.depends_on_data:
            return True
        return any(move.problem.depends_on_data for move in self.moves)

    @cached_property
    def _spread(self) -> Spread | None:
        """Errors in units of the grid, where they are known before data is seen."""
        if self._depends_on_data or (self.condition is not None and self.moves) or len(self.moves) > 1:
            return None
        if self.condition is not None:
            return self._plan.spread()
        if self.moves:
            return self._way(self.moves[0]).spread(self.moves[0].problem, self.base.law)
        if None in self.base.law.laws:
            raise Refused(UNMEASURED)
        return independent_spread(self.base.law)

    def _unit_spread(self) -> Spread | None:
        return None if self._spread is None else self._spread.times(float(self.base.unit))

    def _from_units(self, name: str, values: Any, shape: tuple[int, ...] | None) -> npt.NDArray[Any]:
        return self.query.in_steps(name, values, shape, whole=self.base.law.integer)

    def _in_units(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return self.query.in_units(values)

    def _truth(self, truth: Any) -> npt.NDArray[Any]:
        """Check the confidential answer; a refusal names a row or a position, never a value."""
        for move in self.moves:
            self._way(move)  # what no point can satisfy is refused before data is looked at
        checked = self._from_units("truth", truth, (self.query.n,))
        systems = [] if self.condition is None else [self.condition.system]
        for system in systems + [move.problem.system for move in self.moves]:
            missed = system.violation(checked, self.base.unit)
            if missed is not None:
                raise Refused(f"truth violates what must hold: {missed}")
        return checked

    def _measured_draw(self, size: int, stream: Stream) -> npt.NDArray[Any]:
        """Independent noise; 0 at outputs that are not measured, which only a move can then determine."""
        if None in self.base.law.laws and not self.moves:
            raise Refused(UNMEASURED)
        return self.base.law.measured_draw(size, stream)

    def _values(self, truth: npt.NDArray[Any], size: int, stream: Stream) -> npt.NDArray[Any]:
        noisy = self._noisy(truth, size, stream)
        return self._moved(noisy, truth, self._ties(size, stream))

    def _noisy(self, truth: npt.NDArray[Any], size: int, stream: Stream) -> npt.NDArray[Any]:
        """The truth with its noise, conditioned but not moved."""
        if self.condition is not None:
            values = self._plan.draw(truth, size, stream)
            values += truth
        else:
            values = self._measured_draw(size, stream)
            # An unmeasured output starts from 0 and not from its true value.
            values += np.where(np.isinf(self.base.law.variances), np.zeros_like(truth), truth)
        return values

    def _ties(self, size: int, stream: Stream) -> npt.NDArray[np.uint64] | None:
        """Public coins that decide ties in whole tables, one for each; None where no table is moved to whole numbers.

        They are fresh bits of the system; of a reproducible stream its next words, after those of the noise.
        """
        if not any(move.problem.integer for move in self.moves):
            return None
        if stream.reproducible:
            return stream.words(size)
        return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)

    def _moved(
        self, values: npt.NDArray[Any], truth: npt.NDArray[Any], ties: npt.NDArray[np.uint64] | None
    ) -> npt.NDArray[Any]:
        for move in self.moves:
            way = self._way(move)
            values = way.image(move.problem, values, move.problem.space.sides_of(truth), ties)
        return values

    def _moved_with_evidence(
        self, noisy: npt.NDArray[Any], truth: npt.NDArray[Any], coin: int
    ) -> tuple[npt.NDArray[Any], update.Evidence | None]:
        """One moved table (n,), and what the last way can show for it."""
        values, evidence = noisy[0], None
        for move in self.moves:
            right = move.problem.space.sides_of(truth)
            answer = update.certified(self._way(move), move.problem, values, right, coin)
            values, evidence = answer.values, answer.evidence
        return values, evidence

    @property
    def _measurements_are_free(self) -> bool:
        """Whether the noisy answer may be published beside the table: it is the input of a move and nothing else.

        Beside a conditioned table it would be a second spend (THEORY §9), and a subspace statement is about the moved
        part alone.
        """
        subspace = any(statement.scope == "subspace" for statement in self.guarantees)
        return self.condition is None and bool(self.moves) and not subspace

    def _check(self, values: npt.NDArray[Any], truth: npt.NDArray[Any]) -> None:
        """Test on the values themselves that everything asked for holds; exact for whole numbers."""
        last = self.held
        if last is None:
            return
        missed = last.violation(values, self.base.unit)
        if missed is None and last.invariants.count:
            change = values - truth
            kept = last.null_space(structural=False).contains(
                change if change.dtype.kind == "i" else np.asarray(change), np.abs(truth).astype(np.float64)
            )
            missed = None if kept else "an invariant"
        if missed is not None:
            raise RuntimeError(f"nothing is released: the values drawn miss {missed}; this is a fault of holdfast")

    def _check_on_grid(self, values: npt.NDArray[Any], truth: npt.NDArray[Any], evidence: update.Evidence) -> None:
        """Test everything once more on the multiples of a grid that released doubles stand for, in whole numbers."""
        known = evidence.steps(truth)
        if values.dtype.kind == "i" or not evidence.exact or known is None:
            return
        system, steps = self.moves[-1].problem.system, evidence.nearest_steps(values)
        missed = system.violation(steps, self.base.unit * evidence.grid)
        if missed is None and system.invariants.count:
            kept = system.null_space(structural=False).contains(steps - known)
            missed = None if kept else "an invariant"
        if missed is not None:
            raise RuntimeError(f"nothing is released: the values moved miss {missed}; this is a fault of holdfast")

    def _of_scope(self, scope: str | None) -> Guarantee:
        """The first statement, or the first of this scope; refused where there is none."""
        if scope is None:
            return self.guarantee
        found = next((each for each in self.guarantees if each.scope == scope and not each.void), None)
        if found is None:
            raise Refused(f"this mechanism makes no statement of scope {one_of('scope', scope, SCOPES)!r}")
        return found

    def _rescaled(
        self,
        target: Fraction,
        measure: Callable[[Guarantee], float | None],
        what: str,
        scope: str | None,
        loss: Fraction,
    ) -> Mechanism:
        """Find by bisection the factor on all scales at which the total guarantee meets the target.

        The search starts where the noise alone has this loss, so that the scales one comes from do not matter.
        """
        try:
            first = self.base.rescaled(self.base.factor_for(loss))
        except Refused:  # no noise is so small or so large, but the total may differ from the noise alone
            first = self.base

        def at(factor: Fraction) -> Mechanism:
            base = first.rescaled(factor)
            return replace(self, base=base, moves=tuple(move.over(base) for move in self.moves))

        known = at(Fraction(1))._way_is_known

        def met(factor: Fraction) -> float:
            rescaled = at(factor)
            if (known and not rescaled._way_is_known) or rescaled._promise.refusal == revision.TOO_FAR:
                return math.inf
            found = measure(rescaled._of_scope(scope))
            if found is None:
                hint = "give delta too, or rho" if what == "epsilon" else "calibrate to what it does promise"
                raise Refused(f"this mechanism promises no {what}: {hint}")
            return found

        try:
            return at(factor_meeting(met, float(target), squared=what != "epsilon"))
        except OverflowError:
            raise Refused(f"this mechanism promises less {what} than asked at any scale: ask for less") from None
        except ZeroDivisionError:
            raise Refused(
                f"this mechanism cannot promise this {what}, because its draws only come near their law and that costs "
                "more: ask for a larger delta"
            ) from None


def _epsilon(statement: Guarantee) -> float | None:
    """The ε of a statement whose δ, if any, only pays for numerical error; infinite for a void one."""
    return statement.epsilon if statement.delta == statement.numerical_delta else None


def _epsilon_at(delta: Fraction, statement: Guarantee) -> float:
    """The ε of a statement at this δ; infinite where its own δ is larger."""
    if statement.void or (statement.rho is None and statement.mu is None and statement.delta > inward(delta)):
        return math.inf
    return statement.at_delta(delta).epsilon or 0.0


def _tau(value: Any) -> float | None:
    """Read a total variation, rounded down to a double; None stays None."""
    if value is None:
        return None
    asked = inward(positive("tau", value))
    if not revision.LEAST_TAU <= asked <= revision.LARGEST_TAU:
        raise Refused(f"tau must lie between {revision.LEAST_TAU:g} and {revision.LARGEST_TAU:g}, found {asked:.3g}")
    return asked


def _constraint(value: Any) -> None:
    if isinstance(value, (ExactNodes, ExactMargins)):
        raise Refused("exact figures become a constraint by invariant(): write invariant(exact_nodes(...))")
    if not isinstance(value, Constraint):
        raise Refused(
            f"a constraint is expected, made by consistent(), nonnegative() and the like; found {type(value).__name__}"
        )


def chosen_stream(rng: Any) -> Stream:
    """The stream to draw from: the secure one unless another is given."""
    if rng is None:
        return secure()
    if not isinstance(rng, Stream):
        raise Refused(f"rng must be a stream such as seeded(7), or None for the secure one; found {type(rng).__name__}")
    return rng


def laplace(
    query: Query,
    *,
    epsilon: Any = None,
    scale: Any = None,
    neighbours: str | Neighbours = "add-remove",
    integer: bool = True,
    shares: Mapping[Any, Any] | None = None,
) -> Mechanism:
    """Laplace noise for a query, by exactly one of epsilon and scale.

    Law: q(x) + U, U_i independent with weights e^{−|u|/λ_i} on the whole numbers (or the reals).
    Guarantee: pure ε = max Σ|d_i|/λ_i (THEORY §1; TV Prop 7, SDP Lemma 16).
    """
    relation = Neighbours.of(neighbours)
    return Mechanism(laplace_base(_query(query), relation, integer, epsilon, scale, shares))


def gaussian(
    query: Query,
    *,
    epsilon: Any = None,
    delta: Any = None,
    rho: Any = None,
    scale: Any = None,
    neighbours: str | Neighbours = "add-remove",
    integer: bool = True,
    shares: Mapping[Any, Any] | None = None,
    calibration: str | None = None,
) -> Mechanism:
    """Gaussian noise for a query, by exactly one of (epsilon, delta), rho and scale.

    Law: q(x) + U, U_i independent with weights e^{−u²/2σ_i²} on the whole numbers (or the reals).
    Guarantee: μ-GDP (continuous; Balle–Wang 2018) or ρ-zCDP with the exact δ(ε) of the loss law (integer;
    Canonne–Kamath–Steinke 2020). `calibration="classical"` is the papers' formula, with its true δ printed.
    """
    relation = Neighbours.of(neighbours)
    return Mechanism(gaussian_base(_query(query), relation, integer, epsilon, delta, rho, scale, shares, calibration))


def _query(value: Any) -> Query:
    if not isinstance(value, Query):
        raise Refused(f"a query is expected, made by counts(), histogram() and the like; found {type(value).__name__}")
    return value
