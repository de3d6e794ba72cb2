"""What must hold in the mended table: words, exact figures that are known, and constraints on the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import Refused, one_of, rational
from holdfast.constraints import Constraint, consistent, equals, fixed, nonnegative
from holdfast.constraints.constraint import build
from holdfast.constraints.possible.contradiction import smallest_conflict
from holdfast.domains import Hierarchy
from holdfast.mending.figures import Figures

WORDS = ("consistent", "nonnegative")


@dataclass(frozen=True, eq=False)
class Held:
    """What is asked for: whether sums and signs must hold, figures that are exact by their place, other constraints."""

    consistent: bool
    nonnegative: bool
    exact: dict[int, Fraction | None]
    others: tuple[Constraint, ...]


def read_hold(hold: Any, figures: Figures) -> Held:
    """Read what must hold: one word or constraint, or a list of them with {"exact": …} for figures that are known."""
    entries = [hold] if isinstance(hold, (str, Mapping, Constraint)) else hold
    if not isinstance(entries, Sequence) or not entries:
        raise Refused("hold must say what must hold, such as ['consistent', 'nonnegative']")
    words: set[str] = set()
    exact: dict[int, Fraction | None] = {}
    others = []
    for entry in entries:
        if isinstance(entry, Constraint):
            if entry.has_invariants or entry.branches:
                raise Refused("hold must not have invariants or unions: name figures that are known with {'exact': …}")
            others.append(entry)
        elif isinstance(entry, str):
            words.add(one_of("hold", entry, WORDS))
        elif isinstance(entry, Mapping) and set(entry) == {"exact"}:
            for place, value in _exact(entry["exact"], figures):
                if exact.setdefault(place, value) != value:
                    raise Refused(f"hold gives two exact values for {figures.name(place)!r}")
        else:
            raise Refused(f"hold must list 'consistent', 'nonnegative', {{'exact': …}} or constraints, found {entry!r}")
    return Held("consistent" in words, "nonnegative" in words, exact, tuple(others))


def _exact(said: Any, figures: Figures) -> list[tuple[int, Fraction | None]]:
    """The figures that an entry means, with their values where it gives one."""
    found: list[tuple[int, Fraction | None]] = []
    for each in [said] if isinstance(said, Mapping) else said:
        if not isinstance(each, Mapping):
            raise Refused("exact must map columns to labels, such as {'exact': {'region': 'Total'}}")
        value = None if "value" not in each or "value" in figures.names else rational("the exact value", each["value"])
        chosen = np.ones(figures.n, dtype=bool)
        for name, labels in each.items():
            if name == "value" and value is not None:
                continue
            one_of("a column of exact", name, figures.names)
            column = figures.names.index(name)
            wanted = [labels] if isinstance(labels, str) or not isinstance(labels, Sequence) else labels
            place = figures.classifications[column].place
            unknown = [label for label in wanted if str(label) not in place]
            if unknown:
                raise Refused(f"exact names {unknown[0]!r}, which is no label of column {name!r}")
            chosen &= np.isin(figures.places[:, column], [place[str(label)] for label in wanted])
        if not chosen.any():
            raise Refused(f"exact means no figure of the table: {dict(each)!r}")
        found += [(int(i), value) for i in np.flatnonzero(chosen)]
    return found


def sums_of(figures: Figures) -> Constraint | None:
    """The sums of a table as one constraint: a forest where one hierarchy says it all; None where there is none."""
    if not figures.sums:
        return None
    if len(figures.sums) == 1:
        return consistent(Hierarchy.from_parents(figures.sums[0].parent))
    rows = [sums.rows[np.flatnonzero(wanted)] for sums, wanted in figures.needed]
    A = sparse.csr_array(sparse.vstack(rows, format="csr"), dtype=np.int64)
    return equals(A, np.zeros(A.shape[0], dtype=np.int64))


def together(figures: Figures, held: Held, exact: Mapping[int, int]) -> Constraint:
    """All that must hold; refused, with a smallest set of figures, where exact figures contradict each other."""
    parts: list[Any] = list(held.others)
    if held.consistent:
        sums = sums_of(figures)
        if sums is None:
            raise Refused(
                "no column of the table holds a total, so nothing adds up: say with domain which labels add up to "
                f"which ({'; '.join(each.words for each in figures.classifications[:3])})"
            )
        parts.append(sums)
    if held.nonnegative:
        parts.append(nonnegative())
    if exact:
        parts.append(fixed(list(exact), list(exact.values())))
    if not parts:
        raise Refused("hold must say what must hold, such as ['consistent', 'nonnegative']")
    all_parts = [part for one in parts for part in one.parts]
    if exact and not _agree(figures, held, exact):
        _refuse_culprits(figures, all_parts, exact)
    return build(all_parts)


def _agree(figures: Figures, held: Held, exact: Mapping[int, int]) -> bool:
    """Whether exact figures agree with the sums they complete; what this overlooks is found later, and slower."""
    known = np.zeros(figures.n, dtype=bool)
    known[list(exact)] = True
    values = np.zeros(figures.n, dtype=np.int64)
    values[list(exact)] = list(exact.values())
    if held.nonnegative and (values < 0).any():
        return False
    for sums in figures.sums if held.consistent else ():
        used = np.flatnonzero(abs(sums.rows) @ (~known).astype(np.int64) == 0)
        if (sums.rows[used] @ values != 0).any():
            return False
    return True


def _refuse_culprits(figures: Figures, parts: Sequence[Any], exact: Mapping[int, int]) -> None:
    """Name a smallest set of exact figures that cannot hold together."""
    others = [part for part in parts if part.kind != "fixed"]
    suspects = [fixed([place], [value]).parts[0] for place, value in exact.items()]
    found = smallest_conflict([*others, *suspects], figures.n)
    if found is None:
        return
    names = {id(part): place for part, place in zip(suspects, exact, strict=True)}
    culprits = [names[id(part)] for part in found[0] if id(part) in names]
    if culprits:
        listed = "; ".join(f"{figures.name(place)} = {exact[place]}" for place in culprits)
        raise Refused(f"these exact figures cannot hold together: {listed}")
