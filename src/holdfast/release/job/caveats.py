"""What a reader of a release must know besides its statements, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.privacy import Guarantee
from holdfast.release.job.methods import lists_tables
from holdfast.release.job.protecting import outside_words
from holdfast.release.job.table import Table
from holdfast.release.spec.spec import Spec
from holdfast.release.table.wording import words_about

SHORTENED = (
    "sentences name the first figures of a long list only; the certificate lists the rows of all figures, by table"
)
ESTIMATED = "the promise is an estimate: no method with a proved promise keeps everything that must hold"
LISTS = "a release fails where the data allow too many tables to list: that there is one tells that they do not"


def caveats(spec: Spec, tables: Sequence[Table], statements: Sequence[Guarantee]) -> tuple[str, ...]:
    """Say how the records behind the tables were treated, and what a method promises less than was asked."""
    exact = any(table.holding.exact for table in tables)
    sentences = [*outside_words(tables, statements[0]), *_about_records(spec, statements[0].scope, exact)]
    sentences += [words for table in tables for words in _not_measured(table)]
    for table in tables:
        if table.chosen.last_resort:
            sentences.append(words_about(table.name, ESTIMATED))
    if any(lists_tables(table.mechanism) for table in tables):
        sentences.append(LISTS)
    if any(" more (" in item for statement in statements for item in statement.unprotected):
        sentences.append(SHORTENED)
    return tuple(sentences)


def protected(spec: Spec, promised: Guarantee) -> str:
    """Say whom the release protects, and against which changes."""
    unit, neighbours = spec.privacy.unit, promised.neighbours
    shared = " if both agree in every exact figure" if promised.scope == "invariant-sharing" else ""
    each = 1 if unit is None or spec.linked else unit.max_records
    together, come = neighbours.records // each, "come or go" if neighbours.adds else "change"
    other = "do not" if neighbours.adds else "hold any other in its place"
    whom, such, compared = "One record.", "", f"The promise compares data that hold it with data that {other}{shared}."
    if unit is not None:
        name = unit.column
        whom = f"One {name}, whatever their records."
        kept = f"at most {each} record{'s are' if each > 1 else ' is'} kept"
        such = f" A {name} is one value of the column {name!r}; of each {kept}."
        if spec.linked:
            whom, such = f"One {name} with everybody in it.", ""
    if together > 1:
        compared = (
            f"Beside exact figures one often cannot change alone: the promise is about up to {together} that {come} "
            "together."
        )
    elif each > 1:
        compared = f"The promise compares data that hold all these records with data that hold none of them{shared}."
    return f"{whom}{such} {compared}"


def persons_together(spec: Spec, together: int, *, exact: bool) -> int:
    """How many persons change together: where figures are exact, one cannot come or go alone."""
    sharing = exact and spec.privacy.neighbours == "add-remove" and spec.privacy.scope == "invariant-sharing"
    return max(together, 2 if sharing else 1)


def _not_measured(table: Table) -> list[str]:
    """Name the levels or margins to which `shares` gives nothing of the budget."""
    shares = table.problem.shares
    which = [repr(level) for level in table.layout.levels if shares is not None and not shares.get(level)]
    what = "level" if table.layout.tree is not None else "margin"
    told = f"no noisy answer is taken at the {what} {', '.join(which)}, to which shares give nothing"
    return [words_about(table.name, f"{told}; its figures follow from the others")] if which else []


def _about_records(spec: Spec, scope: str, exact: bool) -> list[str]:
    sentences = []
    for rule, what in ((spec.data.nulls, "with a missing value"), (spec.data.outside, "outside the public domain")):
        if rule.rule == "refuse":
            sentences.append(f"one record {what} stops the release: that there is a release tells that there was none")
        elif rule.rule == "drop":
            sentences.append(f"records {what} are dropped; how many is not published")
        else:
            sentences.append(f"records {what} are counted as {rule.category!r}")
    if spec.data.count is not None:
        words = f"the rows are counted: {spec.data.count!r} says how many records each stands for"
        sentences.append(f"{words}, and what is protected is one of these records, not a row")
    unit = spec.privacy.unit
    if unit is not None and spec.linked:
        sentences.append(
            f"a household is a value of {unit.column!r} with at most {unit.max_records} records, all in one place, and "
            "obeys every tie; one that does not stops the release: that there is a release tells that there was none"
        )
        sentences.append(
            "a person who comes, goes or answers otherwise makes one household another, which is hidden with at most "
            "twice the rho (or epsilon, where there is no delta) of a household that comes or goes"
        )
    elif unit is not None:
        sentences.append(
            f"a person is a value of {unit.column!r} (1, ' 1' and 1.0 are one); of each at most {unit.max_records} "
            f"record{'s are' if unit.max_records > 1 else ' is'} kept, chosen by a keyed hash of the person and the "
            "record alone; all figures, exact ones too, count the kept records"
        )
        if persons_together(spec, 1, exact=exact) > 1:
            sentences.append(
                "where figures are exact, a person cannot come or go alone: the records that change are those of "
                "several persons, of whom some leave and others come, or whose records become others"
            )
    if scope == "invariant-sharing":
        sentences.append("the promise compares only data that agree in every exactly published figure")
    if len(spec.tables) > 1:
        sentences.append("all tables count the same records")
    return sentences
