"""How the rows that are counted came from records: what a statement assumes of that, and what a reader must know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.release.spec.rowwise import DIALECTS, NotRowByRow, Result, result_of_query

if TYPE_CHECKING:
    from holdfast.release.spec.spec import Spec

#: Why it is not known how rows are made from records.
SAID = "the curator says so, and it is not proved"
LAZY = "how a lazy frame was made cannot be read"
#: What can be said in a spec instead of a proof.
REMEDY = "write rows_depend_on_other_rows: false under data where that cannot happen, and the statement assumes it"
#: Ends of the names of SQLite files; one of .db may be of DuckDB, which is read by table.
SQLITE = (".sqlite", ".sqlite3", ".db")


@dataclass(frozen=True)
class Origin:
    """What a statement about the rows assumes, and what else a reader must know of them."""

    assumes: tuple[str, ...] = ()
    told: tuple[str, ...] = ()


#: Every row is a record as it is.
RECORDS = Origin()


def assumed(spec: Spec, why: str) -> str:
    """The sentence that a statement assumes where it is not proved that rows are made from records one by one."""
    one = "one row" if spec.privacy.neighbours == "replace-one" else "at most one row"
    whose = "" if spec.person is None else f" with the {spec.person!r} of that record"
    return f"every row is made from one record alone, and every record gives {one}{whose} ({why})"


def kind_of(source: str) -> str:
    """The kind of database that a text names, as far as it says so."""
    scheme = source.partition("://")[0].partition("+")[0].lower() if "://" in source else ""
    if not scheme:
        return "sqlite" if source.endswith(SQLITE) else ""
    return {"postgres": "postgresql"}.get(scheme, scheme)


def origin(spec: Spec, query: str | None, kind: str, read: Callable[[], Result]) -> Origin:
    """Say how the rows of a database were made: seen from its SQL, or else assumed; `read` may refuse by NotRowByRow.

    Where the spec says that rows do not depend on others, nothing is looked at.
    """
    told = [] if query is None else [f"the records are what this query gives: {query}"]
    if spec.data.rows_depend_on_other_rows is False:
        return Origin((assumed(spec, SAID),), tuple(told))
    if kind not in DIALECTS:
        if query is not None:
            raise NotRowByRow("the SQL of a kind of database that is not read")
        return Origin((assumed(spec, f"how this kind of database makes rows is not read: {kind}"),))
    result = read()
    result.refuse_unfit(spec.person, spec.data.count, replaces=spec.privacy.neighbours == "replace-one")
    told += [f"the records are rows of the view {name!r}: {words}" for name, words in dict(result.views).items()]
    if len(result.tables) > 1:
        told.append("records are rows of several tables: what is in two of them is two records")
    if told:
        told.append("a query that fails on a record stops the release: that there is one says that it failed on none")
    unread = [assumed(spec, f"how {name!r} is made cannot be read") for name in result.opaque]
    return Origin(tuple(dict.fromkeys(unread)), tuple(told))


def of_rows(spec: Spec, why: str | None = None) -> Origin:
    """How rows of a file or a frame were made: as the spec says; `why` that cannot be read; or each is a record."""
    said = SAID if spec.data.rows_depend_on_other_rows is False else why
    return RECORDS if said is None else Origin((assumed(spec, said),))


def planned(spec: Spec) -> Origin:
    """What is known before a source is opened; a query that is not seen to be row by row is refused."""
    query, source = spec.data.query, spec.data.source
    if spec.data.rows_depend_on_other_rows is None and (query is None or not isinstance(source, str)):
        return RECORDS  # a source that is written elsewhere says what it is when it is opened
    kind = kind_of(source) if isinstance(source, str) else ""
    if spec.data.rows_depend_on_other_rows is None and not kind:
        return RECORDS  # and a file that no query reads is refused there
    try:
        return origin(spec, query, kind, lambda: result_of_query(str(query), kind))
    except NotRowByRow as reason:
        raise spec.at["data"]["query"].refuse(refusal("the query", reason)) from None


def refusal(what: str, reason: NotRowByRow) -> str:
    return f"rows of {what} may depend on other records, and then no statement holds: {reason}; or {REMEDY}"
