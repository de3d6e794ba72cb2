"""What is asked of the data, and how much one record can change the answer."""

from holdfast.queries.bounded import query
from holdfast.queries.identity import histogram
from holdfast.queries.margins import margins
from holdfast.queries.moves import Moves
from holdfast.queries.neighbours import Neighbours
from holdfast.queries.query import Query
from holdfast.queries.shared_moves import shared_moves
from holdfast.queries.tree_counts import counts
from holdfast.queries.weights import Bound
from holdfast.queries.workload import workload

__all__ = [
    "Bound",
    "Moves",
    "Neighbours",
    "Query",
    "counts",
    "histogram",
    "margins",
    "query",
    "shared_moves",
    "workload",
]
