"""How near the draws of a way come to the law that was asked for, when they do not have that very law."""

from __future__ import annotations

from dataclasses import dataclass

#: The total variation within which a way that is not exact must draw, for all outputs together.
TAU = 1e-6
#: What is said about draws whose distance from the law was measured by coupled chains.
NEAR_WORDS = (
    "the draws come from a walk that runs until L-lag couplings put it within total variation {tau:.3g} of the law "
    "this statement is about, at 99 % confidence; this is measured and not proved"
)


@dataclass(frozen=True)
class Evidence:
    """The total variation between what is drawn and the law, whether that is proved, and a sentence that says why."""

    distance: float
    proved: bool
    words: str
