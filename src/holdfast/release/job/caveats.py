"""What a reader of a release must know besides its statements, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.privacy import Guarantee
from holdfast.release.job.methods import lists_tables
from holdfast.release.job.protecting import outside_words
from holdfast.release.job.table import Table
from holdfast.release.spec.spec import Spec, public_part
from holdfast.release.standalone_verifier import facts
from holdfast.release.table.wording import words_about

SHORTENED = (
    "sentences name the first figures of a long list only; the certificate lists the rows of all figures, by table"
)
LISTS = "a release fails where the data allow too many tables to list: that there is one tells that they do not"


def caveats(spec: Spec, tables: Sequence[Table], statements: Sequence[Guarantee]) -> tuple[str, ...]:
    """Say how the records behind the tables were treated, and what a reader must know of the methods."""
    exact = any(table.holding.exact for table in tables)
    about = facts.about_records(public_part(spec), spec.linked, statements[0].scope, exact)
    sentences = [*outside_words(tables, statements[0]), *about]
    if spec.data.count is not None:
        words = f"the rows are counted: {spec.data.count!r} says how many records each stands for"
        sentences.append(f"{words}, and what is protected is one of these records, not a row")
    sentences += [words for table in tables for words in _not_measured(table)]
    if any(lists_tables(table.mechanism) for table in tables):
        sentences.append(LISTS)
    if any(" more (" in item for statement in statements for item in statement.unprotected):
        sentences.append(SHORTENED)
    return tuple(sentences)


def protected(spec: Spec, promised: Guarantee) -> str:
    """Say whom the release protects, and against which changes."""
    unit = spec.privacy.unit
    return facts.protected(None if unit is None else unit.model_dump(), spec.linked, promised.as_mapping())


def persons_together(spec: Spec, together: int, *, exact: bool) -> int:
    """How many persons change together: where figures are exact, one cannot come or go alone."""
    sharing = exact and spec.privacy.neighbours == "add-remove" and spec.privacy.scope == "invariant-sharing"
    return max(together, 2 if sharing else 1)


def _not_measured(table: Table) -> list[str]:
    """Name the levels or margins to which shares give nothing of the budget."""
    shares = table.problem.shares
    which = [repr(level) for level in table.layout.levels if shares is not None and not shares.get(level)]
    what = "level" if table.layout.tree is not None else "margin"
    told = f"no noisy answer is taken at the {what} {', '.join(which)}"
    return [words_about(table.name, f"{told}; its figures follow from the others")] if which else []
