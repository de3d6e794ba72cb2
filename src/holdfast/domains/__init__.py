"""The public shape of a table: hierarchies, cubes, names."""

from typing import TYPE_CHECKING

from holdfast.rooms import on_demand

if TYPE_CHECKING:
    from holdfast.domains.cube import Cube
    from holdfast.domains.hierarchy import Hierarchy

__getattr__ = on_demand(__name__, {"cube": ("Cube",), "hierarchy": ("Hierarchy",)})

__all__ = ["Cube", "Hierarchy"]
