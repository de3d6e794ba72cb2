"""Differentially private tables in which everything that must hold, holds exactly."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from holdfast.version import __version__

if TYPE_CHECKING:
    from holdfast import beliefs
    from holdfast.arguments import Refused
    from holdfast.auditing import Audit, audit
    from holdfast.composing import compose
    from holdfast.constraints import (
        Constraint,
        Disclosure,
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
        pinned,
    )
    from holdfast.domains import Cube, Hierarchy
    from holdfast.extension import extend
    from holdfast.mechanism import Mechanism, gaussian, laplace
    from holdfast.mixtures import Mixture, mixture
    from holdfast.named_subspace import within
    from holdfast.privacy import Guarantee
    from holdfast.projection import Projected, project
    from holdfast.published import Release
    from holdfast.queries import Neighbours, Query, counts, histogram, margins, query, workload
    from holdfast.randomness import Keys, Stream, seeded
    from holdfast.refinement import LinearRefinement, calibrate_refinement, refine, refinement_loss
    from holdfast.release.load import load

#: Where each public name lives. A room is loaded when the first of its names is used, so that the command answers at
#: once.
_ROOMS = {
    "arguments": ("Refused",),
    "auditing": ("Audit", "audit"),
    "composing": ("compose",),
    "constraints": (
        "Constraint",
        "Disclosure",
        "at_least",
        "between",
        "consistent",
        "equals",
        "exact_margins",
        "exact_nodes",
        "fixed",
        "invariant",
        "nonnegative",
        "ordered",
        "pinned",
    ),
    "domains": ("Cube", "Hierarchy"),
    "extension": ("extend",),
    "mechanism": ("Mechanism", "gaussian", "laplace"),
    "mixtures": ("Mixture", "mixture"),
    "named_subspace": ("within",),
    "privacy": ("Guarantee",),
    "projection": ("Projected", "project"),
    "published": ("Release",),
    "queries": ("Neighbours", "Query", "counts", "histogram", "margins", "query", "workload"),
    "randomness": ("Keys", "Stream", "seeded"),
    "refinement": ("LinearRefinement", "calibrate_refinement", "refine", "refinement_loss"),
    "release.load": ("load",),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "Audit",
    "Constraint",
    "Cube",
    "Disclosure",
    "Guarantee",
    "Hierarchy",
    "Keys",
    "LinearRefinement",
    "Mechanism",
    "Mixture",
    "Neighbours",
    "Projected",
    "Query",
    "Refused",
    "Release",
    "Stream",
    "__version__",
    "at_least",
    "audit",
    "beliefs",
    "between",
    "calibrate_refinement",
    "compose",
    "consistent",
    "counts",
    "equals",
    "exact_margins",
    "exact_nodes",
    "extend",
    "fixed",
    "gaussian",
    "histogram",
    "invariant",
    "laplace",
    "load",
    "margins",
    "mixture",
    "nonnegative",
    "ordered",
    "pinned",
    "project",
    "query",
    "refine",
    "refinement_loss",
    "seeded",
    "within",
    "workload",
]


def __getattr__(name: str) -> Any:
    if name == "beliefs":
        return import_module("holdfast.beliefs")
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    value = getattr(import_module(f"holdfast.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
