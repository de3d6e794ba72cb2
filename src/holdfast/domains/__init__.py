"""The public shape of a table: hierarchies, cubes, names."""

from holdfast.domains.cube import Cube
from holdfast.domains.hierarchy import Hierarchy

__all__ = ["Cube", "Hierarchy"]
