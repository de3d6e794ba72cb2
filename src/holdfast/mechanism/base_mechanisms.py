"""Mechanisms of independent noise: what the two verbs start from."""

from __future__ import annotations

from holdfast.arguments import ByLevel, Number, Numbers, Refused
from holdfast.mechanism.checking import a_query
from holdfast.mechanism.correlated.residual_noise import on_residuals
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.noise_source import Plain
from holdfast.privacy.budget import gaussian_base, laplace_base
from holdfast.queries import Neighbours, Query


def laplace(
    query: Query,
    *,
    epsilon: Number | None = None,
    scale: Number | Numbers | ByLevel | None = None,
    neighbours: str | Neighbours = "add-remove",
    integer: bool = True,
    shares: ByLevel | None = None,
) -> Mechanism:
    """Laplace noise for a query, by exactly one of epsilon and scale.

    Args:
        query: what is asked.
        epsilon: the budget.
        scale: λ: a number, {level: number} or one per output; inf: not measured.
        neighbours: "add-remove", "replace-one" or a `Neighbours`.
        integer: whole noise, drawn exactly; False: real noise, proved in real arithmetic.
        shares: parts of the budget by level or margin, {level: share}; 0: not measured. None: one scale for all.

    Law:
        q(x) + U, U_i independent with weights e^{−|u|/λ_i} on the whole numbers (or the reals).
    Guarantee:
        Pure ε = max Σ|d_i|/λ_i (THEORY §1; TV Prop 7, SDP Lemma 16).

    Example:
        >>> import holdfast as hf
        >>> mechanism = hf.laplace(hf.counts(hf.Hierarchy.from_parents([-1, 0, 0])), epsilon=1)
        >>> mechanism.guarantee.epsilon, mechanism.standard_error().round(2).tolist()
        (1.0, [2.8, 2.8, 2.8])
    """
    relation = Neighbours.of(neighbours)
    return Mechanism(Plain(laplace_base(a_query(query), relation, integer, epsilon, scale, shares)))


def gaussian(
    query: Query,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    scale: Number | Numbers | ByLevel | None = None,
    neighbours: str | Neighbours = "add-remove",
    integer: bool = True,
    shares: ByLevel | None = None,
    calibration: str | None = None,
    residuals: bool = False,
) -> Mechanism:
    """Gaussian noise for a query, by exactly one of (epsilon, delta), rho and scale.

    Args:
        query: what is asked.
        epsilon: the budget, with delta.
        delta: the budget, with epsilon.
        rho: the budget, of zero-concentrated privacy.
        scale: σ: a number, {level: number} or one per output; inf: not measured.
        neighbours: "add-remove", "replace-one" or a `Neighbours`.
        integer: whole noise, drawn exactly; False: real noise, proved in real arithmetic.
        shares: parts of the budget by level or margin, {level: share}; 0: not measured. None: one scale for all.
        calibration: None is the tightest proved for this law; "classical" is the papers' formula, with its true δ
            printed.
        residuals: noise on the residuals of the query, each with its own precision, instead of on its outputs; shares
            as from `best_shares(…, residuals=True)`. Move it with `onto` structural constraints.

    Law:
        q(x) + U, U_i independent with weights e^{−u²/2σ_i²} on the whole numbers (or the reals). On residuals: U normal
        noise that adds up, rounded figure by figure where it is whole.
    Guarantee:
        μ-GDP (continuous; Balle–Wang 2018) or ρ-zCDP with the exact δ(ε) of the loss law (integer;
        Canonne–Kamath–Steinke 2020); on residuals μ-GDP (docs/theory/areas-and-margins.md, Proposition 8).

    Example:
        >>> import holdfast as hf
        >>> hf.gaussian(hf.histogram(3), rho=0.5).guarantee.rho
        0.5
    """
    relation = Neighbours.of(neighbours)
    if residuals:
        if scale is not None or calibration is not None:
            raise Refused(
                "noise on residuals is asked for by rho, or by epsilon and delta: leave scale and calibration out"
            )
        budget = {"epsilon": epsilon, "delta": delta, "rho": rho}
        return Mechanism(on_residuals(a_query(query), relation, bool(integer), budget, shares))
    made = gaussian_base(a_query(query), relation, integer, epsilon, delta, rho, scale, shares, calibration)
    return Mechanism(Plain(made))
