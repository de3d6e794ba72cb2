"""Rules that are given as constraints: what figures keep of them and what they break, row by row and by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST
from holdfast.arrays import Floats, Ints
from holdfast.constraints import Bounds, Constraint, Part, Rows
from holdfast.constraints.system.parts import EQUALITIES
from holdfast.constraints.system.rows import divided

#: A real figure keeps a rule that it misses by this share of what is added up; so many terms of a row are written.
TOLERANCE, TERMS = 1e-9, 4


@dataclass(frozen=True)
class Broken:
    """One rule that figures break: its name, what its figures add up to, and what that had to be."""

    rule: str
    found: float
    relation: str
    asked: float

    @property
    def gap(self) -> float:
        return self.found - self.asked

    def __str__(self) -> str:
        return f"{self.rule}: {self.found:g}, but must be {self.relation} {self.asked:g}"


@dataclass(frozen=True, eq=False)
class Kept:
    """One kind of rule: how many of its rows have all their figures, and the gaps of those that are broken."""

    name: str
    compared: int
    rows: Ints
    found: Floats
    asked: Floats
    relation: str
    labels: Callable[[int], str]

    def largest(self, most: int) -> list[Broken]:
        """The rules that are broken, the largest gap first."""
        order = np.argsort(-np.abs(self.found - self.asked), kind="stable")[:most]
        return [
            Broken(self.labels(int(self.rows[i])), float(self.found[i]), self.relation, float(self.asked[i]))
            for i in order.tolist()
        ]


def looked_at(constraints: Iterable[Constraint], values: Floats, name: Callable[[int], str]) -> list[Kept]:
    """What figures (NaN where missing) keep and break, part by part; `name` names a figure."""
    found: list[Kept] = []
    for constraint in constraints:
        for part in constraint.parts:
            if part.rows is not None:
                relation = "=" if part.kind in EQUALITIES else "≥"
                found.append(_of_rows(part, part.rows, values, relation, name))
            else:
                assert part.bounds is not None
                found += _of_bounds(part, part.bounds, values, name)
    return found


def _of_rows(part: Part, rows: Rows, values: Floats, relation: str, name: Callable[[int], str]) -> Kept:
    A = rows.widened(values.size).A
    known = np.isfinite(values)
    used = np.flatnonzero(abs(A) @ (~known).astype(np.int64) == 0)
    numbers, asked = np.where(known, values, 0.0), rows.b.astype(np.float64)[used]
    sums, sizes = A[used] @ numbers, abs(A[used]) @ np.abs(numbers) + np.abs(asked)
    gaps = np.abs(sums - asked) if relation == "=" else asked - sums
    bad = np.flatnonzero(gaps > TOLERANCE * np.maximum(sizes, 1.0))

    def label(row: int) -> str:
        return f"{rows.names[row]} ({written(A, row, name)})"

    return Kept(part.name, int(used.size), used[bad], sums[bad], asked[bad], relation, label)


def _of_bounds(part: Part, bounds: Bounds, values: Floats, name: Callable[[int], str]) -> list[Kept]:
    known = np.isfinite(values)
    found = []
    for side, sign, relation in zip(bounds.applied(values.size), (1, -1), ("≥", "≤"), strict=True):
        limit = np.asarray(side).astype(np.float64)
        used = known & (np.abs(limit) < LARGEST)
        room = TOLERANCE * np.maximum(1.0, np.abs(limit))
        bad = np.flatnonzero(used & (sign * (limit - np.where(known, values, limit)) > room))
        if used.any():
            found.append(Kept(part.name, int(used.sum()), bad, values[bad], limit[bad], relation, name))
    return found


def written(A: sparse.csr_array, row: int, name: Callable[[int], str]) -> str:
    """A row as a sum of named figures."""
    at = slice(int(A.indptr[row]), int(A.indptr[row + 1]))
    terms = list(zip(A.indices[at].tolist(), A.data[at].tolist(), strict=True))
    text = ""
    for column, factor in terms[:TERMS]:
        sign = "−" if factor < 0 else "+"
        text += f" {sign} " if text else "−" * (factor < 0)
        text += ("" if abs(factor) == 1 else f"{abs(factor):g}·") + name(column)
    return text + (" …" if len(terms) > TERMS else "")


def in_steps(constraint: Constraint, unit: Fraction) -> Constraint:
    """The same rules for figures that are counted in steps."""
    if unit == 1:
        return constraint
    return Constraint(tuple(_in_steps(part, unit) for part in constraint.parts))


def _in_steps(part: Part, unit: Fraction) -> Part:
    if part.rows is not None:
        return replace(part, rows=replace(part.rows, b=divided(part.rows.b, unit)))
    assert part.bounds is not None
    low, high = (_steps(side, unit) for side in (part.bounds.low, part.bounds.high))
    return replace(part, bounds=replace(part.bounds, low=low, high=high))


def _steps(side: Any, unit: Fraction) -> Any:
    far = np.abs(side) >= LARGEST
    return np.where(np.asarray(far, dtype=bool), side, divided(np.where(np.asarray(far, dtype=bool), 0, side), unit))
