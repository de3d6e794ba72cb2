"""What exact figures give away by themselves: the figures that they pin."""

from holdfast.disclosure.pinned import Disclosure, pinned

__all__ = ["Disclosure", "pinned"]
