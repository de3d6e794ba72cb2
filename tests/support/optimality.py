"""Proofs that a table is the nearest one on a hierarchy. Nothing here is shared with the code that finds it.

A problem is: parents of all nodes (−1 at roots), noisy values y, weights w (0: not measured), bounds low and high
(∓inf: none), and the norm. The claim is that z adds up, lies within its bounds, and has the least Σ w(z−y)² or Σ
w|z−y|.

*Reals, and L1 in whole numbers: a dual certificate.* The problem is convex, so z is optimal if and only if there are
prices: one λ_k for the children of each inner node k and 0 for the roots, such that for every node c with price λ
from above, λ ∈ ∂f_c(x_c) + λ_c + N_c. Here x = z − y, f_c is c's own cost, λ_c = 0 at a leaf, and N_c is the normal
cone of c's bounds: (−∞, 0] at the lower one, [0, ∞) at the upper one. `price_gap` carries intervals of possible
prices upwards: the children's intervals must meet, and a root's must hold 0. Prices exist if and only if they do.
With whole data the L1 optimum over the reals is attained at whole tables (the constraint matrix is a network's), so
the proof covers both.

*Whole numbers, L2: no improving exchange.* z is optimal if and only if no single step improves it: one unit more or
less at one leaf, or one unit moved from a leaf to another. (Murota, Discrete Convex Analysis, 2003, Theorem 6.26, for
laminar convex functions.) Directly: let z* be better, and see d = z* − z as a circulation: leaf arcs from a source to
the leaf's parent, an arc from each inner node to its parent, root arcs back to the source. It is a sum of simple
cycles that agree in sign with d on every arc, and a simple cycle is such a step. By convexity of each node's cost,
f(z + d) − f(z) is at least the sum of the steps' f(z + e) − f(z); so one of them is negative, and it stays between z
and z*, within all bounds. `exchange_gap` finds the best step in O(n log n).
"""

import numpy as np


def depths(parents):
    """Each node's depth."""
    depth = np.zeros(len(parents), dtype=np.int64)
    above = parents.copy()
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, parents[above], -1)
    return depth


def sum_up(parents, values):
    """The table whose leaves have these values (entries at inner nodes are ignored)."""
    inner = np.zeros(len(parents), dtype=bool)
    inner[parents[parents >= 0]] = True
    table = np.where(inner, 0, values)
    depth = depths(parents)
    for level in range(depth.max(initial=0), 0, -1):
        nodes = np.flatnonzero(depth == level)
        np.add.at(table, parents[nodes], table[nodes])
    return table


def objective(y, w, z, norm):
    """Σ w(z−y)² or Σ w|z−y| over the measured nodes."""
    move = np.where(w > 0, np.asarray(z, dtype=np.float64) - y, 0.0)
    return float((w * (np.abs(move) if norm == "l1" else move**2)).sum())


def feasible(parents, low, high, z):
    """Whether z adds up and lies within its bounds; whole numbers exactly, reals up to rounding in the sums only."""
    if not ((z >= low) & (z <= high)).all():
        return False
    inner = np.unique(parents[parents >= 0])
    total = np.zeros(len(parents), dtype=z.dtype)
    size = np.zeros(len(parents))
    below = np.flatnonzero(parents >= 0)
    np.add.at(total, parents[below], z[below])
    np.add.at(size, parents[below], np.abs(z[below]).astype(np.float64))
    if z.dtype.kind == "i":
        return bool((total[inner] == z[inner]).all())
    return bool((np.abs(total[inner] - z[inner]) <= 1e-11 * np.maximum(1.0, size[inner])).all())


