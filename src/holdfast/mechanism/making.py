"""Mechanisms of independent noise: what the two verbs start from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.mechanism.checking import a_query
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.source import Plain
from holdfast.privacy.budget import gaussian_base, laplace_base
from holdfast.queries import Neighbours, Query


def laplace(
    query: Query,
    *,
    epsilon: Any = None,
    scale: Any = None,
    neighbours: str | Neighbours = "add-remove",
    integer: bool = True,
    shares: Mapping[Any, Any] | None = None,
) -> Mechanism:
    """Laplace noise for a query, by exactly one of epsilon and scale.

    Law: q(x) + U, U_i independent with weights e^{−|u|/λ_i} on the whole numbers (or the reals).
    Guarantee: pure ε = max Σ|d_i|/λ_i (THEORY §1; TV Prop 7, SDP Lemma 16).
    """
    relation = Neighbours.of(neighbours)
    return Mechanism(Plain(laplace_base(a_query(query), relation, integer, epsilon, scale, shares)))


def gaussian(
    query: Query,
    *,
    epsilon: Any = None,
    delta: Any = None,
    rho: Any = None,
    scale: Any = None,
    neighbours: str | Neighbours = "add-remove",
    integer: bool = True,
    shares: Mapping[Any, Any] | None = None,
    calibration: str | None = None,
) -> Mechanism:
    """Gaussian noise for a query, by exactly one of (epsilon, delta), rho and scale.

    Law: q(x) + U, U_i independent with weights e^{−u²/2σ_i²} on the whole numbers (or the reals).
    Guarantee: μ-GDP (continuous; Balle–Wang 2018) or ρ-zCDP with the exact δ(ε) of the loss law (integer;
    Canonne–Kamath–Steinke 2020). `calibration="classical"` is the papers' formula, with its true δ printed.
    """
    relation = Neighbours.of(neighbours)
    made = gaussian_base(a_query(query), relation, integer, epsilon, delta, rho, scale, shares, calibration)
    return Mechanism(Plain(made))
