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
from holdfast.privacy.conversion import pure_rho
from holdfast.privacy.guarantee import STATUSES, Guarantee

BECAUSE = "a public coin chooses one of several mechanisms: the largest numbers of the parts hold (TV Thm 16)"


def mixed(statements: Sequence[Guarantee]) -> Guarantee:
    """Return what a mixture with fixed public weights promises, from one statement about each part.

    Only statements about all neighbours mix here: exact figures of different parts need not be shared together.
    """
    kinds = sorted({part.neighbours.kind for part in statements})
    if len(kinds) > 1:
        raise Refused(f"the parts of a mixture must be about the same neighbours, found {' and '.join(kinds)}")
    if any(part.scope != "all" for part in statements):
        raise Refused("a mixture is stated for parts that protect all neighbours: leave invariants out of its parts")
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
        neighbours=parts[0].neighbours,
        status=max((part.status for part in parts), key=STATUSES.index),
        because=BECAUSE,
        unprotected=tuple(words for part in parts for words in part.unprotected),
        numerical_delta=0.0 if epsilon is None else max(part.numerical_delta for part in parts),
        caveats=tuple(words for part in parts for words in part.caveats),
        orders="integer" if rho is not None and any(part.orders == "integer" for part in parts) else "all",
    )


def _largest(values: Sequence[float | None]) -> float | None:
    """The largest number; None where one is not known."""
    known = [value for value in values if value is not None]
    return max(known) if len(known) == len(values) else None
