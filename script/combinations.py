"""Write docs/reference/combinations.md: each law × verb × constraint × integer with its way and guarantee, or refusal.

Run: .venv/bin/python script/combinations.py
The page is generated from the library itself; a test builds every cell of it and fails when the page is out of date.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np

import holdfast as hf

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "combinations.md"

FLAT = hf.Hierarchy.from_parents([-1, 0, 0, 0])
DEEP = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 1, 2, 2])
SHAPE = (3, 3)
CROSSED = hf.invariant(hf.exact_margins(SHAPE, [(0,), (1,)]))
WIDE = hf.invariant(hf.exact_margins((4, 5), [(0,), (1,)]))
ALL_PAIRS = hf.invariant(hf.exact_margins((2, 2, 2), [(0, 1), (0, 2), (1, 2)]))
OF_FOUR, OF_FIVE = (hf.invariant(hf.exact_margins((2,) * k, list(combinations(range(k), 2)))) for k in (4, 5))
ROW = np.ones((1, 4), dtype=int)


@dataclass(frozen=True)
class Case:
    """A constraint with a query it applies to and a truth that satisfies it."""

    name: str
    query: hf.Query
    truth: np.ndarray
    constraint: hf.Constraint | None


def cases() -> list[Case]:
    """Every constraint of the page."""
    cells, table = hf.histogram(4), hf.margins(SHAPE)
    counts = np.array([1, 0, 2, 0])
    flat, deep = hf.counts(FLAT), hf.counts(DEEP)
    flat_truth, deep_truth = FLAT.sum_up([1, 0, 2]), DEEP.sum_up([1, 0, 2, 0, 3])
    cube, cubes = hf.margins((2, 2, 2)), np.array([1, 0, 2, 0, 1, 1, 0, 3])
    wide, counted = hf.margins((4, 5)), np.arange(20) * 7 % 23
    squares = np.array([1, 0, 2, 0, 1, 1, 0, 3, 0])
    return [
        Case("nothing", cells, counts, None),
        Case("exact total of 4 cells", cells, counts, hf.invariant(ROW)),
        Case("total of 4 cells, known by definition", cells, counts, hf.equals(ROW, [3])),
        Case("exact total of 4 cells, not negative", cells, counts, hf.invariant(ROW) & hf.nonnegative()),
        Case("one exact cell", cells, counts, hf.invariant([[1, 0, 0, 0]])),
        Case("one impossible cell", cells, counts, hf.fixed(1, 0)),
        Case("not negative", cells, counts, hf.nonnegative()),
        Case("between 0 and 5", cells, counts, hf.between(0, 5)),
        Case("ordered", cells, np.array([0, 0, 1, 2]), hf.ordered([0, 1, 2, 3])),
        Case("consistent, two levels", flat, flat_truth, hf.consistent(FLAT)),
        Case("consistent, two levels, not negative", flat, flat_truth, hf.consistent(FLAT) & hf.nonnegative()),
        Case("consistent, three levels", deep, deep_truth, hf.consistent(DEEP)),
        Case("consistent, three levels, not negative", deep, deep_truth, hf.consistent(DEEP) & hf.nonnegative()),
        Case("consistent, root exact", flat, flat_truth, hf.consistent(FLAT) & hf.invariant(hf.exact_nodes(FLAT, [0]))),
        Case("two crossed margins exact, 3 × 3", table, squares, CROSSED),
        Case("two crossed margins exact, not negative", table, squares, CROSSED & hf.nonnegative()),
        Case("two crossed margins exact, 4 × 5", wide, counted, WIDE),
        Case("two crossed margins exact, 4 × 5, not negative", wide, counted, WIDE & hf.nonnegative()),
        Case("all two-way margins exact, 2 × 2 × 2, not negative", cube, cubes, ALL_PAIRS & hf.nonnegative()),
        Case("all two-way margins exact, 2 × 2 × 2 × 2", hf.margins((2,) * 4), np.arange(16) * 7 % 11, OF_FOUR),
        Case("all two-way margins exact, 2 × 2 × 2 × 2 × 2", hf.margins((2,) * 5), np.arange(32) * 7 % 11, OF_FIVE),
        Case("union of two boxes", cells, counts, hf.between(0, 2) | hf.between(4, 5)),
    ]


def mechanism(case: Case, law: str, integer: bool, verb: str) -> hf.Mechanism:
    """Build one cell: ε = 1 for Laplace noise, ρ = 1/2 for Gaussian noise, add-remove."""
    if law == "Laplace":
        base = hf.laplace(case.query, epsilon=1, integer=integer)
    else:
        base = hf.gaussian(case.query, rho=0.5, integer=integer)
    if case.constraint is None:
        return base
    return base.given(case.constraint) if verb == "given" else base.onto(case.constraint)


@dataclass(frozen=True)
class Cell:
    """One combination, and what became of it."""

    case: Case
    law: str
    integer: bool
    verb: str
    way: str
    guarantee: str
    drawn: bool
    built: hf.Mechanism | None = None


def _tried(action: Callable[[], str]) -> str:
    try:
        return action()
    except hf.Refused as refusal:
        return f"refused: {refusal}"


def _drawn_by(built: hf.Mechanism, case: Case) -> str:
    """Draw, and return the way; some are refused only when a chain is measured."""
    drawn = built.simulate(case.truth, 3, rng=hf.seeded(1))
    assert drawn.shape == (3, case.query.n)
    return built.method


def cell(case: Case, law: str, integer: bool, verb: str) -> Cell:
    """Build one combination, draw from it, and describe it."""
    try:
        built = mechanism(case, law, integer, verb)
    except hf.Refused as refusal:
        return Cell(case, law, integer, verb, f"refused: {refusal}", "", False)
    way = _tried(lambda: _drawn_by(built, case))
    guarantee = _tried(lambda: "; ".join(words(statement) for statement in (built.guarantee, *built.guarantees[1:])))
    return Cell(case, law, integer, verb, way, guarantee, not way.startswith("refused"), built)


def words(statement: hf.Guarantee) -> str:
    """One statement in a few words."""
    if statement.void:
        return f"{statement.scope}: void"
    number = f"ε = {statement.epsilon:.4g}" if statement.epsilon is not None else f"ρ = {statement.rho:.4g}"
    if statement.epsilon is not None and statement.delta:
        number += f", δ = {float(f'{statement.delta:.2g}'):g}"
    if statement.orders == "integer":
        number += " at integer orders"
    changed = "" if statement.neighbours == hf.Neighbours("add-remove") else f", {statement.neighbours}"
    estimated = " (estimated)" if statement.status == "estimated" else ""
    return f"{statement.scope}: {number}{changed}{estimated}"


@cache
def cells() -> tuple[Cell, ...]:
    """Every cell of the page."""
    return tuple(
        cell(case, law, integer, verb)
        for case in cases()
        for verb in ("given", "onto")
        for law in ("Laplace", "Gaussian")
        for integer in (True, False)
        if case.constraint is not None or verb == "given"
    )


def page() -> str:
    """The whole page: a row per constraint and verb, a column per noise."""
    noises = [(law, integer) for law in ("Laplace", "Gaussian") for integer in (True, False)]
    heads = " | ".join(f"{'integer' if integer else 'continuous'} {law}" for law, integer in noises)
    lines = [
        "# Combinations: law × verb × constraint × integer",
        "",
        "A cell has the *way* (the file in `given/` or `onto/` that computes it) and every statement that holds, best",
        "first. The scope is *all* where none is named; *sharing* is *invariant-sharing*; ×2 is for 2 records added or",
        "removed, ⇄4 for 4 replaced. The noise has ε = 1 or ρ = 1/2, add-remove. Written by `script/combinations.py`.",
        "",
        f"| | {heads} |",
        "|---|---|---|---|---|",
    ]
    for case in cases():
        for verb in ("given", "onto"):
            row = [each for each in cells() if each.case.name == case.name and each.verb == verb]
            if row:
                made = " | ".join(f"{each.way}: {shorter(each.guarantee)}" for each in row)
                lines.append(f"| {verb} {case.name} | {made} |")
    return "\n".join(lines) + "\n"


def shorter(guarantee: str) -> str:
    """The statements of a cell in signs."""
    without = guarantee.replace(" = ", "=").replace("all: ", "").replace(": ", " ").replace("invariant-", "")
    without = re.sub(r", up to (\d+) records added or removed", r" ×\1", without)
    return re.sub(r", up to (\d+) records replaced by others", r" ⇄\1", without)


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}: {len(cells())} combinations")
