"""Whole solutions of whole rows R x = r: the one found first, and short vectors that lead from each to all others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import flint


@dataclass(frozen=True, eq=False)
class WholeRows:
    """Rows R (m, n) with the echelon form of [Rᵀ | I]: H = U Rᵀ with U unimodular, so x = Uᵀy where Hᵀy = r."""

    R: Any
    H: Any
    U: Any
    rank: int

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any]], n: int) -> WholeRows:
        m = len(rows)
        R = flint.fmpz_mat(m, n, [int(x) for row in rows for x in row])
        wide = flint.fmpz_mat(n, m + n)
        for j in range(n):
            for i in range(m):
                wide[j, i] = R[i, j]
            wide[j, m + j] = 1
        found = wide.hnf()
        rank = sum(any(found[j, i] != 0 for i in range(m)) for j in range(n))
        H = [[int(found[j, i]) for i in range(m)] for j in range(rank)]
        U = [[int(found[j, m + k]) for k in range(n)] for j in range(n)]
        return cls(R, H, U, rank)

    @cached_property
    def basis(self) -> list[list[int]]:
        """Short whole vectors that make every whole x with R x = 0, each in one way."""
        kernel = self.U[self.rank :]
        if len(kernel) < 2:
            return kernel
        return [[int(x) for x in line] for line in flint.fmpz_mat(kernel).lll().tolist()]

    def solution(self, right: Sequence[int]) -> tuple[list[int], int] | None:
        """Whole x and the least whole q ≥ 1 with R x = q·right; None where rows contradict each other."""
        left = [flint.fmpq(value) for value in right]
        steps = []
        for line in self.H:
            lead = next(i for i, value in enumerate(line) if value)
            step = left[lead] / line[lead]
            steps.append(step)
            left = [value - step * entry for value, entry in zip(left, line, strict=True)]
        if any(value != 0 for value in left):
            return None
        parts = math.lcm(*(int(step.q) for step in steps))
        whole = [int((step * parts).p) for step in steps]
        n = len(self.U)
        return [sum(y * line[j] for y, line in zip(whole, self.U, strict=False)) for j in range(n)], parts

    def near(self, right: Sequence[int]) -> tuple[list[int], int] | None:
        """A short x and the least q ≥ 1 with R x = q·right, by rounding in the short basis."""
        found = self.solution(right)
        if found is None or not self.basis:
            return found
        x, parts = found
        B = flint.fmpq_mat(flint.fmpz_mat(self.basis))
        far = flint.fmpq_mat(len(x), 1, [flint.fmpq(value) for value in x])
        times = (B * B.transpose()).solve(B * far)
        for k, vector in enumerate(self.basis):
            whole = int((times[k, 0] + flint.fmpq(1, 2)).floor())
            x = [value - whole * entry for value, entry in zip(x, vector, strict=True)]
        return x, parts
