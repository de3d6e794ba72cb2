"""What the exact figures of a job give away, together with each other and with those that were published before.

An exact figure is kept in public words: how many records have these values in these columns. So it can be read again
as a sum of cells of any other table that has the columns. Only figures that are published anyway are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from holdfast.arguments import LARGEST, Refused
from holdfast.constraints import Constraint, invariant
from holdfast.constraints.pinned import Disclosure, disclosure
from holdfast.constraints.pinned_figures import Contradiction, Known
from holdfast.constraints.rows import products
from holdfast.queries import histogram
from holdfast.release.public import Texts
from holdfast.release.unprotected import BEFORE, DETERMINED, Unprotected, in_words, listed

if TYPE_CHECKING:
    from holdfast.release.job import Job, Table

Ints = npt.NDArray[np.int64]
#: One table's figures in plain values: its name, how its records were treated, and groups of figures with one set of
#: columns each.
Figures = dict[str, Any]

#: Seconds that programs may take for one table.
SECONDS = 60.0
#: Sets of earlier figures that are tried one by one where not all agree, and the seconds programs may take for each.
TRIES, TRIAL = 60, 1.0
#: Tables with more cells than this are looked at only where their own closed form applies.
MOST_CELLS = 2_000_000
#: Outputs that a sentence names, and how far a figure may vary to be called narrow.
NAMED, NARROW = 12, 2
LOOKS = (
    "Which other figures the exact ones determine depends on the data: release looks before it charges, and goes on "
    "only if there is none or the spec says accept_disclosure: true."
)
TOO_LARGE = (
    f"some exact figures of other tables or earlier releases are not looked at, since this table has more than "
    f"{MOST_CELLS:,} cells: what they determine together is not known"
)
REMEDY = "publish fewer exact figures, or write accept_disclosure: true in the spec to disclose these too"


@dataclass(frozen=True, eq=False)
class GivenAway:
    """The ranges that are left for the figures of a table, and sentences about figures that were left aside.

    `before` lists outputs that earlier releases published exactly and this table does not, by release.
    """

    table: Table
    ranges: Disclosure | None
    notes: tuple[str, ...] = ()
    before: tuple[tuple[str, Ints], ...] = ()

    @property
    def rows(self) -> Ints:
        """The outputs that are determined although they are not published exactly."""
        return np.zeros(0, dtype=np.int64) if self.ranges is None else self.ranges.pinned

    @property
    def open(self) -> Ints:
        """The outputs that may be determined: the time did not suffice to tell."""
        return np.zeros(0, dtype=np.int64) if self.ranges is None else self.ranges.undecided

    @property
    def entries(self) -> tuple[Unprotected, ...]:
        """What was published before or is determined, level by level."""
        earlier = [each for release, rows in self.before for each in listed(self.table, rows, BEFORE.format(release))]
        return (*earlier, *listed(self.table, self.rows, DETERMINED))

    @property
    def words(self) -> list[str]:
        """What was published before or is determined, in sentences."""
        return in_words(self.table.name, self.entries)


# --- figures in public words ----------------------------------------------------------------------------------------


def treatment(job: Job) -> str:
    """Say which records are counted: figures are about the same records only where this is the same."""
    data, unit = job.spec.data, job.spec.privacy.unit
    parts: dict[str, Any] = {"unit": None if unit is None else unit.model_dump(mode="json")}
    if data.nulls.rule != "refuse" or data.outside.rule != "refuse":
        parts |= {"nulls": data.nulls.model_dump(mode="json"), "outside": data.outside.model_dump(mode="json")}
        parts["public_files"] = sorted(job.public_files.values())
    return json.dumps(parts, sort_keys=True)


def published(job: Job, answers: Sequence[npt.NDArray[Any]]) -> list[Figures]:
    """Return the exact figures of every table, read from the true answers."""
    return [
        {"table": table.name, "treatment": treatment(job), "groups": _groups(table, _exact_values(table, truth))}
        for table, truth in zip(job.tables, answers, strict=True)
        if table.holding.exact
    ]


def _exact_values(table: Table, truth: npt.NDArray[Any]) -> Ints:
    rows = _system(table).invariants
    return np.asarray(products(rows.A, np.asarray(truth, dtype=np.int64)[:, None])[:, 0], dtype=np.int64)


def _system(table: Table) -> Any:
    assert table.constraint is not None
    return table.constraint.system(table.query.n)


def _named_columns(table: Table) -> list[str]:
    """The columns of the records that address the table's cells."""
    left_out = ("level", table.layout.asked.root)
    return [name for name in table.columns if name not in left_out]


