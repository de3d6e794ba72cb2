"""What is asked of the data, and how much one record can change the answer."""

from typing import TYPE_CHECKING

from holdfast.queries.neighbours import Neighbours, Relation
from holdfast.rooms import on_demand

if TYPE_CHECKING:
    from holdfast.queries.areas.area_margins import counts
    from holdfast.queries.areas.linked import linked
    from holdfast.queries.bounded import query
    from holdfast.queries.co_changes.moves import Moves, shared_moves
    from holdfast.queries.exact_weights import Bound
    from holdfast.queries.identity import histogram
    from holdfast.queries.linear_query import Query
    from holdfast.queries.margin_counts import margins
    from holdfast.queries.matrix_workload import workload

# Guarantees speak of neighbours, and load nothing else of this room.
__getattr__ = on_demand(
    __name__,
    {
        "areas.area_margins": ("counts",),
        "areas.linked": ("linked",),
        "bounded": ("query",),
        "identity": ("histogram",),
        "linear_query": ("Query",),
        "margin_counts": ("margins",),
        "matrix_workload": ("workload",),
        "co_changes.moves": ("Moves", "shared_moves"),
        "exact_weights": ("Bound",),
    },
)

__all__ = [
    "Bound",
    "Moves",
    "Neighbours",
    "Query",
    "Relation",
    "counts",
    "histogram",
    "linked",
    "margins",
    "query",
    "shared_moves",
    "workload",
]
