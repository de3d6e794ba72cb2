"""What the exact figures of a job give away, together with each other and with those that were published before.

Every table is looked at with its own exact figures, those of the job's other tables and those of earlier releases, read
as sums of its outputs or cells; figures about columns that it lacks are summed over these first. Only figures that are
published anyway are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Ints
from holdfast.constraints import Constraint, invariant
from holdfast.disclosure.figures import Contradiction, Known
from holdfast.disclosure.pinned import Disclosure, disclosure
from holdfast.release.disclosure.figure_rows import (
    NOT_JOINED,
    in_names_of,
    matches,
    outputs_of,
    read_all,
    single,
    sums_tell_less,
)
from holdfast.release.disclosure.public_words import (
    Figures,
    exact_values,
    named_columns,
    published,
    system_of,
    treatment,
)
from holdfast.release.facts import Unprotected
from holdfast.release.job.unprotected import BEFORE, DETERMINED, FIXED, IDLE, in_words, listed
from holdfast.release.standalone_verifier.facts import FOLLOWS
from holdfast.release.table.wording import as_sentence, counted, sentence_about, words_about

if TYPE_CHECKING:
    from holdfast.release.job.job import Job
    from holdfast.release.job.table import Table


#: What programs may try for one table: steps of the solver that take about a minute on an ordinary machine.
EFFORT = 60.0
#: Sets of earlier figures that are tried one by one where not all agree, and what programs may try for each.
TRIES, TRIAL = 60, 1.0
#: Outputs that a sentence names, and how far a figure may vary to be called narrow.
NAMED, NARROW = 12, 2
LOOKS = (
    "Which other figures the exact ones determine depends on the data: release looks before it charges, and goes on "
    "only if there is none or the spec says accept_disclosure: true."
)
#: Why figures are determined whatever the data are.
SUMMED = "figures that other tables or earlier releases publish exactly, or sums of them"
CONTRADICT = "earlier exact figures that contradict newer ones, as when records were corrected, are left aside"
#: What plan and explain say where release would refuse for reasons that are known before.
FORETOLD = "Release will refuse that"
SURE = "whatever the data are, exact figures determine {}."
REMEDY = "publish fewer exact figures, or write accept_disclosure: true in the spec to disclose these too"


@dataclass(frozen=True, eq=False)
class GivenAway:
    """The ranges that are left for the figures of a table, and sentences about figures that were left aside.

    `before` lists outputs that earlier releases published exactly and this table does not, by release. `sums` are
    outputs that are figures of other tables or releases, or sums of them, whatever the data are.
    """

    table: Table
    ranges: Disclosure | None
    notes: tuple[str, ...] = ()
    before: tuple[tuple[str, Ints], ...] = ()
    sums: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def rows(self) -> Ints:
        """The outputs that are determined although neither this table nor an earlier one publishes them exactly."""
        if self.ranges is None:
            return np.zeros(0, dtype=np.int64)
        return np.setdiff1d(self.ranges.pinned, np.concatenate([[], *(rows for _, rows in self.before)]))

    @property
    def open(self) -> Ints:
        """The outputs that may be determined: the effort did not suffice to tell."""
        return np.zeros(0, dtype=np.int64) if self.ranges is None else self.ranges.undecided

    @property
    def entries(self) -> tuple[Unprotected, ...]:
        """What was published before or is determined, level by level."""
        earlier = [
            each for release, rows in self.before for each in listed(self.table.layout, rows, BEFORE.format(release))
        ]
        said = [run for each in self.table.unprotected if each.records is None for run in each.rows]
        told = np.concatenate([[], *(np.arange(first, last + 1) for first, last in said)])
        return (*earlier, *listed(self.table.layout, np.setdiff1d(self.rows, told).astype(np.int64), DETERMINED))

    @property
    def words(self) -> list[str]:
        return in_words(self.table.name, self.entries)


# --- what they give away --------------------------------------------------------------------------------------------


def given_away(
    job: Job, earlier: Sequence[Figures], answers: Sequence[npt.NDArray[Any]] | None = None
) -> list[GivenAway]:
    """Return what exact figures leave open in every table: earlier ones, and the job's own if its answers are given."""
    own = [] if answers is None else published(job, answers)
    alike = [each for each in earlier if each["treatment"] == treatment(job)]
    notes: tuple[str, ...] = ()
    if len(alike) < len(earlier):
        notes = ("earlier exact figures about records that were kept or dropped by other rules are left aside",)
    result = []
    for number, table in enumerate(job.tables):
        exact = [] if answers is None or not table.holding.exact else [_own(table, answers[number])]
        beside_it = [figures for figures in own if figures["table"] != table.name]
        called = in_names_of(table, [*beside_it, *alike])
        others, past = called[: len(beside_it)], called[len(beside_it) :]
        beside, before = read_all(table, others), read_all(table, past)
        told = dict.fromkeys((*notes, *beside.notes, *before.notes))
        found = _ranges(table, exact, list(beside.known), list(before.known), tuple(told))
        found = replace(found, before=_published_before(table, past), sums=np.union1d(beside.outputs, before.outputs))
        if found.ranges is not None and CONTRADICT not in found.notes and sums_tell_less(table, called):
            found = replace(found, notes=(*found.notes, NOT_JOINED))
        result.append(found)
    return result


