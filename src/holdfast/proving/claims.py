"""What a certificate claims of a table, as whole numbers that a kernel can compute with; or why that is not covered.

Read from the certificate alone: the rows that add up say what one record changes, `noise_by_level` has the exact scale
of every row, `holds` the sums that hold or are published exactly, and the statement the number that is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

from holdfast.arguments import Refused

if TYPE_CHECKING:
    from holdfast.release.certificate.certificate import Certificate
    from holdfast.release.facts.table import Level, Statement, TableCertificate

#: The first words of a reason, the noise it is about, and whether that is drawn given the sums.
REASONS = {
    "conditioning on equalities keeps pure ε": ("laplace", True),
    "independent Laplace noise": ("laplace", False),
    "integer Gaussian noise on the lattice of the equalities keeps ρ": ("gaussian", True),
    "independent integer Gaussian noise": ("gaussian", False),
}
#: The first words where exact figures are read beside independent noise, of whichever law.
BESIDE = "all that is published is computed from the noisy answers and the exact figures alone"
#: What may follow them: a rule applied to what was drawn, and another number made from ρ.
FOLLOWS = ("moving to the nearest allowed point is post-processing", "ε is converted from ρ")
#: Products that the kernel computes in a few seconds.
PRODUCTS = 20_000_000
#: What a table of a spec may say for a record to add 1 to one cell and to all above it, or to one cell of each margin.
SAID = {
    *("name", "hierarchy", "root", "match", "categories", "histogram", "cube", "margins", "measure"),
    *("shares", "share", "guess", "hold", "method", "accept", "numbers", "minimise", "weights"),
}

#: Places and their entries: a column or a row.
Line = tuple[tuple[int, int], ...]


class NotCovered(Refused):
    """No theorem of proofs/ is about this certificate."""

    def __init__(self, why: str) -> None:
        super().__init__(f"not covered: {why}")


@dataclass(frozen=True)
class Claim:
    """A statement about a table: rates over a denominator, what records add, who are neighbours, the number.

    Figures are in `levels`, each with its number of figures and their rate. What a record adds is listed in `columns`,
    with the level of every figure in `depths`, or it is one figure of each level at most. `rows` are the sums that the
    noise is drawn given, `read` those that whatever is made of the draw may read.
    """

    law: str
    levels: tuple[tuple[int, int], ...]
    denominator: int
    depths: tuple[int, ...]
    columns: tuple[Line, ...]
    rows: tuple[Line, ...]
    read: tuple[Line, ...]
    replaced: bool
    records: int
    sharing: bool
    bound: Fraction


def claim(certificate: Certificate) -> Claim:
    """What the certificate of one table claims; refused where no theorem is about it."""
    if len(certificate.tables) != 1:
        raise NotCovered(f"{len(certificate.tables)} tables, and one is")
    table, statement = certificate.tables[0], certificate.statements[0]
    law, given = _noise_of(statement)
    if Fraction(table.grid) != 1 or table.kind not in ("hierarchy", "histogram", "cube", "areas"):
        raise NotCovered(f"a table of the kind {table.kind}, in steps of {table.grid}")
    if unknown := sorted(set(certificate.spec["tables"][0]) - SAID):
        raise NotCovered(f"{unknown[0]} in the spec")
    holds, number = table.holds, statement.epsilon if law == "laplace" else statement.rho
    if holds.impossible or holds.orders or holds.linear or holds.either or holds.bounds:
        raise NotCovered("bounds, impossible cells and other rules beside sums and non-negativity")
    if number is None or (law == "laplace" and statement.delta != 0):
        raise NotCovered("a statement that is not made of " + ("ε alone" if law == "laplace" else "ρ"))
    scales = [_scale(level, law) for level in table.measured]
    rates = [1 / scale if law == "laplace" else 1 / (2 * scale) for scale in scales]
    denominator = lcm(*(rate.denominator for rate in rates))
    sharing, replaced = statement.scope == "invariant-sharing", statement.neighbours.kind == "replace-one"
    try:
        depths, columns, rows, read = _listed(table, given, replaced)
    except NotCovered:
        if sharing or holds.exact:
            raise
        depths, columns, rows, read = (), (), (), ()
    return Claim(
        law,
        tuple((level.figures, int(rate * denominator)) for level, rate in zip(table.measured, rates, strict=True)),
        denominator,
        depths,
        columns,
        rows,
        read,
        replaced,
        statement.neighbours.records,
        sharing,
        Fraction(number),
    )


def _noise_of(statement: Statement) -> tuple[str, bool]:
    """The law of the noise and whether it is drawn given the sums, from the words of the reason."""
    first, *others = statement.because.split("; ")
    known = next((noise for words, noise in REASONS.items() if first.startswith(words)), None)
    if first.startswith(BESIDE):
        known = ("laplace" if statement.rho is None else "gaussian"), False
    if known is None or statement.scope == "subspace" or statement.status != "proved" or statement.numerical_delta:
        raise NotCovered(f"{statement.scope}, {statement.because}")
    if unknown := [other for other in others if not other.startswith(FOLLOWS)]:
        raise NotCovered(unknown[0])
    return known


def _scale(level: Level, law: str) -> Fraction:
    """The exact parameter of a level's noise."""
    noise = level.noise[0]
    if len(level.noise) != 1 or noise.law != law or not noise.whole or noise.parameter is None:
        raise NotCovered(f"the noise of {level.level}: {level.in_words}")
    return Fraction(noise.parameter)


def _listed(
    table: TableCertificate, given: bool, replaced: bool
) -> tuple[tuple[int, ...], tuple[Line, ...], tuple[Line, ...], tuple[Line, ...]]:
    """The level of every figure, what records add, and sums, from the rows that add up; refused where many."""
    sums, parents = table.holds.sums, dict[int, int]()
    if not isinstance(sums, list) or (table.kind == "hierarchy" and not table.holds.consistent):
        raise NotCovered("a table whose certificate does not list which rows add up")
    for parent, children in sums:
        for child in children:
            if child in parents or child <= parent:
                raise NotCovered("rows that are part of several sums")
            parents[child] = parent
    paths: list[list[int]] = []
    for row in range(table.outputs):  # what is above a row stands before it
        paths.append([row, *(paths[parents[row]] if row in parents else ())])
    depths, levels = tuple(len(path) - 1 for path in paths), table.measured
    if len(set(depths)) != len(levels) or any(depths.count(k) != level.figures for k, level in enumerate(levels)):
        raise NotCovered("levels that are not those of the rows that add up")
    above = set(parents.values())
    columns = tuple(tuple((row, 1) for row in path) for path in paths if path[0] not in above)
    exact = tuple(tuple((row, 1) for row in rows) for figure in table.holds.exact for rows in figure.rows)
    added = [((parent, 1), *((child, -1) for child in children)) for parent, children in sums]
    changes = len(columns) ** (2 if replaced else 1)
    if changes * table.outputs * (2 + given * len(added) + len(exact)) > PRODUCTS:
        raise NotCovered(f"{changes:,} changes of {table.outputs:,} figures are too many to compute")
    return depths, columns, (*added, *exact) if given else (), exact
