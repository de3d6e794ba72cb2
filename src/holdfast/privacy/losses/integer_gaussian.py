"""Integer Gaussian noise: its exact (ε, δ) curve, never below the truth.

*Law:* P(U_i = u) ∝ exp(−u²/2σ_i²) on the whole numbers, independent over the coordinates. For two tables
whose answers differ by the integer vector d the loss is L = Σ d_i²/2σ_i² + Σ d_i U_i/σ_i² and

    δ(ε) = Σ_u [p(u) − e^ε p(u−d)]₊ = E[(1 − e^(ε−L))₊]      (Canonne, Kamath and Steinke 2020).

The continuous formula is not an upper bound (σ = 2, Δ = 1, ε = 2: 9.4e-6 against a true 1.07e-5). Coordinates
whose sum is as good as one integer Gaussian are listed here, in whole numbers rounded upwards (`integer_laws`); others
are added up on a grid (`unlike_scales`).

A *kind* describes d: a mapping from (|d_i|, σ_i²) to the number of coordinates that have them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from flint import arb, ctx

from holdfast.arguments import Refused, positive, probability, whole
from holdfast.privacy.losses import unlike_scales
from holdfast.privacy.losses.conversion import rho_to_delta, rho_to_epsilon
from holdfast.privacy.losses.gaussian import gaussian_epsilon, gaussian_mu, not_negative
from holdfast.privacy.losses.integer_laws import BITS, ONE, Masses, Part, ceiling, column, floor, merged
from holdfast.privacy.losses.loss_laws import Total
from holdfast.privacy.rounding import TINIEST, ball, inward, outward

#: Relative excess at which the closed form for one smooth part is good enough.
CLOSE = 1e-10
#: The same where a curve is only met at some points and bounded between them.
NEAR = 5e-3
#: Losses whose sum has this standard deviation or more are only converted from ρ: the grid would be coarse.
WIDE = 10
#: A smooth part wider than this many steps is never listed.
WIDEST = 1 << 17
#: Relative width of the final bracket of the searches for ε and for the noise.
NEARNESS = 2.0**-40
#: Significant bits of the factor of σ².
NOISE_BITS = 32

Kind = Mapping[tuple[int, Fraction], int]
#: Kinds as plain values, each a tuple of (|d_i|, σ_i², number of such coordinates).
Losses = tuple[tuple[tuple[int, Fraction, int], ...], ...]
#: Statements carry at most so many kinds, with so many different coordinates each: conversion takes time for every one.
MOST_KINDS, MOST_PAIRS = 8, 48


def _checked(kind: Kind) -> dict[tuple[int, Fraction], int]:
    if not isinstance(kind, Mapping):
        raise Refused(f"kind must be a mapping from (difference, sigma2) to a count, found {type(kind).__name__}")
    result: dict[tuple[int, Fraction], int] = {}
    for (difference, sigma2), count in kind.items():
        size = abs(whole("a difference", difference))
        key = (size, positive("sigma2", sigma2))
        number = whole("a count of coordinates", count, at_least=0)
        if size and number:
            result[key] = result.get(key, 0) + number
    return result


def integer_gaussian_rho(kind: Kind) -> Fraction:
    """Return ρ = Σ d_i²/2σ_i², the exact zCDP parameter of this difference (Canonne, Kamath and Steinke 2020)."""
    return sum(
        (count * difference**2 / (2 * sigma2) for (difference, sigma2), count in _checked(kind).items()),
        Fraction(0),
    )


def integer_gaussian_delta(kind: Kind, epsilon: Any) -> float:
    """Return a double at or above δ(ε) for a difference of this kind.

    The excess is about 1e-9 of δ or less where the losses d_i/σ_i² add up to one integer Gaussian's (one coordinate, or
    scales that are not small); otherwise losses are put on a grid (`unlike_scales`), and the excess is of second order
    in its width.
    """
    groups, e = _checked(kind), not_negative("epsilon", epsilon)
    if not groups:
        return 0.0
    with ctx.workprec(2 * BITS):
        return _delta(groups, _lattice(groups), e, CLOSE)


def _delta(groups: Kind, lattice: tuple[Fraction, list[Part], Any], e: Fraction, close: float) -> float:
    unit, parts, factor = lattice
    rho = integer_gaussian_rho(groups)
    if len(parts) == 1 and parts[0].count == 1:
        return min(1.0, outward(factor * _one_part(parts[0], unit * parts[0].step, rho, e, close)))
    return _summed(groups)(e)


def _summed(groups: Kind) -> Callable[[Fraction], float]:
    """Return ε ↦ a double at or above δ(ε) for coordinates that are added up on a grid, or converted from ρ."""
    rho = integer_gaussian_rho(groups)
    if 2 * rho >= WIDE**2:
        return lambda epsilon: rho_to_delta(rho, epsilon)
    grid = _on_grid(groups)
    return lambda epsilon: min(grid.delta(epsilon), rho_to_delta(rho, epsilon))


def _lattice(groups: Kind) -> tuple[Fraction, list[Part], Any]:
    """Return the common measure of the losses, the parts that are left after merging, and what merging costs."""
    units = {key: key[0] / key[1] for key in groups}
    denominator = math.lcm(*(unit.denominator for unit in units.values()))
    unit = Fraction(math.gcd(*(int(value * denominator) for value in units.values())), denominator)
    return unit, *merged(Part(int(units[key] / unit), key[1], count) for key, count in groups.items())


def _on_grid(groups: Kind) -> Total:
    return unlike_scales.total_of(groups, _closed_delta)


def _closed_delta(variance: Fraction, unit: Fraction, rho: Fraction, epsilon: Fraction) -> float:
    """Return a double at or above δ(ε) of one integer Gaussian by the closed form, which is near where it is wide."""
    with ctx.workprec(2 * BITS):
        smooth, correction = _closed(variance, unit, rho, epsilon)
        return min(1.0, outward(smooth + correction))


def _one_part(part: Part, unit: Fraction, rho: Fraction, epsilon: Fraction, close: float) -> Any:
    """Return a ball whose upper end bounds δ for one integer Gaussian of this variance and loss unit.

    First the closed form: Σφ(t) ≤ ∫φ + V(φ')/12 (Euler–Maclaurin, V the total variation) for φ(t) =
    exp(−t²/2v)(1 − e^(−unit(t−t*)))₊. φ'' is an exponential polynomial with at most five zeros past t*, so
    V ≤ 13 sup|φ'|, and sup|φ'| ≤ unit·exp(−t*²/2v) for t* ≥ 0, ≤ unit + 1/√(ev) otherwise. The integral is
    the continuous δ(ε). Where the correction is not negligible the points are listed.
    """
    smooth, correction = _closed(part.variance, unit, rho, epsilon)
    if correction < smooth * close or part.variance > WIDEST**2:
        return smooth + correction
    first = math.floor((epsilon - rho) / unit) + 1
    start = max(first, 0)
    # Tilting by start/v moves the centre of the law onto the first point that counts.
    tilt = start / (unit * part.variance)
    window = (Fraction(start), start) if first >= 0 else (Fraction(0), None)
    masses = column(part.variance, *window)
    return _expected(masses, unit, rho, epsilon, tilt)


def _closed(variance: Fraction, unit: Fraction, rho: Fraction, epsilon: Fraction) -> tuple[Any, Any]:
    """Return the balls of the continuous δ(ε) and of what the sum over points may exceed it by (`_one_part`)."""
    threshold = (epsilon - rho) / unit
    v, g = ball(variance), ball(unit)
    steepest = g * (-(ball(threshold) ** 2) / (2 * v)).exp() if threshold >= 0 else g + 1 / (arb(1).exp() * v).sqrt()
    return _curve_by_square(2 * rho, epsilon), 13 * steepest / (12 * (2 * arb.pi() * v).sqrt())


def _curve_by_square(square: Fraction, epsilon: Fraction) -> Any:
    """Return the ball of the continuous δ(ε) for μ² = square, precise enough to be compared."""
    root = ball(square).sqrt()
    e = ball(epsilon)
    half = arb(2).sqrt()
    first = ((e / root - root / 2) / half).erfc() / 2
    return first - e.exp() * ((e / root + root / 2) / half).erfc() / 2


def _expected(masses: Masses, unit: Fraction, rho: Fraction, epsilon: Fraction, tilt: Fraction) -> Any:
    """Return E[(1 − e^(ε−L))₊] from tilted masses of L − ρ on the multiples of `unit`, as an upper ball.

    With y = unit·t − (ε − ρ) > 0 the untilted mass is e^(tilt²ρ − tilt(ε−ρ)) · mass · e^(−tilt·y); missing
    mass is counted in full, which is right for any loss above ε because e^(−tilt·y)(1 − e^(−y)) ≤ 1.
    """
    excess = epsilon - rho
    first = max(masses.start, math.floor(excess / unit) + 1)
    y = unit * first - excess
    with ctx.workprec(2 * BITS):
        above, above_ratio = ceiling((-ball(tilt * y)).exp()), ceiling((-ball(tilt * unit)).exp())
        below, below_ratio = (
            floor((-ball((tilt + 1) * y)).exp()),
            floor((-ball((tilt + 1) * unit)).exp()),
        )
        total = 0
        for mass in masses.values[first - masses.start :]:
            total += mass * (above - below)
            above = (above * above_ratio >> BITS) + 1
            below = below * below_ratio >> BITS
        total = (total >> BITS) + 1 + masses.missing
        scale = ball(tilt**2 * rho - tilt * excess).exp()
        return scale * ball(Fraction(total, ONE))


def _solved(value: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Return a point with value ≤ target close to the crossing of a falling function; value(high) ≤ target.

    Works on logarithms with the Illinois rule; only points whose value was computed are returned.
    """
    goal = math.log(target)

    def gap(x: float) -> float:
        found = value(x)
        distance = (math.log(found) if found > 0 else -1e4) - goal
        # The sign is decided by the numbers themselves, never by their rounded logarithms.
        return min(distance, 0.0) if found <= target else max(distance, TINIEST)

    left, right = gap(low), gap(high)
    if left <= 0:
        return low
    for _ in range(200):
        if high - low <= NEARNESS * high or right == 0:
            break
        x = high - right * (high - low) / (right - left) if right < left else (low + high) / 2
        # A step too near an end would crawl; keep a small distance from both.
        margin = min(0.05 * (high - low), 0.25 * NEARNESS * high)
        x = min(max(x, low + margin), high - margin)
        found = gap(x)
        if found <= 0:
            if right <= 0 and found > right / 2:
                left *= 0.5
            high, right = x, found
        else:
            if found > left / 2:
                right *= 0.5
            low, left = x, found
    return high


def integer_gaussian_epsilon(kind: Kind, delta: Any) -> float:
    """Return an ε for which δ(ε) ≤ δ was verified, within about 1e-12 of the smallest such ε."""
    groups, limit = _checked(kind), inward(probability("delta", delta))
    if not groups or integer_gaussian_delta(groups, 0) <= limit:
        return 0.0
    with ctx.workprec(2 * BITS):
        parts = _lattice(groups)[1]
    if len(parts) > 1 or parts[0].count > 1:
        rho = integer_gaussian_rho(groups)
        converted = rho_to_epsilon(rho, limit)
        return converted if 2 * rho >= WIDE**2 else min(_on_grid(groups).epsilon(limit), converted)
    # The continuous formula is no bound, but a good place to start looking.
    guess = gaussian_epsilon(math.sqrt(2 * integer_gaussian_rho(groups)), limit)
    low, high = 0.98 * guess, max(1.02 * guess, 1e-6 * math.sqrt(integer_gaussian_rho(groups)))
    while integer_gaussian_delta(groups, high) > limit:
        low, high = high, 1.5 * high
    while low > 0 and integer_gaussian_delta(groups, low) <= limit:
        low, high = (0.5 * low if low > 1e-9 * guess else 0.0), low
    return _solved(lambda e: integer_gaussian_delta(groups, e), limit, low, high)


def integer_gaussian_sigma2(kinds: Iterable[Kind], epsilon: Any, delta: Any) -> Fraction:
    """Return a factor for all σ² with which every kind is verified (ε, δ)-private, close to the smallest.

    Kinds carry base variances; the factor is rounded up to 32 significant bits (2e-10), so that drawing
    noise exactly stays cheap, and the rounded factor is what is verified.
    """
    checked = [groups for groups in map(_checked, kinds) if groups]
    e, limit = not_negative("epsilon", epsilon), inward(probability("delta", delta))
    if not checked:
        raise Refused("kinds must hold at least one difference that is not zero")
    # The kind with the largest ρ is nearly always the hardest; any other that fails is added in turn.
    ordered: list[Kind] = sorted(checked, key=integer_gaussian_rho, reverse=True)
    hardest = ordered[:1]
    # The continuous formula says where to start looking.
    guess = 2 * integer_gaussian_rho(ordered[0]) / Fraction(gaussian_mu(e, limit)) ** 2
    while True:
        factor = _factor(hardest, e, limit, _short(guess))
        failing = (kind for kind in ordered if integer_gaussian_delta(_scaled(kind, factor), e) > limit)
        worse = next(failing, None)
        if worse is None:
            return factor
        hardest = [*hardest, worse]


def _factor(kinds: list[Kind], epsilon: Fraction, limit: float, guess: Fraction) -> Fraction:
    """Return a short factor verified for these kinds, near the smallest one."""

    def found(factor: Fraction) -> float:
        return max(integer_gaussian_delta(_scaled(kind, factor), epsilon) for kind in kinds)

    low, high = _short(guess * Fraction(49, 50)), _short(guess * Fraction(51, 50))
    while found(high) > limit:
        low, high = high, _short(high * Fraction(5, 4))
    while found(low) <= limit:
        low, high = _short(low * Fraction(3, 4)), low
    near = _short(Fraction(_solved(lambda x: found(_short(Fraction(x))), limit, float(low), float(high))))
    while found(near) > limit:
        near = _short(near * (1 + Fraction(1, 2**NOISE_BITS)))
    return near


def _short(value: Fraction) -> Fraction:
    """Round a positive fraction up to NOISE_BITS significant bits."""
    shift = NOISE_BITS - (value.numerator.bit_length() - value.denominator.bit_length())
    scale = Fraction(2) ** shift
    return Fraction(math.ceil(value * scale)) / scale


def _scaled(kind: Kind, factor: Fraction) -> dict[tuple[int, Fraction], int]:
    return {(difference, sigma2 * factor): count for (difference, sigma2), count in kind.items()}


# Kinds that a statement carries ------------------------------------------------------------------------------------


def losses_of(kinds: Iterable[Kind]) -> Losses:
    """Return kinds as plain values in a fixed order; nothing where they are too many to be carried."""
    found = {tuple(sorted((*key, count) for key, count in groups.items())) for groups in map(_checked, kinds) if groups}
    if len(found) > MOST_KINDS or any(len(kind) > MOST_PAIRS for kind in found):
        return ()
    return tuple(sorted(found))


def kinds_of(losses: Losses) -> list[dict[tuple[int, Fraction], int]]:
    return [{(size, sigma2): count for size, sigma2, count in kind} for kind in losses]


def checked_losses(losses: Any) -> Losses:
    """Check kinds in their plain form and bring them into a fixed order."""
    try:
        return losses_of([{(size, sigma2): count for size, sigma2, count in kind} for kind in losses])
    except (TypeError, ValueError):
        raise Refused("losses must hold kinds of difference, each a list of (difference, sigma2, count)") from None


def losses_from_plain(found: Any) -> Any:
    """Return kinds from what JSON holds, where σ² is text such as "25/4"."""
    try:
        return tuple(tuple((size, Fraction(sigma2), count) for size, sigma2, count in kind) for kind in found)
    except (TypeError, ValueError, ZeroDivisionError):
        raise Refused("losses must hold kinds of difference, each a list of [difference, sigma2, count]") from None


def losses_delta(losses: Losses, epsilon: Any) -> float:
    """Return a double at or above the δ(ε) of every kind."""
    return max(integer_gaussian_delta(kind, epsilon) for kind in kinds_of(losses))


def losses_curve(losses: Losses) -> Callable[[Fraction], float]:
    """Return ε ↦ a double at or above the δ(ε) of every kind, for many ε: what can be added up is added up once."""
    curves = [_curve_of(kind) for kind in kinds_of(losses)]
    return lambda epsilon: max(curve(epsilon) for curve in curves)


def _curve_of(kind: Kind) -> Callable[[Fraction], float]:
    with ctx.workprec(2 * BITS):
        lattice = _lattice(kind)
    if len(lattice[1]) > 1 or lattice[1][0].count > 1:
        return _summed(kind)

    def curve(epsilon: Fraction) -> float:
        with ctx.workprec(2 * BITS):
            return _delta(kind, lattice, epsilon, NEAR)

    return curve


def losses_epsilon(losses: Losses, delta: Any) -> float:
    """Return an ε at which the δ(ε) of every kind was found to be at most δ."""
    return max(integer_gaussian_epsilon(kind, delta) for kind in kinds_of(losses))


def joined(parts: Iterable[tuple[Losses, int]]) -> Losses:
    """Return the losses of several releases together, each with how often it was made.

    Nothing where one is not known or has several kinds.

    With one kind each the sum of the losses is that of the united coordinates. With several, a later kind may follow
    from earlier results, and no single union need be the worst.
    """
    union: dict[tuple[int, Fraction], int] = {}
    for losses, number in parts:
        if len(losses) != 1:
            return ()
        for size, sigma2, count in losses[0]:
            union[size, sigma2] = union.get((size, sigma2), 0) + number * count
    return losses_of([union])