def _published_before(table: Table, earlier: Sequence[Figures]) -> tuple[tuple[str, Ints], ...]:
    """The outputs that are earlier exact figures and not exact here; each under its last release."""
    found: dict[int, str] = {}
    for figures in earlier:
        for group in figures["groups"]:
            wanted = {tuple(values): i for i, values in enumerate(group["values"])}
            if set(group["columns"]) <= set(named_columns(table)):
                same = single(matches(outputs_of(table, group["columns"]), wanted))
                found |= dict.fromkeys(same.tolist(), str(figures["release"]))
    if table.holding.exact:
        A = system_of(table).invariants.A
        for row in A.indices[A.indptr[:-1][np.diff(A.indptr) == 1]].tolist():
            found.pop(row, None)
    releases = dict.fromkeys(found.values())
    return tuple((name, np.array(sorted(row for row in found if found[row] == name))) for name in releases)


def _own(table: Table, truth: npt.NDArray[Any]) -> Known:
    return Known(table.layout.query, system_of(table), exact_values(table, truth))


def _ranges(
    table: Table, exact: list[Known], beside: list[Known], before: list[Known], notes: tuple[str, ...]
) -> GivenAway:
    """Return the ranges that the table's own figures, those of tables beside it and earlier ones leave."""
    if not exact and not beside and not before:
        return GivenAway(table, None, notes)
    own = [*_structural(table), *exact]
    known = [*own, *beside]
    try:
        found = _disclosed(table, [*known, *before], own, EFFORT)
    except Refused as refusal:
        if not before:
            raise
        return _ranges(table, exact, beside, [], (*notes, f"earlier exact figures are not looked at: {refusal}"))
    if isinstance(found, Disclosure):
        return GivenAway(table, found, notes)
    if not before:
        raise found
    aside = (*notes, CONTRADICT)
    kept = _agreeing(table, known, own, before)
    for still in (kept, []):
        if not any(each.figures.size for each in (*known, *still)):
            return GivenAway(table, None, aside)
        found = _disclosed(table, [*known, *still], own, EFFORT)
        if isinstance(found, Disclosure):
            return GivenAway(table, found, aside)
    raise found


def _disclosed(table: Table, known: list[Known], own: list[Known], effort: float) -> Disclosure | Contradiction:
    """Return the ranges, or the refusal of figures that contradict each other; only those of `own` are published."""
    if any(each.system.branches for each in known):
        return _on_any_side(table, known, own, effort)
    plain = [replace(each, system=replace(each.system, branches=())) for each in own]
    try:
        return disclosure(known, table.layout.query, effort, plain)
    except Contradiction as refusal:
        return refusal


