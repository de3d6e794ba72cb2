"""Many statements at one δ: from each the worst loss law it allows, all of them added up on one grid.

Pure ε and (ε, δ) have a worst case of two losses (and +∞); statements of μ, of ρ and of integer Gaussian noise are
first added among themselves, where that is exact or all that is known, and give one curve δ(ε) each
(docs/theory/composition.md, "Loss laws").
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from holdfast.privacy.guarantee import Counted, Guarantee
from holdfast.privacy.losses.conversion import rho_to_delta
from holdfast.privacy.losses.gaussian import gaussian_delta
from holdfast.privacy.losses.integer_gaussian import joined, losses_curve
from holdfast.privacy.losses.loss_laws import Curve, Total, added, from_curve, response
from holdfast.privacy.rounding import ball, outward, settled

#: Width of the grid in standard deviations of an average loss: where there are few losses, where there are smooth ones
#: among them, and where there are many.
FINEST, SMOOTH, FINENESS = 0.0005, 0.01, 0.03
#: Multiplications that a fine grid may take, some hundredths of a second.
QUICK_WORK = 2e7
#: Distance of the points of a curve in its standard deviations.
CURVE_FINENESS = 0.08
#: Multiplications that one sum may take, some tenths of a second; where they do not suffice the grid is coarser.
MOST_WORK = 4e8
#: Places of a window at most: 2 MiB of doubles.
MOST_PLACES = 1 << 18
#: Losses this near to multiples of one of them are taken to be so: the grid then has no other places.
NEARLY_WHOLE = 1e-9
#: What lies outside the window may weigh this part of δ: it is counted in full.
OUTSIDE = 1e-5
#: δ below which doubles have no room for what is added up.
LEAST_DELTA = 1e-280


@dataclass(frozen=True)
class _Smooth:
    """Statements that were added among themselves: how to find their curve of δ, and the ρ that says how wide it is."""

    find: Callable[[], Curve]
    rho: float


def total_loss(parts: Counted, delta: float) -> Total | None:
    """Return the added losses of statements with ε, ρ or μ, in a window that serves δ of about this size.

    None where that is no use: one statement alone, a δ too small, or too many statements for any useful grid.
    """
    responses, smooth = _sorted(parts)
    if responses.total() + len(smooth) < 2 or delta < LEAST_DELTA:
        return None
    grid = _Grid.of(responses, smooth, delta)
    if grid is None:
        return None
    losses = [
        (response(Fraction(epsilon), Fraction(loose), grid.step), count)
        for (epsilon, loose), count in sorted(responses.items())
    ]
    for each in smooth:
        width = math.sqrt(2 * each.rho)
        every = max(1, math.floor(CURVE_FINENESS * width / float(grid.step)))
        reach = math.ceil((each.rho + _reach(delta) * width) / float(grid.step))
        losses.append((from_curve(each.find(), grid.step, every, -reach, reach), 1))
    return added(losses, grid.step, grid.low, grid.high)


def by_response(part: Guarantee) -> bool:
    """Say whether a statement counts by its (ε, δ), whose worst case is randomized response."""
    return part.epsilon is not None and (part.delta == 0 or (part.rho is None and part.mu is None))


def _sorted(parts: Counted) -> tuple[Counter[tuple[float, float]], list[_Smooth]]:
    """Return the parts that count by their (ε, δ), with how often, and the others, added up."""
    responses: Counter[tuple[float, float]] = Counter()
    gaussian: list[tuple[Guarantee, int]] = []
    integer: list[tuple[Guarantee, int]] = []
    concentrated: list[tuple[Guarantee, int]] = []
    for part, number in parts:
        if part.epsilon is not None and by_response(part):
            if part.epsilon or part.delta:
                responses[part.epsilon, part.delta] += number
        else:
            (gaussian if part.mu is not None else integer if part.losses else concentrated).append((part, number))
    smooth = []
    if gaussian:
        square = sum((number * Fraction(part.mu or 0.0) ** 2 for part, number in gaussian), Fraction(0))
        if square:
            mu = outward(settled(lambda: ball(square).sqrt()))
            smooth.append(_Smooth(lambda: partial(gaussian_delta, mu), float(square) / 2))
    united = joined((part.losses, number) for part, number in integer) if integer else ()
    if united:
        width = sum(number * (part.rho or 0.0) for part, number in integer)
        smooth.append(_Smooth(partial(losses_curve, united), width))
    else:
        concentrated += integer
    total = sum((number * Fraction(part.rho or 0.0) for part, number in concentrated), Fraction(0))
    if total:
        orders = "integer" if any(part.orders == "integer" for part, _ in concentrated) else "all"
        smooth.append(_Smooth(lambda: partial(rho_to_delta, outward(total), orders=orders), float(total)))
    return responses, smooth


def _reach(delta: float) -> float:
    return math.sqrt(-2 * (math.log(delta) + math.log(OUTSIDE)))


@dataclass(frozen=True)
class _Grid:
    """The step of a grid and the places of its window. Nothing depends on how well it is chosen but closeness."""

    step: Fraction
    low: int
    high: int

    @classmethod
    def of(cls, responses: Counter[tuple[float, float]], smooth: Sequence[_Smooth], delta: float) -> _Grid | None:
        """Return a grid for these losses; None where none is both useful and quick."""
        count = responses.total() + len(smooth)
        # A sum of losses ±ε passes its mean by t with probability at most exp(−t²/2Σε²) (Hoeffding).
        mean = sum(n * epsilon * math.tanh(epsilon / 2) for (epsilon, _), n in responses.items())
        mean += sum(each.rho for each in smooth)
        square = sum(n * epsilon**2 for (epsilon, _), n in responses.items())
        square += sum(2 * each.rho for each in smooth)
        largest = sum(n * epsilon for (epsilon, _), n in responses.items()) if not smooth else math.inf
        reach = _reach(delta) * math.sqrt(square)
        high, low = min(largest, mean + reach), -min(largest, reach)
        spread = sum(n * (epsilon / math.cosh(min(epsilon, 1e3) / 2)) ** 2 for (epsilon, _), n in responses.items())
        spread += sum(2 * each.rho for each in smooth)
        if not (math.isfinite(high) and spread > 0):
            return None
        one, work = math.sqrt(spread / count), 4 * count * (high - low)
        fine = max((SMOOTH if smooth else FINEST) * one, min(FINENESS * one, work / QUICK_WORK))
        wanted = max(fine, work / MOST_WORK, (high - low) / MOST_PLACES)
        step = _common(sorted(epsilon for epsilon, _ in responses), wanted, lattice=not smooth)
        if step > math.sqrt(square / count):
            return None
        # Each loss may go up by a place, on the way to the largest sum too.
        return cls(step, math.floor(Fraction(low) / step), math.ceil(Fraction(high) / step) + count)


def _common(epsilons: Sequence[float], wanted: float, *, lattice: bool) -> Fraction:
    """Return about the wanted step, so that losses are multiples of it where that is possible."""
    aligned = [epsilon for epsilon in epsilons if epsilon > wanted]
    if not aligned:
        return Fraction(wanted)
    least = aligned[0]
    ratios = [epsilon / least for epsilon in epsilons]
    if lattice and all(abs(ratio - round(ratio)) < NEARLY_WHOLE for ratio in ratios):
        return Fraction(least)
    return Fraction(least) / math.ceil(least / wanted)
