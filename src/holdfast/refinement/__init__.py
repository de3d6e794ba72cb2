"""The analyst's side: noisy answers refined by what is known, and what a refinement does to the privacy loss."""

from holdfast.refinement.knowledge import Gain, knowledge_gain
from holdfast.refinement.linear_refinement import LinearRefinement, refine
from holdfast.refinement.loss import Loss, calibrate_refinement, printed_theorem_2, refinement_loss

__all__ = [
    "Gain",
    "LinearRefinement",
    "Loss",
    "calibrate_refinement",
    "knowledge_gain",
    "printed_theorem_2",
    "refine",
    "refinement_loss",
]
