"""Mending what others published: the nearest table in which everything holds, from published figures alone."""

from typing import TYPE_CHECKING

from holdfast.rooms import on_demand

if TYPE_CHECKING:
    from holdfast.mending.laws import ReconciledLaws, reconcile_laws
    from holdfast.mending.mended import Contradiction, Mended
    from holdfast.mending.reconciled import Reconciled, reconcile
    from holdfast.mending.verb import mend

__getattr__ = on_demand(
    __name__,
    {
        "verb": ("mend",),
        "mended": ("Contradiction", "Mended"),
        "laws": ("ReconciledLaws", "reconcile_laws"),
        "reconciled": ("Reconciled", "reconcile"),
    },
)

__all__ = ["Contradiction", "Mended", "Reconciled", "ReconciledLaws", "mend", "reconcile", "reconcile_laws"]
