"""Exact figures and bounds in many areas: limits that follow, and whole tables, against enumeration and programs."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

import holdfast as hf
from holdfast.onto.areas.programs import nearest_whole, shared_atoms, shared_cells
from holdfast.onto.ways import areas
from holdfast.queries.areas import area_margins
from holdfast.queries.areas.area_classes import area_signatures
from holdfast.queries.areas.rules import NO_LIMIT, Rules
from holdfast.queries.co_changes.moves import signatures_of, touched_by_one, touched_by_pairs
from holdfast.queries.exact_weights import Weights


def rows_of(query, outputs):
    ends = np.arange(len(outputs) + 1)
    return sparse.csr_array((np.ones(len(outputs), np.int64), np.asarray(outputs), ends), shape=(len(outputs), query.n))


def group(query, depth, axes):
    return query.outputs(query.groups.index((depth, axes)))


@pytest.fixture(autouse=True)
def small_tables_too(monkeypatch):
    monkeypatch.setattr(areas, "MOST_RULED", 300)


@pytest.fixture(scope="module")
def town():
    rng = np.random.default_rng(0)
    tree = hf.Hierarchy.from_parents([-1] + [0] * 3 + [1 + i // 4 for i in range(12)])
    query = hf.counts(tree, by=(2, 3, 4), keep=[(), (0,), (1,), (0, 1, 2)])
    cells = np.array([rng.multinomial(count, rng.dirichlet(np.full(24, 0.3))) for count in rng.geometric(0.03, 12)])
    return query, query.answer(cells)


def released(query, truth, *rules, seed=1):
    must = hf.consistent(query) & hf.nonnegative()
    for rule in rules:
        must = must & rule
    made = hf.gaussian(query, rho=1).onto(must, integer=True)
    assert made.method == "areas"
    release = made.release(truth, rng=hf.seeded(seed))
    assert (query.consistency() @ release.values == 0).all()
    assert release.values.min() >= 0
    assert np.isfinite(release.evidence.gap)
    return release


@pytest.mark.slow
def test_exact_totals_and_margins_at_chosen_levels_and_nodes(town):
    query, truth = town
    exact = np.concatenate([group(query, 1, ()).ravel(), group(query, 0, (0,)).ravel(), group(query, 2, (1,))[3]])
    release = released(query, truth, hf.invariant(rows_of(query, exact)))
    assert (release.values[exact] == truth[exact]).all()
    low, high = release.interval(0.95).T
    assert (low[exact] == truth[exact]).all()
    assert ((low <= truth) & (truth <= high)).mean() > 0.93


@pytest.mark.slow
def test_it_is_nearly_as_near_as_the_nearest_table(town, monkeypatch):
    query, truth = town
    rule = hf.invariant(rows_of(query, group(query, 1, ()).ravel()))
    near = released(query, truth, rule)
    monkeypatch.setattr(areas, "MOST_RULED", 10**9)
    monkeypatch.setattr(areas, "MOST_EXACT", 10**9)
    must = hf.consistent(query) & hf.nonnegative() & rule
    nearest = hf.gaussian(query, rho=1).onto(must, integer=True).release(truth, rng=hf.seeded(1))
    assert nearest.evidence.nearest
    assert nearest.evidence.objective <= near.evidence.objective <= 1.05 * nearest.evidence.objective
    assert near.evidence.lower_bound <= nearest.evidence.objective


def test_bounds_by_a_public_table_and_known_zeros_beside_exact_totals(town):
    query, truth = town
    kinds = group(query, 2, (1,))
    quarters = truth[kinds] // 2  # what a public table says there is at least
    none = kinds[truth[kinds] == 0]
    totals = group(query, 2, ()).ravel()
    rules = [hf.between(quarters.ravel(), None, at=kinds.ravel()), hf.invariant(rows_of(query, totals))]
    if none.size:
        rules.append(hf.between(0, 0, at=none))
    release = released(query, truth, *rules, seed=3)
    assert (release.values[kinds] >= quarters).all()
    assert (release.values[none] == 0).all()
    assert (release.values[totals] == truth[totals]).all()


@pytest.mark.slow
def test_figures_in_areas_without_written_rows_are_the_same(town, monkeypatch):
    """The way that does not write rows out must say and release what the other one does."""
    query, truth = town
    exact = group(query, 1, ()).ravel()
    rule = hf.invariant(rows_of(query, exact))
    first = released(query, truth, rule)
    monkeypatch.setattr(area_margins, "MOST_WRITTEN", 10)
    again = hf.counts(query.hierarchy, by=(2, 3, 4), keep=[(), (0,), (1,), (0, 1, 2)])
    assert again.many_sums == query.consistency().shape[0]
    second = released(again, truth, rule)
    assert (first.values == second.values).all()
    one, two = first.guarantee, second.guarantee
    assert (one.scope, one.records, one.unprotected) == (two.scope, two.records, two.unprotected)
    assert one.rho <= two.rho <= one.rho * 1.0001
    broken = truth.copy()
    broken[0] += 1
    with pytest.raises(hf.Refused, match="consistency"):
        hf.gaussian(again, rho=1).onto(hf.consistent(again) & hf.nonnegative(), integer=True).release(broken)


@pytest.mark.parametrize("seed", range(12))
def test_losses_of_pairs_are_never_below_those_of_all_columns(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 0, 1, 1, 2, 2, 2])
    keep = {0: [(), (0,)], 1: [(), (1,)], 2: [(0,), (0, 1)]} if seed % 2 else [(), (0,), (0, 1)]
    small = hf.counts(tree, by=(2, 3), keep=keep)
    chosen = rng.choice(len(small.groups))
    outputs = small.outputs(int(chosen)).ravel()
    outputs = outputs[rng.random(outputs.size) < 0.7]
    if not outputs.size:
        return
    rows = rows_of(small, outputs)
    kinds = signatures_of(small, rows, None)
    monkeypatch.setattr(area_margins, "MOST_WRITTEN", 1)
    large = hf.counts(tree, by=(2, 3), keep=keep)
    if large.many_sums is None:
        return
    found = signatures_of(large, rows, None)
    pairs = {tuple(pair) for pair in np.argwhere(kinds.classes[:, None] == kinds.classes[None, :])}
    assert pairs == {tuple(pair) for pair in np.argwhere(found.classes[:, None] == found.classes[None, :])}
    assert ((kinds.classes == 0) == (found.classes == 0)).all()
    assert (touched_by_pairs(small, kinds.classes) == touched_by_pairs(large, found.classes)).all()
    assert (touched_by_one(small, kinds.zero) == touched_by_one(large, found.zero)).all()
    weights = [rng.integers(1, 9) for _ in small.groups]
    for p in (1, 2):
        true = max(
            sum(int(weights[g]) for g, d in zip(small.level_of, difference, strict=True) if d)
            for i, j in pairs
            for difference in [(small.columns[:, [i]] - small.columns[:, [j]]).toarray().ravel()]
        )
        bound = large.pair(Weights.of(weights, large.level_of, large.n), p, found.classes)
        assert bound.value >= true


def test_many_exact_figures_give_no_cell_for_one_that_none_of_them_sees():
    """Labels of ten groups are more than 64 bits and are numbered anew on the way: 0 must stay what no row sees."""
    levels = [[0]]
    parents = [-1]
    for depth in range(1, 10):
        levels.append([])
        for above in levels[-2]:
            for _ in range(2 if depth <= 6 else 1):
                levels[-1].append(len(parents))
                parents.append(above)
    query = hf.counts(hf.Hierarchy.from_parents(parents), by=2, keep=[(), (0,)])
    exact = [group(query, depth, ()).ravel() for depth in range(7)]  # all of an area
    exact += [group(query, depth, (0,))[:, 0] for depth in range(7, 10)]  # of lower areas, one of two categories
    rows = rows_of(query, np.concatenate(exact))
    found = area_signatures(query, rows, None).classes
    seen = (rows @ query.columns).toarray().T
    assert seen.any(axis=1).all()
    assert found.min() > 0
    together = np.column_stack([found, seen])
    assert len(np.unique(together, axis=0)) == np.unique(found).size == len(np.unique(seen, axis=0))


@pytest.mark.slow
def test_a_sum_over_several_areas_is_left_to_a_way_that_keeps_it():
    """Steps from area to area know sums inside one margin of one area; others they would forget."""
    tree = hf.Hierarchy.from_parents([-1] + [0] * 3 + [1 + i % 3 for i in range(36)])
    query = hf.counts(tree, by=(2, 3), keep=[(), (0,), (0, 1)])
    truth = query.answer(np.random.default_rng(0).poisson(2, (36, 6)))
    first, second, _ = group(query, 1, ()).ravel()
    rows = sparse.csr_array(([1, 1], ([0, 0], [first, second])), shape=(1, query.n))
    for rule in (hf.invariant(rows), hf.at_least(rows, rows @ truth)):
        mechanism = hf.gaussian(query, rho=0.05).onto(hf.consistent(query) & hf.nonnegative() & rule, integer=True)
        values = mechanism.release(truth, hf.seeded(1)).values
        assert (rows @ values >= rows @ truth).all()
        assert mechanism.method != "areas"


@pytest.mark.slow
def test_exact_margins_that_cross_are_no_error_in_many_areas(monkeypatch):
    """Only two records together change a cell while both margins stay; many areas do not list such moves."""
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2, 2])
    keep = {0: [()], 1: [(0,), (1,)], 2: [(), (0, 1)]}

    def promised():
        query = hf.counts(tree, by=(2, 2), keep=keep)
        exact = np.concatenate([group(query, 1, (0,)).ravel(), group(query, 1, (1,)).ravel()])
        rule = hf.consistent(query) & hf.nonnegative() & hf.invariant(rows_of(query, exact))
        return hf.gaussian(query, scale=3, neighbours=hf.Neighbours("replace-one", records=2)).onto(rule).guarantees

    few = {each.records: each for each in promised()}
    monkeypatch.setattr(area_margins, "MOST_WRITTEN", 1)
    many = promised()
    assert many
    for each in many:
        assert each.rho is None or each.rho >= few[each.records].rho


@pytest.mark.parametrize("seed", range(8))
def test_limits_of_areas_are_those_of_all_their_tables(seed):
    """Every table that keeps the rules lies within the limits; where limits cross there is none."""
    rng = np.random.default_rng(seed)
    tree = hf.Hierarchy.from_parents([-1, 0, 0])
    query = hf.counts(tree, by=3, keep=[(), (0,)])
    outputs = rng.choice(query.n, 3, replace=False)
    low = rng.integers(0, 3, 3)
    high = low + rng.integers(0, 2, 3)
    rules = Rules.of_rows(query, rows_of(query, np.sort(outputs)), low, high)
    least, most, atom_low, atom_high = rules.limits
    tables = np.array(list(itertools.product(range(3), repeat=6)))
    sums = tables @ query.columns.toarray()[np.sort(outputs)].T
    for table in tables[((sums >= low) & (sums <= high)).all(axis=1)].reshape(-1, 2, 3):
        areas_cells = np.stack([table.sum(axis=0), *table])
        sums = areas_cells @ rules.sets.T
        assert ((least <= sums) & (sums <= most)).all()
        atoms = np.stack([areas_cells[:, rules.atom_of == a].sum(axis=1) for a in range(atom_low.shape[1])], axis=1)
        assert ((atom_low <= atoms) & (atoms <= atom_high)).all()


@pytest.mark.parametrize("seed", range(10))
def test_whole_numbers_near_real_ones_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    near = rng.uniform(0, 2, 4)
    rows = sparse.csr_array(np.array([[1, 1, 0, 0], [1, 1, 1, 1]]))
    low = np.array([rng.integers(0, 3), 3])
    high = np.array([low[0] + 1, 4])
    found = nearest_whole(near, rows, low, high, np.full(4, 4), np.zeros(4))
    allowed = [
        np.array(x) for x in itertools.product(range(5), repeat=4) if ((rows @ x >= low) & (rows @ x <= high)).all()
    ]
    assert found is not None
    assert any((found == x).all() for x in allowed)
    assert ((found - near) ** 2).sum() <= min(((x - near) ** 2).sum() for x in allowed) + 2


def test_what_leaves_can_hold_is_seen_from_above():
    """One block may have kind 0 and has 2 persons: more of them in the town would leave no table."""
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2, 2])
    query = hf.counts(tree, by=2, keep=[(), (0,)])
    leaf_totals, leaf_kinds = group(query, 2, ()).ravel(), group(query, 2, (0,))
    outputs = np.concatenate([leaf_totals, leaf_kinds[1:, 0]])
    order = np.argsort(outputs)
    low = np.concatenate([[2, 5, 5, 5], [0, 0, 0]])[order]
    high = np.concatenate([[2, 5, 5, 5], [0, 0, 0]])[order]
    high[np.isin(outputs[order], leaf_kinds[1:, 0][:1])] = NO_LIMIT - 1  # an upper limit that is none: not alike
    rules = Rules.of_rows(query, rows_of(query, outputs[order]), low, high)
    assert not rules.parts_suffice
    sums = shared_atoms(rules, np.array([0]), None, np.array([[15.0, 2.0]]), np.zeros((1, 2)))
    below = shared_atoms(rules, np.array([1, 2]), sums[0], np.array([[7.0, 0.0], [8.0, 2.0]]), np.zeros((2, 2)))
    assert (below.sum(axis=0) == sums[0]).all()
    assert sums.sum() == 17
    cells = shared_cells(
        rules.atom_of,
        below,
        sums[0][rules.atom_of],
        below.astype(float)[:, rules.atom_of],
        np.zeros((2, 2)),
    )
    assert (cells.sum(axis=1) == below.sum(axis=1)).all()


def test_bounds_that_contradict_each_other_between_areas_are_named():
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 1, 2, 2])
    query = hf.counts(tree, by=(2, 2), keep=[(), (0,), (0, 1)])
    kinds = group(query, 2, (0,))
    must = hf.consistent(query) & hf.nonnegative() & hf.between(1, None, at=kinds[:, 1])
    most = hf.between(None, 5, at=[int(group(query, 1, (0,))[0, 0])])
    least = hf.between([3, 4], None, at=[int(kinds[0, 0]), int(kinds[2, 0])])
    with pytest.raises(hf.Refused) as found:
        _ = must & most & least
    words = str(found.value)
    assert words.startswith("these constraints cannot hold together")
    assert words.count("between") == 2
    half = hf.between([1.5, 1.5], None, at=[int(kinds[0, 0]), int(kinds[1, 0])])
    _ = must & hf.between(None, 3, at=[int(group(query, 1, (0,))[0, 0])]) & half
    _ = must & hf.between(None, 7, at=[int(group(query, 1, (0,))[0, 0])]) & least


@pytest.mark.parametrize("seed", range(12))
def test_contradictions_against_programs(seed):
    """What is called impossible is."""
    rng = np.random.default_rng(seed)
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2, 2])
    query = hf.counts(tree, by=(2, 2), keep=[(), (0,), (0, 1)])
    outputs = np.sort(rng.choice(query.n, 12, replace=False))
    low = rng.integers(0, 6, 12)
    high = low + rng.integers(0, 4, 12)
    rows = rows_of(query, outputs)
    W = query.columns.toarray()[outputs]
    ends = linprog(np.zeros(query.cells), np.vstack([W, -W]), np.concatenate([high, -low]))
    assert not query.contradicts(rows, low, high) or ends.status != 0