def price_gap(parents, y, w, low, high, z, norm):
    """By how much the best prices miss a dual certificate, relative to the largest slope; 0 proves optimality."""
    x = np.where(w > 0, z.astype(np.float64) - y, 0.0)
    near = 1e-9 * np.maximum(1.0, np.abs(z)) if z.dtype.kind == "f" else np.zeros(len(z))
    if norm == "l1":
        least, most = np.where(x > near, w, -w), np.where(x < -near, -w, w)
    else:
        own = 4e-16 * np.abs(z) if z.dtype.kind == "f" else 0.0  # the rounding of z itself
        least, most = w * (x - own), w * (x + own)
    least = np.where(z <= low + near, -np.inf, least)
    most = np.where(z >= high - near, np.inf, most)
    scale = max(1.0, float(np.abs(w * x).max(initial=0.0)))
    depth = depths(parents)
    inner = np.zeros(len(parents), dtype=bool)
    inner[parents[parents >= 0]] = True
    low_price, high_price = np.where(inner, -np.inf, 0.0), np.where(inner, np.inf, 0.0)
    gap = 0.0
    for level in range(depth.max(initial=0), -1, -1):
        nodes = np.flatnonzero(depth == level)
        gap = max(gap, float((low_price[nodes] - high_price[nodes]).max()))
        # what rounding left of an empty meeting becomes one price
        crossed = low_price[nodes] > high_price[nodes]
        middle = (low_price[nodes[crossed]] + high_price[nodes[crossed]]) / 2
        low_price[nodes[crossed]] = high_price[nodes[crossed]] = middle
        from_below, from_above = low_price[nodes] + least[nodes], high_price[nodes] + most[nodes]
        if level == 0:
            gap = max(gap, float(from_below.max()), float((-from_above).max()))
            break
        np.maximum.at(low_price, parents[nodes], from_below)
        np.minimum.at(high_price, parents[nodes], from_above)
    return max(gap, 0.0) / scale


def _two_best(parents, nodes, values):
    """For each parent its least value, whose it is, and the second least: dense arrays over all nodes."""
    size = len(parents)
    best, who, second = np.full(size, np.inf), np.full(size, -1), np.full(size, np.inf)
    order = np.lexsort((values, parents[nodes]))
    sorted_nodes, above = nodes[order], parents[nodes][order]
    first = np.flatnonzero(np.r_[True, above[1:] != above[:-1]])
    best[above[first]] = values[order][first]
    who[above[first]] = sorted_nodes[first]
    after = first + 1
    has = (after < len(order)) & (np.append(above, -2)[np.minimum(after, len(above))] == above[first])
    second[above[first[has]]] = values[order][after[has]]
    return best, who, second


def exchange_gap(parents, y, w, low, high, z):
    """By how much the best step improves Σ w(z−y)²; 0 proves that z is the best whole table."""
    x = np.where(w > 0, (z - y).astype(np.float64), 0.0)
    up, down = w * (2 * x + 1), w * (1 - 2 * x)  # a unit more, a unit less at the node itself
    up, down = np.where(z >= high, np.inf, up), np.where(z <= low, np.inf, down)
    depth = depths(parents)
    inner = np.zeros(len(parents), dtype=bool)
    inner[parents[parents >= 0]] = True
    best_up, best_down = np.where(inner, np.inf, up), np.where(inner, np.inf, down)
    gain = 0.0
    for level in range(depth.max(initial=0), 0, -1):
        nodes = np.flatnonzero(depth == level)
        above = np.unique(parents[nodes])
        u, u_who, u_next = _two_best(parents, nodes, best_up[nodes])
        d, d_who, d_next = _two_best(parents, nodes, best_down[nodes])
        apart = u_who[above] != d_who[above]
        swap = np.where(apart, u[above] + d[above], np.minimum(u[above] + d_next[above], u_next[above] + d[above]))
        gain = min(gain, float(swap.min()))
        best_up[above], best_down[above] = u[above] + up[above], d[above] + down[above]
    roots = depth == 0
    gain = min(gain, float(best_up[roots].min()), float(best_down[roots].min()))
    return -gain


def assert_nearest(parents, y, w, low, high, z, norm, slack=1e-9):
    """Prove that z is the nearest table; `slack` is relative to the slopes (0 where everything is whole)."""
    assert feasible(parents, low, high, z)
    if norm == "l2" and z.dtype.kind == "i":
        scale = max(1.0, float((w * np.abs(np.where(w > 0, z - y, 0))).max()))
        assert exchange_gap(parents, y, w, low, high, z) <= slack * scale
    else:
        assert price_gap(parents, y, w, low, high, z, norm) <= slack
