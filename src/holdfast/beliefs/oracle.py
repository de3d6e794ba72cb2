"""The enumeration oracle: every output of a small mechanism listed, its exact law, its exact worst loss.

Tests of every mechanism compare with this. A truth is a tuple of whole numbers, the noise a table of
whole-number weights per coordinate (`weights`), an output a tuple of whole numbers.

*Windows.* The whole numbers are cut to a finite window of noisy values. All truths that are compared must
use the *same* window (`window_for`), with weights that reach across it from every truth; mass outside the
window is left out of every law. The law listed is then the law given "the noisy value lies in the window":
ratios of weights inside are exact, and normalisers miss only the tails (choose `reach_for(…, tail=1e-25)`
or less, so that losses are right to about that). Comparing laws over different windows would show false
disjoint supports at the edges; such pairs are refused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq

from holdfast.arguments import Number, Refused, one_of, positive, probability, shown, whole

Table = Mapping[int, int]
Output = tuple[int, ...]
Window = tuple[tuple[int, int], ...]

#: Bits of e^ε in `hockey_stick` and of the final logarithm in `log_ratio`.
PRECISION = 256


@dataclass(frozen=True, eq=False)
class Law(Mapping[Output, Fraction]):
    """An exact law on finitely many outputs: whole-number masses and their total.

    A mapping from outputs to fractions, so that the belief changes apply to it; `window` is the range of
    noisy values it was made from, or None when the worlds were listed.
    """

    masses: Mapping[Output, int]
    window: Window | None = None
    total: int = field(init=False)

    def __post_init__(self) -> None:
        total = sum(self.masses.values())
        if total <= 0:
            raise Refused("a law needs at least one output with positive mass, found none")
        object.__setattr__(self, "total", total)

    def __getitem__(self, output: Output) -> Fraction:
        return Fraction(self.masses[output], self.total)

    def __iter__(self) -> Iterator[Output]:
        return iter(self.masses)

    def __len__(self) -> int:
        return len(self.masses)

    def mean(self, function: Callable[[Output], Any]) -> Fraction:
        """Return the exact expectation of a function of the output."""
        total = sum((Fraction(function(z)) * mass for z, mass in self.masses.items()), Fraction(0))
        return total / self.total


def tables_for(truth: Sequence[int], weights: Table | Sequence[Table]) -> list[Table]:
    """Return one table of noise weights per coordinate."""
    tables = [weights] * len(truth) if isinstance(weights, Mapping) else list(weights)
    if len(tables) != len(truth):
        raise Refused(f"weights must be one table or one per coordinate ({len(truth)}), found {len(tables)}")
    return tables


def window_for(truths: Iterable[Sequence[int]], weights: Table | Sequence[Table]) -> Window:
    """Return the largest window that the weights cover from every one of the truths."""
    listed = [tuple(truth) for truth in truths]
    tables = tables_for(listed[0], weights)
    window = tuple(
        (max(t[i] for t in listed) + min(table), min(t[i] for t in listed) + max(table))
        for i, table in enumerate(tables)
    )
    if any(low > high for low, high in window):
        raise Refused("the weights do not reach from each truth to the others; use a larger reach")
    return window


def _noisy(
    truth: Sequence[int], weights: Table | Sequence[Table], window: Window | None
) -> tuple[Iterator[tuple[Output, int]], Window]:
    tables = tables_for(truth, weights)
    chosen = window_for([truth], weights) if window is None else window
    try:
        columns = [
            [table[z - x] for z in range(low, high + 1)]
            for x, table, (low, high) in zip(truth, tables, chosen, strict=True)
        ]
    except KeyError:
        raise Refused("the weights do not reach across the window; use a larger reach") from None
    outputs = itertools.product(*(range(low, high + 1) for low, high in chosen))
    return zip(outputs, map(math.prod, itertools.product(*columns)), strict=True), chosen


def base(truth: Sequence[int], weights: Table | Sequence[Table], window: Window | None = None) -> Law:
    """Return the law of truth + noise on a window (around this truth, unless one is given)."""
    pairs, chosen = _noisy(truth, weights, window)
    return Law(dict(pairs), chosen)


def given(
    truth: Sequence[int],
    weights: Table | Sequence[Table],
    holds: Callable[[Output], bool] | Iterable[Sequence[int]],
    window: Window | None = None,
) -> Law:
    """Return the law of truth + noise given a condition on the output, or given a list of worlds.

    With a list (for instance the points of a lattice) no box is enumerated; the same list must be used for
    all truths that are compared, and the weights must reach every world in it.
    """
    if callable(holds):
        pairs, chosen = _noisy(truth, weights, window)
        return Law({output: mass for output, mass in pairs if holds(output)}, chosen)
    tables = tables_for(truth, weights)
    masses: dict[Output, int] = {}
    for world in holds:
        output = tuple(int(z) for z in world)
        try:
            factors = [table[z - x] for z, x, table in zip(output, truth, tables, strict=True)]
        except KeyError:
            raise Refused("the weights do not reach every listed world; use a larger reach") from None
        masses[output] = math.prod(factors)
    return Law(masses, None)


def onto(
    truth: Sequence[int],
    weights: Table | Sequence[Table],
    nearest: Callable[[Output], Any],
    window: Window | None = None,
) -> Law:
    """Return the law of nearest(truth + noise): imaging, or any other map of the noisy value."""
    pairs, chosen = _noisy(truth, weights, window)
    masses: dict[Output, int] = {}
    for output, mass in pairs:
        target = nearest(output)
        masses[target] = masses.get(target, 0) + mass
    return Law(masses, chosen)


def _law(p: Mapping[Any, Any]) -> Law:
    """Return a plain belief as a law with whole-number masses."""
    if isinstance(p, Law):
        return p
    fractions = {world: Fraction(value) for world, value in p.items()}
    common = math.lcm(*(value.denominator for value in fractions.values()))
    return Law({world: int(value * common) for world, value in fractions.items()}, None)


def _pair(p: Mapping[Any, Any], q: Mapping[Any, Any]) -> tuple[Law, Law]:
    one, other = _law(p), _law(q)
    if one.window != other.window:
        raise Refused("two laws can only be compared over the same window; make one with window_for")
    return one, other


def _log(ratio: Fraction) -> float:
    with ctx.workprec(PRECISION):
        return float(arb(fmpq(ratio.numerator, ratio.denominator)).log().mid())


def log_ratio(p: Mapping[Any, Any], q: Mapping[Any, Any]) -> float:
    """Return the largest log p/q over the outputs; infinite when q lacks an output that p has."""
    one, other = _pair(p, q)
    best: tuple[int, int] | None = None
    for output, mass in one.masses.items():
        if mass:
            against = other.masses.get(output, 0)
            if not against:
                return math.inf
            if best is None or mass * best[1] > best[0] * against:
                best = (mass, against)
    assert best is not None
    return _log(Fraction(best[0] * other.total, best[1] * one.total))


def hockey_stick(p: Mapping[Any, Any], q: Mapping[Any, Any], epsilon: float | Fraction) -> float:
    """Return Σ [p − e^ε q]₊: the exact δ at ε = `epsilon` for this ordered pair, to far below double precision."""
    one, other = _pair(p, q)
    exact = Fraction(epsilon)
    with ctx.workprec(2 * PRECISION):
        scaled = arb(fmpq(exact.numerator, exact.denominator)).exp() * arb(2) ** PRECISION
        factor = nearest_whole(scaled)
    left, right = other.total << PRECISION, factor * one.total
    total = 0
    for output, mass in one.masses.items():
        excess = mass * left - right * other.masses.get(output, 0)
        if excess > 0:
            total += excess
    return float(Fraction(total, one.total * left))


def renyi(p: Mapping[Any, Any], q: Mapping[Any, Any], alpha: float | Fraction) -> float:
    """Return the Rényi divergence of order alpha > 0, alpha ≠ 1, of p from q, right to about 1e-12."""
    order = float(alpha)
    if order <= 0 or order == 1:
        raise Refused(f"alpha must be above 0 and not 1, found {shown(alpha)}")
    one, other = _pair(p, q)
    one_log, other_log = math.log(one.total), math.log(other.total)
    terms = []
    for output, mass in one.masses.items():
        if not mass:
            continue
        against = other.masses.get(output, 0)
        if against:
            terms.append(order * (math.log(mass) - one_log) + (1 - order) * (math.log(against) - other_log))
        elif order > 1:
            return math.inf
    if not terms:
        return math.inf
    top = max(terms)
    return (top + math.log(math.fsum(math.exp(term - top) for term in terms))) / (order - 1)


def worst(
    beliefs: Mapping[Any, Mapping[Any, Any]],
    pairs: Iterable[tuple[Any, Any]],
    measure: Callable[[Mapping[Any, Any], Mapping[Any, Any]], float],
) -> float:
    """Return the largest measure over pairs of truths, both ways; `beliefs` are the laws by truth."""
    found = [
        value
        for one, other in pairs
        for value in (measure(beliefs[one], beliefs[other]), measure(beliefs[other], beliefs[one]))
    ]
    if not found:
        raise Refused("pairs must hold at least one pair of truths, found none")
    return max(found)


KINDS = ("laplace", "gaussian")


def weights(kind: str, parameter: Number, reach: int, bits: int = 256) -> dict[int, int]:
    """Return whole-number weights of the noise values |u| ≤ reach; parameter is λ or σ²."""
    one_of("kind", kind, KINDS)
    scale, limit = positive("parameter", parameter), whole("reach", reach, at_least=0)
    size = whole("bits", bits, at_least=53)
    with ctx.workprec(2 * size + 64):
        found = [_rounded(kind, scale.numerator, scale.denominator, u, size) for u in range(limit + 1)]
    if found[-1] == 0:
        raise Refused(f"bits must be larger for reach {limit}: the outermost weight is rounded to 0")
    return {u: found[abs(u)] for u in range(-limit, limit + 1)}


def _rounded(kind: str, numerator: int, denominator: int, u: int, bits: int) -> int:
    exponent = fmpq(u * denominator, numerator) if kind == "laplace" else fmpq(u * u * denominator, 2 * numerator)
    return nearest_whole((-arb(exponent)).exp() * arb(2) ** bits)


def nearest_whole(value: Any) -> int:
    mantissa, exponent = (int(part) for part in value.mid().man_exp())
    return mantissa << exponent if exponent >= 0 else ((mantissa >> (-exponent - 1)) + 1) >> 1


def reach_for(kind: str, parameter: Number, tail: float = 1e-30) -> int:
    """Return a reach beyond which the noise has at most this probability, two tails together (proved).

    Laplace: P(|u| > r) ≤ 2e^(−(r+1)/λ)/(1 + e^(−1/λ)). Gaussian: P(|u| > r) ≤ 2e^(−r²/2σ²) (the integer law
    is sub-Gaussian: E e^(tu) ≤ e^(t²σ²/2), because a shifted sum Σ exp(−(u−s)²/2σ²) is largest at s = 0).
    """
    one_of("kind", kind, KINDS)
    scale, limit = positive("parameter", parameter), float(probability("tail", tail))
    if kind == "laplace":
        return math.ceil(float(scale) * math.log(2 / limit)) + 1
    return math.ceil(math.sqrt(2 * float(scale) * math.log(2 / limit))) + 1
