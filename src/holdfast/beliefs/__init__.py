"""The two views on finite worlds in exact fractions, and the enumeration oracle of the tests."""

from holdfast.beliefs.change import belief, condition, image, kl, mixture, push, total_variation
from holdfast.beliefs.limits import credible, credible_mechanism, leakage_loss, leaked, leaked_onto, screened
from holdfast.beliefs.oracle import (
    Law,
    base,
    given,
    hockey_stick,
    log_ratio,
    onto,
    reach_for,
    renyi,
    weights,
    window_for,
    worst,
)

__all__ = [
    "Law",
    "base",
    "belief",
    "condition",
    "credible",
    "credible_mechanism",
    "given",
    "hockey_stick",
    "image",
    "kl",
    "leakage_loss",
    "leaked",
    "leaked_onto",
    "log_ratio",
    "mixture",
    "onto",
    "push",
    "reach_for",
    "renyi",
    "screened",
    "total_variation",
    "weights",
    "window_for",
    "worst",
]
