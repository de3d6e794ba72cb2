"""Share out the cells of linked tables of one area among its parts, so that every part keeps the ties.

In real numbers ≥ 0 by the alternating direction method of multipliers, as for one table (shared_out): the ties join
the quadratic part, where they cost one price each. Then in whole numbers, each cell rounded up or down: a small
program with whole variables. Where it has no solution the parts are taken one after another, each from what is left;
that always works, since a part with nothing keeps all ties and so does what is left.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csr_array

from holdfast.arrays import Floats, Ints
from holdfast.constraints import System
from holdfast.exact.solver import linear_program, solved
from holdfast.onto.areas.shared_out import NEAR, OVER, ROUNDS, SETTLED, Sharing, allowed
from holdfast.onto.areas.steps import Steps
from holdfast.queries.areas.linked import LinkedCounts
from holdfast.trees.normal.padded import priced
from holdfast.trees.normal.residuals import Residuals

#: Places of a search for whole numbers, and the part of the least cost that it may miss.
PLACES, MISSED = 400, 0.01
#: Whole numbers that one program looks for together.
MOST_TOGETHER = 3_000


@dataclass(frozen=True, eq=False)
class LinkedSharing:
    """What is told about every area of one level, table by table, and the ties, (ties, cells) of each table."""

    sharings: tuple[Sharing, ...]
    ties: tuple[Ints, ...]

    @cached_property
    def tied(self) -> Ints:
        return np.concatenate(self.ties, axis=1)

    @cached_property
    def _ends(self) -> Ints:
        return np.cumsum([each.shape[1] for each in self.ties])[:-1]

    def _in_tables(self, cells: Floats) -> list[Floats]:
        return np.split(cells, self._ends, axis=1)

    def _free(self, pulls: list[Floats], wanted: Floats, steps: list[float]) -> Floats:
        """Return the least of the quadratic part and the distances from `wanted`, with the ties."""
        found, reach = [], []
        for each, pull, own, tie, step in zip(
            self.sharings, pulls, self._in_tables(wanted), self.ties, steps, strict=True
        ):
            inverse = 1 / (each.strength + step)
            found.append(each.turned_back((pull + step * each.turned(own)) * inverse))
            reach.append(each.turned_back(each.turned(tie.astype(float)) * inverse))
        cells, moves = np.concatenate(found, axis=1), np.concatenate(reach, axis=1)
        prices = np.linalg.solve(self.tied @ moves.T, self.tied @ cells.T)
        return np.asarray(cells - prices.T @ moves)

    def shared(self, above: Ints | None, told: list[list[Floats]], parts: int) -> Floats:
        """Return cells of every part, (parts, cells), ≥ 0 and with these sums, that nearly keep the ties."""
        if above is not None and parts == 1:
            return above[None].astype(np.float64)
        pulls = [each.pull(own, parts) for each, own in zip(self.sharings, told, strict=True)]
        steps = []
        for each in self.sharings:
            known = each.strength[each.strength > 0]
            steps.append(float(np.sqrt(known.min() * known.max())) if known.size else 1.0)
        fitting = np.zeros((parts, self.tied.shape[1])) if above is None else np.repeat(above[None] / parts, parts, 0)
        price = np.zeros_like(fitting)
        for _ in range(ROUNDS):
            free = self._free(pulls, fitting - price, steps)
            reached = OVER * free + (1 - OVER) * fitting
            before, fitting = fitting, allowed(reached + price, above)
            price = price + reached - fitting
            apart, moved = (float(np.sqrt((each**2).mean())) for each in (free - fitting, fitting - before))
            if max(apart, moved) <= SETTLED:
                break
            if apart > 10 * moved or moved > 10 * apart:  # keep both in step
                factor = 2.0 if apart > moved else 0.5
                steps, price = [step * factor for step in steps], price / factor
        return fitting

    def rounded(self, cells: Floats, above: Ints | None, coins: Floats) -> Ints:
        """Return whole cells ≥ 0 near these, with these sums, that keep every tie in every part."""
        if above is not None and len(cells) == 1:
            return above[None].copy()
        together = None if cells.size > MOST_TOGETHER else self._near(cells, above, coins)
        if together is not None:
            return together
        result, left = np.zeros(cells.shape, np.int64), above
        for part in range(len(cells)):
            if left is not None and part == len(cells) - 1:
                result[part] = left
                break
            one = cells[part : part + 1], coins[part : part + 1]
            found = self._near(*_with(one, None), most=left)
            found = self._anything(cells[part], left) if found is None else found
            result[part] = found[0]
            left = None if left is None else left - result[part]
        return result

    def _near(self, cells: Floats, above: Ints | None, coins: Floats, most: Ints | None = None) -> Ints | None:
        """Round every cell up or down at the least cost; None where nothing was found."""
        low = np.floor(cells + NEAR).astype(np.int64)
        high = low + (cells - low > NEAR)
        if most is not None:
            low, high = np.minimum(low, most), np.minimum(high, most)
        chance = np.clip(cells - low, 0.0, 1.0)
        rows: list[Any] = [sparse.kron(sparse.eye_array(len(cells)), self.tied)]
        sides = [np.zeros(len(cells) * len(self.tied))]
        if above is not None:
            rows.append(sparse.kron(np.ones((1, len(cells))), sparse.eye_array(cells.shape[1])))
            sides.append(above.astype(np.float64))
        matrix, side = sparse.csr_array(sparse.vstack(rows)), np.concatenate(sides)
        cost = ((1 - 2 * chance) + 1e-4 * coins).ravel()
        return self._whole(matrix, cost, (low.ravel(), high.ravel()), side, cells.shape)

    def _anything(self, cells: Floats, most: Ints | None) -> Ints:
        """Return whole cells of one part with the least Σ|distance|, however far; nothing at all is among them."""
        size = cells.size
        one: Any = sparse.eye_array(size)
        blocks: Any = [[sparse.csr_array(self.tied), None], [one, -one], [-one, -one]]
        rows = sparse.csr_array(sparse.block_array(blocks))
        top = np.full(size, np.ceil(cells.max(initial=0.0)) + 1) if most is None else most
        lower = np.concatenate([np.zeros(len(self.tied)), np.full(2 * size, -np.inf)])
        upper = np.concatenate([np.zeros(len(self.tied)), cells, -cells])
        cost = np.concatenate([np.zeros(size), np.ones(size)])
        ends = np.zeros(2 * size), np.concatenate([top, np.full(size, np.inf)])
        whole = np.arange(2 * size) < size
        search = linear_program(rows, cost, ends, (lower, upper), whole=whole, mip_max_nodes=PLACES, mip_rel_gap=MISSED)
        found = solved(search)
        answer = np.zeros(size, np.int64) if found is None else np.rint(found[:size]).astype(np.int64)
        right = (answer >= 0).all() and (answer <= top).all() and not (self.tied @ answer).any()
        return (answer if right else np.zeros(size, np.int64))[None]

    def _whole(
        self, matrix: Any, cost: Floats, ends: tuple[Ints, Ints], side: Floats, shape: tuple[int, ...]
    ) -> Ints | None:
        search = linear_program(matrix, cost, ends, (side, side), whole=True, mip_max_nodes=PLACES, mip_rel_gap=MISSED)
        found = solved(search)
        if found is None:
            return None
        answer = np.rint(found).astype(np.int64)
        right = (answer >= ends[0]).all() and (answer <= ends[1]).all() and np.array_equal(matrix @ answer, side)
        return answer.reshape(shape) if right else None


def _with(one: tuple[Floats, Floats], above: None) -> tuple[Floats, None, Floats]:
    return one[0], above, one[1]


# The best linear estimate of linked tables: each table by itself, and a price for every tie.
#
# Without the ties the tables are independent, and each falls apart into hierarchies of scalars (H7). With Σ their
# covariance after estimation and T the ties on the outputs, the estimate with the ties is z − ΣTᵀ(TΣTᵀ)⁻¹Tz; the prices
# (TΣTᵀ)⁻¹Tz are found by conjugate gradients, where one product with Σ is one more estimate of every table.


@dataclass(frozen=True, eq=False)
class LinkedEstimate:
    """Linked tables under Gaussian noise of these variances, one precision for each group of outputs."""

    query: LinkedCounts
    parts: tuple[Residuals, ...]
    spreads: Floats

    @classmethod
    def of_system(cls, system: System, spreads: Floats) -> LinkedEstimate | None:
        """Return it where what must hold is such a query's consistency and perhaps that nothing is negative."""
        rows = [part for part in system.parts if part.kind != "nonnegative"]
        if len(rows) != 1 or rows[0].kind != "consistent" or not isinstance(rows[0].source, LinkedCounts):
            return None
        if system.has_bounds and not bool((system.lower == 0).all()):
            return None
        query, parts = rows[0].source, []
        for part, own in zip(query.parts, query.split(spreads), strict=True):
            first = np.array([own[part.starts[nodes[0]] + begin] for nodes, begin in part.places])
            if not bool((first[part.level_of] == own).all()):
                return None
            parts.append(Residuals(part, tuple((1 / first).tolist())))
        if any(each.untold is not None for each in parts) or not np.isfinite(spreads[query.tied_rows().indices]).all():
            return None
        return cls(query, tuple(parts), spreads)

    @cached_property
    def _ties(self) -> csr_array[Any]:
        return csr_array(self.query.tied_rows().astype(np.float64))

    def _apart(self, values: Floats) -> Floats:
        """Estimate every table by itself, (tables, n)."""
        listed = zip(self.parts, self.query.split(values), strict=True)
        return np.concatenate([part.estimated(np.ascontiguousarray(own)) for part, own in listed], axis=-1)

    def _spread(self, prices: Floats) -> Floats:
        """Return ΣTᵀ times prices, (tables, ties)."""
        pulled = prices @ self._ties
        measured = np.where(pulled != 0, self.spreads, 1.0)
        return self._apart(pulled * measured)

    def estimated(self, measured: Floats) -> Floats:
        """Return the best linear estimates of all outputs, (tables, n)."""
        return priced(self._apart(measured), lambda values: np.asarray(values @ self._ties.T), self._spread)