def _on_any_side(table: Table, known: list[Known], own: list[Known], effort: float) -> Disclosure | Contradiction:
    """Join the ranges of those sides of a union that the figures allow; what is published does not depend on them."""
    either = next(each for each in known if each.system.branches)
    others = [each for each in known if each is not either]
    plain = replace(either, system=replace(either.system, branches=()))
    outside = _disclosed(table, [*others, plain], own, effort)
    if isinstance(outside, Contradiction):
        return outside
    each = effort / len(either.system.branches)
    sides = [_disclosed(table, [*others, replace(either, system=side)], own, each) for side in either.system.branches]
    kept = [side for side in sides if isinstance(side, Disclosure)]
    if not kept:
        return next(side for side in sides if isinstance(side, Contradiction))
    lows, highs = np.stack([side.low for side in kept]), np.stack([side.high for side in kept])
    attained = np.all([side.attained for side in kept], axis=0)
    apart = (lows != lows[0]).any(axis=0) | (highs != highs[0]).any(axis=0)
    varies = np.any([side.varies for side in kept], axis=0) | (attained & apart)
    return replace(outside, low=lows.min(axis=0), high=highs.max(axis=0), attained=attained, varies=varies)


def _agreeing(table: Table, known: list[Known], own: list[Known], before: list[Known]) -> list[Known]:
    """Return earlier figures, newest first, as far as they agree with the new ones and with each other."""
    kept: list[Known] = []
    waiting = list(before)
    for _ in range(TRIES):
        if not waiting:
            break
        newest = waiting.pop()
        if isinstance(_disclosed(table, [*known, *kept, newest], own, TRIAL), Disclosure):
            kept.append(newest)
        elif newest.figures.size > 1:
            waiting += _halves(newest)
    return kept


def _halves(known: Known) -> list[Known]:
    parts = np.array_split(np.arange(known.figures.size), 2)
    A, n = known.system.invariants.A, known.query.n
    return [Known(known.query, invariant(sparse.csr_array(A[part])).system(n), known.figures[part]) for part in parts]


def _structural(table: Table) -> list[Known]:
    rules: Constraint | None = None if table.holding.all is None else table.holding.all.structural
    return (
        []
        if rules is None
        else [Known(table.layout.query, rules.system(table.layout.query.n), np.zeros(0, dtype=np.int64))]
    )


def foretold(job: Job, earlier: Sequence[Figures]) -> list[GivenAway]:
    """Return under `sums` what is determined whatever the data are, so that it is known before they are read.

    Figures that other tables or earlier releases publish exactly, sums of them, and what no number of records alters
    while the table's own exact figures stay.
    """
    own = published(job, [np.zeros(table.layout.query.n, dtype=np.int64) for table in job.tables])
    alike = [each for each in earlier if each["treatment"] == treatment(job)]
    result = []
    for table in job.tables:
        others = [each for each in own if each["table"] != table.name]
        called = in_names_of(table, [*others, *alike])
        exact = _exact_outputs(table)
        fixed = [each for each in table.unprotected if each.why in (FIXED, FOLLOWS, IDLE) and exact is not None]
        outputs = table.layout.query.n
        runs = [np.arange(first, last + 1) for each in fixed for first, last in each.rows if last < outputs]
        rows = np.concatenate([read_all(table, called).outputs, *runs]).astype(np.int64)
        before = _published_before(table, called[len(others) :])
        seen = [np.zeros(0, dtype=np.int64) if exact is None else exact, *(found for _, found in before)]
        result.append(GivenAway(table, None, before=before, sums=np.setdiff1d(rows, np.concatenate(seen))))
    return result


def _exact_outputs(table: Table) -> Ints | None:
    """The outputs that are exact figures of the table or sums of them; None where an empty table is not allowed."""
    if not table.holding.exact:
        return np.zeros(0, dtype=np.int64)
    own = [*_structural(table), _own(table, np.zeros(table.layout.query.n, dtype=np.int64))]
    try:
        found = _disclosed(table, own, own, TRIAL)
    except Refused:
        return None
    return np.flatnonzero(found.published) if isinstance(found, Disclosure) else None


