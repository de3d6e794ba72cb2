"""Linked tables: what one household changes, by listing every household; estimates and whole tables against others."""

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

import holdfast as hf
from holdfast.onto.areas.linked_sharing import LinkedEstimate, LinkedSharing
from holdfast.onto.choose import choose
from holdfast.onto.problem import Problem
from holdfast.onto.ways import linked, program

HEADS = {"persons": [[1], [0]], "households": -1}
SIZES = {"persons": 1, "households": [-1, -2, -3]}


def village(ties=(HEADS, SIZES), most=3, parents=(-1, 0, 0), ages=2):
    """Persons (head, age) and households (size) on a small hierarchy."""
    tree = hf.Hierarchy.from_parents(list(parents))
    top, low = {0: [("head",), ("age",)]}, {d: [("head", "age")] for d in range(1, len(tree.levels))}
    persons = hf.counts(tree, by=hf.Cube((2, ages), ["head", "age"]), keep=top | low)
    sizes = {0: [(), ("size",)]} | {d: [("size",)] for d in range(1, len(tree.levels))}
    households = hf.counts(tree, by=hf.Cube(3, ["size"]), keep=sizes)
    tables = {"persons": persons, "households": households}
    return hf.linked(tables, ties=list(ties), most={"persons": most, "households": 1})


def every_household(query):
    """List what every possible household adds to the outputs, by trying all lists of rows in all leaves."""
    found = []
    for leaf in range(query.hierarchy.n_leaves):
        listed = [
            [rows for many in range(most + 1) for rows in combinations_with_replacement(range(part.table.cells), many)]
            for part, most in zip(query.parts, query.most, strict=True)
        ]
        for rows in product(*listed):
            tied = sum(tie[:, list(own)].sum(axis=1) for tie, own in zip(query.ties, rows, strict=True))
            if np.any(tied) or not any(rows):
                continue
            outputs = []
            for part, own in zip(query.parts, rows, strict=True):
                cells = np.zeros((query.hierarchy.n_leaves, part.table.cells), np.int64)
                np.add.at(cells[leaf], list(own), 1)
                outputs.append(part.answer(cells))
            found.append(np.concatenate(outputs))
    return np.array(found).T


CASES = {
    "two ties": {},
    "heads alone": {"ties": (HEADS,)},
    "sizes alone": {"ties": (SIZES,)},
    "no tie": {"ties": ()},
    "one person": {"most": 1},
    "ragged": {"parents": (-1, 0, 0, 1, 1)},
    "heads of one age": {"ties": ({"persons": [[1, 1], [0, 1]], "households": [-1, -1, -2]},)},
}


@pytest.mark.parametrize("case", CASES)
def test_no_household_changes_more_than_is_said(case):
    query = village(**CASES[case])
    columns = every_household(query)
    assert not (query.consistency() @ columns).any()
    rng = np.random.default_rng(5)
    for _ in range(3):
        values = [int(each) for each in rng.integers(0, 7, len(query.levels))]
        weights = np.array(values)[query.level_of]
        for p in (1, 2):
            alone = (weights[:, None] * np.abs(columns) ** p).sum(axis=0).max()
            said = query.bound(values, query.level_of, p, "add-remove")
            assert said.value >= alone
            assert said.value == alone or not said.exact
            apart = columns[:, :, None] - columns[:, None, :]
            replaced = (weights[:, None, None] * np.abs(apart) ** p).sum(axis=0).max()
            assert query.bound(values, query.level_of, p, "replace-one").value >= replaced
        weights = rng.integers(0, 7, query.n)  # weights that follow no level
        said = query.bound(list(range(7)), weights, 2, "add-remove")
        assert said.value >= (weights[:, None] * columns**2).sum(axis=0).max()


@pytest.mark.parametrize("case", ["two ties", "heads alone", "no tie", "one person", "ragged"])
def test_the_largest_change_is_attained(case):
    query = village(**CASES[case])
    columns = every_household(query)
    for p in (1, 2):
        said = query.bound([1], None, p, "add-remove")
        assert said.exact
        assert said.value == (np.abs(columns) ** p).sum(axis=0).max()


def test_the_statement_is_that_of_all_households_listed():
    query = village()
    listed = hf.workload(every_household(query))
    ours, theirs = (hf.gaussian(each, scale=3) for each in (query, listed))
    assert ours.guarantee.rho == theirs.guarantee.rho
    assert "a record is a household" in str(ours.guarantee)
    holds = ours.onto(hf.consistent(query) & hf.nonnegative())
    assert holds.guarantee.rho == ours.guarantee.rho
    assert hf.laplace(query, scale=3).guarantee.epsilon == hf.laplace(listed, scale=3).guarantee.epsilon


