"""Bounds and fixed values on a hierarchy are found contradictory exactly when no table has them."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import holdfast as hf
from holdfast.constraints.possible import feasibility
from holdfast.constraints.possible.propagation import crossing_on_tree


def random_case(seed):
    """A small hierarchy with bounds and fixed values on some nodes, in several parts."""
    rng = np.random.default_rng([51, seed])
    while True:
        n, by = int(rng.integers(2, 6)), int(rng.choice([1, 1, 2]))
        tree = hf.Hierarchy.from_parents([-1, *[int(rng.integers(i)) for i in range(1, n)]])
        if tree.n_leaves * by <= 3:
            break
    outputs = n * by
    step = Fraction(1, int(rng.choice([1, 1, 2])))
    parts = [hf.consistent(hf.counts(tree, by=by))]
    for _ in range(int(rng.integers(1, 4))):
        at = np.sort(rng.choice(outputs, int(rng.integers(1, outputs + 1)), replace=False))
        if rng.integers(2):
            parts.append(hf.fixed(at, [step * int(v) for v in rng.integers(0, 4, at.size)]))
        else:
            low = rng.integers(0, 3, at.size)
            high = low + rng.integers(0, 3, at.size)
            top = [None if rng.integers(3) == 0 else step * int(v) for v in high]
            parts.append(hf.between([step * int(v) for v in low], top if any(top) else None, at=at))
    return tree, by, step, parts


def held(tree, by, step, parts):
    """Whether some table on the grid satisfies all parts; 8 steps are more than any of them asks for."""
    leaves = np.array(list(itertools.product(range(-8, 9), repeat=tree.n_leaves * by)))
    tables = np.stack([tree.sum_up(leaves[:, c::by].T).T for c in range(by)], axis=-1).reshape(len(leaves), -1)
    return bool(np.all([part.system(tree.n * by).holds(tables, step) for part in parts], axis=0).any())


@pytest.mark.parametrize("seed", range(80))
def test_contradictions_are_those_of_enumeration(seed):
    tree, by, step, parts = random_case(seed)
    pieces = [piece for part in parts for piece in part.parts]
    decided, used = crossing_on_tree(pieces, tree.n * by)
    assert decided
    assert held(tree, by, step, parts) == (not used)
    if used:  # the parts named are enough for a contradiction by themselves
        assert crossing_on_tree([pieces[k] for k in used], tree.n * by)[1]


@pytest.mark.parametrize("seed", range(60))
def test_the_general_proof_agrees(seed, monkeypatch):
    tree, by, _, parts = random_case(seed)
    pieces = [piece for part in parts for piece in part.parts]
    found = feasibility.conflict(pieces, tree.n * by)
    monkeypatch.setattr(feasibility, "crossing_on_tree", lambda parts, n: (False, frozenset()))
    assert (found is None) == (feasibility.conflict(pieces, tree.n * by) is None)


def test_a_refusal_names_the_parts_and_no_others():
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1])
    sound = hf.consistent(tree) & hf.nonnegative() & hf.between(0, 50, at=[2])
    with pytest.raises(hf.Refused) as caught:
        _ = sound & hf.between(0, 4, at=[3, 4]) & hf.fixed(1, 9)
    assert str(caught.value) == (
        "these constraints cannot hold together: consistent(5 nodes); between(0, 4, at=[3, 4]); fixed(at=[1])"
    )


def test_numbers_too_large_for_the_pass_are_left_to_the_general_proof():
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 0])
    pieces = (hf.consistent(tree) & hf.between(0, 2**61, at=[1, 2, 3])).parts
    assert crossing_on_tree(pieces, 4) == (False, frozenset())
    pieces = (hf.consistent(tree) & hf.between(0, Fraction(10**9 + 1, 10**9 + 7), at=[1, 2, 3])).parts
    assert crossing_on_tree(pieces, 4) == (False, frozenset())
    assert not crossing_on_tree((hf.consistent(tree) & hf.ordered([1, 2])).parts, 4)[0]
