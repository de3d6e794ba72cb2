"""Random small problems for `onto` that are hard on solvers: tight corners, twin rows, scales and weights far apart."""

import itertools
import math
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

import holdfast as hf
import programs

#: Shapes of cubes whose margins are kept.
CUBES = (
    *((3, 4), (2, 2, 3), (3, 3, 3), (2, 3, 4), (4, 4, 4), (2, 2, 2, 2)),
    *((5, 6), (3, 4, 5), (2, 2, 2, 3), (10, 12), (4, 5, 6)),
)


@dataclass(frozen=True)
class Hard:
    """Noisy values y, weights w, and A z = b, G z ≥ h, low ≤ z ≤ high; `truth` satisfies them."""

    y: np.ndarray
    weights: np.ndarray
    truth: np.ndarray
    A: np.ndarray
    G: np.ndarray
    h: np.ndarray
    low: np.ndarray
    high: np.ndarray
    norm: str
    integer: bool

    @property
    def mechanism(self):
        """The mechanism that moves y."""
        must = [hf.between(self.low, self.high)]
        if len(self.A):
            must.append(hf.equals(self.A, self.A @ self.truth))
        if len(self.G):
            must.append(hf.at_least(self.G, self.h))
        joint = must[0]
        for part in must[1:]:
            joint = joint & part
        base = hf.laplace(hf.histogram(self.y.size), scale=1)
        return base.onto(joint, norm=self.norm, weights=self.weights, integer=self.integer)

    def cost(self, z):
        """What is made small."""
        move = np.abs(np.asarray(z, dtype=np.float64) - self.y)
        return float((self.weights * move**2 if self.norm == "l2" else np.sqrt(self.weights) * move).sum())

    def best(self):
        """The least cost over the reals, by cvxpy, in moves of a size near 1; None where it finds none."""
        size = max(1.0, float(np.abs(self.y - self.truth).max()))
        x = cp.Variable(self.y.size)
        y, right = self.y.astype(object), (self.A.astype(object) @ self.truth.astype(object))
        must = [x >= (self.low - y).astype(float) / size, x <= (self.high - y).astype(float) / size]
        if len(self.A):
            must.append(self.A @ x == (right - self.A.astype(object) @ y).astype(float) / size)
        if len(self.G):
            must.append(self.G @ x >= (self.h.astype(object) - self.G.astype(object) @ y).astype(float) / size)
        w = self.weights / self.weights.max()
        cost = cp.sum(cp.multiply(w, cp.square(x)) if self.norm == "l2" else cp.multiply(np.sqrt(w), cp.abs(x)))
        program = cp.Problem(cp.Minimize(cost), must)
        try:
            program.solve(solver=cp.CLARABEL)
        except cp.error.SolverError:
            return None
        if program.status != "optimal":
            return None
        heaviest = self.weights.max()
        return program.value * (heaviest * size**2 if self.norm == "l2" else np.sqrt(heaviest) * size)


def hard(seed):
    """One problem."""
    rng = np.random.default_rng([8, seed])
    n = int(rng.integers(2, 9))
    size = int(rng.choice([5, 1_000, 10**9]))
    truth = rng.integers(0, size + 1, n)
    coefficient = int(rng.choice([1, 3, 50, 10**6], p=[0.4, 0.4, 0.1, 0.1])) if size < 10**9 else 3
    A = _rows(rng, int(rng.integers(0, min(n, 4))), n, coefficient)
    G = _rows(rng, int(rng.integers(0, 7)), n, coefficient)
    if len(G) and rng.random() < 0.4:  # twins, multiples and sums
        twins = [G[rng.integers(len(G))] * int(rng.choice([1, 2, 7])) for _ in range(2)]
        G = np.vstack([G, *twins, G.sum(axis=0)])
    if len(G) and rng.random() < 0.4:  # nearly parallel
        near = G[rng.integers(len(G))] * int(rng.choice([10, 1_000] if coefficient > 3 else [10, 1_000, 10**5]))
        near[rng.integers(n)] += int(rng.choice([-1, 1]))
        G = np.vstack([G, near])
    if len(G) and rng.random() < 0.15:  # an inequality in both directions
        G = np.vstack([G, -G[0]])
    corner = rng.random() < 0.6
    slack = np.where(rng.random(len(G)) < (0.8 if corner else 0.2), 0, rng.integers(0, 3, len(G)))
    h = G @ truth - slack
    if len(G) > 1 and (G[-1] == -G[0]).all():
        h[0], h[-1] = G[0] @ truth, G[-1] @ truth
    low = np.where(rng.random(n) < (0.4 if corner else 0.1), truth, truth - rng.integers(1, size + 2, n))
    high = np.where(rng.random(n) < 0.2, truth, truth + rng.integers(1, size + 2, n))
    reach = float(rng.choice([3, 30, 10**6, 10**9] if coefficient <= 50 else [3, 30]))
    y = truth + np.rint(rng.laplace(0, reach, n)).astype(np.int64)
    weights = 10.0 ** rng.uniform(-6, 6, n) if rng.random() < 0.5 else np.ones(n)
    return Hard(y, weights, truth, A, G, h, low, high, str(rng.choice(["l1", "l2"])), bool(rng.random() < 0.5))