@pytest.mark.parametrize("case", CASES)
def test_the_households_of_an_audit_are_households(case):
    query = village(**CASES[case])
    listed = {tuple(column) for column in every_household(query).T.tolist()}
    found = query.households(8)
    assert found
    assert {tuple(each.tolist()) for each in found} <= listed
    largest = max(np.square(column).sum() for column in listed)
    assert case == "heads of one age" or max(int((each**2).sum()) for each in found) == largest


@pytest.mark.slow
def test_an_audit_refutes_a_statement_that_forgets_the_persons():
    query = village()
    mechanism = hf.gaussian(query, rho=1)
    assert not hf.audit(mechanism, seconds=0.5).violated
    forgetful = hf.gaussian(query, scale=mechanism.base.law.variances[0] ** 0.5 / 6)
    assert hf.audit(forgetful, guarantee=mechanism.guarantee, seconds=2).violated


def test_too_many_lists_of_rows_leave_the_ties_out_and_only_raise_the_bound(monkeypatch):
    query = village()
    exact = query.bound([1], None, 2, "add-remove").value
    monkeypatch.setattr("holdfast.queries.areas.bundles.MOST_LISTED", 1)
    fallback = village().bound([1], None, 2, "add-remove")
    assert fallback.value > exact
    assert not fallback.exact


def truth(query, seed, mean=6):
    rng = np.random.default_rng(seed)
    leaves = query.hierarchy.n_leaves
    persons = np.zeros((leaves, *query.parts[0].table.shape), np.int64)
    households = np.zeros((leaves, 3), np.int64)
    for leaf in range(leaves):
        for _ in range(rng.poisson(mean)):
            size = int(rng.integers(1, 4))
            households[leaf, size - 1] += 1
            persons[leaf, 0, rng.integers(persons.shape[2])] += 1
            np.add.at(persons[leaf, 1], rng.integers(persons.shape[2], size=size - 1), 1)
    return query.answer({"persons": persons, "households": households})


def test_the_rows_of_consistency_are_independent_and_hold():
    query = village(parents=(-1, 0, 0, 1, 1, 2))
    rows = query.consistency().toarray()
    assert np.linalg.matrix_rank(rows) == len(rows)
    columns = every_household(query)
    assert len(rows) == query.n - np.linalg.matrix_rank(columns)
    assert not (rows @ truth(query, 0)).any()


def test_estimates_are_those_of_dense_least_squares():
    query = village(parents=(-1, 0, 0, 1, 1, 1, 2, 2))
    rng = np.random.default_rng(1)
    spreads = rng.uniform(1, 9, len(query.levels))[query.level_of]
    estimate = LinkedEstimate.of_system(hf.consistent(query).system(query.n), spreads)
    noisy = rng.normal(0, 5, (3, query.n))
    A = query.consistency().toarray().astype(float)
    dense = noisy - np.linalg.solve((A * spreads) @ A.T, A @ noisy.T).T @ (A * spreads)
    np.testing.assert_allclose(estimate.estimated(noisy), dense, atol=1e-9)


def test_given_has_the_law_of_dense_conditioning():
    query = village()
    law = hf.gaussian(query, rho=1, integer=False).given(hf.consistent(query))
    A, variance = query.consistency().toarray().astype(float), law.base.law.variances[0]
    covariance = variance * (np.eye(query.n) - np.linalg.pinv(A) @ A)
    np.testing.assert_allclose(law.standard_error(), np.sqrt(np.diag(covariance)), rtol=1e-9)
    assert law.guarantee.rho == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_whole_tables_hold_everything_and_lie_near_the_nearest(seed, monkeypatch):
    query = village(parents=(-1, 0, 0, 1, 1, 2, 2))
    mechanism = hf.gaussian(query, rho=2).onto(hf.consistent(query) & hf.nonnegative())
    monkeypatch.setattr(linked, "MOST_EXACT", 1)
    exact = truth(query, seed)
    release = mechanism.release(exact, hf.seeded(seed))
    assert mechanism.method == "linked"
    assert release.values.dtype == np.int64
    assert not (query.consistency() @ release.values).any()
    assert release.values.min() >= 0
    noisy = exact + hf.gaussian(query, rho=2).noise(1, hf.seeded(seed))[0]
    system = (hf.consistent(query) & hf.nonnegative()).system(query.n)
    problem = Problem(query.n, system, "l2", mechanism.base.law.variances, True)
    zero = np.zeros(problem.space.rank, np.int64)
    moved = choose(problem).certified(problem, noisy, zero)
    nearest = program.certified(problem, noisy, zero)
    assert nearest.evidence.lower_bound <= moved.evidence.objective + 1e-9
    assert moved.evidence.lower_bound <= nearest.evidence.objective + 1e-9
    assert moved.evidence.objective <= 1.5 * nearest.evidence.objective


