"""What `onto` moves noisy values to, and how: everything asked so far, the newest part included."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast import onto as update
from holdfast.arguments import Refused, known, one_of, reals, shown, whole
from holdfast.constraints import Constraint, revealed
from holdfast.evidence import Evidence
from holdfast.mechanism.checking import written_out
from holdfast.noise import Independent
from holdfast.onto.problem import Ties
from holdfast.privacy import Additive, Promise
from holdfast.queries import Query
from holdfast.randomness import Stream

NORMS = ("l2", "l1")


@dataclass(frozen=True, eq=False)
class Move:
    """One move: all that must hold after it, and whether it asks for exact figures that were not asked for before."""

    constraint: Constraint
    new_invariants: bool
    problem: update.Problem
    method: str | None
    by_noise: bool

    def over(self, base: Additive) -> Move:
        """The same move for rescaled noise: weights that follow the noise follow it still."""
        return replace(self, problem=replace(self.problem, spreads=base.law.variances)) if self.by_noise else self

    @property
    def way(self) -> update.Way:
        """The way that moves; refused where none is known."""
        return known(update.choose(self.problem, self.method))

    def promise(self, base: Additive, before: Promise) -> Promise:
        return update.promise(base, before, self.problem, new_invariants=self.new_invariants)


def move_onto(
    base: Additive,
    before: tuple[Move, ...],
    joint: Constraint,
    norm: str,
    weights: Any,
    integer: bool | None,
    method: str | None,
    *,
    new_invariants: bool,
) -> Move:
    """Read what `onto` is asked for; `joint` is all that was asked so far, this included."""
    whole_so_far = before[-1].problem.integer if before else base.law.integer
    one_of("norm", norm, NORMS)
    if method is not None:
        one_of("method", method, [update.name_of(way) for way in update.ways()])
    if integer is None:
        integer = whole_so_far and not joint.has_invariants
    elif not isinstance(integer, (bool, np.bool_)):
        raise Refused(f"integer must be True, False or None, found {shown(integer)}")
    if integer and not base.law.integer:
        raise Refused("whole numbers come from integer noise: make the mechanism with integer=True")
    if integer and not whole_so_far:
        raise Refused("an earlier onto() moves to real values: pass integer=True there too")
    n = base.query.n
    system = written_out(joint, base) if integer else revealed(joint.system(n), None)
    problem = update.Problem(n, system, norm, _spreads(weights, base.law), bool(integer), base.unit)
    return Move(joint, new_invariants, problem, method, isinstance(weights, str))


def coins(moves: tuple[Move, ...], size: int, stream: Stream) -> Ties:
    """Public coins that decide ties in whole tables, one for each; None where no table is moved to whole numbers.

    They are fresh bits of the system; of a reproducible stream its next words, after those of the noise.
    """
    if not any(move.problem.integer for move in moves):
        return None
    if stream.reproducible:
        return stream.words(size)
    return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)


def moved(moves: tuple[Move, ...], values: npt.NDArray[Any], truth: npt.NDArray[Any], ties: Ties) -> npt.NDArray[Any]:
    """Noisy values (size, n), moved to what the truth keeps exactly."""
    for move in moves:
        values = move.way.image(move.problem, values, move.problem.space.sides_of(truth), ties)
    return values


def certified(
    moves: tuple[Move, ...], values: npt.NDArray[Any], truth: npt.NDArray[Any], coin: int | None
) -> tuple[npt.NDArray[Any], Evidence | None]:
    """One table (n,), moved, and what the last way can show for it."""
    evidence = None
    for move in moves:
        right = move.problem.space.sides_of(truth)
        answer = update.certified(move.way, move.problem, values, right, coin or 0)
        values, evidence = answer.values, answer.evidence
    return values, evidence


def image(moves: tuple[Move, ...], query: Query, noisy: Any, ties: Any, *, whole_numbers: bool) -> npt.NDArray[Any]:
    """The map itself, for noisy values (n,) or (size, n); refused where it reads confidential figures."""
    if not moves:
        raise Refused("image() is the map of onto(): this mechanism has none")
    if any(move.problem.system.invariants.count for move in moves):
        raise Refused(
            "the map onto invariants reads the confidential data: only structural constraints have an image()"
        )
    values = np.atleast_2d(query.in_steps("noisy", noisy, None, whole=whole_numbers))
    if values.ndim != 2 or values.shape[1] != query.n:
        raise Refused(f"noisy must have shape ({query.n},) or (size, {query.n}), found {np.shape(noisy)}")
    same = np.full(len(values), whole("ties", ties, at_least=0) % 2**64, dtype=np.uint64)
    for move in moves:
        values = move.way.image(move.problem, values, move.problem.right_hand_sides(), same)
    result = query.in_units(values)
    return result[0] if np.ndim(noisy) == 1 else result


def _spreads(weights: Any, law: Independent) -> npt.NDArray[np.float64]:
    """The variance by which each output counts; infinite where it is not measured."""
    if isinstance(weights, str):
        one_of("weights", weights, ["noise"])
        return law.variances
    return np.where(np.isinf(law.variances), np.inf, 1 / above_zero(weights, law.n))


def above_zero(weights: Any, n: int) -> npt.NDArray[np.float64]:
    """Weights of the outputs; 1 for all where there are none."""
    if weights is None:
        return np.ones(n)
    checked = reals("weights", weights, (n,))
    if (checked <= 0).any():
        raise Refused(f"weights must be above 0, but the entry at position {np.flatnonzero(checked <= 0)[0]} is not")
    return checked
