"""Several releases read together: one best estimate from the measurements and public laws of certified folders."""

from holdfast.together.combined import Combined, combine

__all__ = ["Combined", "combine"]
