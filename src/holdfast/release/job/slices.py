"""Noise that agents make apart from one secret: each makes its own slice, and the slices obey what must hold.

On a hierarchy the noise is made in two steps. The *head* step gives every agent the noise of the sums above the agents
and of the agents' own nodes; it comes from one substream that all know. The *slice* step divides an agent's nodes over
what is below them; it comes from a substream of that agent alone. Below its own node the noise of an agent depends on
nothing else, so this is the law itself and not an approximation. A histogram is a hierarchy with one node per agent.
Where there is no such structure every agent makes the whole noise and keeps its slice (SDP Algorithm 4 as printed).
Proofs: docs/theory/agents.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from holdfast.arguments import LARGEST, Refused
from holdfast.arrays import Floats, Ints
from holdfast.constraints import System
from holdfast.mechanism.mechanism import Mechanism
from holdfast.noise import Independent
from holdfast.randomness import Keys
from holdfast.release.table.division import NOBODY, Division
from holdfast.trees import Forest, Sampler

#: Bits by which the grid of real noise is finer than the smallest standard deviation: rounding adds below 2^−32 of the
#: variance to a value, and to the one of each group that takes what the others leave, once for each of them.
FINER = 16
DEPENDS = (
    "agents make their noise apart, so its law must not depend on the data: hold sums and exact figures only, with "
    "given() or extend(..., law='gaussian'), and leave out bounds such as nonnegative"
)
REAL = (
    "agents make real noise only where it is Gaussian on a hierarchy or a histogram with given(), or "
    "extend(..., law='gaussian'): use one of them, or integer noise"
)
APART = (
    "agents publish no sums over several agents, so these must be what the slices add up to: write consistent under "
    "hold, or use consistent() with given()"
)
UNMEASURED = "agents make noise only where every leaf is measured or exact: give every leaf level a share"


class SharedNoise(Protocol):
    """Noise of a table that agents make apart, counted in `step`."""

    @property
    def step(self) -> Fraction:
        """The step."""

    def head(self, keys: Keys) -> Ints:
        """Make what all agents have in common."""

    def slice(self, keys: Keys, number: int, head: Ints) -> Ints:
        """Make the noise of the outputs of an agent, in their order."""


def shared_noise(mechanism: Mechanism, division: Division) -> SharedNoise:
    """Find how agents make the noise of a mechanism; refuse where its law depends on the data."""
    made, law = mechanism.source.law, mechanism.base.law
    another = type(mechanism) is not Mechanism or (made is not None and law.integer)  # it may draw noise of its own
    if another or mechanism.moves or mechanism.query.grid is not None or mechanism.query.n != division.owner.size:
        raise Refused(DEPENDS)
    system = mechanism.source.system
    if system is not None and (system.has_inequalities or system.branches):
        raise Refused(DEPENDS)
    if mechanism.query.tree is not None and not _adds_up(system):
        raise Refused(APART)
    grove = _grove(mechanism, system, division)
    if law.integer:
        return Whole(mechanism, division) if grove is None else Integers(grove)
    if grove is None or law.kind != "gaussian" or made not in (None, "gaussian"):
        raise Refused(REAL)
    return Reals(grove)


def _adds_up(system: System | None) -> bool:
    return system is not None and any(part.kind == "consistent" for part in system.parts)


@dataclass(frozen=True, eq=False)
class Grove:
    """A forest of the outputs, perhaps with nodes of our own behind them, and the agent of every node."""

    division: Division
    forest: Forest
    law: Independent
    owner: Ints

    @cached_property
    def shown(self) -> Ints:
        """Where a node is known to all: it is nobody's, or the first of an agent's on its path."""
        above = np.where(self.forest.parents < 0, NOBODY, self.owner[self.forest.parents])
        return np.flatnonzero((self.owner == NOBODY) | (above != self.owner)).astype(np.int64)

    def members(self, number: int) -> Ints:
        """The nodes of an agent, increasing; those that are outputs come first."""
        return np.flatnonzero(self.owner == number).astype(np.int64)

    def below(self, members: Ints) -> Forest:
        place = np.full(self.forest.n, -1, dtype=np.int64)
        place[members] = np.arange(members.size)
        above = self.forest.parents[members]
        return Forest(np.where(above < 0, -1, place[above]), self.forest.exact[members])


def _grove(mechanism: Mechanism, system: System | None, division: Division) -> Grove | None:
    """Read the hierarchy of the outputs; make one for a histogram; None where there is none."""
    law, owner = mechanism.base.law, division.owner
    forest = None if system is None else Forest.of(system)
    if forest is None:
        total = _total(system, law.n) if mechanism.query.identity else None
        if total is None:
            return None
        agents = len(division.names)
        parents = np.concatenate([law.n + owner, np.full(agents, law.n + agents), [-1]])
        exact = np.zeros(parents.size, dtype=np.bool_)
        exact[-1] = total
        which = np.zeros(law.n, dtype=np.int32) if law.which is None else law.which
        which = np.concatenate([which, np.full(agents + 1, len(law.laws), dtype=np.int32)])
        law = Independent((*law.laws, None), which, parents.size)
        forest, owner = Forest(parents, exact), np.concatenate([owner, np.arange(agents), [NOBODY]])
    if not np.isfinite(law.variances[forest.is_leaf & ~forest.exact]).all():
        raise Refused(UNMEASURED)
    return Grove(division, forest, law, owner)


def _total(system: System | None, n: int) -> bool | None:
    """Whether the sum of all outputs is exact; None where something else must hold too."""
    if system is None or system.null_space().rank == 0:
        return False
    rows = system.null_space().rows
    alone = system.null_space().rank == 1 and rows.nnz == n and bool((rows.data == rows.data[0]).all())
    return True if alone else None


def of_agent(keys: Keys, name: str) -> Keys:
    return Keys.drawn_from(keys.at("agent", name))


@dataclass(frozen=True, eq=False)
class Integers:
    """Whole noise on a hierarchy.

    Law: independent integer noise given that sums hold and exact nodes have no noise; exact. The head is read from a
    whole table that is drawn for it and not used below it.
    """

    grove: Grove
    step: Fraction = Fraction(1)

    def head(self, keys: Keys) -> Ints:
        """Make the noise of all nodes that are shown; 0 elsewhere."""
        drawn = self._whole.draw(1, keys.at("head"))[0]
        head = np.zeros_like(drawn)
        head[self.grove.shown] = drawn[self.grove.shown]
        return head

    def slice(self, keys: Keys, number: int, head: Ints) -> Ints:
        """Divide the noise of an agent's nodes over what is below them."""
        grove = self.grove
        members = grove.members(number)
        sampler = _sampler(grove.below(members), grove.law.at(members), head[members])
        stream = of_agent(keys, grove.division.names[number]).at("slice")
        return np.asarray(sampler.draw(1, stream)[0][members < grove.division.owner.size])

    @cached_property
    def _whole(self) -> Sampler:
        return _sampler(self.grove.forest, self.grove.law, None)


