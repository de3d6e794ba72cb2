"""Mending what others published: the nearest table in which everything holds, from published figures alone."""

from typing import TYPE_CHECKING

from holdfast.rooms import on_demand

if TYPE_CHECKING:
    from holdfast.mending.mended import Contradiction, Mended
    from holdfast.mending.verb import mend

__getattr__ = on_demand(__name__, {"verb": ("mend",), "mended": ("Contradiction", "Mended")})

__all__ = ["Contradiction", "Mended", "mend"]
