"""Messages on a hierarchy: one up-pass and one down-pass."""

from holdfast.trees.forest import Forest, output_parents
from holdfast.trees.sampler import Sampler

__all__ = ["Forest", "Sampler", "output_parents"]
