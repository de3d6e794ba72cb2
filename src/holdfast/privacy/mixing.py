"""One of several mechanisms, chosen by a public coin: what the choice promises.

*Guarantee:* the largest numbers of the parts (TV Thm 16, part 2). Publishing which part was chosen would promise the
same: the coin does not depend on the data, so (ε, δ) holds part by part, a test of level Σa_iα_i has power at most
Σa_i·G(α_i), G concave (Gaussian privacy), and e^{(α−1)D_α} averages over the parts (Rényi). Forgetting the coin is
post-processing (docs/theory/unions.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.arguments import Refused
from holdfast.privacy.composition import for_records
from holdfast.privacy.guarantee import SCOPES, STATUSES, Guarantee
from holdfast.privacy.losses.conversion import pure_rho
from holdfast.privacy.losses.integer_gaussian import Losses

BECAUSE = "a public coin chooses one of several mechanisms: the largest numbers of the parts hold (TV Thm 16)"


def mixed(statements: Sequence[Guarantee]) -> Guarantee:
    """Return what a mixture with fixed public weights promises, from one statement about each part.

    The statements are about the same changes: all neighbours, or changes that keep the exact figures of all parts. A
    part that is private for all neighbours is subspace private for every subspace (SDP Prop 7, Cor 8), and a mixture of
    parts that are so for one subspace is too (SDP §2.3).
    """
    kinds = sorted({part.neighbours.kind for part in statements})
    if len(kinds) > 1:
        raise Refused(f"the parts of a mixture must be about the same neighbours, found {' and '.join(kinds)}")
    scopes = {part.scope for part in statements}
    if "invariant-sharing" in scopes and len(scopes) > 1:
        raise Refused("the parts of a mixture must be about the same changes to be stated together")
    records = max(part.records for part in statements)
    parts = [for_records(part, records) for part in statements]
    rhos = [part.rho if part.rho is not None else pure_rho(part.epsilon) if part.pure else None for part in parts]
    epsilon = _largest([part.epsilon for part in parts])
    rho, mu = _largest(rhos), _largest([part.mu for part in parts])
    if epsilon is None and rho is None and mu is None:
        raise Refused(
            "the parts of a mixture state no common number: ask all of them for epsilon and delta, or for rho"
        )
    return Guarantee(
        epsilon=epsilon,
        delta=0.0 if epsilon is None else max(part.delta for part in parts),
        rho=rho,
        mu=mu,
        losses=_united([part.losses for part in parts]),
        neighbours=parts[0].neighbours,
        scope=max(scopes, key=SCOPES.index),
        status=max((part.status for part in parts), key=STATUSES.index),
        because=BECAUSE,
        unprotected=tuple(words for part in parts for words in part.unprotected),
        numerical_delta=0.0 if epsilon is None else max(part.numerical_delta for part in parts),
        caveats=tuple(words for part in parts for words in part.caveats),
        assumes=tuple(words for part in parts for words in part.assumes),
        orders="integer" if rho is not None and any(part.orders == "integer" for part in parts) else "all",
    )


def _united(losses: Sequence[Losses]) -> Losses:
    """The kinds of all parts, the worst of which decides: δ(ε) of a mixture is at most the average of the parts'."""
    return () if not all(losses) else tuple(kind for each in losses for kind in each)


def _largest(values: Sequence[float | None]) -> float | None:
    """The largest number; None where one is not known."""
    known = [value for value in values if value is not None]
    return max(known) if len(known) == len(values) else None
