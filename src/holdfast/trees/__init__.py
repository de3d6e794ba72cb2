"""Messages on a hierarchy: one up-pass and one down-pass."""

from holdfast.trees.forest import Forest, output_parents
from holdfast.trees.revision import Revision

__all__ = ["Forest", "Revision", "output_parents"]