def _groups(table: Table, values: Ints) -> list[dict[str, Any]]:
    """Write figures down by the columns and values that all their records share."""
    A = _system(table).invariants.A
    names = _named_columns(table)
    shared = np.zeros((len(names), A.shape[0]), dtype=bool)
    texts = []
    for k, name in enumerate(names):
        column = table.columns[name][A.indices]
        labels, codes = np.unique([str(text) if text is not None else "" for text in column], return_inverse=True)
        codes = np.where(column == None, -1, codes)  # noqa: E711
        least, most = (ends.reduceat(codes, A.indptr[:-1]) for ends in (np.minimum, np.maximum))
        shared[k] = (least == most) & (least >= 0)
        texts.append(labels[np.maximum(least, 0)])
    groups = []
    for pattern in np.unique(shared.T, axis=0):
        members = np.flatnonzero((shared == pattern[:, None]).all(axis=0))
        used = np.flatnonzero(pattern)
        groups.append(
            {
                "columns": [names[k] for k in used],
                "values": [[str(texts[k][i]) for k in used] for i in members.tolist()],
                "counts": values[members].tolist(),
            }
        )
    return groups


# --- figures as rows of a table -------------------------------------------------------------------------------------


def _known(table: Table, figures: Figures) -> tuple[list[Known], bool]:
    """Return figures as sums of a table's outputs where they are outputs, otherwise of its cells; and whether all."""
    found, whole = [], True
    for group in figures["groups"]:
        if not set(group["columns"]) <= set(_named_columns(table)):
            continue  # about columns that this table does not have
        wanted = {tuple(values): i for i, values in enumerate(group["values"])}
        counts = np.array(group["counts"], dtype=np.int64)
        outputs = _matches(_outputs(table, group["columns"]), wanted)
        if len({row for _, row in outputs}) == len(wanted):
            found.append(_rows(table.query, outputs, counts))
        elif int(table.query.cells or 0) <= MOST_CELLS:
            count = int(table.query.cells or 0)
            cells = _matches(enumerate(_rows_of(_cell_columns(table, group["columns"]), count)), wanted)
            found.append(_rows(histogram(count), cells, counts))
        else:
            whole = False
    return [each for each in found if each is not None], whole


def _matches(named: Iterable[tuple[int, tuple[Any, ...]]], wanted: dict[tuple[str, ...], int]) -> list[tuple[int, int]]:
    return [(place, wanted[values]) for place, values in named if values in wanted]


def _outputs(table: Table, columns: Sequence[str]) -> list[tuple[int, tuple[Any, ...]]]:
    """The outputs that sum over all columns but these, with their values."""
    own = np.ones(table.query.n, dtype=bool)
    for name in _named_columns(table):
        own &= (table.columns[name] != None) == (name in columns)  # noqa: E711
    places = np.flatnonzero(own)
    return list(
        zip(places.tolist(), _rows_of([table.columns[name][places] for name in columns], places.size), strict=True)
    )


def _rows_of(columns: Sequence[Texts], count: int) -> list[tuple[str, ...]]:
    return list(zip(*([str(text) for text in column] for column in columns), strict=True)) if columns else [()] * count


def _cell_columns(table: Table, columns: Sequence[str]) -> list[Texts]:
    """The values of columns in every cell."""
    if table.layout.tree is not None:
        tree, by = table.layout.tree, table.layout.by
        leaves = (tree.leaves[:, None] * by + np.arange(by)).ravel()
        return [table.columns[name][leaves] for name in columns]
    points = np.indices([key.size for key in table.keys]).reshape(len(table.keys), -1)
    axes = [table.layout.names.index(name) for name in columns]
    return [table.keys[a].values[-1][points[a]] for a in axes]


