"""Messages on a hierarchy: one up-pass and one down-pass."""

from holdfast.trees.messages.sampler import Sampler
from holdfast.trees.shape.forest import Forest, output_parents

__all__ = ["Forest", "Sampler", "output_parents"]
