"""Rows of messages as proposals, and the test of each total: what tables in the making stand on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from flint import arb

from holdfast.arrays import Floats, Ints
from holdfast.noise.draws.decisions import Digits
from holdfast.randomness import Stream
from holdfast.trees.circles.exact import Leaf, Part, Row, divided, sum_at
from holdfast.trees.circles.leaf_tables import LeafTable, powers
from holdfast.trees.circles.messages import Messages
from holdfast.trees.circles.outline import Outline
from holdfast.trees.circles.tables import Table, accepted
from holdfast.trees.circles.weights import Weight, moments


class Doubt(NamedTuple):
    """A test that doubles leave undecided: its number's first digits, M at the total, τ_p, and the log of M's unit."""

    word: int
    message: arb
    above: float
    norm: float


class Law(Protocol):
    """What is drawn."""

    @property
    def shape(self) -> Outline:
        """The forest as the messages see it."""

    @property
    def messages(self) -> Messages:
        """The messages."""

    @property
    def weights(self) -> Sequence[Weight]:
        """The laws' weights."""

    @property
    def which(self) -> Ints:
        """The weight of every output."""

    @property
    def low(self) -> Ints:
        """The least noise of every output."""

    @property
    def high(self) -> Ints:
        """The largest noise of every output."""


class Tested:
    """Some tables in the making, whose totals are tested."""

    def __init__(self, sampler: Law, rows: int, stream: Stream) -> None:
        self.sampler, self.rows, self.stream = sampler, rows, stream
        self.shape = sampler.shape
        self.leaves = np.zeros((self.shape.output_tree[0].size, rows), dtype=np.int64)
        #: Which trees of which tables are accepted.
        self.kept = np.ones((self.shape.trees, rows), dtype=bool)
        size = self.shape.size
        self.totals = np.zeros((size, rows), dtype=np.int64)
        #: Tests that are not decided yet, by node and row.
        self.pending: dict[tuple[int, int], Doubt] = {}
        self.leaf_sums: dict[int, Part] = {}

    @property
    def m(self) -> Messages:
        """The messages."""
        return self.sampler.messages

    def _rows_table(self, nodes: Ints, values: Floats, tilts: Floats, rows: Ints) -> Table:
        """Rows of messages of nodes under more tilt: row j is that of node nodes[rows[j]] under tilts[j]."""
        m, nodes = self.m, nodes[rows]
        length = values.shape[1]
        middle = m.start[nodes] + length // 2
        weights = _tilted(values[rows], tilts)
        edges = np.stack([m.start[nodes], m.start[nodes] + m.length[nodes] - 1])
        signs = np.array([[-1], [1]])
        # Rows may be longer than the window of the node's message: the series begins where the row ends.
        more = np.stack([np.zeros(nodes.size), length - m.length[nodes]])
        with np.errstate(over="ignore", invalid="ignore"):  # a tilt too far has no height; a gentler one is taken
            height = m.height[:, nodes] * m.ratio[:, nodes] ** more * np.exp(tilts * (edges + signs * more - middle))
        height = np.where(m.height[:, nodes] > 0, height, 0.0)
        ratio = m.ratio[:, nodes] * np.exp(signs * tilts)

        def ball(row: int, t: int) -> arb:
            return (
                self._row(int(nodes[row]), values[rows[row]]).at(t)
                * (arb(float(tilts[row])) * (t - int(middle[row]))).exp()
            )

        return Table(m.start[nodes], weights, height, ratio * (1 + 1e-12), ball)

    def _moments(self, nodes: Ints, values: Floats, tilts: Floats, rows: Ints) -> tuple[Floats, Floats]:
        """Means and variances of rows of messages under more tilt."""
        _, mean, variance = moments(_tilted(values[rows], tilts))
        return mean + (self.m.start[nodes[rows]] + values.shape[1] // 2), np.maximum(variance, 1e-6)

    def _row(self, node: int, values: Floats) -> Row:
        m = self.m
        height, ratio = (tuple(each[:, node].tolist()) for each in (m.height, m.ratio))
        return Row(int(m.start[node]), values[: int(m.length[node])], height, ratio)

    def _leaf_rows(self, table: LeafTable) -> Table:
        """Rows of leaves' weights."""
        kinds = table.kinds

        def ball(row: int, t: int) -> arb:
            return self._leaf(table, row, (int(kinds.low[row]), int(kinds.high[row]))).at(t)

        with np.errstate(over="ignore"):
            ratio = np.where(table.ends > 0, np.exp(table.steps) * (1 + 1e-12), 0.0)
        return Table(np.full(table.size, table.first), table.values.copy(), table.ends * (1 + 1e-12), ratio, ball)

    def _leaf(self, table: LeafTable, kind: int, bounds: tuple[int, int]) -> Leaf:
        weight = self.sampler.weights[int(table.kinds.law[kind])]
        return Leaf(weight, bounds, table.tilt, table.first, (float(table.peak[kind]), float(table.whole[kind])))

    def _test(self, nodes: Ints, rows: Ints, totals: Ints, values: Floats, at: Ints) -> None:
        """Keep every total with its share c; what doubles leave undecided waits until the total is divided."""
        m = self.m
        inside = totals - m.start[nodes]
        within = (inside >= 0) & (inside < m.length[nodes])
        message = values[at, np.clip(inside, 0, values.shape[1] - 1)]
        logs = m.exponents(nodes, totals[:, None])[:, 0] - m.norm[nodes]
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            whole = message / np.exp(logs)
            slack = (m.alias(nodes, totals) + 2.2 * m.lift[nodes]) / whole + 8 * m.pad[nodes]
        slack = np.where(within & np.isfinite(slack) & np.isfinite(whole), slack, 1.0)  # whole: where weights are 0
        words = self.stream.words(nodes.size)
        for k in np.flatnonzero(words * 2.0**-64 >= 1 - slack - 2.0**-60).tolist():
            node = int(nodes[k])
            value = self._row(node, values[at[k]]).at(int(totals[k]))
            above = float(m.above(nodes[k : k + 1])[0])
            self.pending[node, int(rows[k])] = Doubt(int(words[k]), value, above, float(m.norm[node]))

    def _settle(self, some: Ints, whole: Callable[[int], Part]) -> None:
        """Decide the tests of nodes that are about to be divided, by the sums of their children's messages."""
        if not self.pending:
            return
        mine = set(some.tolist())
        for node, row in [key for key in self.pending if key[0] in mine]:
            doubt = self.pending.pop((node, row))
            if not self._kept(node, int(self.totals[node, row]), doubt, whole(node)):
                self.kept[self.shape.tree[node], row] = False
                # A total that no children make could not be divided.
                self.totals[node, row] = self.m.start[node] + int(np.argmax(self.m.sums(np.array([node]))))

    def _apart(self, node: int, row: int, count: int, whole: Callable[[int], Part]) -> list[int]:
        """Divide a total among so many children without proposals; anyhow where its tree is refused already."""
        if not self.kept[self.shape.tree[node], row]:
            return [0] * count
        return divided(whole(node), int(self.totals[node, row]), self.stream)

    def _kept(self, node: int, t: int, doubt: Doubt, whole: Part) -> bool:
        m, shape = self.m, self.shape
        if not int(shape.low[node]) <= t <= int(shape.high[node]):
            return False
        middle = int(m.start[node] + m.length[node] // 2)

        def share(bits: int) -> arb:
            more = bits - 128
            weight = arb(1) if shape.law[node] < 0 else self.sampler.weights[int(shape.law[node])].ball(t)
            tilt = arb(doubt.above) - arb(float(m.tilt[node]))
            factor = (tilt * (t - middle) - arb(doubt.norm)).exp()
            result = weight * factor * sum_at(whole, t, more) / doubt.message
            if result > 1:
                raise ArithmeticError("a message is below what it stands for")
            return result

        return accepted(share, Digits(doubt.word, 64, lambda: self.stream))


def _tilted(values: Floats, tilts: Floats) -> Floats:
    """Rows under more tilt, around the middles of their windows; written over."""
    length = values.shape[1]
    if tilts.any():
        values *= powers(tilts, length) * np.exp(-tilts * (length // 2))[:, None]
    return values
