"""What is asked of the data, and how much one record can change the answer."""

from holdfast.queries.areas.counting import counts
from holdfast.queries.bounded import query
from holdfast.queries.identity import histogram
from holdfast.queries.linear_query import Query
from holdfast.queries.margin_counts import margins
from holdfast.queries.matrix_workload import workload
from holdfast.queries.moves.moves import Moves
from holdfast.queries.moves.search import shared_moves
from holdfast.queries.neighbours import Neighbours
from holdfast.queries.weights import Bound

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
