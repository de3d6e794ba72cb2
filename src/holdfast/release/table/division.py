"""Who holds what: agents that each hold a part of the records, and the outputs that each of them publishes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused, one_of, positions, shown
from holdfast.arrays import Ints
from holdfast.privacy import Guarantee
from holdfast.queries import Query
from holdfast.release.spec.places import At
from holdfast.release.table.shape import Layout

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
