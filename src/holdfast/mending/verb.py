"""The verb: from published figures that contradict each other to the nearest table in which everything holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.arguments import LARGEST, Frame, Number, Refused, one_of, positive
from holdfast.arrays import Bools, Floats, Ints
from holdfast.mending.classifications import Classification, Column, derived, flat, nested_groups, paths
from holdfast.mending.figures import Figures, Held, placed_figures, read_hold, together
from holdfast.mending.mended import Mended
from holdfast.mending.moving import error_bars, filled_ranges, guessed, limits, nearest
from holdfast.mending.published import Published, argus_hierarchies, placed, read_domain, read_table
from holdfast.mending.stated_errors import Stated, column_of, stated

NORMS = ("l2", "l1")
#: Figures with up to so many decimals are mended in steps of the last one.
DECIMALS = 3
#: How many times as large as stated the error of a figure is that is marked as uncertain.
WIDE = 3.0


def mend(
    frame: Frame | str | PathLike[str],
    hold: Iterable[object],
    errors: Mapping[str, Number] | str | None = None,
    *,
    domain: Frame | str | PathLike[str] | None = None,
    value: str | None = None,
    norm: str = "l2",
    step: Number | None = None,
    marks: str | Mapping[str, str] | Sequence[str | Mapping[str, str]] | None = None,
) -> Mended:
    """Return the nearest table to published figures in which everything holds.

    Nothing confidential is read and no budget is spent. The result carries no privacy statement of its own.

    Args:
        frame: a data frame, the path of a CSV, Parquet or τ-ARGUS file, or columns by name; one row per figure, or a
            cross table with totals.
        hold: "consistent", "nonnegative", {"exact": {column: label}} (with "value": number where the figure itself is
            wrong), constraints on the rows, or a list of these.
        errors: standard errors (a column, one number or one per row; 0 for exact) or the law of the noise:
            {"uniform": k}, {"rounding": b}, {"random_rounding": b}, {"cell_key": distribution}, {"gaussian": σ},
            {"laplace": λ}.
        domain: which labels add up to which, by column, where labels do not tell.
        value: the column of the figures, where their name does not tell.
        norm: the distance, "l2" or "l1".
        step: figures become multiples of it; 1 where they are whole.
        marks: what marks mean: those of a country's tables ("de", "ch", "fr", "uk", or "eu" for Eurostat), or a
            mapping such as {"#": "suppressed", "decimal": ","}, or a list of both.

    Example:
        >>> import holdfast as hf
        >>> mended = hf.mend({"zone": ["Total", "A", "B"], "count": [10, 4, 5]}, "consistent")
        >>> total, first, second = mended.values.tolist()
        >>> total == first + second
        True
    """
    one_of("norm", norm, NORMS)
    published = read_table(frame, value, column_of(errors), marks)
    figures = _figures(frame, published, domain)
    held = read_hold(hold, figures)
    unit = _step(published.figures, step)
    steps, notes = _in_steps(published.figures, unit)
    said = stated(errors, steps, published.beside, nonnegative=held.nonnegative, step=unit)
    return _mended(figures, published, held, said, steps, unit, norm, notes)


def _figures(frame: Any, published: Published, domain: Any) -> Figures:
    """The figures of a table: classifications by what is said, and by labels where nothing is."""
    said: dict[str, Classification | None] = {}
    if isinstance(frame, (str, Path)) and Path(frame).suffix.lower() in (".tab", ".rda"):
        said |= argus_hierarchies(Path(frame))
    said |= read_domain(domain, published.columns)
    rest = {name: column for name, column in published.columns.items() if name not in said}
    names: list[str] = []
    classifications: list[Classification] = []
    columns: list[Column] = []
    for name, given in said.items():
        column = published.columns[name]
        none = f"column {name!r}: nothing adds up, as was said"
        found = flat(column.labels, none) if given is None else placed(name, given, column.labels)
        names, classifications, columns = [*names, name], [*classifications, found], [*columns, column]
    for group in nested_groups(rest):
        column = rest[group[0]]
        if len(group) > 1:
            column, found = paths(rest, group)
        else:
            found = derived(group[0], column, published.figures)
        names, classifications, columns = [*names, " / ".join(group)], [*classifications, found], [*columns, column]
    return placed_figures(names, classifications, columns)


def _step(figures: Floats, step: Any) -> Fraction:
    """The step of which mended figures are multiples: what was asked for, or the last decimal that figures have."""
    if step is not None:
        asked = positive("step", step)
        if asked >= LARGEST:
            raise Refused("step must stay below 2**62")
        return asked
    known = figures[np.isfinite(figures)]
    for decimals in range(DECIMALS + 1):
        scaled = known * 10**decimals
        if (np.abs(scaled - np.rint(scaled)) <= 1e-9 * np.maximum(1.0, np.abs(scaled))).all():
            return Fraction(1, 10**decimals)
    return Fraction(1)


def _in_steps(figures: Floats, unit: Fraction) -> tuple[Floats, list[str]]:
    """Figures in steps, whole, NaN where missing; and what must be said about it."""
    known = np.isfinite(figures)
    scaled = figures * unit.denominator / unit.numerator
    if not known.any():
        raise Refused("every figure of the table is missing: there is nothing to mend")
    if np.abs(scaled[known]).max() >= 2.0**53:
        raise Refused("figures must stay below 2**53 in size")
    whole = np.rint(scaled)
    off = np.abs(scaled[known] - whole[known]).max()
    notes = []
    if off > 1e-6:
        notes.append(f"figures were rounded to multiples of {unit} first, by {float(off * unit):.3g} at most")
    return whole, notes


def _mended(
    figures: Figures,
    published: Published,
    held: Held,
    said: Stated,
    steps: Floats,
    unit: Fraction,
    norm: str,
    notes: list[str],
) -> Mended:
    behind = figures.n - figures.given
    measured = np.concatenate([np.isfinite(steps), np.zeros(behind, dtype=bool)])
    start = np.concatenate([np.where(np.isfinite(steps), steps, 0), np.zeros(behind)]).astype(np.int64)
    said = _widened(said, behind)
    written = published.written
    said = replace(said, spreads=said.spreads.copy())
    said.spreads[: figures.given][written.wide] *= WIDE**2
    notes += [_marked(*each) for each in written.marks.items()]
    exact = _exact(figures, held, said, start, measured, unit) | dict.fromkeys(np.flatnonzero(written.zero).tolist(), 0)
    constraint = together(figures, held, exact, unit)
    start = guessed(figures, start, measured, nonnegative=held.nonnegative)
    spreads = np.where(said.spreads > 0, said.spreads, 1.0)
    moved = nearest(figures, constraint, start, measured, spreads, norm)
    own = _certain(figures, held, said, exact)
    missing = np.flatnonzero(~measured & ~np.isin(np.arange(figures.n), list(exact)))
    sums = figures if held.consistent else Figures(figures.names, (), figures.places, figures.given, True)
    ranges = filled_ranges(sums, moved.values, missing, *_signs(figures, held)) if missing.size else None
    bars = None
    if said.known:
        low, high, bad = limits(sums, *own)
        if bad >= 0:
            notes.append(
                f"the stated law cannot have made these figures: nothing is left for {figures.name(bad)!r}, so there "
                "are no intervals; look at the contradictions around it, at the hierarchy and at the law"
            )
        else:
            bars = partial(error_bars, constraint, said, start, measured, own, (low, high))
    return Mended(
        figures=figures,
        name=published.name,
        published=np.where(measured, np.concatenate([steps, np.full(behind, np.nan)]), np.nan),
        steps=moved.values,
        unit=unit,
        filled=missing,
        exact=np.array(sorted(exact), dtype=np.int64),
        ranges=ranges,
        told=bars,
        evidence=moved.evidence,
        norm=norm,
        held=held,
        errors=said.words,
        notes=(*notes, *moved.evidence.notes),
    )


def _marked(mark: tuple[str, str], count: int) -> str:
    """What was made of a mark."""
    made = {"zero": "exactly zero, and stays so", "wide": "uncertain: its error counts as three times as large"}
    made["negative"] = "below zero"
    is_ = "figure is" if count == 1 else "figures are"
    return f"{count:,} {is_} marked {mark[0]!r}: {made.get(mark[1], f'{mark[1]}, and filled')}"


def _widened(said: Stated, behind: int) -> Stated:
    """What is stated, with nothing said about figures that stand behind the published ones."""
    if not behind:
        return said
    found = replace(said, spreads=np.concatenate([said.spreads, np.ones(behind)]))
    if said.low is not None and said.high is not None:
        none = np.full(behind, LARGEST, dtype=np.int64)
        found = replace(found, low=np.concatenate([said.low, -none]), high=np.concatenate([said.high, none]))
    if said.law is not None:
        which = np.concatenate([said.law.complete, np.zeros(behind, dtype=np.int32)])
        found = replace(found, law=replace(said.law, which=which, n=said.law.n + behind))
    return found


def _exact(figures: Figures, held: Held, said: Stated, start: Ints, measured: Bools, unit: Fraction) -> dict[int, int]:
    """Exact figures in steps: those that are named, with their own values, and those whose stated error is 0."""
    found: dict[int, int] = {}
    for place, given in held.exact.items():
        if given is None and not measured[place]:
            raise Refused(f"hold calls {figures.name(place)!r} exact, but the table does not have it: give its value")
        steps = Fraction(int(start[place])) if given is None else given / unit
        if steps.denominator != 1:
            raise Refused(f"the exact value of {figures.name(place)!r} is not a multiple of {unit}: pass step=")
        found[place] = int(steps)
    for place in np.flatnonzero(measured & (said.spreads == 0)).tolist():
        found.setdefault(place, int(start[place]))
    return found


def _signs(figures: Figures, held: Held) -> tuple[Ints, Ints]:
    low = np.full(figures.n, 0 if held.nonnegative else -LARGEST, dtype=np.int64)
    return low, np.full(figures.n, LARGEST, dtype=np.int64)


def _certain(figures: Figures, held: Held, said: Stated, exact: Mapping[int, int]) -> tuple[Ints, Ints]:
    """Limits of the true figures that the law, the signs and exact figures set one by one."""
    low, high = _signs(figures, held)
    if said.low is not None and said.high is not None:
        low, high = np.maximum(low, said.low), np.minimum(high, said.high)
    for place, value in exact.items():
        low[place] = high[place] = value
    return low, high
