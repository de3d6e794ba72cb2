"""Differentially private tables in which everything that must hold, holds exactly."""

from typing import TYPE_CHECKING

from holdfast.rooms import on_demand
from holdfast.version import __version__

if TYPE_CHECKING:
    from holdfast import beliefs
    from holdfast.arguments import Refused
    from holdfast.auditing import audit
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
    from holdfast.disclosure.pinned import pinned
    from holdfast.domains import Cube, Hierarchy
    from holdfast.mechanism import (
        Mechanism,
        compose,
        extend,
        gaussian,
        laplace,
        series,
    )
    from holdfast.mending.laws import reconcile_laws
    from holdfast.mending.reconciled import reconcile
    from holdfast.mending.verb import mend
    from holdfast.privacy import Guarantee
    from holdfast.queries import Neighbours, Query, counts, histogram, linked, margins, query, workload
    from holdfast.randomness import Keys, Stream, seeded
    from holdfast.refinement import (
        calibrate_refinement,
        knowledge_gain,
        refine,
        refinement_loss,
    )
    from holdfast.release.certificate.over_time import load
    from holdfast.release.plan import compare
    from holdfast.release.ready import job
    from holdfast.together import combine
    from holdfast.trees.normal.split import best_shares

#: Where each public name lives. A room is loaded when the first of its names is used, so that the command answers at
#: once.
_ROOMS = {
    "arguments": ("Refused",),
    "auditing": ("audit",),
    "beliefs": ("beliefs",),
    "constraints": (
        "Constraint",
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
    ),
    "disclosure": ("pinned",),
    "domains": ("Cube", "Hierarchy"),
    "mechanism": (
        "Mechanism",
        "compose",
        "extend",
        "gaussian",
        "laplace",
        "series",
    ),
    "mending": ("mend", "reconcile", "reconcile_laws"),
    "privacy": ("Guarantee",),
    "queries": ("Neighbours", "Query", "counts", "histogram", "linked", "margins", "query", "workload"),
    "randomness": ("Keys", "Stream", "seeded"),
    "refinement": (
        "calibrate_refinement",
        "knowledge_gain",
        "refine",
        "refinement_loss",
    ),
    "release.certificate.over_time": ("load",),
    "release.plan": ("compare",),
    "release.ready": ("job",),
    "together": ("combine",),
    "trees.normal.split": ("best_shares",),
}
__getattr__ = on_demand(__name__, _ROOMS)

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
    "Stream",
    "__version__",
    "at_least",
    "audit",
    "beliefs",
    "best_shares",
    "between",
    "calibrate_refinement",
    "combine",
    "compare",
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
    "job",
    "knowledge_gain",
    "laplace",
    "linked",
    "load",
    "margins",
    "mend",
    "nonnegative",
    "ordered",
    "pinned",
    "query",
    "reconcile",
    "reconcile_laws",
    "refine",
    "refinement_loss",
    "seeded",
    "series",
    "workload",
]


def __dir__() -> list[str]:
    return sorted(__all__)
