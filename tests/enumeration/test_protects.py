"""What mechanisms with exact figures protect, and the ε of such changes, against lists of all of them."""

from itertools import product

import numpy as np
import pytest

import holdfast as hf


def worst(columns, kept, scale, records, adds):
    """The largest Σ|d|/λ over all allowed changes of at most so many records, listed."""
    cells = columns.shape[1]
    best = 0.0
    for c in product(range(-records, records + 1), repeat=cells):
        change = np.array(c)
        size = np.abs(change).sum() if adds else np.abs(change).sum() / 2
        if size <= records and (adds or change.sum() == 0) and not (kept @ columns @ change).any():
            best = max(best, float(np.abs(columns @ change).sum()) / scale)
    return best


@pytest.mark.parametrize("adds", [True, False])
@pytest.mark.parametrize(
    "kept", [[[1, 1, 0, 0], [0, 0, 1, 3]], [[1, 1, 1, 0]], [[1, 2, 0, 1]], [[1, 1, 0, 0], [0, 1, 1, 0]]]
)
def test_the_epsilon_of_so_many_records_is_that_of_the_list(kept, adds):
    rows, query = np.array(kept), hf.histogram(4)
    kind = "add-remove" if adds else "replace-one"
    mechanism = hf.laplace(query, scale=2, neighbours=kind).given(hf.invariant(rows))
    for row in mechanism.protects.rows:
        if row.records is None or row.records > 4:
            continue
        truth = worst(query.columns.toarray(), rows, 2.0, row.records, adds)
        assert row.epsilon >= truth * (1 - 1e-12)
        assert row.epsilon <= max(truth, mechanism.about(row.records).records / 2 * (1 if adds else 2)) * (1 + 1e-12)


def test_never_is_said_only_where_no_number_of_records_does():
    """Three records of cell 2 for one of cell 3 keep both sums."""
    rows = [[1, 1, 0, 0], [0, 0, 1, 3]]
    adding = hf.laplace(hf.histogram(4), epsilon=1).given(hf.invariant(rows))
    words = [item for statement in adding.guarantees for item in statement.unprotected]
    assert not any("whatever records change" in item for item in words)
    assert any("the same when up to 2 records change" in item for item in words)
    assert [statement.records for statement in adding.guarantees if not statement.void] == [2, 4]
    replacing = hf.laplace(hf.histogram(4), epsilon=1, neighbours="replace-one").given(hf.invariant(rows))
    assert any(item.startswith("cell 2, cell 3 (the same whatever") for item in replacing.guarantee.unprotected)


def test_three_records_that_come_and_go_have_a_statement():
    mechanism = hf.laplace(hf.histogram(2), epsilon=1).given(hf.invariant([[1, 2]]))
    assert (mechanism.guarantee.records, mechanism.guarantee.epsilon) == (3, 3.0)
    assert mechanism.protects.records is None  # the cells depend on each other: not looked for


def test_bounds_zeros_and_sums_are_assumed_and_facts_are_not():
    base = hf.laplace(hf.histogram(3), epsilon=1)
    assert base.given(hf.nonnegative()).guarantee.assumes == ()
    assert base.given(hf.between(0, 5)).guarantee.assumes == ("every figure is at most 5",)
    assert base.onto(hf.fixed([1], [0])).guarantee.assumes == ("cell 1 always has its fixed value",)
    tree = hf.Hierarchy.from_parents([-1, 0, 0])
    assert hf.laplace(hf.counts(tree), epsilon=1).given(hf.consistent(tree)).guarantee.assumes == ()
    foreign = hf.laplace(hf.histogram(3), epsilon=1).given(hf.consistent(tree))
    assert foreign.guarantee.assumes[0].startswith("sums add up at")
    together = hf.compose([base.given(hf.between(0, 5)), base.given(hf.between(0, 6))])
    assert together.assumes == ("every figure is at most 5", "every figure is at most 6")


def test_noise_made_for_exact_figures_says_it_too():
    made = hf.extend(hf.histogram(4), hf.invariant([[1, 1, 0, 0]]), law="laplace", epsilon=1, neighbours="replace-one")
    (row,) = made.protects.rows
    assert row.records == 2
    assert row.epsilon >= made.about(1).epsilon


def test_a_figure_that_records_only_lower_is_not_empty_because_it_is_at_most_zero():
    """Every record lowers output 0, so "at most 0" is true of all data: its cell can hold records, and one changes."""
    query = hf.workload([[-1, 0, 0], [0, 1, 0], [0, 0, 1]])
    kept = hf.invariant([[-1, 1, 1]]) & hf.between(None, 0, at=[0])
    mechanism = hf.laplace(query, scale=1, neighbours="replace-one").given(kept)
    assert [row.records for row in mechanism.protects.rows] == [1, 1, 1]


def test_exact_figures_of_a_cube_are_called_by_its_names():
    cube = hf.Cube((3, 2, 2), ["class", "sex", "age"])
    noise = hf.laplace(hf.margins(cube), epsilon=1, neighbours="replace-one")
    (words,) = noise.given(hf.invariant(hf.exact_margins(cube.shape, [(1,), (0, 2)]))).guarantee.unprotected
    assert words.startswith("sex=0, sex=1, (class=0, age=0), (class=0, age=1), ")
    assert noise.given(hf.invariant(hf.exact_margins(cube.shape, [()]))).guarantee.unprotected[0].startswith("total (")
    odd = np.zeros((1, 12), dtype=int)
    odd[0, [0, 5]] = 1  # two cells that are no margin
    assert "=" not in noise.given(hf.invariant(odd)).guarantee.unprotected[0].partition(" (")[0]
