"""Differentially private tables in which everything that must hold, holds exactly."""

from holdfast import beliefs
from holdfast.arguments import Refused
from holdfast.constraints import (
    Constraint,
    at_least,
    between,
    consistent,
    equals,
    exact_margins,
    exact_nodes,
    fixed,
    invariant,
    nonnegative,
    ordered,
)
from holdfast.domains import Cube, Hierarchy
from holdfast.mechanism import Mechanism, gaussian, laplace
from holdfast.privacy import Guarantee, compose
from holdfast.published import Release
from holdfast.queries import Neighbours, Query, counts, histogram, margins, query, workload
from holdfast.randomness import Keys, Stream, seeded
from holdfast.version import __version__

__all__ = [
    "Constraint",
    "Cube",
    "Guarantee",
    "Hierarchy",
    "Keys",
    "Mechanism",
    "Neighbours",
    "Query",
    "Refused",
    "Release",
    "Stream",
    "__version__",
    "at_least",
    "beliefs",
    "between",
    "compose",
    "consistent",
    "counts",
    "equals",
    "exact_margins",
    "exact_nodes",
    "fixed",
    "gaussian",
    "histogram",
    "invariant",
    "laplace",
    "margins",
    "nonnegative",
    "ordered",
    "query",
    "seeded",
    "workload",
]
