"""Figures and rules without a table around them: forecasts, controls and estimates that must add up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from operator import and_
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, diags_array

from holdfast.arguments import Number, Refused, listed, positive, probability, rational, reals, whole_numbers
from holdfast.arrays import Bools, Floats, Ints
from holdfast.constraints import Constraint, System, consistent, fixed
from holdfast.constraints.possible.contradiction import refuse_whole_contradiction
from holdfast.domains import Hierarchy
from holdfast.mending import search
from holdfast.mending.rules import Kept, in_steps, looked_at
from holdfast.rooms import sparse_linalg, special

#: How much larger than the largest variance that of a missing figure is; entries up to which errors are computed.
OPEN, MOST_ENTRIES = 1e6, 1 << 25
#: Figures stay below so many steps: whole numbers beyond are not told apart well enough.
MOST_STEPS = 1e15
#: Kinds of broken rules, rules and moves that are told.
SHOWN = 5
#: The least part of a shrunk covariance that is diagonal.
LEAST_SHARE = 1e-6
#: A covariance may miss symmetry and zero by this share of its largest entry.
ROUNDED = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Reconciled:
    """The nearest figures that keep all rules, and for each horizon the distance (squares over variances).

    `gap` bounds how much smaller it can be; `broken` holds, kind by kind, the rules that its figures broke before.
    """

    values: Floats | Ints
    moved: Floats
    distance: Floats
    gap: Floats
    broken: list[list[Kept]]
    estimate: Floats
    standard_error: Floats | None

    def __str__(self) -> str:
        horizons, figures = np.atleast_2d(self.values).shape
        share = 100 * (self.gap / np.maximum(self.distance, np.finfo(float).tiny)).max()
        near = "the nearest" if self.nearest else f"at most {share:.2g} % could be saved"
        kinds = [kind for row in self.broken for kind in row if kind.rows.size]
        words = [
            f"{figures:,} figures at {horizons:,} horizons, all rules hold: distance {self.distance.sum():.4g}, {near}",
            *(f"{each.name}: {each.rows.size:,} of {each.compared:,} did not hold" for each in kinds[:SHOWN]),
            *(f"  {each}" for kind in kinds[:1] for each in kind.largest(SHOWN)),
            f"moved most: figures {', '.join(map(str, self.most(SHOWN).tolist()))}",
        ]
        return "\n".join(words)

    @property
    def nearest(self) -> bool:
        """Whether no figures that keep all rules are nearer."""
        return bool((self.gap <= search.DOUBLES * (1 + self.distance)).all())

    def most(self, count: int = 10) -> Ints:
        """The figures that moved most, over all horizons."""
        size = np.nan_to_num(np.abs(np.atleast_2d(self.moved))).max(axis=0)
        return np.argsort(-size, kind="stable")[:count]

    def interval(self, p: Number = 0.95) -> Floats:
        """Ends, (…, n, 2), that hold each true figure with this probability, for normal errors as they were stated."""
        if self.standard_error is None:
            raise Refused("intervals need the errors of the figures: pass errors= to reconcile()")
        reach = special.ndtri((1 + float(probability("p", p))) / 2) * self.standard_error
        return np.stack([self.estimate - reach, self.estimate + reach], axis=-1)


@dataclass(frozen=True, eq=False)
class Covariance:
    """diag(own) + factors·factorsᵀ; missing figures with a variance above `undecided` are left open by others."""

    own: Floats
    factors: Floats
    undecided: float = np.inf

    def seen(self, known: Bools, unit: float) -> Covariance:
        """The same in steps, with a variance far above all others for what is missing."""
        own = np.where(known, self.own, OPEN * self.own.max()) / unit**2
        undecided = np.inf if known.all() else own[~known].min() / 4
        return Covariance(own, np.where(known[:, None], self.factors, 0.0) / unit, undecided)

    def times(self, x: Any) -> Any:
        return self.own[:, None] * x + self.factors @ (self.factors.T @ x)

    def distances(self, moves: Floats) -> Floats:
        """Squares of moves (h, n) over the covariance."""
        scaled = moves / self.own
        shared = scaled @ self.factors
        small = np.eye(self.factors.shape[1]) + self.factors.T @ (self.factors / self.own[:, None])
        taken = (shared * np.linalg.solve(small, shared.T).T).sum(axis=1) if shared.shape[1] else 0.0
        return np.asarray((scaled * moves).sum(axis=1) - taken)

    @property
    def stretch(self) -> float:
        """The covariance is at most this many times its own part."""
        scaled = self.factors / np.sqrt(self.own)[:, None]
        return 1.0 + float((scaled**2).sum())


def reconcile(
    values: npt.ArrayLike,
    rules: Constraint | Hierarchy | Sequence[Constraint | Hierarchy],
    errors: npt.ArrayLike | Number | tuple[npt.ArrayLike, npt.ArrayLike] | Mapping[str, npt.ArrayLike] | None = None,
    exact: Sequence[int] | Mapping[int, Number] | None = None,
    step: Number | None = 1,
) -> Reconciled:
    """Return the nearest figures that keep all rules: forecast reconciliation, controlled rounding, integerisation.

    Args:
        values: figures (n,), or one row for each horizon, (h, n); NaN where one is missing.
        rules: constraints (`equals`, `at_least`, `between`, `nonnegative`), a hierarchy that adds up, or a list.
        errors: standard errors (one, or n); a covariance (n, n); (standard errors, factors (n, k)) for diag(e²) + F·Fᵀ;
            or {"residuals": (times, n)} for MinT's shrunk estimate, with "levels" (n,) for one variance a level.
        exact: positions of figures that stay, or a mapping from positions to what they are.
        step: figures become multiples of it; None: real numbers.

    Example:
        >>> import holdfast as hf
        >>> tree = hf.Hierarchy.from_parents([-1, 0, 0])
        >>> hf.reconcile([10.2, 4.4, 4.9], tree).values.tolist()
        [10, 5, 5]
    """
    given = np.asarray(values)
    if given.dtype.kind not in "iuf" or not 0 < given.ndim <= 2 or not given.size or np.isinf(given).any():
        raise Refused("values must be numbers, (n,) or one row for each horizon, (h, n)")
    rows = np.atleast_2d(given).astype(np.float64)
    unit = Fraction(1) if step is None else positive("step", step)
    base, n = _together(rules), rows.shape[1]
    if np.isnan(rows).all(axis=1).any():
        raise Refused("every figure is missing: there is nothing to reconcile")
    if step is not None and np.nanmax(np.abs(rows)) / float(unit) >= MOST_STEPS:
        raise Refused(f"figures must stay below {MOST_STEPS:.0e} steps: pass a larger step")
    covariance = _covariance(errors, n)
    made, helds, bests = [], {}, {}
    for row in rows:
        fixes, known = tuple(_exact(exact, row, n).items()), np.isfinite(row)
        if fixes not in helds:
            parts = [fixed([at], [value]) for at, value in fixes]
            held = in_steps(reduce(and_, parts, base), unit)
            helds[fixes] = held, held.system(n)
        if known.tobytes() not in bests:  # the same rows for all horizons; the right-hand sides may differ
            bests[known.tobytes()] = Linear(helds[fixes][1], covariance.seen(known, float(unit)))
        made.append(_moved(np.nan_to_num(row / float(unit)), *helds[fixes], bests[known.tobytes()], real=step is None))
    points, estimates, distance, gap, spread = (np.array(each) for each in zip(*made, strict=True))
    found: Any = points
    if step is not None:
        found = points * unit.numerator if unit.denominator == 1 else points * unit.numerator / unit.denominator
    shape = given.shape
    return Reconciled(
        found.reshape(shape),
        (found - rows).reshape(shape),
        distance,
        gap,
        [looked_at([base], row, lambda i: f"figure {i}") for row in rows],
        (estimates * float(unit)).reshape(shape),
        None if errors is None else (spread * float(unit)).reshape(shape),
    )


def _together(rules: Any) -> Constraint:
    wanted = "a hierarchy, constraints without invariants or unions, or a list of these"
    given = [rules] if isinstance(rules, (Constraint, Hierarchy)) else listed("rules", rules, wanted)
    made = [consistent(each) if isinstance(each, Hierarchy) else each for each in given]
    if not made or not all(isinstance(each, Constraint) and not each.has_invariants | each.is_union for each in made):
        raise Refused(f"rules must be {wanted}")
    return reduce(and_, made)


def _exact(said: Any, row: Floats, n: int) -> dict[int, Fraction]:
    entries = [] if said is None else listed("exact", said, "a list of positions, or map them to values")
    pairs = dict(said) if isinstance(said, Mapping) else dict.fromkeys(entries)
    if not all(isinstance(at, int | np.integer) for at in entries) or len(pairs) < len(entries):
        raise Refused("exact must name every figure once, by its position")
    for at, value in pairs.items():
        if not 0 <= int(at) < n or (value is None and not np.isfinite(row[int(at)])):
            raise Refused(f"exact names figure {at}, which is not there: give its value, exact={{{at}: …}}")
    known = {at: row[at] if value is None else value for at, value in pairs.items()}
    return {int(at): rational("an exact value", value).limit_denominator(10**9) for at, value in known.items()}


def _covariance(errors: Any, n: int) -> Covariance:
    """What is said about errors."""
    factors = np.zeros((n, 0))
    if isinstance(errors, Mapping):
        return _of_residuals(errors, n)
    if isinstance(errors, tuple) and len(errors) == 2:
        errors, factors = errors[0], reals("factors", errors[1])
        factors = factors[:, None] if factors.ndim == 1 else factors
    given = reals("errors", 1 if errors is None else errors)
    if given.ndim == 2 and not factors.size:
        full = reals("errors", given, (n, n))
        values, vectors = np.linalg.eigh((full + full.T) / 2)
        size = np.abs(full).max()
        if np.abs(full - full.T).max() > ROUNDED * size or values[0] < ROUNDED * size:
            raise Refused("errors are no covariance: it must be symmetric, and positive in every direction")
        own, factors = np.full(n, values[0]), vectors * np.sqrt(values - values[0])
    else:
        own = np.full(n, given) if given.ndim == 0 else reals("errors", given, (n,))
        own = np.where(own > 0, own, 0.0) ** 2
    if factors.shape[:1] != (n,) or factors.ndim != 2 or (own <= 0).any():
        raise Refused("errors must be above 0, one for each figure: name figures that are known in exact")
    return Covariance(own, factors)


def _of_residuals(said: Mapping[str, Any], n: int) -> Covariance:
    """MinT's shrunk covariance from residuals (times, n), after Schäfer and Strimmer; with levels, a variance for each.

    Sums over pairs of figures are sums over pairs of times: no matrix of all figures is made.
    """
    if "residuals" not in said or set(said) - {"residuals", "levels"}:
        raise Refused("errors must hold 'residuals', (times, n), and 'levels' (n,) beside them or nothing")
    left = reals("residuals", said["residuals"])
    if left.ndim != 2 or left.shape[1] != n or len(left) < 2:
        raise Refused(f"residuals must have two rows or more, one for each time, with a column for each of {n} figures")
    times, variances = len(left), (left**2).mean(axis=0)
    if "levels" in said:
        level = np.unique(whole_numbers("levels", said["levels"], (n,)), return_inverse=True)[1]
        variances = (np.bincount(level, variances) / np.bincount(level))[level]
    if (variances == 0).any():
        raise Refused(f"residuals of figure {np.argmin(variances)} are 0 at all times: name it in exact")
    if "levels" in said:
        return Covariance(variances, np.zeros((n, 0)))
    x = left / np.sqrt(variances)
    gram = x @ x.T
    pairs = (gram**2).sum() / times**2 - n  # Σ over i ≠ j of squared correlations
    errors = ((x**2).sum(axis=1) ** 2).sum() - (gram**2).sum() / times - (x**4).sum() + times * n
    share = float(np.clip(errors / (times * (times - 1) * pairs), LEAST_SHARE, 1.0)) if pairs > 0 else 1.0
    return Covariance(share * variances, left.T * np.sqrt((1 - share) / times))


def _moved(y: Floats, rules: Constraint, system: System, best: Linear, *, real: bool) -> tuple[Any, ...]:
    """Figures in steps, the best real ones, their distance, the gap, and the errors of the best real ones."""
    covariance = best.covariance
    point, spread = best.moved(y[:, None], system.right_hand_sides())[:, 0], best.spread
    target = search.Target.of(system, y, covariance.own)
    if system.has_inequalities and target.outside(point):
        nearest = search.nearest_real(target, covariance.factors)
        if nearest is None:
            raise Refused("no real figures satisfy what must hold, or none were found: look for rules that contradict")
        point = nearest[0]
    least = float(covariance.distances((point - y)[None])[0])
    if real:
        return point, point, least, 0.0, spread
    alone = not covariance.factors.shape[1]
    weights = covariance.own * covariance.stretch
    near = search.Target.of(system, y if alone else point, weights)
    try:
        found = search.nearest_whole(near)
    except Refused:
        refuse_whole_contradiction(rules.parts, y.size)
        raise
    if alone:
        return found.values, point, found.distance, found.gap, spread
    distance = float(covariance.distances((found.values - y)[None])[0])
    return found.values, point, distance, max(0.0, distance - least - found.distance + found.gap), spread


class Linear:
    """The best linear estimate by the equalities alone, for a covariance of errors."""

    def __init__(self, system: System, covariance: Covariance) -> None:
        self.A, self.covariance = system.null_space().rows.astype(np.float64), covariance
        gram = csc_array(self.A @ diags_array(covariance.own) @ self.A.T)
        self._solve = sparse_linalg.splu(gram).solve if self.A.shape[0] else lambda right: right
        self._shared = np.asarray(self.A @ covariance.factors)
        self._small = np.eye(self._shared.shape[1]) + self._shared.T @ self._solve(self._shared)

    def _prices(self, right: Floats) -> Floats:
        first = self._solve(right)
        return np.asarray(first - self._solve(self._shared) @ np.linalg.solve(self._small, self._shared.T @ first))

    def moved(self, y: Floats, right: Any) -> Floats:
        """Figures (n, h), moved to where the independent equalities are `right`."""
        off = self.A @ y - np.reshape(np.asarray(right, dtype=np.float64), (-1, 1))
        return np.asarray(y - self.covariance.times(self.A.T @ self._prices(off)))

    @cached_property
    def spread(self) -> Floats:
        """The standard errors; NaN for more figures than can be computed."""
        variances = self.covariance.own + (self.covariance.factors**2).sum(axis=1)
        if self.A.shape[0] * variances.size > MOST_ENTRIES:
            return np.full(variances.size, np.nan)
        prices, own = self._prices(np.eye(self.A.shape[0])), diags_array(self.covariance.own)
        if self.covariance.factors.shape[1]:
            across = self.covariance.times(self.A.T.toarray())
            taken = (across * (across @ prices)).sum(axis=1)
        else:
            alone = csc_array(own @ self.A.T)
            taken = np.asarray(alone.multiply(alone @ prices).sum(axis=1)).ravel()
        left = np.maximum(variances - taken, 0.0)
        return np.sqrt(np.where(left > self.covariance.undecided, np.inf, left))
