"""What a reader of a release must know besides its statements, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.privacy import Guarantee
from holdfast.queries import Neighbours
from holdfast.release.job.methods import lists_tables
from holdfast.release.job.protecting import outside_words
from holdfast.release.job.table import Table
from holdfast.release.spec.spec import Spec
from holdfast.release.table.wording import words_about

SHORTENED = "a statement names only the first figures of a long list: the certificate lists the rows of all, by table"
ESTIMATED = "no method with a proved statement holds everything that is asked: what it promises is an estimate"
LISTS = "drawing lists all possible tables, and the release fails where the data allow too many: that it exists says so"


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


def protected(spec: Spec, neighbours: Neighbours) -> str:
    """Say whom the release protects, and against which changes."""
    unit = spec.privacy.unit
    whom = "one record"
    if unit is not None and spec.linked:
        whom = f"one household with everybody in it, a value of the column {unit.column!r}"
        differ = "one household that is there or not" if neighbours.adds else "one household that is another"
        return f"The unit of protection is {whom}; neighbouring data differ in {differ}, with all its records."
    if unit is not None:
        kept = f"{unit.max_records} records are" if unit.max_records > 1 else "1 record is"
        whom = f"one person, a value of the column {unit.column!r}, of whom at most {kept} kept"
    return f"The unit of protection is {whom}; neighbouring data differ in {neighbours}."


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
            sentences.append(f"records {what} are refused: that there is a release says that there was none")
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
            "obeys every tie; one that does not is refused: that there is a release says that there was none"
        )
        sentences.append(
            "a person who comes, goes or answers otherwise makes one household another, which is hidden with at most "
            "twice the rho (or epsilon, where there is no delta) of a household that comes or goes"
        )
    elif unit is not None:
        sentences.append(
            f"a person is a value of {unit.column!r}; of each person at most {unit.max_records} "
            f"record{'s are' if unit.max_records > 1 else ' is'} kept, chosen by a keyed hash of the person and the "
            "record alone, before anything else is computed, exact figures included"
        )
        if persons_together(spec, 1, exact=exact) > 1:
            sentences.append(
                "where figures are exact, a person cannot come or go alone: the records that change are those of "
                "several persons, of whom some leave and others come, or whose records become others"
            )
    if scope == "invariant-sharing":
        sentences.append("the budget counts the statement about data that agree on every exactly published figure")
    if len(spec.tables) > 1:
        sentences.append("all tables count the same records")
    return sentences