def test_parts_are_taken_one_after_another_where_no_rounding_is_found():
    query = village()
    sharing = LinkedSharing((None, None), query.ties)
    # a household of three, told in halves: neither rounding of single cells keeps the ties
    cells = np.array([[0.5, 0, 0.9, 0.1, 0, 0, 0.5], [0.5, 0, 0.1, 0.9, 0, 0, 0.5]])
    above = np.array([1, 0, 1, 1, 0, 0, 1])
    found = sharing.rounded(cells, above, np.zeros(cells.shape))
    assert (found.sum(axis=0) == above).all()
    assert not (sharing.tied @ found.T).any()
    assert found.min() >= 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"most": {"persons": 3}}, "most must be a mapping"),
        ({"ties": [{"persons": [1, 0, 0]}]}, "must fit the shape"),
        ({"ties": [{"dogs": 1}]}, "names of tables"),
        ({"ties": [{"persons": 2**61, "households": -(2**61)}]}, "below 2\\*\\*31"),  # sums would leave 64 bits
        ({"ties": [HEADS, HEADS]}, "must not follow from each other"),
        ({"tables": {"persons": hf.histogram(3), "households": hf.histogram(2)}}, "counts of a hierarchy"),
    ],
)
def test_refusals(change, words):
    query = village()
    given = {
        "tables": dict(zip(query.names, query.parts, strict=True)),
        "ties": [HEADS],
        "most": {"persons": 3, "households": 1},
    }
    with pytest.raises(hf.Refused, match=words):
        hf.linked(**(given | change))


def test_data_that_break_a_tie_are_refused_without_a_figure():
    query = village()
    cells = {"persons": np.array([[7, 0, 0, 0], [0, 0, 0, 0]]), "households": np.zeros((2, 3), int)}
    with pytest.raises(hf.Refused, match="obey the ties") as refusal:
        query.answer(cells)
    assert "7" not in str(refusal.value)


@pytest.mark.parametrize("case", CASES)
def test_what_households_have_is_accepted_and_what_the_ties_tell_to_be_too_much_is_not(case):
    """Sums of any listed households are accepted; rows that no sum of households has may be refused."""
    query, rng = village(**CASES[case]), np.random.default_rng(3)
    sizes = [part.table.cells for part in query.parts]
    places = query.hierarchy.n_leaves
    kinds = []
    for rows in product(*(range(most + 1) for most in query.most)):
        for own in product(
            *(combinations_with_replacement(range(n), many) for n, many in zip(sizes, rows, strict=True))
        ):
            cells = [np.bincount(each, minlength=n) for each, n in zip(own, sizes, strict=True)]
            if not np.any(sum(tie @ each for tie, each in zip(query.ties, cells, strict=True))):
                kinds.append(cells)
    for _ in range(40):
        chosen = [[kinds[k] for k in rng.integers(len(kinds), size=rng.integers(4))] for _ in range(places)]
        tables = [
            np.array([np.sum([each[u] for each in here], axis=0) + np.zeros(n, np.int64) for here in chosen])
            for u, n in enumerate(sizes)
        ]
        answer = query.answer(dict(zip(query.names, tables, strict=True)))
        assert answer.size == query.n


