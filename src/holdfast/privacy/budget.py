"""From what a user says about how much noise, or how much privacy, to a law of noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused, array, as_array, one_of, positive, probability, rational, shown
from holdfast.noise import Independent
from holdfast.noise.independent import LAWS
from holdfast.privacy.additive import Additive, Target
from holdfast.privacy.losses.conversion import rho_for
from holdfast.privacy.losses.gaussian import classical_sigma, gaussian_mu
from holdfast.privacy.losses.integer_gaussian import integer_gaussian_sigma2
from holdfast.queries import Neighbours, Query

#: None is the tightest proved calibration of the law; "concentrated" goes through ρ; "classical" is the papers'.
CALIBRATIONS = ("classical", "concentrated")

#: Weights of the outputs: distinct values (None: not measured) and which output has which.
Weights = tuple[tuple[Fraction | None, ...], npt.NDArray[np.int32] | None]


def one_budget(**budgets: Any) -> str:
    """Return the name of the only budget that is given; refuse none or several."""
    given = [name for name, value in budgets.items() if value is not None]
    if len(given) != 1:
        found = " and ".join(given) if given else "none of them"
        raise Refused(f"say how much in exactly one way ({', '.join(budgets)}), found {found}")
    return given[0]


def _whole_answers(query: Query, integer: Any) -> None:
    if not isinstance(integer, (bool, np.bool_)):
        raise Refused(f"integer must be True or False, found {shown(integer)}")
    if integer and not query.integer:
        raise Refused("integer noise needs whole answers: give the workload a grid, or use integer=False")


def by_level(
    query: Query, name: str, given: Mapping[Any, Any], missing: Any
) -> tuple[list[Any], npt.NDArray[np.int32]]:
    """Spread values per level (by name or depth) over the outputs; levels that are not named get `missing`."""
    levels = query.levels
    if levels is None or query.level_of is None:
        raise Refused(f"{name} per level needs a query with levels (counts of a hierarchy, or margins)")
    if not given:
        raise Refused(f"{name} must name at least one level, found none")
    values: list[Any] = [missing] * len(levels)
    seen: set[int] = set()
    for key, value in given.items():
        place = query.level_number(name, key)
        if place in seen:
            raise Refused(f"{name} names the level {key!r} twice")
        seen.add(place)
        values[place] = value
    return values, np.asarray(query.level_of, dtype=np.int32)


def scales_as_given(query: Query, scale: Any) -> Weights:
    """Read `scale`: a number, a mapping from levels to numbers, or one per output; infinity = not measured.

    The user counts in the query's own units, the law in steps of its grid.
    """
    values, which = _read_scales(query, scale)
    step = query.grid or Fraction(1)
    return tuple(None if value is None else value / step for value in values), which


def _read_scales(query: Query, scale: Any) -> Weights:
    if isinstance(scale, Mapping):
        values, which = by_level(query, "scale", scale, None)
        return tuple(_scale(value) for value in values), which
    made = as_array("scale", scale)
    if made.ndim == 0:
        return (_scale(scale),), None
    if made.dtype == object:
        return _exact_scales(query, made)
    found = array("scale", scale) if not _has_infinity(made) else as_array("scale", made, np.float64)
    if found.shape != (query.n,):
        raise Refused(f"scale must have one entry per output, shape ({query.n},), found shape {found.shape}")
    if np.isnan(found).any():
        raise Refused(f"scale must hold numbers above 0, found NaN at position {np.flatnonzero(np.isnan(found))[0]}")
    distinct, places = np.unique(found, return_inverse=True)
    return tuple(_scale(value) for value in distinct.tolist()), places.astype(np.int32)


def _exact_scales(query: Query, scale: npt.NDArray[np.object_]) -> Weights:
    """Read fractions and other exact numbers, one per output, as they are."""
    if scale.shape != (query.n,):
        raise Refused(f"scale must have one entry per output, shape ({query.n},), found shape {scale.shape}")
    exact = [_scale(value) for value in scale.tolist()]
    distinct = sorted({value for value in exact if value is not None}) + [None] * (None in exact)
    places = {value: place for place, value in enumerate(distinct)}
    return tuple(distinct), np.array([places[value] for value in exact], dtype=np.int32)


def _has_infinity(scale: Any) -> bool:
    return any(isinstance(value, float) and math.isinf(value) for value in np.asarray(scale, dtype=object).ravel())


def _scale(value: Any) -> Fraction | None:
    if value is None or (isinstance(value, (float, np.floating)) and value == math.inf):
        return None
    return positive("scale", value)


def relative_scales(query: Query, shares: Mapping[Any, Any] | None) -> Weights:
    """Scales up to a common factor: 1 everywhere, or one over each level's share of the budget."""
    if shares is None:
        return (Fraction(1),), None
    if not isinstance(shares, Mapping):
        raise Refused(f"shares must map levels to numbers, found {type(shares).__name__}")
    values, which = by_level(query, "shares", shares, 0)
    exact = [rational("a share", value) for value in values]
    if min(exact) < 0:
        raise Refused(f"a share must not be negative, found {float(min(exact))!r}")
    if max(exact) == 0:
        raise Refused("shares must give at least one level more than 0")
    return tuple(1 / share if share else None for share in exact), which


