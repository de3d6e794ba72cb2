"""Noise that agents make apart from one secret: each makes its own slice, and the slices obey what must hold.

On a hierarchy the noise is made in two steps. The *head* step gives every agent the noise of the sums above the agents
and of the agents' own nodes; it comes from one substream that all know. The *slice* step divides an agent's nodes over
what is below them; it comes from a substream of that agent alone. Below its own node the noise of an agent depends on
nothing else, so this is the law itself and not an approximation. A histogram is a hierarchy with one node per agent.
Where there is no such structure every agent makes the whole noise and keeps its slice (SDP Algorithm 4 as printed).
Proofs: docs/theory/agents.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Ints
from holdfast.constraints import System
from holdfast.mechanism.mechanism import Mechanism
from holdfast.noise import Independent
from holdfast.randomness import Keys
from holdfast.release.table.division import NOBODY, Division
from holdfast.trees import Forest, Sampler

DEPENDS = (
    "agents make whole noise apart, so its law must not depend on the data: hold sums and exact figures only, with "
    "given(), and leave out bounds such as nonnegative"
)
REAL = "agents make whole numbers, and this noise is real: write numbers: whole in the table"
APART = (
    "agents publish no sums over several agents, so these must be what the slices add up to: write consistent under "
    "hold, or use consistent() with given()"
)
UNMEASURED = "agents make noise only where every leaf is measured or exact: give every leaf level a share"


@dataclass(frozen=True, eq=False)
class SharedNoise:
    """Whole noise of a table that agents make apart.

    Law: that of the mechanism, exactly. `forest` has the outputs, perhaps with nodes of our own behind them, and
    `owner` the agent of each of its nodes; where there is none every agent makes all of the noise.
    """

    mechanism: Mechanism
    division: Division
    forest: Forest | None
    law: Independent
    owner: Ints

    def head(self, keys: Keys) -> Ints:
        """Make what all agents have in common: the noise of nodes that are nobody's, or the first of an agent's."""
        forest, stream = self.forest, keys.at("head")
        if forest is None:
            return np.asarray(self.mechanism.noise(1, stream)[0], dtype=np.int64)
        drawn = _sampler(forest, self.law, None).draw(1, stream)[0]
        above = np.where(forest.parents < 0, NOBODY, self.owner[forest.parents])
        return np.where((self.owner == NOBODY) | (above != self.owner), drawn, 0)

    def slice(self, keys: Keys, number: int, head: Ints) -> Ints:
        """Make the noise of the outputs of an agent, in their order: that of its nodes, divided over what is below."""
        if self.forest is None:
            return np.asarray(head[self.division.owner == number])
        members = np.flatnonzero(self.owner == number)  # those that are outputs come first
        place = np.full(self.forest.n, -1, dtype=np.int64)
        place[members] = np.arange(members.size)
        above = self.forest.parents[members]
        below = Forest(np.where(above < 0, -1, place[above]), self.forest.exact[members])
        stream = Keys.drawn_from(keys.at("agent", self.division.names[number])).at("slice")
        drawn = _sampler(below, self.law.at(members), head[members]).draw(1, stream)[0]
        return np.asarray(drawn[members < self.division.owner.size])


def shared_noise(mechanism: Mechanism, division: Division) -> SharedNoise:
    """Find how agents make the noise of a mechanism; refuse where its law depends on the data."""
    law, owner, system = mechanism.base.law, division.owner, mechanism.source.system
    if not law.integer:
        raise Refused(REAL)
    another = type(mechanism) is not Mechanism or mechanism.source.law is not None  # it may draw noise of its own
    bounded = system is not None and (system.has_inequalities or system.branches)
    if another or bounded or mechanism.moves or mechanism.query.grid is not None or mechanism.query.n != owner.size:
        raise Refused(DEPENDS)
    adds_up = system is not None and any(part.kind == "consistent" for part in system.parts)
    if mechanism.query.tree is not None and not adds_up:
        raise Refused(APART)
    forest = None if system is None else Forest.of(system)
    total = _total(system, law.n) if forest is None and mechanism.query.identity else None
    if total is not None:  # cells, with a node of our own for each agent
        agents = len(division.names)
        parents = np.concatenate([law.n + owner, np.full(agents, law.n + agents), [-1]])
        exact = np.zeros(parents.size, dtype=np.bool_)
        exact[-1] = total
        which = np.zeros(law.n, dtype=np.int32) if law.which is None else law.which
        which = np.concatenate([which, np.full(agents + 1, len(law.laws), dtype=np.int32)])
        law = Independent((*law.laws, None), which, parents.size)
        forest, owner = Forest(parents, exact), np.concatenate([owner, np.arange(agents), [NOBODY]])
    if forest is not None and not np.isfinite(law.variances[forest.is_leaf & ~forest.exact]).all():
        raise Refused(UNMEASURED)
    return SharedNoise(mechanism, division, forest, law, owner)


def _total(system: System | None, n: int) -> bool | None:
    """Whether the sum of all outputs is exact; None where something else must hold too."""
    if system is None or system.null_space().rank == 0:
        return False
    rows = system.null_space().rows
    alone = system.null_space().rank == 1 and rows.nnz == n and bool((rows.data == rows.data[0]).all())
    return True if alone else None


def _sampler(forest: Forest, law: Independent, at_roots: Ints | None) -> Sampler:
    free = np.full(forest.n, LARGEST, dtype=np.int64)
    return Sampler.of(forest, law, -free, free, at_roots=at_roots)