def _rows(query: Any, entries: list[tuple[int, int]], counts: Ints) -> Known | None:
    if not entries:
        return None
    places, rows = (np.array(side, dtype=np.int64) for side in zip(*entries, strict=True))
    used, row = np.unique(rows, return_inverse=True)
    C = sparse.csr_array((np.ones(places.size, dtype=np.int64), (row, places)), shape=(used.size, query.n))
    return Known(query, invariant(C).system(query.n), counts[used])


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
        known = [] if answers is None or not table.holding.exact else [_own(table, answers[number])]
        beside = [_known(table, figures) for figures in own if figures["table"] != table.name]
        known_before = [_known(table, figures) for figures in alike]
        known += [each for found, _ in beside for each in found]
        before = [each for found, _ in known_before for each in found]
        told = notes if all(whole for _, whole in (*beside, *known_before)) else (*notes, TOO_LARGE)
        result.append(replace(_ranges(table, known, before, told), before=_published_before(table, alike)))
    return result


def published_before(job: Job, earlier: Sequence[Figures]) -> list[GivenAway]:
    """Return only what earlier releases published exactly and this one protects, which takes no time."""
    alike = [each for each in earlier if each["treatment"] == treatment(job)]
    return [GivenAway(table, None, before=_published_before(table, alike)) for table in job.tables]


def _published_before(table: Table, earlier: Sequence[Figures]) -> tuple[tuple[str, Ints], ...]:
    """The outputs that are earlier exact figures and not exact here; each under its last release."""
    found: dict[int, str] = {}
    for figures in earlier:
        for group in figures["groups"]:
            wanted = {tuple(values): i for i, values in enumerate(group["values"])}
            if set(group["columns"]) <= set(_named_columns(table)):
                matches = _matches(_outputs(table, group["columns"]), wanted)
                found |= {row: str(figures["release"]) for row, _ in matches}
    if table.holding.exact:
        A = _system(table).invariants.A
        for row in A.indices[A.indptr[:-1][np.diff(A.indptr) == 1]].tolist():
            found.pop(row, None)
    releases = dict.fromkeys(found.values())
    return tuple((name, np.array(sorted(row for row in found if found[row] == name))) for name in releases)


def _own(table: Table, truth: npt.NDArray[Any]) -> Known:
    return Known(table.query, _system(table), _exact_values(table, truth))


def _ranges(table: Table, known: list[Known], before: list[Known], notes: tuple[str, ...]) -> GivenAway:
    if not known and not before:
        return GivenAway(table, None, notes)
    asked, known = known, [*_structural(table), *known]
    try:
        found = _disclosed(table, [*known, *before], SECONDS)
    except Refused as refusal:
        if not before:
            raise
        return _ranges(table, asked, [], (*notes, f"earlier exact figures are not looked at: {refusal}"))
    if isinstance(found, Disclosure):
        return GivenAway(table, found, notes)
    if not before:
        raise found
    aside = (*notes, "earlier exact figures that contradict newer ones, as when records were corrected, are left aside")
    kept = _agreeing(table, known, before)
    for still in (kept, []):
        if not any(each.figures.size for each in (*known, *still)):
            return GivenAway(table, None, aside)
        found = _disclosed(table, [*known, *still], SECONDS)
        if isinstance(found, Disclosure):
            return GivenAway(table, found, aside)
    raise found


def _disclosed(table: Table, known: list[Known], seconds: float) -> Disclosure | Contradiction:
    """Return the ranges, or the refusal of figures that contradict each other."""
    if any(each.system.branches for each in known):
        return _on_any_side(table, known, seconds)
    try:
        return disclosure(known, table.query, seconds)
    except Contradiction as refusal:
        return refusal


def _on_any_side(table: Table, known: list[Known], seconds: float) -> Disclosure | Contradiction:
    """Join the ranges of those sides of a union that the figures allow; what is published does not depend on them."""
    own = next(each for each in known if each.system.branches)
    others = [each for each in known if each is not own]
    outside = _disclosed(table, [*others, replace(own, system=replace(own.system, branches=()))], seconds)
    if isinstance(outside, Contradiction):
        return outside
    each = seconds / len(own.system.branches)
    sides = [_disclosed(table, [*others, replace(own, system=side)], each) for side in own.system.branches]
    kept = [side for side in sides if isinstance(side, Disclosure)]
    if not kept:
        return next(side for side in sides if isinstance(side, Contradiction))
    lows, highs = np.stack([side.low for side in kept]), np.stack([side.high for side in kept])
    attained = np.all([side.attained for side in kept], axis=0)
    apart = (lows != lows[0]).any(axis=0) | (highs != highs[0]).any(axis=0)
    varies = np.any([side.varies for side in kept], axis=0) | (attained & apart)
    return replace(outside, low=lows.min(axis=0), high=highs.max(axis=0), attained=attained, varies=varies)