# Whole, non-negative linked tables in every area, in three steps: estimate, shares ≥ 0, whole numbers.
#
# As for one table (steps), with the ties in every step; everything holds exactly, since all outputs are counted from
# the
# cells of the leaves and these keep the ties.


@dataclass(frozen=True, eq=False)
class LinkedSteps:
    """Linked tables with Gaussian measurements, ready to share out cells."""

    estimate: LinkedEstimate

    @cached_property
    def _steps(self) -> tuple[Steps, ...]:
        return tuple(Steps(part, whole=True) for part in self.estimate.parts)

    @cached_property
    def _levels(self) -> list[LinkedSharing]:
        listed = zip(*(each.levels for each in self._steps), strict=True)
        return [LinkedSharing(tuple(sharings), self.estimate.query.ties) for sharings in listed]

    def values(self, estimate: Floats, coin: int) -> Ints:
        """Return all outputs of the table that is shared out, (n,), from estimates of all outputs."""
        query, tree = self.estimate.query, self.estimate.query.hierarchy
        told = [each.told_by(own) for each, own in zip(self._steps, query.split(estimate), strict=True)]
        table = np.zeros((tree.n, sum(part.table.cells for part in query.parts)), np.int64)
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for depth in range(len(tree.levels)):
                parents = [-1] if depth == 0 else np.unique(tree.parents[tree.nodes_at(depth)]).tolist()

                def one(parent: int, depth: int = depth) -> None:
                    if parent < 0:
                        for root in tree.roots:
                            table[root] = self._shared(depth, np.array([root]), None, told, coin)[0]
                    else:
                        parts = tree.children_of(parent)
                        table[parts] = self._shared(depth, parts, table[parent], told, coin)

                list(pool.map(one, parents))
        ends = np.cumsum([part.table.cells for part in query.parts])[:-1]
        by_table = np.split(table[tree.leaves], ends, axis=1)
        return np.concatenate([part.totals(own) for part, own in zip(query.parts, by_table, strict=True)])

    def _shared(self, depth: int, parts: Ints, above: Ints | None, told: list[Floats], coin: int) -> Ints:
        sharing = self._levels[depth]
        wanted = [each.told_at(depth, parts, own) for each, own in zip(self._steps, told, strict=True)]
        found = sharing.shared(above, wanted, parts.size)
        coins = np.random.default_rng([coin, int(parts[0])]).random(found.shape)
        return sharing.rounded(found, above, coins)