def _sampler(forest: Forest, law: Independent, at_roots: Ints | None) -> Sampler:
    free = np.full(forest.n, LARGEST, dtype=np.int64)
    return Sampler.of(forest, law, -free, free, at_roots=at_roots)


@dataclass(frozen=True, eq=False)
class Reals:
    """Gaussian noise on a hierarchy, in whole steps of a grid.

    Law: a fixed function of independent Gaussian noise given that sums hold and exact nodes have no noise. From the
    roots down, children with independent noise e of variance V get e + V/ΣV·(u − Σe), u the noise of their parent, each
    rounded to the grid; the last of them takes what the others leave.
    """

    grove: Grove

    @cached_property
    def step(self) -> Fraction:
        least = float(np.sqrt(self.grove.law.variances.min()))
        return Fraction(2) ** (math.frexp(least)[1] - 1 - FINER)

    @cached_property
    def _order(self) -> list[int]:
        return [v for v in self.grove.forest.order.tolist() if not self.grove.forest.is_leaf[v]]

    @cached_property
    def _variances(self) -> tuple[Floats, Floats]:
        """The variance of each node's noise given nothing above it, and that of the sum of its children."""
        forest = self.grove.forest
        upward, below = self.grove.law.variances.copy(), np.zeros(forest.n)
        upward[forest.exact] = 0.0
        for v in reversed(self._order):
            below[v] = math.fsum(upward[forest.children_of(v)])
            if forest.exact[v] or below[v] == 0:
                upward[v] = 0.0
            else:
                upward[v] = 1 / (1 / below[v] + 1 / upward[v])  # 1/∞ is 0: not measured
        return upward, below

    def head(self, keys: Keys) -> Ints:
        """Make the noise of all nodes that are shown; 0 elsewhere."""
        forest, owner = self.grove.forest, self.grove.owner
        noise = np.zeros(forest.n, dtype=np.int64)
        common = Keys.drawn_from(keys.at("head"))
        upward, _ = self._variances
        for root in np.flatnonzero(forest.parents < 0).tolist():
            deviation = math.sqrt(upward[root]) / float(self.step)
            noise[root] = np.rint(common.at("root", root).normals(1)[0] * deviation)
        self._divide([v for v in self._order if owner[v] == NOBODY], noise, common)
        return noise

    def slice(self, keys: Keys, number: int, head: Ints) -> Ints:
        """Divide the noise of an agent's nodes over what is below them."""
        noise, owner = head.copy(), self.grove.owner
        own = of_agent(keys, self.grove.division.names[number])
        self._divide([v for v in self._order if owner[v] == number], noise, own)
        members = self.grove.members(number)
        return np.asarray(noise[members[members < self.grove.division.owner.size]])

    def _divide(self, nodes: list[int], noise: Ints, keys: Keys) -> None:
        """Divide the noise of nodes over their children, parents before children."""
        upward, below = self._variances
        for v in nodes:
            if below[v] == 0:
                continue  # nothing below has noise
            children = self.grove.forest.children_of(v)
            children = children[upward[children] > 0]
            variances = upward[children]
            drawn = keys.at("children", v).normals(children.size) * (np.sqrt(variances) / float(self.step))
            drawn += variances / below[v] * (float(noise[v]) - math.fsum(drawn))
            whole = np.rint(drawn).astype(np.int64)
            whole[-1] = noise[v] - whole[:-1].sum()
            noise[children] = whole