def test_a_household_larger_than_most_is_refused_where_the_ties_tell_it():
    def with_sizes(most, households=4):
        tree = hf.Hierarchy.from_parents([-1, 0])
        tables = {"persons": hf.counts(tree), "households": hf.counts(tree, by=hf.Cube(households, ["size"]))}
        sizes = {"persons": 1, "households": [-size for size in range(1, households + 1)]}
        return hf.linked(tables, ties=[sizes], most={"persons": most, "households": 1})

    data = {"persons": [4], "households": [0, 0, 0, 1]}
    with pytest.raises(hf.Refused, match="no such households") as refusal:
        with_sizes(3).answer(data)
    assert not any(sign in str(refusal.value) for sign in "34")
    assert with_sizes(4).answer(data).tolist() == [4, 4, 0, 0, 0, 1, 0, 0, 0, 1]
    # Where a household has a head, and nobody lives alone without one, it has no more than so many others.
    tree = hf.Hierarchy.from_parents([-1, 0])
    tables = {"persons": hf.counts(tree, by=hf.Cube(2, ["head"])), "households": hf.counts(tree)}
    heads = {"persons": [1, 0], "households": -1}
    told = hf.linked(tables, ties=[heads], most={"persons": 4, "households": 1})
    told.answer({"persons": [1, 9], "households": [1]})  # nine of them may live in no household
    statement = hf.gaussian(told, rho=1).guarantee
    assert statement.assumes == (
        "no household has more rows than 4 of persons or 1 of households; all are in one place and obey the ties",
    )
    assert "no household has more rows than 4 of persons" in str(statement)
    paired = hf.linked(tables, ties=[{"persons": [3, -1]}], most={"persons": 4, "households": 1})
    paired.answer({"persons": [2, 6], "households": [9]})


def test_rows_of_one_table_are_limited_by_those_of_another():
    """Every person is tied to a household of its own cell: at most one for each."""
    tree = hf.Hierarchy.from_parents([-1])
    tables = {"persons": hf.counts(tree), "homes": hf.counts(tree, by=hf.Cube(3, ["persons"]))}
    query = hf.linked(tables, ties=[{"persons": 1, "homes": [-1, -2, -5]}], most={"persons": 3, "homes": 2})
    assert query._limits[1] == [(0, 1, Fraction(2)), (1, 0, Fraction(1))]
    query.answer({"persons": [4], "homes": [0, 2, 0]})
    with pytest.raises(hf.Refused, match="no such households"):
        query.answer({"persons": [5], "homes": [0, 0, 1]})


def test_a_tie_that_no_level_tells_is_refused():
    tree = hf.Hierarchy.from_parents([-1, 0])
    persons = hf.counts(tree, by=hf.Cube((2, 2), ["head", "age"]), keep=[("age",)])
    households = hf.counts(tree, by=hf.Cube(3, ["size"]), keep=[()])
    tables = {"persons": persons, "households": households}
    with pytest.raises(hf.Refused, match="tie 1"):
        hf.linked(tables, ties=[HEADS], most={"persons": 3, "households": 1})


def test_records_of_linked_tables_count_to_them():
    tree = hf.Hierarchy.from_parents([-1, 0, 0], levels=["town", "block"])
    persons = hf.counts(tree, by=hf.Cube((2, 2), ["head", "age"]), keep={"town": [("age",)], "block": None})
    homes = hf.counts(tree, by=hf.Cube(3, ["rooms"]))
    query = hf.linked(
        {"persons": persons, "homes": homes},
        ties=[{"persons": [[1], [0]], "homes": -1}],
        most={"persons": 4, "homes": 1},
    )
    truth = query.answer({"persons": [2, 1, 5, 0, 1, 1, 0, 3], "homes": [1, 2, 0, 0, 1, 1]})
    release = hf.gaussian(query, rho=20).onto(hf.consistent(query) & hf.nonnegative()).release(truth, rng=hf.seeded(1))
    rows = release.records("polars")
    assert rows.columns == ["table", "block", "head", "age", "rooms"]
    assert len(rows) == release.values[[0, 1]].sum() + release.values[query.outputs("homes")][:3].sum()
    heads = rows.filter((rows["table"] == "persons") & (rows["head"] == 0))
    assert len(heads) == len(rows.filter(rows["table"] == "homes"))
    assert rows.filter(rows["table"] == "homes")["age"].null_count() == len(heads)
    coarse = hf.linked(
        {"persons": persons, "homes": hf.counts(tree, by=3, keep=[()])},
        ties=[{"persons": [[1], [0]], "homes": -1}],
        most={"persons": 4, "homes": 1},
    )
    made = hf.gaussian(coarse, rho=20).onto(hf.consistent(coarse) & hf.nonnegative())
    without = made.release(coarse.answer({"persons": [1] * 8, "homes": [2, 0, 0, 2, 0, 0]}), rng=hf.seeded(1))
    with pytest.raises(hf.Refused, match="every cell"):
        without.records()
