"""extend(integer=True) answers what it cannot do with one sentence."""

import numpy as np
import pytest

import holdfast as hf
from holdfast.noise.draws.lattice_form import LatticeForm
from holdfast.privacy import gaussian_mu

CELLS = hf.histogram(4)
TOTAL = hf.invariant([[1, 1, 1, 1]])
TREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1])
COUNTS = hf.counts(TREE)
TOP = hf.consistent(TREE) & hf.invariant(hf.exact_nodes(TREE, [0]))
CUBE = hf.margins((3, 2, 2), [(), (0,), (0, 1), (1, 2)])
MADE = hf.extend(COUNTS, TOP, rho=1, integer=True)
MANY = hf.workload(np.vstack([np.ones(1500, dtype=int), np.random.default_rng(3).integers(0, 9, (7, 1500))]))
WIDE = hf.workload(np.tril(np.ones((500, 500), dtype=int)))

CASES = {
    "k-norm of a tree": (lambda: hf.extend(COUNTS, TOP, law="k-norm", epsilon=1, integer=True), "exact total"),
    "k-norm of a weighted total": (
        lambda: hf.extend(CELLS, hf.invariant([[1, 1, 1, 2]]), law="k-norm", epsilon=1, integer=True),
        "exact total",
    ),
    "Laplace noise that no way draws": (
        lambda: hf.extend(CUBE, hf.consistent(CUBE), law="laplace", epsilon=1, integer=True),
        "no way is known to draw whole Laplace noise",
    ),
    "rho for a pure law": (lambda: hf.extend(CELLS, TOTAL, law="laplace", rho=1, integer=True), "pure epsilon"),
    "epsilon without delta": (lambda: hf.extend(CELLS, TOTAL, epsilon=1, integer=True), "delta goes with epsilon"),
    "no budget": (lambda: hf.extend(CELLS, TOTAL, integer=True), "exactly one way"),
    "weights elsewhere": (
        lambda: hf.extend(CELLS, TOTAL, law="gaussian", rho=1, integer=True, weights=[1] * 4),
        "law='optimal'",
    ),
    "answers that are not whole": (
        lambda: hf.extend(hf.workload(np.eye(3) / 3), hf.invariant([[1, 1, 1]]), rho=1, integer=True),
        "whole answers",
    ),
    "only sensitivities": (lambda: hf.extend(hf.query(4, l2=1), TOTAL, rho=1, integer=True), "known columns"),
    "nothing open": (
        lambda: hf.extend(CELLS, hf.invariant(np.eye(4, dtype=int)), rho=1, integer=True),
        "open|no noise",
    ),
    "too many directions": (
        lambda: hf.extend(WIDE, hf.invariant([[0] * 499 + [1]]), rho=1, integer=True),
        "at most 400 directions, found 499",
    ),
    "moves too many to list": (
        lambda: hf.extend(MANY, hf.invariant([[1] + [0] * 7]), rho=1, integer=True, neighbours="replace-one"),
        "too many to list",
    ),
    "noise far too wide": (lambda: hf.extend(COUNTS, TOP, rho=1e-19, integer=True), "64 bits"),
    "given": (lambda: MADE.given(TOTAL), "cannot be conditioned or moved again"),
    "a statement from the noise of the base": (lambda: MADE.statement_for(MADE.base.everything()), "guarantees"),
    "onto": (lambda: MADE.onto(hf.nonnegative()), "cannot be conditioned or moved again"),
    "a truth that does not add up": (lambda: MADE.release([5, 1, 1, 1, 1]), "truth violates"),
    "a truth that is not whole": (lambda: MADE.release([2.5, 1, 1.5, 1, 0]), "whole"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_refusals(case):
    call, words = CASES[case]
    with pytest.raises(hf.Refused, match=words) as refusal:
        call()
    assert "\n" not in str(refusal.value)


def test_noise_too_small_for_whole_steps_in_many_directions_is_refused_before_it_is_drawn():
    """Around 0.4 of a step in each of 100 directions hardly any vector would be accepted; far less or more is fine."""
    lattice = np.eye(100, dtype=np.int64)
    for size in (0.05, 1.0):
        LatticeForm.of(lattice, size * np.eye(100)).refuse_slow()
    with pytest.raises(hf.Refused, match="too small beside whole steps"):
        LatticeForm.of(lattice, 0.4 * np.eye(100)).draw(1, hf.seeded(1))


def test_only_data_that_share_the_figures_are_spoken_of():
    assert [each.scope for each in MADE.guarantees] == ["invariant-sharing"]
    assert MADE.guarantee.records == 2
    assert MADE.guarantee.unprotected
    assert MADE.guarantee.mu is None
    replaced = hf.extend(COUNTS, TOP, rho=1, integer=True, neighbours="replace-one")
    assert [each.scope for each in replaced.guarantees] == ["all"]


def test_a_converted_epsilon_is_that_of_rho():
    mechanism = hf.extend(COUNTS, TOP, epsilon=1, delta=1e-6, integer=True)
    assert (mechanism.guarantee.epsilon, mechanism.guarantee.delta) == (1.0, 1e-6)
    assert mechanism.guarantee.rho < gaussian_mu(1, 1e-6) ** 2 / 2  # what the continuous law would be allowed
    assert mechanism.guarantee.status == "proved"
    assert "lattice" in mechanism.guarantee.because
