"""Noise that agents make apart from one secret: each makes its own slice, and the slices obey what must hold.

On a hierarchy the noise is made in two steps. The *head* step gives every agent the noise of the sums above the agents
and of the agents' own nodes; it comes from one substream that all know. The *slice* step divides an agent's nodes over
what is below them; it comes from a substream of that agent alone. Below its own node the noise of an agent depends on
nothing else, so this is the law itself and not an approximation. A histogram is a hierarchy with one node per agent.
Where there is no such structure every agent makes the whole noise and keeps its slice (SDP Algorithm 4 as printed).
Proofs: docs/theory/agents.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import LARGEST, Refused, one_of, positions, shown
from holdfast.arrays import Ints
from holdfast.constraints import System
from holdfast.mechanism.mechanism import Mechanism
from holdfast.noise import Independent
from holdfast.privacy import Guarantee
from holdfast.queries import Query
from holdfast.randomness import Keys
from holdfast.release.spec.places import At
from holdfast.release.table.shape import Layout
from holdfast.trees import Forest, Sampler

#: The number of the agent that holds an output which is a sum over several agents: nobody does.
NOBODY = -1
OUTSIDERS = (
    "it holds against outsiders, not against an agent: whoever has the shared secret can make the noise again and "
    "remove it"
)


@dataclass(frozen=True, eq=False)
class Division:
    """The agents of a table. `owner` has the number of the agent that holds each output, or NOBODY."""

    names: tuple[str, ...]
    owner: Ints

    @classmethod
    def of(cls, query: Query, parts: Mapping[str, Any]) -> Division:
        """Give every agent its nodes of a hierarchy, with all that is below them, or its cells of other tables."""
        if not parts:
            raise Refused("there must be at least one agent, found none")
        for name in parts:
            if not name.strip():
                raise Refused(f"agents must have names that are not empty, found {shown(name)}")
        tree = query.tree
        if tree is None and not query.identity:
            raise Refused("agents hold nodes of a hierarchy or cells: ask for counts(), histogram() or cells of a cube")
        things, size = ("nodes", tree.n) if tree is not None else ("cells", query.n)
        owner = np.full(size, NOBODY, dtype=np.int64)
        for number, (name, held) in enumerate(parts.items()):
            chosen = positions(f"{things} of agent {name!r}", held, size)
            if (owner[chosen] != NOBODY).any():
                raise Refused(f"agent {name!r} shares {things} with another agent: give each to one of them")
            owner[chosen] = number
        if tree is None:
            ends = owner
        else:
            owner = _with_all_below(tree, owner)
            ends = owner[tree.leaves]
            owner = np.repeat(owner, query.n // tree.n)
        if (ends == NOBODY).any():
            raise Refused(f"some {'leaf' if tree is not None else 'cell'} has no agent: give every one to an agent")
        return cls(tuple(parts), owner)

    def number(self, name: str) -> int:
        return self.names.index(one_of("agent", name, self.names))

    def outputs(self, name: str) -> Ints:
        return np.flatnonzero(self.owner == self.number(name)).astype(np.int64)


def against_outsiders(statement: Guarantee) -> Guarantee:
    """Return what a statement about a mechanism becomes where agents make the noise from a shared secret."""
    return replace(statement, caveats=(*statement.caveats, OUTSIDERS))


def division_of(layout: Layout) -> Division | None:
    """Read from the spec who holds what; None where no agents are named."""
    asked = layout.spec.distributed
    if asked is None:
        return None
    at = layout.spec.at["distributed"]
    try:
        if asked.by is not None:
            return Division.of(layout.query, _by(layout, asked.by))
        assert asked.agents is not None
        parts = {
            name: np.concatenate([_held(layout, item, at["agents"][name][i]) for i, item in enumerate(held)])
            for name, held in asked.agents.items()
        }
        return Division.of(layout.query, parts)
    except Refused as refusal:
        raise refusal if hasattr(refusal, "line") else at.refuse(str(refusal)) from None


def _held(layout: Layout, item: Any, at: At) -> Ints:
    """The nodes or cells that a name, a path or values of columns mean."""
    if layout.tree is not None and not isinstance(item, dict):
        return np.asarray(layout.meaning(item, at)[0], dtype=np.int64)
    if layout.tree is not None:
        raise at.refuse("agents of a hierarchy hold nodes: name them, or give their paths", item)
    return np.flatnonzero(layout.cells(item, at)).astype(np.int64)


def _by(layout: Layout, column: str) -> dict[str, Ints]:
    """One agent per node of a level, or per value of a column."""
    at = layout.spec.at["distributed"]["by"]
    tree = layout.tree
    if tree is not None:
        if column not in tree.levels:
            raise at.refuse(f"there is no level {column!r}", column, tree.levels)
        nodes = tree.nodes_at(column)
        names = [str(tree.names[v]) for v in nodes]
        if len(set(names)) < len(names):
            names = [" / ".join(map(str, tree.path(int(v)))) for v in nodes]
        return {name: np.array([v], dtype=np.int64) for name, v in zip(names, nodes, strict=True)}
    if column not in layout.names:
        raise at.refuse(f"there is no column {column!r}", column, layout.names)
    axis = layout.names.index(column)
    position = np.indices([key.size for key in layout.keys])[axis].ravel()
    values = layout.keys[axis].values[-1].tolist()
    return {str(value): np.flatnonzero(position == i).astype(np.int64) for i, value in enumerate(values)}


def _with_all_below(tree: Any, owner: Ints) -> Ints:
    """Give everything below an agent's node to the agent; refuse two agents on one path."""
    found = owner.copy()
    for depth in range(1, len(tree.levels)):
        level = tree.order[tree.level_start[depth] : tree.level_start[depth + 1]]
        above = found[tree.parents[level]]
        clash = (above != NOBODY) & (found[level] != NOBODY) & (found[level] != above)
        if clash.any():
            raise Refused("an agent holds a node below another agent's node: give each subtree to one of them")
        found[level] = np.where(above != NOBODY, above, found[level])
    return found


def joined(query: Query, division: Division, slices: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Put the agents' values together, in their order, and add up what nobody holds."""
    values = np.zeros(query.n, dtype=np.result_type(*slices))
    for name, part in zip(division.names, slices, strict=True):
        values[division.outputs(name)] = part
    tree = query.tree
    if tree is None:
        return values
    by = query.n // tree.n
    table = values.reshape(tree.n, by)
    order = tree.order[::-1]
    for v in order[division.owner[order * by] == NOBODY].tolist():
        table[v] = table[tree.children_of(v)].sum(axis=0)
    return table.ravel()


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
