"""Tables in the making: totals of roots, divided from level to level, and which tables are accepted."""

from __future__ import annotations

from functools import cache

import numpy as np

from holdfast.arrays import Bools, Floats, Ints, ranges
from holdfast.trees.circles.exact import Part, joined
from holdfast.trees.circles.leaf_divisions import LeafDivisions, first_largest
from holdfast.trees.circles.leaf_tables import FAR, POOR, LeafTable, kinds_of
from holdfast.trees.circles.tables import WAYS, Division

#: Places of messages that are worked on at once.
PLACES = 1 << 19
#: The share of proposals that may lie beyond a window, and how often a tilt is made gentler for that.
STRAY, GENTLER = 0.05, 12


class Drawing(LeafDivisions):
    """Some tables in the making."""

    def run(self, at_roots: Ints | None = None) -> tuple[Ints, Bools]:
        """Draw; return the noise of leaves, (leaves, tables), and which trees are accepted, (trees, tables).

        Where the noise of roots that are not exact is given, these are not tested: it is the same for all tables.
        """
        shape = self.shape
        if shape.alone.size:
            if at_roots is None:
                self._alone()
            else:
                self.leaves[shape.leaf_output.size :] = at_roots[shape.alone][:, None]
        if shape.size:
            self._roots(at_roots)
            for d in range(shape.levels.size - 1):
                leafy, inner = shape.parents_at(d)
                self._divide_inner(inner)
                self._divide_leaves(leafy)
        return self.leaves, self.kept

    def _alone(self) -> None:
        """Leaves that are roots: each by its own law within its bounds."""
        sampler, alone = self.sampler, self.shape.alone
        law, low, high = sampler.which[alone], sampler.low[alone], sampler.high[alone]
        kinds, kind = kinds_of(sampler.weights, 0.0, law, low, high, FAR)
        table = self._leaf_rows(LeafTable(sampler.weights, kinds, 0.0))
        rows = np.repeat(kind, self.rows)
        division = Division(
            table, rows, np.ones(rows.size, dtype=np.int64), np.zeros(rows.size, dtype=np.int64), None, rows
        )
        least, most = np.repeat(low, self.rows), np.repeat(high, self.rows)
        values, _ = division.draw(
            self.stream, None, lambda _, slots, chosen, __: (chosen >= least[slots]) & (chosen <= most[slots])
        )
        self.leaves[self.shape.leaf_output.size :] = values.reshape(alone.size, self.rows)

    def _roots(self, at_roots: Ints | None) -> None:
        shape = self.shape
        roots = np.flatnonzero((shape.parent < 0) & ~shape.fixed)
        if at_roots is not None:
            self.totals[roots] = at_roots[shape.output[roots]][:, None]
            return
        for part in self.m._parts(roots):
            values = self.m.rows(part)
            table = self._rows_table(part, values, np.zeros(part.size), np.arange(part.size))
            rows = np.repeat(np.arange(part.size), self.rows)
            none = np.zeros(rows.size, dtype=np.int64)
            division = Division(table, rows, none + 1, none, None, rows)
            drawn, _ = division.draw(self.stream)
            self.totals[part] = drawn.reshape(part.size, self.rows)
            self._test(part[rows], np.tile(np.arange(self.rows), part.size), drawn, values, rows)

    def _divide_inner(self, some: Ints) -> None:
        """Divide the totals of nodes among inner children, one of which takes what others leave."""
        shape, m = self.shape, self.m
        numbers = shape.inner_start[some + 1] - shape.inner_start[some]
        self._only(some[numbers == 1])
        some, numbers = some[numbers > 1], numbers[numbers > 1]
        if not some.size:
            return
        children, first = ranges(shape.inner_start[some], numbers), np.cumsum(numbers) - numbers
        lengths, owner = m.length[children], np.repeat(np.arange(some.size), numbers)
        longest = np.maximum.reduceat(lengths, first)
        takes = np.where(lengths == longest[owner], m.variance[children], -1.0)  # the widest on a longest circle
        last = first_largest(takes, first, numbers)
        lengths[last] = 0
        longer = np.maximum.reduceat(lengths, first)
        for both in np.unique(np.stack([longer, longest]), axis=1).T.tolist():
            mine = np.flatnonzero((longer == both[0]) & (longest == both[1]))
            group = (np.cumsum(numbers[mine] * both[0] + both[1]) * min(self.rows, 30)) // PLACES
            for part in np.split(mine, np.flatnonzero(np.diff(group)) + 1):
                self._divide_some(some[part], children[last[part]], both[0], both[1])

    def _only(self, some: Ints) -> None:
        """Give totals of nodes to their only children."""
        children = self.shape.inner_start[some]
        self._settle(some, lambda node: self._row(self.shape.inner_start[node], self.m.rows(children[some == node])[0]))
        self.totals[children] = self.totals[some]
        for part in self.m._parts(children):
            at, row = np.repeat(np.arange(part.size), self.rows), np.tile(np.arange(self.rows), part.size)
            self._test(part[at], row, self.totals[part].ravel(), self.m.rows(part), at)

    def _divide_some(self, some: Ints, last: Ints, length: int, longest: int) -> None:
        shape, m = self.shape, self.m
        numbers = shape.inner_start[some + 1] - shape.inner_start[some]
        children, first = ranges(shape.inner_start[some], numbers), np.cumsum(numbers) - numbers
        takes = np.isin(children, last)
        others, fewer = children[~takes], numbers - 1
        begin = np.cumsum(fewer) - fewer
        values, rest_values = self._padded(others, length), self._padded(last, longest)

        @cache
        def together(node: int) -> Part:
            k = int(np.searchsorted(some, node))
            mine = range(int(begin[k]), int(begin[k] + fewer[k]))
            return joined(
                [*(self._row(int(others[j]), values[j]) for j in mine), self._row(int(last[k]), rest_values[k])]
            )

        self._settle(some, together)
        totals = self.totals[some]
        mean, variance = (np.add.reduceat(each[children], first) for each in (m.mean, m.variance))
        spread = np.sqrt(variance)
        # One is not proposed, so it may be tilted until it hardly falls.
        with np.errstate(divide="ignore"):
            falls = -np.where(takes, 0.95, 0.6) * np.log(m.ratio[:, children])
        least, most = -np.minimum.reduceat(falls[0], first), np.minimum.reduceat(falls[1], first)
        wanted = np.clip(
            (totals - mean[:, None]) / variance[:, None],
            np.maximum(least, -8 / spread)[:, None],
            np.minimum(most, 8 / spread)[:, None],
        )
        steps = np.rint(wanted * spread[:, None] * 4).astype(np.int64)
        owner = np.repeat(np.arange(some.size), self.rows)
        pairs, pair = np.unique(owner * 200 + steps.ravel() + 100, return_inverse=True)
        parent = pairs // 200
        least, most, counts = least[parent], most[parent], fewer[parent]
        tilt = np.clip((pairs % 200 - 100) / (4 * spread[parent]), least, most)
        goal = np.bincount(pair, weights=totals.ravel()) / np.bincount(pair)
        rows, of_pair, starts = (
            ranges(begin[parent], counts),
            np.repeat(np.arange(pairs.size), counts),
            np.cumsum(counts) - counts,
        )
        for attempt in range(6):
            centre, square = self._moments(others, values, tilt[of_pair], rows)
            end, wide = self._moments(last, rest_values, tilt, parent)
            left, whole = goal - np.add.reduceat(centre, starts), np.add.reduceat(square, starts) + wide
            lack = left - end
            if attempt == 5 or not (np.abs(lack) > 0.7 * np.sqrt(whole)).any():
                break
            farthest = 4 / np.sqrt(whole)
            tilt = np.clip(tilt + np.clip(lack / whole, -farthest, farthest), least, most)
        rest = np.rint(left).astype(np.int64)
        table = self._rows_table(last, rest_values, tilt, parent)
        poor = np.flatnonzero((table.at(np.arange(pairs.size), rest) < POOR * table.top) & (2 * wide > whole))
        if poor.size:
            ends = np.where(rest[poor] < end[poor], least[poor], most[poor])
            ends = np.where(np.isfinite(ends), ends, 2 * tilt[poor])
            tilt[poor] = self._best_tilts(last, rest_values, parent[poor], rest[poor], ends)
        for _ in range(GENTLER):
            table = self._rows_table(others, values, tilt[of_pair], rows)
            rest_table = self._rows_table(last, rest_values, tilt, parent)
            # Tilts that blow up what is only bounded, beyond windows, above all that is known, or above all numbers.
            strayed = np.add.reduceat(~(table.left <= STRAY * WAYS), starts) > 0
            strayed |= ~(rest_table.left <= STRAY * WAYS)
            if not strayed.any():
                break
            tilt[strayed] *= 0.75
        if not (np.isfinite(table.left).all() and np.isfinite(rest_table.left).all()):
            raise ArithmeticError("no tilt divides a total")
        mine, task = ranges(starts[pair], counts[pair]), np.repeat(np.arange(pair.size), counts[pair])
        division = Division(table, mine, counts[pair], totals.ravel(), rest_table, pair)
        drawn, rests = division.draw(
            self.stream,
            lambda k: self._apart(int(some[k // self.rows]), k % self.rows, int(counts[pair[k]]) + 1, together),
        )
        node, row = others[rows[mine]], np.tile(np.arange(self.rows), some.size)
        self.totals[node, row[task]] = drawn
        self.totals[last[parent[pair]], row] = rests
        self._test(node, row[task], drawn, values, rows[mine])
        self._test(last[parent[pair]], row, rests, rest_values, parent[pair])

    def _best_tilts(self, children: Ints, values: Floats, rows: Ints, rest: Ints, ends: Floats) -> Floats:
        """The tilts, up to some ends, under which rows take such rests most readily."""
        best, tilts = np.full(rows.size, -1.0), np.zeros(rows.size)
        for share in np.linspace(0, 1, 21).tolist():
            table = self._rows_table(children, values, share * ends, rows)
            taken = table.at(np.arange(rows.size), rest) / table.top
            tilts = np.where(taken > best, share * ends, tilts)
            best = np.maximum(best, taken)
        return tilts

    def _padded(self, children: Ints, length: int) -> Floats:
        """Rows of messages on windows of one length; where they are longer than a circle, the series continues."""
        m = self.m
        result = np.empty((children.size, length))
        place = np.full(int(children[-1] - children[0]) + 1, -1, dtype=np.int64)
        place[children - children[0]] = np.arange(children.size)
        for part in m._parts(children):
            at, own = place[part - children[0]], int(m.length[part[0]])
            result[at, :own] = m.rows(part)
            if own < length:
                distance = np.arange(1, length - own + 1)
                result[at, own:] = m.height[1, part][:, None] * m.ratio[1, part][:, None] ** distance
        return result