def larger(seed):
    """One problem with 10 to 120 outputs: margins of a cube, sparse rows, or both."""
    rng = np.random.default_rng([99, seed])
    kind = rng.choice(["cube", "sparse", "mixed"])
    size = int(rng.choice([3, 50, 10**5]))
    if kind == "sparse":
        n = int(rng.integers(10, 121))
    else:
        shape = CUBES[rng.integers(len(CUBES))]
        n, axes = math.prod(shape), range(len(shape))
        sides = list(itertools.combinations(axes, len(shape) - 1 if len(shape) < 4 else 2))
        A = programs.margins(shape, [side for side in sides if rng.random() < 0.7] or sides[:1])
    truth = rng.integers(0, size + 1, n) * (rng.random(n) < rng.choice([0.2, 0.6, 1.0]))
    coefficient = int(rng.choice([1, 2, 7]))
    if kind == "sparse":
        A = _sparse_rows(rng, int(rng.integers(1, max(2, n // 4))), n, coefficient)
    G = np.zeros((0, n), dtype=np.int64)
    if kind != "cube":
        G = _sparse_rows(rng, int(rng.integers(1, n // 2 + 2)), n, coefficient)
    h = G @ truth - np.where(rng.random(len(G)) < 0.5, 0, rng.integers(0, 4, len(G)))
    low = np.where(rng.random(n) < 0.3, truth, np.maximum(0, truth - rng.integers(0, size + 2, n)))
    high = np.where(rng.random(n) < 0.15, truth, truth + rng.integers(1, size + 2, n))
    y = truth + np.rint(rng.laplace(0, float(rng.choice([1, 10, 1000])), n)).astype(np.int64)
    weights = 10.0 ** rng.uniform(-4, 4, n) if rng.random() < 0.4 else np.ones(n)
    return Hard(y, weights, truth, A, G, h, low, high, str(rng.choice(["l1", "l2"])), bool(rng.random() < 0.5))


def _sparse_rows(rng, count, n, coefficient):
    """Rows with about four entries each."""
    rows = rng.integers(-coefficient, coefficient + 1, (count, n)) * (rng.random((count, n)) < min(1, 4 / n))
    rows[np.arange(count), rng.integers(0, n, count)] += 1
    return rows[np.abs(rows).sum(axis=1) > 0]


def large(seed):
    """One problem with more outputs than rationals are used for."""
    rng = np.random.default_rng([77, seed])
    n, size = int(rng.integers(42, 90)), int(rng.choice([5, 1000, 10**6]))
    truth = rng.integers(0, size + 1, n)
    coefficient = int(rng.choice([1, 1, 3, 50]))

    def rows(count, share):
        found = rng.integers(-coefficient, coefficient + 1, (count, n)) * (rng.random((count, n)) < share)
        found[np.arange(count), rng.integers(0, n, count)] += (np.abs(found).sum(axis=1) == 0).astype(int)
        return found

    A, G = rows(int(rng.integers(0, 12)), 0.15), rows(int(rng.integers(0, 40)), 0.1)
    if len(G) and rng.random() < 0.5:
        G = np.vstack([G, G[:3] * 2, G.sum(axis=0)])
    corner = rng.random() < 0.6
    slack = np.where(rng.random(len(G)) < (0.8 if corner else 0.2), 0, rng.integers(0, 3, len(G)))
    low = np.where(rng.random(n) < (0.4 if corner else 0.1), truth, truth - rng.integers(1, size + 2, n))
    high = np.where(rng.random(n) < 0.2, truth, truth + rng.integers(1, size + 2, n))
    y = truth + np.rint(rng.laplace(0, float(rng.choice([3, 30, 10**4])), n)).astype(np.int64)
    weights = 10.0 ** rng.uniform(-6, 6, n) if rng.random() < 0.3 else np.ones(n)
    norm, integer = str(rng.choice(["l1", "l2"])), bool(rng.random() < 0.5)
    return Hard(y, weights, truth, A, G, G @ truth - slack, low, high, norm, integer)


def _rows(rng, count, n, coefficient):
    """Rows with entries up to a size, none of them empty."""
    rows = rng.integers(-coefficient, coefficient + 1, (count, n)) * (rng.random((count, n)) < 0.7)
    rows[np.arange(count), rng.integers(0, n, count)] += (np.abs(rows).sum(axis=1) == 0).astype(np.int64)
    return rows
