"""Small hierarchies with leaves that are not measured, and their tables one by one."""

import numpy as np

import holdfast as hf

INF = np.inf
THREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2])  # leaves 3, 4 and 5
FOREST = hf.Hierarchy.from_parents([3, 3, -1, -1, 2])  # trees 3 with 0 and 1, and 2 with 4
WIDE = hf.Hierarchy.from_parents([-1, 0, 0, 0])
MAKE = {"laplace": hf.laplace, "gaussian": hf.gaussian}

# name: tree, scale per output (inf: not measured), extra constraint
CASES = {
    "a free leaf": (THREE, [0.75, 0.5, 0.5, 0.625, INF, 0.5], None),
    "up to the root": (THREE, [0.75, INF, 0.5, 0.625, INF, 0.5], None),
    "two free leaves": (THREE, [0.75, 0.5, 0.625, 0.5, INF, INF], None),
    "an exact parent": (THREE, [0.75, 0.5, 0.5, 0.625, INF, 0.5], hf.invariant(hf.exact_nodes(THREE, [1]))),
    "up to an exact root": (THREE, [0.5, INF, 0.5, 0.625, INF, 0.5], hf.invariant(hf.exact_nodes(THREE, [0]))),
    "an exact sibling": (THREE, [0.75, 0.5, 0.5, 0.625, INF, 0.5], hf.fixed(3, 2)),
    "a forest": (FOREST, [INF, 0.5, 0.75, 0.625, INF], None),
    "below an exact root": (WIDE, [0.5, 0.625, INF, 0.5], hf.invariant(hf.exact_nodes(WIDE, [0]))),
    "alike siblings": (WIDE, [0.5, 0.625, 0.625, INF], None),
}
BOUNDED = {
    "bounds on siblings": (THREE, [0.75, INF, 0.5, 0.625, INF, 0.75], hf.between(0, 3, at=[3, 5])),
    "a bounded parent": (THREE, [0.75, 0.75, 0.5, 0.625, INF, 0.5], hf.between(1, 3, at=1)),
}
TRUTH = np.array([2, 0, 1])


def mechanism(case, kind):
    tree, scales, extra = case
    held = hf.consistent(tree) if extra is None else hf.consistent(tree) & extra
    return MAKE[kind](hf.counts(tree), scale=scales).given(held)


def tables(tree, reach=22, around=TRUTH):
    """All outputs of every table of leaves in a window."""
    axes = np.meshgrid(*[np.arange(x - reach, x + reach + 1) for x in around], indexing="ij")
    return tree.sum_up(np.stack([axis.ravel() for axis in axes])).T


def law(case, kind, nodes, leaves=TRUTH):
    """The probabilities of tables, for a truth of the leaves."""
    tree, scales, extra = case
    truth = tree.sum_up(leaves)
    keep = np.ones(len(nodes), dtype=bool)
    if extra is not None:
        system = extra.system(tree.n)
        rows = system.invariants.A.toarray()
        keep = np.asarray(system.holds(nodes)) & (rows @ nodes.T == (rows @ truth)[:, None]).all(axis=0)
    away = np.abs(nodes - truth) / np.array(scales)
    logs = -(away if kind == "laplace" else away**2 / 2).sum(axis=1)
    chances = np.where(keep, np.exp(logs - logs[keep].max()), 0.0)
    return chances / chances.sum()