@dataclass(frozen=True, eq=False)
class Whole:
    """Whole noise under any equalities: every agent makes all of it and keeps its slice (SDP Algorithm 4)."""

    mechanism: Mechanism
    division: Division
    step: Fraction = Fraction(1)

    def head(self, keys: Keys) -> Ints:
        return np.asarray(self.mechanism.noise(1, keys.at("head"))[0], dtype=np.int64)

    def slice(self, keys: Keys, number: int, head: Ints) -> Ints:
        del keys  # nothing else is made
        return np.asarray(head[self.division.owner == number])


def noise_of_agent(noise: SharedNoise, division: Division, keys: Keys, name: str) -> Ints:
    return noise.slice(keys, division.number(name), noise.head(keys))


def noise_of_all(noise: SharedNoise, division: Division, keys: Keys) -> list[Ints]:
    """Make the noise of every agent on one machine, in steps; what is common is made once."""
    head = noise.head(keys)
    return [noise.slice(keys, number, head) for number in range(len(division.names))]


def in_units(steps: npt.NDArray[Any], step: Fraction) -> npt.NDArray[Any]:
    """Return whole steps in the units of the table: as they are, or as doubles that hold them exactly."""
    if step == 1:
        return steps
    if steps.size and int(np.abs(steps).max()) >= 2**53:
        raise Refused("a value is too large for the grid of its noise: use integer noise")
    return np.asarray(steps * float(step))
