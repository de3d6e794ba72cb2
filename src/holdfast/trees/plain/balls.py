"""Sums in balls: powers, geometric series, and terms with a tilt."""

from __future__ import annotations

from flint import arb


def powers(height: float, ratio: float, count: int) -> list[arb]:
    """A height times so many powers of a ratio, from the first on."""
    result, power, factor = [], arb(height), arb(ratio)
    for _ in range(count):
        power = power * factor
        result.append(power)
    return result


def tilted(terms: list[arb], tilt: arb, first: int) -> arb:
    """The sum of terms times e^{tilt·t}, t = first, first + 1, …"""
    if tilt == 0:
        return sum(terms, arb(0))
    result, step = arb(0), tilt.exp()
    for term in reversed(terms):  # the powers of e^tilt are multiplied one after the other
        result = result * step + term
    return result * (tilt * first).exp()


def series(first: arb, ratio: arb) -> arb:
    """The sum of a geometric series from its first term."""
    if not ratio < 1:
        raise ArithmeticError("a message has no sum")
    return first / (1 - ratio)
