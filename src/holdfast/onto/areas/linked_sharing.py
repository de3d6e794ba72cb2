"""Share out the cells of linked tables of one area among its parts, so that every part keeps the ties.

In real numbers ≥ 0 by the alternating direction method of multipliers, as for one table (shared_out): the ties join
the quadratic part, where they cost one price each. Then in whole numbers, each cell rounded up or down: a small
program with whole variables. Where it has no solution the parts are taken one after another, each from what is left;
that always works, since a part with nothing keeps all ties and so does what is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arrays import Floats, Ints
from holdfast.exact.solver import linear_program, solved
from holdfast.onto.areas.rounded import NEAR
from holdfast.onto.areas.shared_out import OVER, ROUNDS, SETTLED, Sharing, allowed

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
        """The ties on the cells of all tables after each other."""
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
