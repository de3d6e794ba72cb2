"""How near the draws of a way come to the law that was asked for, when they do not have that very law."""

from __future__ import annotations

from dataclasses import dataclass

#: The total variation within which a way that is not exact must draw, for all outputs together.
TAU = 1e-6


@dataclass(frozen=True)
class Evidence:
    """The total variation between what is drawn and the law, whether that is proved, and a sentence that says why."""

    distance: float
    proved: bool
    words: str
