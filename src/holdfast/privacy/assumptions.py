"""What a statement takes to hold for every possible dataset, beyond what the query itself makes true."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from holdfast.arguments import LARGEST
from holdfast.arrays import Ints
from holdfast.constraints import System
from holdfast.constraints.system.own_sums import OwnSums
from holdfast.constraints.system.parts import EQUALITIES, Part
from holdfast.constraints.system.rows import stacked
from holdfast.queries import Query
from holdfast.queries.areas.area_margins import same_answers
from holdfast.queries.areas.linked import LinkedCounts

#: So many outputs are named one by one.
NAMED = 6


def assumptions(query: Query, system: System | None) -> tuple[str, ...]:
    """Say what every possible dataset must obey for a statement to be about it, one sentence for each kind.

    Sums that the query itself keeps, and counts that are not negative because no record lowers one, are facts and not
    assumptions.
    """
    sentences = [query.assumed] if isinstance(query, LinkedCounts) else []
    if system is not None:
        sentences += [words for part in system.parts if (words := _of_part(query, part))]
        if system.branches:
            sentences.append(f"one of {len(system.branches)} sides of a union holds")
    return tuple(dict.fromkeys(sentences))


def _of_part(query: Query, part: Part) -> str:
    if part.kind == "invariant":
        return ""
    if part.bounds is not None:
        return _bounds(query, part)
    assert part.rows is not None
    if isinstance(part.rows, OwnSums) and same_answers(part.rows.query, query):
        return ""
    if part.kind == "consistent" and part.source is query:
        return ""
    if part.kind in EQUALITIES and not part.rows.b.any() and _kept_by_the_query(query, stacked([part.rows], query.n).A):
        return ""
    places = np.unique(part.rows.A.indices).astype(np.int64)
    if part.kind == "fixed":
        return f"{_named(query, places)} always {'have their' if places.size > 1 else 'has its'} fixed value" + (
            "s" if places.size > 1 else ""
        )
    if part.kind == "consistent":
        return f"sums add up at {_named(query, places)}"
    if part.kind == "ordered":
        return f"figures never fall along {_named(query, _in_order(part))}"
    count = part.rows.count
    return f"{count} weighted sum{'s are' if count > 1 else ' is'} as required, of {_named(query, places)}"


def _in_order(part: Part) -> Ints:
    """The places of ordered figures, in the order in which they are listed."""
    assert part.rows is not None
    return np.array(list(dict.fromkeys(part.rows.A.indices.tolist())), dtype=np.int64)


def _bounds(query: Query, part: Part) -> str:
    assert part.bounds is not None
    low, high = part.bounds.applied(query.n)
    above, below = np.asarray(low > -LARGEST, dtype=bool), np.asarray(high < LARGEST, dtype=bool)
    if above.any() and never_lowered(query):
        above &= np.asarray(low > 0, dtype=bool)
    places = np.flatnonzero(above | below)
    if places.size == 0:
        return ""
    where = "every figure" if places.size == query.n else _named(query, places)
    limits = {(str(low[i]) if above[i] else "", str(high[i]) if below[i] else "") for i in places[:1000].tolist()}
    if len(limits) > 1 or places.size > 1000:
        return f"the bounds hold at {where}"
    ((least, most),) = limits
    if least and most:
        return f"{where} is between {least} and {most}" if least != most else f"{where} is {least}"
    return f"{where} is at least {least}" if least else f"{where} is at most {most}"


def never_lowered(query: Query) -> bool:
    """Whether no record lowers any output."""
    if query.cells is None:
        return isinstance(query, LinkedCounts)
    if query.identity or query.domain != (None, None):
        return True
    return bool((query.columns.data >= 0).all())


def _kept_by_the_query(query: Query, rows: sparse.csr_array) -> bool:
    """Whether the rows are 0 for every record, so that all data obey them."""
    if query.cells is None:
        return False
    if query.tree is not None and _sums_of_children(rows, query.tree.parents):
        return True  # a record counts in all of a path; the columns of a nation are large
    product = sparse.csr_array(rows @ query.columns)
    product.eliminate_zeros()
    return product.nnz == 0 and query.columns.dtype.kind == "i"


def _sums_of_children(rows: sparse.csr_array, parents: Ints) -> bool:
    """Whether each row is an output of a tree minus all its children, in one of the categories that outputs have."""
    by = rows.shape[1] // parents.size
    if by * parents.size != rows.shape[1] or not rows.has_canonical_format or (np.abs(rows.data) != 1).any():
        return False
    row, children = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)), rows.data < 0
    if not np.array_equal(row[~children], np.arange(rows.shape[0])):
        return False
    above, below, row = rows.indices[~children], rows.indices[children], row[children]
    whole = np.bincount(parents[parents >= 0], minlength=parents.size)[above // by]
    all_there = np.array_equal(np.bincount(row, minlength=above.size), whole)
    return all_there and np.array_equal(parents[below // by] * by + below % by, above[row])


def _named(query: Query, places: Sequence[int] | Ints) -> str:
    shown = ", ".join(str(query.labels[i]) for i in places[:NAMED])
    return f"{shown} and {len(places) - NAMED} more" if len(places) > NAMED else shown
