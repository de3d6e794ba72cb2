"""Tables in the making: totals of roots, divided from level to level, and which tables are accepted."""

from __future__ import annotations

import numpy as np

from holdfast.arrays import Bools, Floats, Ints, ranges
from holdfast.trees.circles.exact import Part
from holdfast.trees.circles.leaf_divisions import LeafDivisions, first_largest
from holdfast.trees.circles.leaf_tables import FAR, POOR, LeafTable, kinds_of
from holdfast.trees.circles.tables import WAYS, Division, Table

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
            self.stream, lambda _, slots, chosen, __: (chosen >= least[slots]) & (chosen <= most[slots])
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
        """Divide the totals of nodes among inner children."""
        shape = self.shape
        if not some.size:
            return
        numbers = shape.inner_start[some + 1] - shape.inner_start[some]
        longest = np.maximum.reduceat(
            self.m.length[ranges(shape.inner_start[some], numbers)], np.cumsum(numbers) - numbers
        )
        for length in np.unique(longest).tolist():
            mine = some[longest == length]
            kids = shape.inner_start[mine + 1] - shape.inner_start[mine]
            group = (np.cumsum(kids * min(self.rows, 30)) * length) // PLACES
            for part in np.split(mine, np.flatnonzero(np.diff(group)) + 1):
                self._divide_some(part, length)

    def _divide_some(self, some: Ints, length: int) -> None:
        shape, m = self.shape, self.m
        numbers = shape.inner_start[some + 1] - shape.inner_start[some]
        children = ranges(shape.inner_start[some], numbers)
        first = np.cumsum(numbers) - numbers
        values = self._padded(children, length)

        def parts(node: int) -> list[Part]:
            k = int(np.searchsorted(some, node))
            mine = range(int(first[k]), int(first[k] + numbers[k]))
            return [self._row(int(children[j]), values[j]) for j in mine]

        self._settle(some, parts)
        totals = self.totals[some]
        mean, variance = (np.add.reduceat(each[children], first) for each in (m.mean, m.variance))
        spread = np.sqrt(variance)
        # The widest will take what others leave: it is not proposed, so it may be tilted until it hardly falls.
        share = np.full(children.size, 0.6)
        share[first_largest(m.variance[children], first, numbers)] = 0.95
        with np.errstate(divide="ignore"):
            falls = -share * np.log(m.ratio[:, children])
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
        tilt = np.clip((pairs % 200 - 100) / (4 * spread[parent]), least[parent], most[parent])
        goal = np.bincount(pair, weights=totals.ravel()) / np.bincount(pair)
        counts = numbers[parent]
        rows = ranges(first[parent], counts)
        of_pair = np.repeat(np.arange(pairs.size), counts)
        starts = np.cumsum(counts) - counts
        places = np.arange(length)
        for attempt in range(6):
            table = self._rows_table(children, values, tilt[of_pair], rows)
            whole = table.weights.sum(axis=1)
            centre = table.weights @ places / whole
            square = np.maximum(table.weights @ np.square(places, dtype=np.float64) / whole - centre**2, 1e-6)
            centre += table.first
            lack = goal - np.add.reduceat(centre, starts)
            wide = np.add.reduceat(square, starts)
            if attempt == 5 or not (np.abs(lack) > 0.7 * np.sqrt(wide)).any():
                break
            tilt = np.clip(
                tilt + np.clip(lack / wide, -4 / np.sqrt(wide), 4 / np.sqrt(wide)), least[parent], most[parent]
            )
        widest = first_largest(square, starts, counts)
        rest = np.rint(goal - np.add.reduceat(centre, starts) + centre[widest]).astype(np.int64)
        poor = np.flatnonzero((table.at(widest, rest) < POOR * table.top[widest]) & (2 * square[widest] > wide))
        if poor.size:
            ends = np.where(rest[poor] < centre[widest[poor]], least[parent[poor]], most[parent[poor]])
            ends = np.where(np.isfinite(ends), ends, 2 * tilt[poor])
            tilt[poor] = self._best_tilts(children, values, rows[widest[poor]], rest[poor], ends)
            table = self._rows_table(children, values, tilt[of_pair], rows)
        table = self._not_beyond(table, children, values, rows, tilt, of_pair, starts)
        others = np.ones(rows.size, dtype=bool)
        others[widest] = False
        slots = np.flatnonzero(others)
        fewer = counts - 1
        slot_start = np.cumsum(fewer) - fewer
        mine = ranges(slot_start[pair], fewer[pair])
        division = Division(table, slots[mine], fewer[pair], totals.ravel(), table, widest[pair])
        alone = counts[pair] == 1
        drawn, rests = self._divided(division, alone)
        node = children[rows]
        row = np.tile(np.arange(self.rows), some.size)
        task = np.repeat(np.arange(pair.size), fewer[pair])
        self.totals[node[slots[mine]], row[task]] = drawn
        self.totals[node[widest[pair]], row] = rests
        self._test(node[slots[mine]], row[task], drawn, values, rows[slots[mine]])
        self._test(node[widest[pair]], row, rests, values, rows[widest[pair]])

    def _not_beyond(
        self, table: Table, children: Ints, values: Floats, rows: Ints, tilt: Floats, of_pair: Ints, starts: Ints
    ) -> Table:
        """Make tilts gentler, in place, that blow up what is only bounded, beyond windows, above all that is known."""
        for _ in range(GENTLER):
            strayed = np.add.reduceat(table.left > STRAY * WAYS, starts) > 0
            if not strayed.any():
                break
            tilt[strayed] *= 0.75
            table = self._rows_table(children, values, tilt[of_pair], rows)
        return table

    def _best_tilts(self, children: Ints, values: Floats, rows: Ints, rest: Ints, ends: Floats) -> Floats:
        """The tilts, up to some ends, under which rows take such rests most readily."""
        best, tilts = np.full(rows.size, -1.0), np.zeros(rows.size)
        for share in np.linspace(0, 1, 21).tolist():
            table = self._rows_table(children, values, share * ends, rows)
            taken = table.at(np.arange(rows.size), rest) / table.top
            tilts = np.where(taken > best, share * ends, tilts)
            best = np.maximum(best, taken)
        return tilts

    def _divided(self, division: Division, alone: Bools) -> tuple[Ints, Ints]:
        """Divide; an only child has the total, whatever its message."""
        if alone.any():
            division.last[alone] = -1
        return division.draw(self.stream)

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
