"""Contradictions named when a constraint is built, with no part in the list that is not needed."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.arguments import Refused
from holdfast.constraints.possible.feasibility import Conflict, conflict, is_searched, whole_point
from holdfast.constraints.system.parts import FOLLOWS, Part

#: Rows of a single contradictory part that a refusal lists.
_LISTED = 6


def common_size(parts: Sequence[Part]) -> tuple[int, int | None]:
    """Return the least number of values all parts fit, and the number itself if a part knows it.

    Refuse parts that speak of different numbers of values.
    """
    known = [part for part in parts if part.n is not None]
    least = max((part.least_n for part in parts), default=1)
    if not known:
        return least, None
    first = known[0]
    for part in known[1:]:
        if part.n != first.n:
            raise Refused(f"{first.name} is about {first.n} values, but {part.name} is about {part.n}")
    for part in parts:
        part.refuse_unless_fits(int(first.n or 0))
    return least, first.n


def smallest_conflict(parts: Sequence[Part], n: int) -> tuple[list[Part], Conflict] | None:
    """Return parts that cannot hold together, none of them dispensable, with the proof; or None.

    A proof uses only some of the parts. Of these, each in turn is left out; if the rest is still
    contradictory it stays out (deletion filter).
    """
    chosen = list(parts)
    proof = conflict(chosen, n)
    if proof is None:
        return None
    chosen = [part for k, part in enumerate(chosen) if k in proof.parts]
    k = 0
    while k < len(chosen) and len(chosen) > 1:
        rest = chosen[:k] + chosen[k + 1 :]
        shorter = conflict(rest, n)
        if shorter is None:
            k += 1
        else:
            proof = shorter
            kept = [part for j, part in enumerate(rest) if j in shorter.parts]
            k = sum(part in kept for part in chosen[:k])
            chosen = kept
    return chosen, proof


def refuse_contradiction(parts: Sequence[Part]) -> None:
    """Refuse structural parts that cannot hold together, naming a smallest set of them.

    Invariants take no part: their right-hand sides are unknown before data are seen.
    """
    least, known = common_size(parts)
    structural = [part for part in parts if part.origin == "structural"]
    found = smallest_conflict(structural, known or least)
    if found is None:
        return
    culprits, proof = found
    if len(culprits) > 1:
        raise Refused(f"these constraints cannot hold together: {'; '.join(part.name for part in culprits)}")
    rows = "; ".join(proof.rows[:_LISTED]) + ("; …" if len(proof.rows) > _LISTED else "")
    raise Refused(f"{culprits[0].name} cannot hold: it contradicts itself" + (f" in {rows}" if rows else ""))


def smallest_whole_conflict(parts: Sequence[Part], n: int) -> list[Part]:
    """Return structural parts that no whole numbers satisfy together, none of them dispensable; empty if none is known.

    What is not proved to be impossible counts as possible.
    """
    chosen = [part for part in parts if part.origin == "structural"]
    if not chosen or not whole_point(chosen, n)[1]:
        return []
    k = 0
    while k < len(chosen) and len(chosen) > 1:
        rest = chosen[:k] + chosen[k + 1 :]
        if whole_point(rest, n)[1]:
            chosen = rest
        else:
            k += 1
    return chosen


def refuse_whole_contradiction(parts: Sequence[Part], n: int) -> None:
    """Refuse structural parts that no whole numbers satisfy together, naming a smallest set of them.

    Refuse as well what was searched in vain: it would be in vain again when noise is drawn.
    """
    structural = [part for part in parts if part.origin == "structural" and part.source is not FOLLOWS]
    if not structural:
        return
    point, impossible = whole_point(structural, n)
    if impossible:
        names = "; ".join(part.name for part in smallest_whole_conflict(structural, n))
        raise Refused(f"no whole numbers satisfy these constraints together: {names}; pass integer=False, or drop one")
    if point is None and is_searched(structural, n):
        names = "; ".join(part.name for part in structural)
        raise Refused(
            f"could not decide whether whole numbers satisfy {names} together: pass integer=False, or drop one"
        )