def build(query: Query, kind: str, integer: bool, scales: Weights, factor: Fraction) -> Independent:
    """The law whose scale values (λ or σ²) are the given ones times a factor, in steps of the query's grid."""
    law = LAWS[kind, integer]
    laws = tuple(None if value is None else law(value * factor) for value in scales[0])
    if all(value is None for value in laws):
        raise Refused("scale must be finite for at least one output")
    return Independent(laws, scales[1], query.n)


def laplace_base(
    query: Query, neighbours: Neighbours, integer: bool, epsilon: Any, scale: Any, shares: Any
) -> Additive:
    """Laplace noise for a query; ε is met exactly."""
    _whole_answers(query, integer)
    if one_budget(epsilon=epsilon, scale=scale) == "scale":
        _no_shares(shares)
        return Additive(query, build(query, "laplace", integer, scales_as_given(query, scale), Fraction(1)), neighbours)
    budget = positive("epsilon", epsilon)
    scales = relative_scales(query, shares)
    loss = _largest(query, neighbours, scales, 1)
    return Additive(query, build(query, "laplace", integer, scales, loss / budget), neighbours)


def gaussian_base(
    query: Query,
    neighbours: Neighbours,
    integer: bool,
    epsilon: Any,
    delta: Any,
    rho: Any,
    scale: Any,
    shares: Any,
    calibration: Any,
) -> Additive:
    """Gaussian noise for a query, by (ε, δ), ρ or scale."""
    _whole_answers(query, integer)
    if delta is not None and epsilon is None and rho is None and scale is None:
        raise Refused("delta goes with epsilon, which is missing: give both, or rho or scale alone")
    way = one_budget(epsilon=epsilon, rho=rho, scale=scale)
    if calibration is not None:
        one_of("calibration", calibration, CALIBRATIONS)
        if way != "epsilon":
            raise Refused(f"calibration goes with epsilon and delta, found {way}")
    if (delta is not None) != (way == "epsilon"):
        raise Refused("delta goes with epsilon: give both, or rho or scale alone")
    if way == "scale":
        _no_shares(shares)
        values, which = scales_as_given(query, scale)
        squares = tuple(None if value is None else value**2 for value in values), which
        return Additive(query, build(query, "gaussian", integer, squares, Fraction(1)), neighbours)
    scales = relative_scales(query, shares)
    square = _largest(query, neighbours, scales, 2)  # of d in the metric of the relative variances
    if way == "rho":
        factor = square / (2 * positive("rho", rho))
        return Additive(query, build(query, "gaussian", integer, scales, factor), neighbours)
    target = Target(positive("epsilon", epsilon), probability("delta", delta), classical=calibration == "classical")
    if calibration == "classical":
        factor = square * Fraction(classical_sigma(1, target.epsilon, target.delta)) ** 2
    elif calibration == "concentrated":
        factor = square / (2 * Fraction(_positive_rho(target)))
    elif integer:
        factor = _integer_factor(query, neighbours, scales, target, square)
    else:
        factor = square / Fraction(gaussian_mu(target.epsilon, target.delta)) ** 2
    return Additive(query, build(query, "gaussian", integer, scales, factor), neighbours, target)


def _integer_factor(
    query: Query, neighbours: Neighbours, scales: Weights, target: Target, square: Fraction
) -> Fraction:
    """The factor at which integer Gaussian noise meets (ε, δ) by its own loss law, or through ρ without one."""
    if query.cells is None:
        return square / (2 * Fraction(_positive_rho(target)))
    relative = build(query, "gaussian", True, scales, Fraction(1))
    kinds = Additive(query, relative, neighbours).loss_kinds()
    return integer_gaussian_sigma2(kinds, target.epsilon, target.delta)


def _positive_rho(target: Target) -> float:
    rho = rho_for(target.epsilon, target.delta)
    if rho <= 0:
        raise Refused("epsilon and delta are too small to be met through rho")
    return rho


def _largest(query: Query, neighbours: Neighbours, scales: Weights, power: int) -> Fraction:
    inverse = tuple(Fraction(0) if value is None else 1 / value for value in scales[0])
    loss = query.largest(inverse, scales[1], power, neighbours)
    if loss == 0:
        raise Refused("no neighbouring data change a measured output: say how much noise by scale")
    return loss


def _no_shares(shares: Any) -> None:
    if shares is not None:
        raise Refused("shares divide a budget: they go with epsilon or rho, not with scale")
