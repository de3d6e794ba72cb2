"""What mechanisms accept, and the last look at what they are about to release."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Fault, Refused, whole
from holdfast.constraints import Constraint, ExactMargins, ExactNodes, System, revealed
from holdfast.constraints.possible.contradiction import refuse_whole_contradiction
from holdfast.evidence import Evidence
from holdfast.privacy import Additive, Guarantee
from holdfast.queries import Query
from holdfast.randomness import Stream, secure

#: Numbers that one call of `noise` or `simulate` returns at most: 32 GiB of them.
MOST_NUMBERS = 2**32
NOT_SECRET = (
    "made with a reproducible stream: whoever knows the seed can remove the noise, and two releases with one seed show "
    "the exact difference of their truths even to those who do not know it"
)


def a_query(value: Any) -> Query:
    if not isinstance(value, Query):
        raise Refused(f"a query is expected, made by counts(), histogram() and the like; found {type(value).__name__}")
    return value


def a_constraint(value: Any) -> Constraint:
    if isinstance(value, (ExactNodes, ExactMargins)):
        raise Refused("exact figures become a constraint by invariant(): write invariant(exact_nodes(...))")
    if not isinstance(value, Constraint):
        raise Refused(
            f"a constraint is expected, made by invariant(), consistent() and the like; found {type(value).__name__}"
        )
    return value


def equalities(name: str, query: Query, constraint: Any) -> System:
    """Write a constraint out; refuse anything but equalities."""
    asked = a_constraint(constraint)
    if asked.is_union or asked.has_inequalities:
        raise Refused(f"{name} takes invariants and other equalities only: use given() or onto() for anything else")
    return asked.system(query.n)


def written_out(constraint: Constraint, base: Additive) -> System:
    """Write a constraint out for noise; integer noise asks for rational rows and whole solutions."""
    system = constraint.system(base.query.n)
    if not base.law.integer:
        return revealed(system, None)
    sentence = constraint.irrational()  # the sides of a union included
    if sentence:
        raise Refused(sentence)
    obstacle = system.integer_obstacle(base.unit)
    if obstacle:
        raise Refused(f"integer noise cannot satisfy the constraint: {obstacle}")
    plain = revealed(system, base.unit)
    if plain is not system and plain.integer_obstacle(base.unit):
        refuse_whole_contradiction(system.parts, system.n)  # names the parts where it can
        raise Refused(f"integer noise cannot satisfy the constraint: {plain.integer_obstacle(base.unit)}")
    return plain


def chosen_stream(rng: Any) -> Stream:
    """The stream to draw from: the secure one unless another is given."""
    if rng is None:
        return secure()
    if not isinstance(rng, Stream):
        raise Refused(f"rng must be a stream such as seeded(7), or None for the secure one; found {type(rng).__name__}")
    return rng


def how_many(size: Any, outputs: int) -> int:
    """Read how many draws are asked for; refuse more numbers than memory could hold before any is drawn."""
    count = whole("size", size, at_least=1)
    most = max(1, MOST_NUMBERS // outputs)
    if count > most:
        raise Refused(f"size must be at most {most} for {outputs} outputs, found {count}: draw in parts")
    return count


def drawn_from(stream: Stream, statements: tuple[Guarantee, ...]) -> tuple[Guarantee, ...]:
    """The statements about a release, with the caveat of a reproducible stream."""
    if not stream.reproducible:
        return statements
    return tuple(replace(each, caveats=(*each.caveats, NOT_SECRET)) for each in statements)


def refuse_violated(truth: npt.NDArray[Any], systems: Iterable[System | None], unit: Fraction) -> None:
    """Refuse a confidential answer that breaks what must hold, by the name of a row or a position, never a value."""
    for system in systems:
        missed = None if system is None else system.violation(truth, unit)
        if missed is not None:
            raise Refused(f"truth violates what must hold: {missed}")


def last_look(
    system: System, values: npt.NDArray[Any], truth: npt.NDArray[Any], unit: Fraction, evidence: Evidence | None
) -> None:
    """Test on the values themselves that everything asked for holds; exact for whole numbers.

    Doubles that stand for multiples of a grid are tested once more on these, in whole numbers.
    """
    if system.invariants.count:
        _refuse_missed(system, values, values - truth, unit, np.abs(truth).astype(np.float64))
    else:
        _refuse_missed(system, values, values, unit, None)
    if evidence is None or evidence.grid is None or not evidence.exact or values.dtype.kind == "i":
        return
    known = evidence.steps(truth)
    if known is not None:
        steps = evidence.nearest_steps(values)
        _refuse_missed(system, steps, steps - known, unit * evidence.grid, None)


def _refuse_missed(
    system: System, values: npt.NDArray[Any], change: npt.NDArray[Any], unit: Fraction, size: Any
) -> None:
    missed = system.violation(values, unit)
    if missed is None and system.invariants.count:
        missed = None if system.null_space(structural=False).contains(change, size) else "an invariant"
    if missed is not None:
        raise Fault(f"nothing is released: the values made miss {missed}; this is a fault of holdfast")