def _agreeing(table: Table, known: list[Known], before: list[Known]) -> list[Known]:
    """Return earlier figures, newest first, as far as they agree with the new ones and with each other."""
    kept: list[Known] = []
    waiting = list(before)
    for _ in range(TRIES):
        if not waiting:
            break
        newest = waiting.pop()
        if isinstance(_disclosed(table, [*known, *kept, newest], TRIAL), Disclosure):
            kept.append(newest)
        elif newest.figures.size > 1:
            waiting += _halves(newest)
    return kept


def _halves(known: Known) -> list[Known]:
    """Split the figures of a release in two."""
    parts = np.array_split(np.arange(known.figures.size), 2)
    A, n = known.system.invariants.A, known.query.n
    return [Known(known.query, invariant(sparse.csr_array(A[part])).system(n), known.figures[part]) for part in parts]


def _structural(table: Table) -> list[Known]:
    """What holds in the table for every dataset."""
    rules: Constraint | None = None if table.constraint is None else table.constraint.structural
    return [] if rules is None else [Known(table.query, rules.system(table.query.n), np.zeros(0, dtype=np.int64))]


def refuse_disclosure(job: Job, found: Sequence[GivenAway]) -> None:
    """Refuse figures that exact ones determine, unless the spec accepts it; no figure is printed."""
    if job.spec.accept_disclosure:
        return
    for each in found:
        if each.rows.size:
            count = f"{each.rows.size} other figure{'s' if each.rows.size > 1 else ''}"
            raise Refused(
                f"the exact figures determine {count} of the table {each.table.name!r}, whatever epsilon says: "
                f"{REMEDY}; nothing was charged or drawn"
            )
        if each.open.size:
            raise Refused(
                f"whether the exact figures determine {each.open.size} other figures of the table {each.table.name!r} "
                f"could not be told in {SECONDS:.0f} seconds: {REMEDY}; nothing was charged or drawn"
            )


def in_sentences(found: GivenAway) -> list[str]:
    """Say what published figures give away about a table."""
    sentences = [f"{found.table.name}: {note}." for note in found.notes]
    sentences += [f"{words}." for words in in_words(found.table.name, replace(found, ranges=None).entries)]
    if found.ranges is None:
        return sentences
    ranges, labels = found.ranges, found.table.query.labels
    if found.rows.size:
        shown = ", ".join(f"{labels[i]} = {ranges.low[i]}" for i in found.rows[:NAMED].tolist())
        more = f" and {found.rows.size - NAMED:,} more" if found.rows.size > NAMED else ""
        sentences.append(f"{found.table.name}: figures that were published exactly already determine {shown}{more}.")
    narrow = [i for i in ranges.narrow(NARROW).tolist() if ranges.width[i] > 0]
    if narrow:
        shown = ", ".join(f"{labels[i]} between {ranges.low[i]} and {ranges.high[i]}" for i in narrow[:NAMED])
        more = f" and {len(narrow) - NAMED:,} more" if len(narrow) > NAMED else ""
        sentences.append(f"{found.table.name}: they leave little open for {shown}{more}.")
    if not found.rows.size and not narrow:
        limited = int(((ranges.high < LARGEST) & ~ranges.published).sum())
        sentences.append(
            f"{found.table.name}: figures published exactly already limit {limited:,} others, none closely."
        )
    return sentences


def so_far(job: Job, earlier: Sequence[Figures]) -> list[str]:
    """Say what is known before the job's own figures are: what earlier ones give away, and what release will ask."""
    sentences = [words for found in given_away(job, earlier) for words in in_sentences(found)]
    if any(table.holding.exact for table in job.tables):
        accepted = "The spec accepts that the exact figures may determine others, which the certificate will list."
        sentences.append(accepted if job.spec.accept_disclosure else LOOKS)
    return sentences