def refuse_foretold(job: Job, earlier: Sequence[Figures]) -> None:
    """Refuse what `refuse_disclosure` will refuse whatever the data are; earlier figures may turn out corrected."""
    exact = any(table.holding.exact for table in job.tables)
    for known in foretold(job, [] if exact else earlier):
        if known.sums.size and not job.spec.accept_disclosure:
            raise Refused(
                f"the exact figures determine {_named(known.table, known.sums)} of the table {known.table.name!r}, "
                f"whatever the data are: {REMEDY}; nothing was read, charged or drawn"
            )


def _named(table: Table, rows: Ints) -> str:
    return ", ".join(map(str, listed(table.layout, rows, SUMMED)))


def refuse_disclosure(job: Job, found: Sequence[GivenAway]) -> None:
    """Refuse figures that exact ones determine, unless the spec accepts it; no figure is printed.

    Which figures are sums of published ones is public and is said; which others are determined depends on the data.
    """
    if job.spec.accept_disclosure:
        return
    for each in found:
        if each.rows.size:
            sums = listed(each.table.layout, np.intersect1d(each.rows, each.sums), SUMMED)
            named = f" ({SUMMED}: {', '.join(map(str, sums))})" if sums else ""
            past = " and ".join(release for release, _ in each.before)
            beside = f", with those published exactly by {past}," if past else ""
            others = counted(each.rows.size, "other figure", "other figures")
            raise Refused(
                f"the exact figures{beside} determine {others} of the table {each.table.name!r}{named}, whatever "
                f"epsilon says: {REMEDY}"
            )
        if each.open.size:
            raise Refused(
                f"whether the exact figures determine {each.open.size} other figures of the table {each.table.name!r} "
                f"could not be told within the limits of the search: {REMEDY}"
            )


def in_sentences(found: GivenAway) -> list[str]:
    told = in_words(found.table.name, replace(found, ranges=None).entries)
    told += [words_about(found.table.name, words) for words in (*found.notes, *_ranges_in_words(found))]
    return [as_sentence(words, [found.table]) for words in told]


def _ranges_in_words(found: GivenAway) -> list[str]:
    told: list[str] = []
    ranges, labels = found.ranges, found.table.layout.query.labels
    if ranges is None:
        return told
    if found.rows.size:
        shown = ", ".join(f"{labels[i]} = {ranges.low[i]}" for i in found.rows[:NAMED].tolist())
        more = f" and {found.rows.size - NAMED:,} more" if found.rows.size > NAMED else ""
        told.append(f"figures that were published exactly already determine {shown}{more}")
    narrow = [i for i in ranges.narrow(NARROW).tolist() if ranges.width[i] > 0]
    if narrow:
        shown = ", ".join(f"{labels[i]} between {ranges.low[i]} and {ranges.high[i]}" for i in narrow[:NAMED])
        more = f" and {len(narrow) - NAMED:,} more" if len(narrow) > NAMED else ""
        told.append(f"they leave little open for {shown}{more}")
    if not found.rows.size and not narrow:
        limited = ((ranges.high < LARGEST) & ~ranges.published).sum()
        told.append(f"from figures published exactly before, {limited:,} others are known to lie within wide limits")
    return told


def _beside_its_own(found: GivenAway) -> GivenAway:
    """Leave aside what the table itself publishes without noise: that it is known already changes nothing."""
    if found.ranges is None:
        return found
    own = found.table.standing.as_in_the_data[: found.table.layout.query.n]
    return replace(found, ranges=replace(found.ranges, published=found.ranges.published | own))


def so_far(job: Job, earlier: Sequence[Figures]) -> list[str]:
    """Say what is known before the job's own figures are: what earlier ones give away, and what release will ask."""
    known = [_beside_its_own(found) for found in given_away(job, earlier)]
    sentences = [words for found in known for words in in_sentences(found)]
    sure = [found for found in foretold(job, []) if found.sums.size]
    sentences += [sentence_about(each.table.name, SURE.format(_named(each.table, each.sums))) for each in sure]
    if not job.spec.accept_disclosure and (sure or any(found.rows.size for found in known)):
        sentences.append(f"{FORETOLD}: {REMEDY}.")
    if any(table.holding.exact for table in job.tables):
        accepted = "The spec accepts that the exact figures may determine others, which the certificate will list."
        sentences.append(accepted if job.spec.accept_disclosure else LOOKS)
    return sentences
