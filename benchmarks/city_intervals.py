"""Coverage of intervals on a city's hierarchy: seen over simulated tables against the exact one, in one run.

The tree has 270 nodes (1–6–263: 43, 61, 1, 69, 69, 20 zones), integer Laplace noise with λ = 3 on every node, given
that the table adds up. For 50, 90 and 99 % an interval is `Release.interval`; it is discrete, so its exact coverage,
from the law of each node's noise, is a little above its level. Nodes of one table are not independent: the coverage of
a table is the share of its nodes that are covered, and tables give the Monte-Carlo error. Bars: |z| of the mean
coverage, and of each node's coverage with its own binomial error, at most 5; no exact coverage below its level.
"""

import sys
import time

import numpy as np

import holdfast as hf
from holdfast.noise import Independent, IntegerLaplace
from holdfast.trees import Forest, Sampler
from holdfast.trees.circles.errors.marginals import Marginals

ZONES = (43, 61, 1, 69, 69, 20)
LEVELS = (0.5, 0.9, 0.99)
SIZE = 100_000
BAR = 5.0


def exact_coverage(parents, reach):
    """The probability that each node's noise is within its reach."""
    n = parents.size
    none = np.full(n, 2**62)
    law = Independent((IntegerLaplace(3),), None, n)
    found = Marginals(Sampler.of(Forest(parents, np.zeros(n, dtype=bool)), law, -none, none))
    result = np.empty(n)
    for v in range(n):
        low, chances = found.law(v)
        places = low + np.arange(chances.size)
        result[v] = chances[np.abs(places) <= reach[v]].sum()
    return result


def main() -> int:
    parents = np.array([-1] + [0] * 6 + [1 + i for i, k in enumerate(ZONES) for _ in range(k)])
    tree = hf.Hierarchy.from_parents(parents)
    mechanism = hf.laplace(hf.counts(tree), scale=3).given(hf.consistent(tree))
    truth = tree.sum_up(np.random.default_rng(0).geometric(1 / 45, tree.leaves.size))
    release = mechanism.release(truth)
    start = time.perf_counter()
    release.interval(0.5)
    seconds = time.perf_counter() - start
    values = mechanism.simulate(truth, SIZE)
    missed = False
    for level in LEVELS:
        reach = release.interval(level)[:, 1] - release.values
        covered = np.abs(values - truth) <= reach
        wanted = exact_coverage(parents, reach)
        shares = covered.mean(axis=1)
        z = (shares.mean() - wanted.mean()) / (shares.std() / np.sqrt(SIZE))
        each = (covered.mean(axis=0) - wanted) / np.sqrt(wanted * (1 - wanted) / SIZE)
        missed |= abs(z) > BAR or np.abs(each).max() > BAR or wanted.min() < level - 1e-11
        print(
            f"{level:.0%} intervals, {tree.n} nodes, {SIZE} tables: covered {shares.mean():.5%}, exact "
            f"{wanted.mean():.5%} (least {wanted.min():.3%}, largest {wanted.max():.3%}); z {z:+.2f}, worst node's z "
            f"{each[np.abs(each).argmax()]:+.2f} (bar {BAR:g})"
        )
    print(f"errors and quantiles of all nodes: {seconds:.3f} s with compiled code loaded")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
