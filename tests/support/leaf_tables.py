"""The conditioned law of leaf tables on a small hierarchy by plain summation; shares nothing with the prices.

c(x) is summed over all noise of the leaves in wide windows, one output after the other. Neighbouring tables are those
of all small datasets. The loss of a pair x, x' is Σ|d_v|/λ_v + |log c(x) − log c(x')|: the outputs x and x' attain it.
"""

import itertools

import numpy as np

INF = np.inf
#: Weights beyond are below e^-35 of the largest, at the rates that are tried here (at least ½).
WINDOW = 70


class Tree:
    """Outputs with parents listed before children, rates 1/λ (0: not measured), exact outputs, bounds of the leaves."""

    def __init__(self, parents, rates, exact, low, high, power=1):
        self.parents, self.rates, self.power = list(parents), np.asarray(rates, float), power
        self.exact = np.asarray(exact, bool)
        self.leaves = [v for v in range(len(self.parents)) if v not in self.parents]
        self.low, self.high = low, high

    def outputs(self, leaf_values):
        values = np.zeros(len(self.parents))
        values[self.leaves] = leaf_values
        for v in range(len(self.parents) - 1, -1, -1):
            if self.parents[v] >= 0:
                values[self.parents[v]] += values[v]
        return values

    def log_c(self, table, window=WINDOW):
        """log of the weight of all noise that keeps every leaf of the table within its bounds."""
        sums, total = {}, 0.0
        for v in range(len(self.parents) - 1, -1, -1):
            if v in self.leaves:
                k = self.leaves.index(v)
                first = int(max(-window, self.low[k] - table[k]))
                weights = np.ones(int(min(window, self.high[k] - table[k])) - first + 1)
            else:
                weights, first = np.ones(1), 0
                for child in [c for c in range(len(self.parents)) if self.parents[c] == v]:
                    below, start = sums.pop(child)
                    weights, first = np.convolve(weights, below), first + start
            noise = first + np.arange(weights.size)
            if self.exact[v]:
                weights, first = weights[noise == 0], 0
            else:
                weights = weights * np.exp(-self.rates[v] * np.abs(noise) ** self.power)
            if self.parents[v] < 0:
                total += np.log(weights.sum())
            else:
                sums[v] = (weights, first)
        return total

    def loss(self, change):
        """Σ|d_v|/λ_v, or None where an exact output would change."""
        by = self.outputs(change)
        return None if by[self.exact].any() else float(np.abs(by) ** self.power @ self.rates)

    def inside(self, table):
        return all(a <= x <= b for a, x, b in zip(self.low, table, self.high, strict=True))

    def normal(self):
        """Whether every leaf has a measured output on its path."""

        def measured(v):
            return v >= 0 and (self.rates[v] > 0 or measured(self.parents[v]))

        return all(measured(v) for v in self.leaves)


def tables(tree, columns, most=6, largest=12):
    """The tables within bounds of all datasets with a few records."""
    found = set()
    for counts in itertools.product(range(min(most, 6 - columns.shape[1] // 2) + 1), repeat=columns.shape[1]):
        if sum(counts) <= most:
            table = tuple(int(x) for x in columns @ np.array(counts))
            if tree.inside(table) and max(map(abs, table)) <= largest:
                found.add(table)
    return sorted(found)


def changes(columns, relation):
    """All differences of the leaves that so many records make."""
    records = [tuple(int(x) for x in column) for column in columns.T]
    nothing = (0,) * columns.shape[0]
    if relation.adds:
        one = {nothing, *records, *(tuple(-x for x in record) for record in records)}
    else:
        one = {tuple(np.subtract(a, b).tolist()) for a in records for b in records}
    found = {nothing}
    for _ in range(relation.records):
        found = {tuple(np.add(a, b).tolist()) for a in found for b in one}
    return sorted(found - {nothing})


def worst_loss(tree, columns, relation, chosen):
    """The largest loss among neighbouring tables."""
    logs = {table: tree.log_c(table) for table in chosen}
    worst = 0.0
    for change in changes(columns, relation):
        loss = tree.loss(change)
        if loss is None:
            continue
        for x in chosen:
            y = tuple(np.add(x, change).tolist())
            if y in logs:
                worst = max(worst, loss + abs(logs[x] - logs[y]))
    return worst


def random_parents(rng, leaves, most=6):
    while True:
        parents = [-1] if rng.integers(4) else [-1, -1]
        while sum(v not in parents for v in range(len(parents))) < leaves:
            parents.append(int(rng.integers(len(parents))))
        if len(parents) <= most and sum(v not in parents for v in range(len(parents))) == leaves:
            return parents


def random_tree(rng, leaves, exact=True, most=6, power=1):
    """Random parents, rates, exact outputs and bounds; every leaf has a measured output on its path."""
    while True:
        parents = random_parents(rng, leaves, most)
        rates = rng.choice([0.5, 0.75, 1.0, 1.5, 2.0], len(parents))
        inner = np.isin(np.arange(len(parents)), parents)
        rates[rng.integers(8, size=len(parents)) < np.where(inner, 2, 1)] = 0.0
        low, high = np.zeros(leaves), np.full(leaves, INF)
        kind = rng.integers(4)
        if kind >= 2:
            high = np.where(rng.integers(2, size=leaves) == 0, rng.integers(2, 6, leaves), INF)
        if kind == 3:
            low = np.where(rng.integers(3, size=leaves) == 0, -INF, 0)
            low[0] = 0
        fixed = rng.integers(5, size=len(parents)) == 0 if exact and rng.integers(2) else np.zeros(len(parents), bool)
        tree = Tree(parents, rates, fixed, low, high, power)
        if tree.normal():
            return tree


def random_columns(rng, leaves):
    """What records do to the leaves: ones, unequal, signed, or twos; now and then a record that counts nowhere."""
    kind, columns = rng.integers(4), []
    for _ in range(int(rng.integers(1, 5))):
        column = np.zeros(leaves, int)
        weight = [1, rng.integers(1, 4), rng.choice([-2, -1, 1, 2, 3]), 2][kind]
        column[rng.integers(leaves)] = weight
        columns.append(column)
    if rng.integers(6) == 0:
        columns.append(np.zeros(leaves, int))
    return np.array(columns).T
