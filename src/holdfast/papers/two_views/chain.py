"""TV Algorithm 1 in plain numpy, with the arguments the paper gives it; for studies, and for releases never.

A state holds every output of a hierarchy. A proposal moves all leaves, parents are solved as sums, what breaks A z ≥ a
is rejected, and the rest is accepted with the ratio of densities and proposals. `method="metropolis"` of `given` is the
same chain, compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from holdfast.arrays import Floats
from holdfast.domains import Hierarchy
from holdfast.given.baselines.metropolis import effective_draws, split_r_hat

#: From leaves (chains, leaves) to proposed ones, and log q(old | new) − log q(new | old) for each chain.
Proposal = Callable[[np.random.Generator, Floats], tuple[Floats, Floats]]


@dataclass(frozen=True, eq=False)
class Chain:
    """The chain itself: kept states (chains, kept, n), and the share of proposals that were accepted."""

    states: Floats
    accepted: float

    @property
    def effective(self) -> Floats:
        return effective_draws(self.states)

    @property
    def r_hat(self) -> Floats:
        """Split R-hat of each output; it is evidence and proves nothing."""
        return split_r_hat(self.states)


def normal(step: float) -> Proposal:
    """Normal steps of this length; symmetric."""
    return lambda rng, leaves: (leaves + step * rng.standard_normal(leaves.shape), np.zeros(len(leaves)))


def rounded(step: float) -> Proposal:
    """Normal steps rounded to whole numbers; symmetric."""
    return lambda rng, leaves: (leaves + np.rint(step * rng.standard_normal(leaves.shape)), np.zeros(len(leaves)))


def algorithm_1(
    log_density: Callable[[Floats], Floats],
    tree: Hierarchy,
    proposal: Proposal,
    start: Floats,
    length: int,
    rng: np.random.Generator,
    *,
    thin: int = 1,
    A: Floats | None = None,
    a: Floats | None = None,
) -> Chain:
    """Run chains from `start`, the leaves of each (chains, leaves), and keep every `thin`-th state."""

    def solved(leaves: Floats) -> Floats:
        return np.ascontiguousarray(tree.sum_up(leaves.T).T)  # step (c): parents from children

    def energy(states: Floats) -> Floats:
        found = log_density(states)
        return found if A is None or a is None else np.where((states @ A.T >= a).all(axis=1), found, -np.inf)

    leaves = np.array(start, dtype=np.float64)
    states = solved(leaves)
    now, accepted, kept = energy(states), 0, []
    for step in range(1, length + 1):
        moved, ratio = proposal(rng, leaves)
        proposed = solved(moved)
        then = energy(proposed)
        takes = np.log(rng.random(len(leaves))) < then - now + ratio
        leaves[takes], states[takes], now[takes] = moved[takes], proposed[takes], then[takes]
        accepted += int(takes.sum())
        if step % thin == 0:
            kept.append(states.copy())
    return Chain(np.stack(kept, axis=1), accepted / (length * len(leaves)))
