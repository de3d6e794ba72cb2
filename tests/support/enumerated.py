"""Random small mechanisms with every output listed: what they draw, and what they promise.

Everything is recomputed from the definition: tables in a small box, their neighbours record by record, every whole
output in a wide window. Nothing of the library's samplers, difference sets or prices is used on this side.
"""

import itertools
from fractions import Fraction

import numpy as np
from scipy.special import logsumexp

import holdfast as hf
from holdfast.mechanism import mixture
from lattice_laws import listed, near_form
from samplers import pearson

#: Draws of each law, the false alarms of a whole campaign, and how far a wrong scale is off that should be seen.
DRAWS, ALARM, WRONG = 4_000, 1e-3, 1.3
#: What a promise may be missed by, for sums of doubles and what lies beyond a window.
TOLERANCE = 1e-8
SCALES = [Fraction(1, 2), Fraction(3, 4), 1, Fraction(3, 2), 2]
KINDS = ("laplace", "gaussian")
RELATIONS = ("add-remove", "replace-one")


# --- listing ----------------------------------------------------------------------------------------------------------


def window(truths, reach):
    """All whole outputs within reach of every truth, (m, n)."""
    truths, reach = np.atleast_2d(truths), np.asarray(reach)
    low, high = truths.min(axis=0) - reach, truths.max(axis=0) + reach
    axes = [np.arange(a, b + 1) for a, b in zip(low, high, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, truths.shape[1])


def allowed_of(constraint, outputs):
    """Which outputs a constraint allows for all data, and the rows of its exact figures."""
    if constraint is None:
        return np.ones(len(outputs), dtype=bool), np.zeros((0, outputs.shape[1]), dtype=int)
    system = constraint.system(outputs.shape[1])
    return np.asarray(system.holds(outputs)), system.invariants.A.toarray()


def log_law(kind, scales, truth, outputs, allowed, rows):
    """Logarithms of the law of independent noise given what must hold; -inf where it is nothing."""
    away = np.abs(outputs - truth) / np.asarray(scales, dtype=float)
    logs = -(away if kind == "laplace" else away**2 / 2).sum(axis=1)
    logs = np.where(allowed & (rows @ outputs.T == (rows @ truth)[:, None]).all(axis=0), logs, -np.inf)
    return logs - logsumexp(logs)


def changes(kind, cells, records):
    """Changes of cell counts by so many records at most."""
    unit = np.eye(cells, dtype=int)
    single = [*unit, *-unit] if kind == "add-remove" else [a - b for a in unit for b in unit if (a != b).any()]
    found = {(0,) * cells}
    for _ in range(records):
        found |= {tuple(np.add(old, new).tolist()) for old in found for new in single}
    return sorted(found - {(0,) * cells})


def possible_tables(query, constraint, top):
    """Tables of so many records a cell at most whose answers obey what must hold."""
    tables = map(np.array, itertools.product(range(top + 1), repeat=query.cells))
    if constraint is None:
        return [tuple(table.tolist()) for table in tables]
    system = constraint.system(query.n)
    return [tuple(table.tolist()) for table in tables if system.violation(query.answer(table)) is None]


def beyond(statement, p, q):
    """How far the loss between two laws, as logarithms over the same outputs, lies beyond a statement."""
    either = np.isfinite(p) | np.isfinite(q)
    p, q = p[either], q[either]
    found = []
    if statement.epsilon is not None and statement.delta == 0:
        found.append(np.max(p - q) - statement.epsilon)
    elif statement.epsilon is not None:
        found.append(np.maximum(np.exp(p) - np.exp(statement.epsilon + q), 0).sum() - statement.delta)
    if statement.rho is not None and np.isfinite(p).all() and np.isfinite(q).all():
        for order in (2, 3, 5) if statement.orders == "integer" else (1.25, 2, 4.5):
            divergence = logsumexp(order * p + (1 - order) * q) / (order - 1)
            found.append(divergence - order * statement.rho)
    elif statement.rho is not None:
        found.append(np.inf)
    return max(found)


def worst_of(mechanism, laws, truths, rows):
    """How far any pair of neighbours lies beyond any statement; None where no pair has a statement."""
    found = []
    for statement in mechanism.guarantees:
        if statement.void or statement.scope == "subspace":
            continue
        steps = changes(statement.neighbours.kind, len(next(iter(laws))), statement.records)
        for x in laws:
            for step in steps:
                y = tuple(np.add(x, step).tolist())
                if y not in laws or (truths[x] == truths[y]).all():
                    continue
                if statement.scope == "invariant-sharing" and (rows @ truths[x] != rows @ truths[y]).any():
                    continue
                found.append(beyond(statement, laws[x], laws[y]))
    return max(found, default=None)


# --- laws -------------------------------------------------------------------------------------------------------------


def random_tree(rng):
    """A hierarchy of some levels with two or three leaves: mechanism, truth, outputs near, and their constraint."""
    n = int(rng.integers(3, 7))
    tree = hf.Hierarchy.from_parents([-1, *(int(rng.integers(-1, v)) for v in range(1, n))])
    if not 2 <= len(tree.leaves) <= 3:
        return None
    leaves = rng.integers(0, 4, size=len(tree.leaves))
    truth = tree.sum_up(leaves)
    scales = [np.inf if rng.random() < 0.2 else SCALES[rng.integers(5)] for _ in range(n)]
    must, node = hf.consistent(tree), int(rng.integers(n))
    choice = rng.integers(7)
    if choice in (1, 2):
        must &= hf.nonnegative()
    if choice == 3:
        must &= hf.between(0, int(leaves.max()) + int(rng.integers(3)), at=tree.leaves)
    if choice in (2, 4):
        must &= hf.invariant(hf.exact_nodes(tree, [node]))
    if choice == 5:
        must &= hf.fixed(int(tree.leaves[0]), int(leaves[0]))
    if choice == 6:
        must &= hf.between(int(truth[node]) - 1, int(truth[node]) + int(rng.integers(1, 3)), at=node)
    kind = KINDS[rng.integers(2)]
    near = window(leaves, _reach(kind, scales, wide=not np.isfinite(np.array(scales, dtype=float)).all()))
    return kind, hf.counts(tree), scales, must, truth, tree.sum_up(near.T).T


def random_system(rng):
    """Two or three outputs with any rules."""
    query, n = random_query(rng), 0
    n = query.n
    if not 2 <= n <= 3:
        return None
    truth = query.answer(rng.integers(0, 4, size=query.cells))
    scales = [SCALES[rng.integers(5)] for _ in range(n)]
    must = random_rules(rng, truth)
    kind = KINDS[rng.integers(2)]
    return kind, query, scales, must, truth, window(truth, [_reach(kind, [scale]) for scale in scales])


def _reach(kind, scales, *, wide=False):
    """How far outputs are listed: all but some 1e-6 of the law."""
    largest = float(max((scale for scale in scales if scale < np.inf), default=1))
    return int((2 if wide else 1) * np.ceil(largest * (14 if kind == "laplace" else 6))) + 1


def random_query(rng):
    choice = rng.integers(3)
    if choice == 0:
        return hf.histogram(int(rng.integers(2, 4)))
    if choice == 1:
        return hf.workload(rng.integers(-1, 3, size=(int(rng.integers(2, 4)), int(rng.integers(2, 4)))))
    return [hf.margins((2,), keep=[(0,), ()]), hf.margins((3,)), hf.counts(hf.Hierarchy.from_parents([-1, 0, 0]))][
        rng.integers(3)
    ]


def random_rules(rng, truth):
    """One or two rules that the truth obeys."""
    n, rules = len(truth), []
    for _ in range(int(rng.integers(1, 3))):
        row = rng.integers(-1, 3, size=n)
        row = row if row.any() else np.ones(n, dtype=int)
        value = int(row @ truth)
        options = [
            lambda row=row: hf.invariant([row]),
            lambda row=row, value=value: hf.equals([row], [value]),
            lambda row=row, value=value: hf.at_least([row], [value - int(rng.integers(3))]),
            lambda: hf.between(int(truth.min()) - int(rng.integers(2)), int(truth.max()) + int(rng.integers(1, 3))),
            lambda: hf.between(int(truth[0]) - 1, None, at=0),
            lambda: hf.ordered(np.argsort(truth, kind="stable").tolist()),
        ]
        rules.append(options[rng.integers(6)]())
    return rules[0] if len(rules) == 1 else rules[0] & rules[1]


def laws(count, seed, draws=DRAWS):
    """Draws of random mechanisms against every output listed: (what, p-value, that of a wrong scale, what is wrong)."""
    number = made = 0
    while made < count:
        number += 1
        rng = np.random.default_rng([seed, number])
        try:
            case = (random_tree if number % 2 else random_system)(rng)
            if case is None:
                continue
            kind, query, scales, must, truth, outputs = case
            mechanism = getattr(hf, kind)(query, scale=scales).given(must)
            values = mechanism.simulate(truth, draws, rng=hf.seeded(number))
        except hf.Refused:
            continue
        made += 1
        allowed, rows = allowed_of(must, outputs)
        kept, exact = allowed_of(must, values)
        wrong = None
        if not kept.all() or (exact @ values.T != (exact @ truth)[:, None]).any():
            wrong = "a draw does not hold what must"
        logs = [log_law(kind, factor * finite(scales), truth, outputs, allowed, rows) for factor in (1.0, WRONG)]
        p = [pearson(values, probabilities(outputs, each), 10) for each in logs]
        if p[0] < ALARM / count:
            wrong = f"p = {p[0]:.2g}"
        what = f"{kind} on {'a hierarchy' if number % 2 else 'rules'}"
        yield what, *p, None if wrong is None else f"case {number} of seed {seed}: {must}: {wrong}"


def finite(scales):
    return np.array([float(scale) for scale in scales])


def probabilities(outputs, logs):
    some = logs > -30
    return dict(zip(map(tuple, outputs[some].tolist()), np.exp(logs[some]).tolist(), strict=True))


# --- statements -------------------------------------------------------------------------------------------------------


def random_order(rng):
    """Noise given an order of cells, with bounds: mechanism, laws and answers of tables, and rows of exact figures."""
    query = hf.histogram(int(rng.integers(2, 4)))
    n = query.n
    pairs = list(itertools.permutations(range(n), 2))
    must = None
    for k in rng.permutation(len(pairs))[: int(rng.integers(1, 3))]:
        row = np.zeros(n, dtype=int)
        row[list(pairs[k])] = 1, -1
        part = hf.at_least([row], [int(rng.integers(-2, 1))])
        must = part if must is None else must & part
    for j in range(n):
        choice = rng.integers(5)
        if choice < 2:
            must &= hf.nonnegative(at=[j]) if choice else hf.between(0, int(rng.integers(1, 4)), at=[j])
    return _conditioned(rng, query, must, KINDS[rng.integers(2)], SCALES[:3])


def random_mixture(rng):
    """Two or three parts of one query, each as it is or given bounds."""
    query = random_query(rng)
    relation = hf.Neighbours(RELATIONS[rng.integers(2)], records=int(rng.integers(1, 3)))
    kind, parts, musts, scales = KINDS[rng.integers(2)], [], [], []
    for _ in range(int(rng.integers(2, 4))):
        scale = [SCALES[rng.integers(2)] for _ in range(query.n)]
        must = [None, hf.nonnegative(), hf.between(-1, 3), hf.invariant(np.ones((1, query.n), dtype=int))][
            rng.integers(4)
        ]
        part = getattr(hf, kind)(query, scale=scale, neighbours=relation)
        parts.append(part if must is None else part.given(must))
        musts.append(must)
        scales.append(scale)
    weights = [Fraction(int(w)) for w in rng.integers(1, 5, size=len(parts))]
    weights = [weight / sum(weights) for weight in weights]
    mechanism = mixture(parts, weights)
    top = 2 if query.n == 2 else 1
    tables = [table for table in possible_tables(query, None, top) if all(_possible(query, m, table) for m in musts)]
    truths = {table: query.answer(table) for table in tables}
    outputs = window(list(truths.values()), _window_of(kind, max(max(each) for each in scales)))
    seen = [allowed_of(must, outputs) for must in musts]
    laws = {
        table: logsumexp(
            [
                np.log(float(weight)) + log_law(kind, finite(scale), truth, outputs, *each)
                for weight, scale, each in zip(weights, scales, seen, strict=True)
            ],
            axis=0,
        )
        for table, truth in truths.items()
    }
    return mechanism, laws, truths, np.vstack([rows for _, rows in seen])


def _possible(query, must, table):
    return must is None or must.system(query.n).violation(query.answer(table)) is None


def _window_of(kind, scale):
    """Outputs beyond have relative weight below e^-22."""
    return int(np.ceil(float(scale) * (22 if kind == "laplace" else 7))) + 2


def _conditioned(rng, query, must, kind, scales):
    relation = hf.Neighbours(RELATIONS[rng.integers(2)], records=int(rng.integers(1, 3)))
    scale = [scales[rng.integers(len(scales))] for _ in range(query.n)]
    mechanism = getattr(hf, kind)(query, scale=scale, neighbours=relation).given(must)
    tables = possible_tables(query, must, 3 if query.cells == 2 else 2)
    truths = {table: query.answer(table) for table in tables}
    if not truths:
        return None
    outputs = window(list(truths.values()), _window_of(kind, max(scale)))
    allowed, rows = allowed_of(must, outputs)
    laws = {t: log_law(kind, finite(scale), truth, outputs, allowed, rows) for t, truth in truths.items()}
    return mechanism, laws, truths, rows


def random_extension(rng):
    """Whole Gaussian noise made for exact figures."""
    query = [hf.histogram(int(rng.integers(2, 4))), hf.workload(np.tril(np.ones((3, 3), dtype=int)))][rng.integers(2)]
    must = hf.invariant(rng.integers(1, 4, size=(1, query.n)))
    budget = [{"rho": 0.5}, {"rho": 1}, {"epsilon": 1.5, "delta": 1e-3}, {"epsilon": 3, "delta": 1e-2}][rng.integers(4)]
    words = {"weights": rng.integers(1, 10, size=query.n)} if rng.integers(2) else {"law": "correlated"}
    relation = hf.Neighbours(RELATIONS[rng.integers(2)], records=int(rng.integers(1, 3)))
    mechanism = hf.extend(query, must, neighbours=relation, integer=True, **words, **budget)
    if mechanism.source.drawn._form.basis.shape[1] < query.n - 1:
        return None  # noise in blocks, which the tests of conditioned noise list
    points = listed(mechanism, 15)
    middle = (2,) * query.cells  # the law is that of the noise, wherever the truth is
    truths = {middle: np.zeros(query.n, dtype=int)}
    rows = must.system(query.n).invariants.A.toarray()
    logs = -near_form(mechanism, points) / 2
    laws, total = {middle: logs - logsumexp(logs)}, logsumexp(logs)
    for statement in mechanism.guarantees:
        for step in changes(statement.neighbours.kind, query.cells, statement.records):
            more = np.array(step)
            moved = query.answer(np.maximum(more, 0)) - query.answer(np.maximum(-more, 0))
            if not (rows @ moved).any():
                table = tuple(np.add(middle, step).tolist())
                truths[table] = moved
                laws[table] = -near_form(mechanism, points - moved) / 2 - total
    return mechanism, laws, truths, rows


CASES = {"an order": random_order, "a mixture": random_mixture, "made for exact figures": random_extension}


def statements(count, seed):
    """Statements of random mechanisms against the largest loss: (what, how far it lies beyond, what is wrong)."""
    number = made = 0
    while made < count:
        number += 1
        what = list(CASES)[number % 3]
        try:
            case = CASES[what](np.random.default_rng([seed, number]))
            far = None if case is None else worst_of(*case)
        except hf.Refused:
            continue
        if far is None:
            continue
        made += 1
        yield what, far, None if far <= TOLERANCE else f"case {number} of seed {seed}: {what} is {far:.2g} beyond"
