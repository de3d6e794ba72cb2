"""Small forests whose tables can all be listed, and how far draws are from the list."""

import itertools
from fractions import Fraction

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.trees.circles.sampler import Sampler
from holdfast.trees.circles.weights import GaussianWeight, LaplaceWeight
from holdfast.trees.shape.forest import Forest
from table_weight import TableWeight

LAPLACE, NARROW, GAUSSIAN = LaplaceWeight(Fraction(3, 2)), LaplaceWeight(Fraction(2)), GaussianWeight(Fraction(1))
TABLE = TableWeight(-1, (Fraction(1, 2), Fraction(0), Fraction(1, 3), Fraction(1, 6)), above=Fraction(1, 4))
CITY, STAR = [-1, 0, 0, 1, 1, 2], [-1, 0, 0, 0, 0, 0]
NONE, ANY = -LARGEST, LARGEST
#: Parents, exact outputs, weights, the weight of each output (−1: not measured), bounds below and above.
CASES = {
    "consistent": (CITY, [], [NARROW], [0] * 6, [NONE] * 6, [ANY] * 6),
    "not negative": (CITY, [], [LAPLACE], [0] * 6, [NONE, NONE, NONE, 0, -1, -2], [ANY] * 6),
    "gaussian": (CITY, [], [GAUSSIAN], [0] * 6, [NONE] * 6, [ANY] * 6),
    "bounds on all": (CITY, [], [GAUSSIAN], [0] * 6, [NONE, NONE, NONE, 0, -1, 0], [ANY, ANY, 1, ANY, ANY, 2]),
    "exact": (CITY, [1], [NARROW], [0] * 6, [NONE] * 6, [ANY] * 6),
    "not measured": (CITY, [], [NARROW], [0, -1, 0, 0, 0, 0], [NONE] * 6, [ANY] * 6),
    "bounded, not measured": (CITY, [], [NARROW], [0, -1, 0, 0, 0, 0], [NONE, -1, *[NONE] * 4], [ANY, 2, *[ANY] * 4]),
    "two scales": (STAR[:5], [], [NARROW, LAPLACE], [0, 1, 0, 1, 0], [NONE, 0, 0, -1, NONE], [ANY] * 5),
    "any law": (CITY, [], [NARROW, TABLE], [0, 0, 0, 1, 0, 1], [NONE] * 6, [ANY] * 6),
    "a block": (STAR, [], [NARROW], [0] * 6, [NONE] * 6, [ANY] * 6),
    "a block of empty leaves": (STAR, [], [LAPLACE], [0] * 6, [NONE, 0, 0, 0, 0, -1], [ANY] * 6),
    "a block between bounds": (STAR, [], [LAPLACE], [0] * 6, [NONE] + [-1] * 5, [ANY] + [1] * 5),
    "a block below an exact total": (STAR, [0], [NARROW], [0] * 6, [NONE] + [-1] * 5, [ANY] * 6),
    "two trees": ([-1, -1, 0, 0, 1], [], [NARROW], [0] * 5, [NONE] * 5, [ANY] * 5),
    "an only leaf": ([-1], [], [NARROW], [0], [-1], [2]),
}


def sampler(name, **words):
    parents, exact, weights, which, low, high = CASES[name]
    forest = Forest(np.array(parents), np.isin(np.arange(len(parents)), exact))
    return Sampler(forest, weights, np.array(which), np.array(low), np.array(high), **words)


def listed(name, span=4):
    """The probability of every table whose leaves lie within the span."""
    parents, exact, weights, which, low, high = CASES[name]
    n = len(parents)
    children = [[c for c in range(n) if parents[c] == v] for v in range(n)]
    leaves = [v for v in range(n) if not children[v] and v not in exact]
    result = {}
    for values in itertools.product(range(-span, span + 1), repeat=len(leaves)):
        table = [0] * n
        for v, value in zip(leaves, values, strict=True):
            table[v] = value
        for v in range(n - 1, -1, -1):
            if children[v]:
                table[v] = sum(table[c] for c in children[v])
        if any(table[v] for v in exact) or not all(low[v] <= table[v] <= high[v] for v in range(n)):
            continue
        logs = [float(weights[which[v]].log(np.array(table[v]))) for v in range(n) if which[v] >= 0 and v not in exact]
        result[tuple(table)] = np.exp(sum(logs))
    whole = sum(result.values())
    return {table: mass / whole for table, mass in result.items()}


def distance(draws, law):
    """The χ² of drawn tables in standard deviations of its law, and the share of tables that are not listed."""
    tables, counts = np.unique(draws, axis=0, return_counts=True)
    seen = dict(zip(map(tuple, tables.tolist()), counts.tolist(), strict=True))
    size = len(draws)
    often = [table for table, mass in law.items() if mass * size > 20]
    squares = sum((seen.get(table, 0) - law[table] * size) ** 2 / (law[table] * size) for table in often)
    beyond = sum(count for table, count in seen.items() if table not in law) / size
    return (squares - len(often)) / (2 * len(often)) ** 0.5, beyond
