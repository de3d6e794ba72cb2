"""The same mechanism with its noise rescaled so that its total guarantee meets a target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Protocol, Self, TypeVar

from holdfast.arguments import Refused, one_of, positive, probability
from holdfast.mechanism.noise_source import Source, is_drawn
from holdfast.privacy import Additive, Guarantee, Promise, Target, gaussian_mu
from holdfast.privacy.budget import one_budget
from holdfast.privacy.factor import factor_meeting
from holdfast.privacy.guarantee import SCOPES
from holdfast.privacy.rounding import inward


class Rescalable(Protocol):
    """What can be calibrated."""

    @property
    def source(self) -> Source:
        """What is drawn."""

    @property
    def promise(self) -> Promise:
        """What it promises."""

    def over(self, base: Additive) -> Self:
        """The same with rescaled noise."""


Made = TypeVar("Made", bound=Rescalable)


def calibrated(mechanism: Made, epsilon: Any, delta: Any, rho: Any, scope: str | None) -> Made:
    """The mechanism whose total guarantee, the first one or the first of a scope, is this, met from below."""
    base = mechanism.source.base
    if one_budget(epsilon=epsilon, rho=rho) == "rho":
        target = positive("rho", rho)
        if delta is not None:
            raise Refused("delta goes with epsilon: give both, or rho alone")
        return _rescaled(mechanism, _Aim(target, lambda statement: statement.rho, "rho", scope), 2 * target)
    target = positive("epsilon", epsilon)
    if delta is None:
        return _rescaled(mechanism, _Aim(target, _epsilon, "epsilon", scope), target)
    limit = probability("delta", delta)
    start = mechanism.over(replace(base, target=Target(target, limit)))
    loss = target if base.law.kind == "laplace" else Fraction(gaussian_mu(target, limit)) ** 2
    return _rescaled(start, _Aim(target, partial(_epsilon_at, limit), "epsilon and delta", scope), loss)


@dataclass(frozen=True)
class _Aim:
    """What is measured of which statement, and what it shall be."""

    target: Fraction
    measure: Callable[[Guarantee], float | None]
    what: str
    scope: str | None

    def of(self, promise: Promise) -> float:
        """Measure the first statement, or the first of the scope; refused where there is none."""
        found = self.measure(_of_scope(promise, self.scope))
        if found is None:
            hint = "give delta too, or rho" if self.what == "epsilon" else "calibrate to what it does promise"
            raise Refused(f"this mechanism promises no {self.what}: {hint}")
        return found


def _of_scope(promise: Promise, scope: str | None) -> Guarantee:
    if scope is None:
        return promise.best
    one_of("scope", scope, SCOPES)
    found = next((each for each in promise.statements if each.scope == scope and not each.void), None)
    if found is None:
        raise Refused(f"this mechanism makes no statement of scope {scope!r}")
    return found


def _rescaled(mechanism: Made, aim: _Aim, loss: Fraction) -> Made:
    """Find by bisection the factor on all scales at which the total guarantee meets the target.

    The search starts where the noise alone has this loss, so that the scales one comes from do not matter.
    """
    base = mechanism.source.base
    try:
        first = base.rescaled(base.factor_for(loss))
    except Refused:  # no noise is so small or so large, but the total may differ from the noise alone
        first = base

    def at(factor: Fraction) -> Made:
        return mechanism.over(first.rescaled(factor))

    is_known = is_drawn(at(Fraction(1)).source)

    def met(factor: Fraction) -> float:
        rescaled = at(factor)
        return math.inf if is_known and not is_drawn(rescaled.source) else aim.of(rescaled.promise)

    try:
        return at(factor_meeting(met, float(aim.target), squared=aim.what != "epsilon"))
    except OverflowError:
        raise Refused(f"this mechanism promises less {aim.what} than asked at any scale: ask for less") from None
    except ZeroDivisionError:
        raise Refused(
            f"no way is known to draw noise as wide as this {aim.what} needs here: use onto(), or ask for more"
        ) from None


def _epsilon(statement: Guarantee) -> float | None:
    """The ε of a statement whose δ, if any, only pays for numerical error; infinite for a void one."""
    return statement.epsilon if statement.delta == statement.numerical_delta else None


def _epsilon_at(delta: Fraction, statement: Guarantee) -> float:
    """The ε of a statement at this δ; infinite where its own δ is larger."""
    if statement.void or (statement.rho is None and statement.mu is None and statement.delta > inward(delta)):
        return math.inf
    return statement.at_delta(delta).epsilon or 0.0
