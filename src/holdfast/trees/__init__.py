"""Messages on a hierarchy: one up-pass and one down-pass."""

from holdfast.trees.circles.sampler import Sampler
from holdfast.trees.shape.forest import Forest

__all__ = ["Forest", "Sampler"]
