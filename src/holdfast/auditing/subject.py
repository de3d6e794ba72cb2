"""What is audited: something that draws, the statements about it, and what is publicly known of its data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.constraints import System
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.mixed import Mixture
from holdfast.mechanism.projected import Projected
from holdfast.privacy import Guarantee
from holdfast.queries import Query
from holdfast.randomness import Stream

Values = npt.NDArray[Any]
Draw = Callable[[Values, int, Stream], Values]

NOTHING = "nothing can be audited: {} promises nothing, so there is nothing to refute"


@dataclass(frozen=True, eq=False)
class Subject:
    """A mechanism as the auditor sees it.

    query: what is asked, None where nobody says; held: what every possible dataset, and the output, obeys; listed: the
    mechanism whose law can be written down, None where only draws are known.
    """

    name: str
    statements: tuple[Guarantee, ...]
    draw: Draw
    query: Query | None = None
    held: System | None = None
    listed: Mechanism | None = None

    @classmethod
    def of(cls, mechanism: Any, query: Query | None, guarantee: Guarantee | None) -> Subject:
        """Read a mechanism of holdfast, an object with `simulate`, `guarantee` and `query`, or a plain function."""
        if query is not None and not isinstance(query, Query):
            raise Refused(f"query must be made by counts(), histogram() and the like; found {type(query).__name__}")
        if guarantee is not None and not isinstance(guarantee, Guarantee):
            raise Refused(f"guarantee must be a Guarantee, found {type(guarantee).__name__}")
        statements = (guarantee,) if guarantee is not None else _statements(mechanism)
        kept = tuple(each for each in statements if not each.void)
        if not kept:
            raise Refused(NOTHING.format("a void statement"))
        asked = query if query is not None else getattr(mechanism, "query", None)
        # A subclass may draw from another law than its base says, as does noise made for its constraint.
        is_listed = type(mechanism) is Mechanism and mechanism.source.law is None and query is None
        listed = mechanism if is_listed else None
        return cls(_name(mechanism), kept, _draw(mechanism), asked, _held(mechanism), listed)


def _name(mechanism: Any) -> str:
    if isinstance(mechanism, (Mechanism, Mixture, Projected)):
        return repr(mechanism)
    return str(getattr(mechanism, "__name__", type(mechanism).__name__))


def _statements(mechanism: Any) -> tuple[Guarantee, ...]:
    found = getattr(mechanism, "guarantees", None)
    first = getattr(mechanism, "guarantee", None) if not found else None
    statements = tuple(found) if found else (first,) if first is not None else ()
    if not statements:
        raise Refused(NOTHING.format("it") + "; pass guarantee= for a function of your own")
    for each in statements:
        if not isinstance(each, Guarantee):
            raise Refused(f"a mechanism's guarantees must be of type Guarantee, found {type(each).__name__}")
    return statements


def _held(mechanism: Any) -> System | None:
    if isinstance(mechanism, Mixture):
        return mechanism.parts[0].held
    found = getattr(mechanism, "held", None)
    return found if isinstance(found, System) else None


def _draw(mechanism: Any) -> Draw:
    if isinstance(mechanism, Projected):
        return lambda truth, size, _stream: mechanism.simulate(truth, size)
    if callable(getattr(mechanism, "simulate", None)):
        return lambda truth, size, stream: _table(mechanism.simulate(truth, size, stream), size)
    if not callable(mechanism):
        raise Refused(
            "mechanism must be a mechanism, an object with simulate(truth, size, rng), or a function from the truth to "
            f"one release; found {type(mechanism).__name__}"
        )
    return lambda truth, size, _stream: _table([mechanism(truth.copy()) for _ in range(size)], size)


def _table(values: Any, size: int) -> Values:
    """Draws as an array (size, number of outputs), missing values written as infinite."""
    found = np.asarray(values)
    if found.dtype.kind not in "biuf" or found.shape[:1] != (size,):
        raise Refused(f"simulate() must return {size} rows of numbers, found shape {found.shape}")
    rows = found.reshape(size, -1)
    if rows.dtype.kind == "b":
        return rows.astype(np.int64)
    if rows.dtype.kind == "f" and np.isnan(rows).any():
        return np.where(np.isnan(rows), np.inf, rows)
    return rows
