"""Random problems for `onto` with any linear rows, and the reference that solves them."""

from dataclasses import dataclass, replace

import cvxpy as cp
import numpy as np

import holdfast as hf

KINDS = ("table", "cube", "sum", "order", "mixed", "rows", "blocks")


@dataclass(frozen=True)
class Made:
    """Noisy values y, weights 1/v, and A z = b, G z ≥ h, low ≤ z ≤ high; `truth` satisfies them."""

    kind: str
    y: np.ndarray
    variances: np.ndarray
    truth: np.ndarray
    A: np.ndarray
    G: np.ndarray
    h: np.ndarray
    low: np.ndarray
    high: np.ndarray
    constraint: hf.Constraint
    base: hf.Mechanism
    scale: np.ndarray

    @property
    def b(self):
        """The right-hand sides that the truth has."""
        return self.A @ self.truth

    def cost(self, z, norm):
        """Σ|z−y|²/v or Σ|z−y|/√v, for one point or many."""
        move = np.abs(np.asarray(z, dtype=np.float64) - self.y)
        return (move**2 / self.variances if norm == "l2" else move / np.sqrt(self.variances)).sum(axis=-1)

    def holds(self, z, slack=0):
        """Whether points satisfy everything, within a slack; exactly for whole numbers and slack 0."""
        z = np.atleast_2d(z)
        sums = np.abs(z @ self.A.T - self.b) <= slack
        return (
            sums.all(axis=1)
            & (z @ self.G.T >= self.h - slack).all(axis=1)
            & (z >= self.low - slack).all(axis=1)
            & (z <= self.high + slack).all(axis=1)
        )

    def best(self, norm):
        """The least cost over the reals, and a point that has it, by cvxpy."""
        z = cp.Variable(self.y.size)
        finite_low, finite_high = np.isfinite(self.low), np.isfinite(self.high)
        must = [self.A @ z == self.b] if len(self.A) else []
        must += [self.G @ z >= self.h] if len(self.G) else []
        must += [z[finite_low] >= self.low[finite_low]] if finite_low.any() else []
        must += [z[finite_high] <= self.high[finite_high]] if finite_high.any() else []
        if norm == "l2":
            cost = cp.sum(cp.multiply(1 / self.variances, cp.square(z - self.y)))
        else:
            cost = cp.sum(cp.multiply(1 / np.sqrt(self.variances), cp.abs(z - self.y)))
        program = cp.Problem(cp.Minimize(cost), must)
        program.solve(solver=cp.CLARABEL)
        assert program.status == "optimal"
        return program.value, z.value


def margins(shape, keep):
    """The rows of a cube's margins, cell by cell."""
    cells = np.arange(np.prod(shape)).reshape(shape)
    rows = []
    for axes in keep:
        for place in np.ndindex(*(shape[a] for a in axes)):
            index = [slice(None)] * len(shape)
            for axis, at in zip(axes, place, strict=True):
                index[axis] = at
            row = np.zeros(cells.size, dtype=np.int64)
            row[cells[tuple(index)].ravel()] = 1
            rows.append(row)
    return np.array(rows)


def made(kind, rng, *, small=False, noisy=6, invariant=False):
    """One random problem of a kind; `small` ones can be listed."""
    A = G = np.zeros((0, 0), dtype=np.int64)
    chain = None
    if kind == "table":
        shape = (2, 2) if small else tuple(int(k) for k in rng.integers(2, 6, 2))
        n, A = int(np.prod(shape)), margins(shape, [(0,), (1,)])
    elif kind == "cube":
        shape = (2, 2, 2) if small else tuple(int(k) for k in rng.integers(2, 4, 3))
        n, A = int(np.prod(shape)), margins(shape, [(0, 1), (1, 2), (0, 2)])
    elif kind == "blocks":
        shape = (2, 2, 2) if small else (3, 2, 4)
        n, A = int(np.prod(shape)), margins(shape, [(0, 1), (0, 2)])
    elif kind == "sum":
        n = 4 if small else int(rng.integers(2, 12))
        A = np.ones((1, n), dtype=np.int64)
    elif kind == "order":
        n = 4 if small else int(rng.integers(2, 12))
        chain = rng.permutation(n)
        G = np.zeros((n - 1, n), dtype=np.int64)
        G[np.arange(n - 1), chain[:-1]], G[np.arange(n - 1), chain[1:]] = -1, 1
    elif kind == "mixed":
        n = 4 if small else int(rng.integers(4, 9))
        A, G = rng.choice([-1, 1], (1, n)), rng.integers(-1, 2, (2, n))
        G[:, :2] = 1
    else:
        n = 4 if small else int(rng.integers(4, 8))
        A = rng.integers(-3, 4, (2, n))
        A[0][A[0] == 0] = 1
        A[:, 0], A[:, 1] = [1, 2], [1, 1]
    A, G = A.reshape(-1, n), G.reshape(-1, n)
    truth = rng.integers(0, 5, n)
    if chain is not None:
        truth[chain] = np.sort(truth)
    h = np.zeros(len(G), dtype=np.int64) if chain is not None else G @ truth - rng.integers(0, 2, len(G))
    must = []
    if len(A):
        must.append(hf.invariant(A) if invariant else hf.equals(A, A @ truth))
    if len(G):
        must.append(hf.ordered(chain) if chain is not None else hf.at_least(G, h))
    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    if rng.random() < 0.7 or kind in ("table", "cube", "blocks"):
        low = np.minimum(truth, rng.integers(0, 2, n)).astype(np.float64)
        must.append(hf.between(low.astype(int), None))
    if rng.random() < 0.4:
        high = (truth + rng.integers(0, 4, n)).astype(np.float64)
        must.append(hf.between(None, high.astype(int)))
    constraint = must[0]
    for part in must[1:]:
        constraint = constraint & part
    scale = rng.choice([1.0, 2.0, 3.0], n) if rng.random() < 0.5 else np.ones(n)
    base = hf.laplace(hf.histogram(n), scale=scale)
    y = truth + rng.integers(-noisy, noisy + 1, n)
    return Made(kind, y, base.base.law.variances, truth, A, G, h, low, high, constraint, base, scale)


def permuted(problem, order):
    """The same problem with its outputs in another order, for rows given as matrices."""
    n = order.size
    again = [hf.equals(problem.A[:, order], problem.b)] if len(problem.A) else []
    again += [hf.at_least(problem.G[:, order], problem.h)] if len(problem.G) else []
    low, high = problem.low[order], problem.high[order]
    again += [hf.between(low, None)] if np.isfinite(low).any() else []
    again += [hf.between(None, high)] if np.isfinite(high).any() else []
    constraint = again[0]
    for part in again[1:]:
        constraint = constraint & part
    return replace(
        problem,
        y=problem.y[order],
        variances=problem.variances[order],
        truth=problem.truth[order],
        A=problem.A[:, order],
        G=problem.G[:, order],
        low=low,
        high=high,
        constraint=constraint,
        base=hf.laplace(hf.histogram(n), scale=problem.scale[order]),
        scale=problem.scale[order],
    )
