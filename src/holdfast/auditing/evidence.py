"""Evidence against a claim, from listed laws or from counts of draws."""

from __future__ import annotations

from dataclasses import dataclass

VIOLATED, NOT_REFUTED = "violated", "not refuted"
EXACT, SAMPLED = "exact", "sampled"


@dataclass(frozen=True)
class Evidence:
    """How far something is beyond a claim (above 0 refutes it), with ε from below at a δ, how, on which pair, by what.

    margin: above 0 the claim is refuted. epsilon: a lower bound on the ε that the mechanism needs at `delta`, where the
    statement says `claimed`. one, other: the answers of the two made-up datasets.
    """

    margin: float
    epsilon: float
    delta: float
    claimed: float
    how: str
    event: str
    pair: str = ""
    one: tuple[float, ...] = ()
    other: tuple[float, ...] = ()
