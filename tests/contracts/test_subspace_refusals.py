"""extend() answers what it cannot do with one sentence."""

import numpy as np
import pytest
from scipy import sparse

import holdfast as hf

CELLS = hf.histogram(4)
TOTAL = hf.invariant([[1, 1, 1, 1]])
TREE = hf.Hierarchy.from_parents([-1, 0, 0])
KNOWN = hf.extend(CELLS, TOTAL, rho=1)

CASES = {
    "no budget": (lambda: hf.extend(CELLS, TOTAL), "exactly one way"),
    "epsilon without delta": (lambda: hf.extend(CELLS, TOTAL, epsilon=1), "delta goes with epsilon"),
    "delta alone": (lambda: hf.extend(CELLS, TOTAL, delta=1e-6), "delta goes with epsilon"),
    "rho and epsilon": (lambda: hf.extend(CELLS, TOTAL, rho=1, epsilon=1, delta=0.1), "epsilon and rho"),
    "delta for a pure law": (lambda: hf.extend(CELLS, TOTAL, law="laplace", epsilon=1, delta=0.1), "pure epsilon"),
    "rho for a pure law": (lambda: hf.extend(CELLS, TOTAL, law="k-norm", rho=1), "pure epsilon"),
    "no budget for a pure law": (lambda: hf.extend(CELLS, TOTAL, law="laplace"), "exactly one way"),
    "unknown law": (lambda: hf.extend(CELLS, TOTAL, law="optimum", rho=1), "did you mean 'optimal'"),
    "whole k-norm": (
        lambda: hf.extend(CELLS, hf.invariant([[1, 1, 1, 2]]), law="k-norm", epsilon=1, integer=True),
        "exact total",
    ),
    "integer not a truth value": (lambda: hf.extend(CELLS, TOTAL, rho=1, integer="no"), "True or False"),
    "not a query": (lambda: hf.extend(4, TOTAL, rho=1), "a query is expected"),
    "not a constraint": (lambda: hf.extend(CELLS, [[1, 1, 1, 1]], rho=1), "made by invariant"),
    "figures": (lambda: hf.extend(CELLS, hf.exact_margins((4,), [()]), rho=1), "become a constraint by invariant"),
    "inequalities": (lambda: hf.extend(CELLS, TOTAL & hf.nonnegative(), rho=1), "equalities only"),
    "another size": (lambda: hf.extend(CELLS, hf.invariant([[1, 1]]), rho=1), "2 values"),
    "everything exact": (lambda: hf.extend(CELLS, hf.invariant(np.eye(4, dtype=int)), rho=1), "nothing open|no noise"),
    "everything exact, Laplace": (
        lambda: hf.extend(CELLS, hf.invariant(np.eye(4, dtype=int)), law="laplace", epsilon=1),
        "nothing open",
    ),
    "one cell": (lambda: hf.extend(hf.histogram(1), hf.invariant([[1]]), rho=1), "nothing open"),
    "weights elsewhere": (lambda: hf.extend(CELLS, TOTAL, law="gaussian", rho=1, weights=[1] * 4), "law='optimal'"),
    "weights of zero": (lambda: hf.extend(CELLS, TOTAL, rho=1, weights=[1, 0, 1, 1]), "position 1"),
    "weights of another length": (lambda: hf.extend(CELLS, TOTAL, rho=1, weights=[1, 1]), "shape"),
    "only sensitivities": (lambda: hf.extend(hf.query(4, l2=1), TOTAL, rho=1), "known columns"),
    "given": (lambda: KNOWN.given(TOTAL), "cannot be conditioned or moved again"),
    "onto": (lambda: KNOWN.onto(hf.nonnegative()), "cannot be conditioned or moved again"),
    "no map": (lambda: KNOWN.image([1, 2, 3, 4]), "this mechanism has none"),
    "a truth that does not add up": (
        lambda: hf.extend(hf.counts(TREE), hf.consistent(TREE), rho=1).release([5, 1, 1]),
        "truth violates",
    ),
    "too large": (
        lambda: hf.extend(hf.workload(sparse.eye_array(8000, dtype=int)), hf.invariant([[1] * 8000]), rho=1),
        "too large without a structure",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_refusals(case):
    call, words = CASES[case]
    with pytest.raises(hf.Refused, match=words) as refusal:
        call()
    assert "\n" not in str(refusal.value)


def test_directions_too_short_for_doubles_are_never_left_without_noise():
    """A row a billion times smaller than another must not be published without noise."""
    rows = hf.invariant([[1, 1, 0]])
    short = hf.workload(np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1e-9]]))
    tiny = hf.workload(np.array([[10**14, 0, 10**14], [0, 10**14, 10**14], [0, 0, 1]]))
    for query in (short, tiny):
        with pytest.raises(hf.Refused, match="rescale the rows"):
            hf.extend(query, rows, rho=0.5)
    mild = hf.workload(np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1e-3]]))
    assert hf.extend(mild, rows, rho=0.5).standard_error()[2] > 1e-4


def test_a_query_known_by_its_sensitivities_is_extended_by_them():
    mechanism = hf.extend(hf.query(4, l1=2, l2=1), TOTAL, law="gaussian", rho=0.5)
    assert mechanism.standard_error() == pytest.approx(np.full(4, np.sqrt(3 / 4)), rel=1e-8)
    assert {each.scope for each in mechanism.guarantees} == {"subspace", "invariant-sharing"}
    laplace = hf.extend(hf.query(4, l1=2, l2=1), TOTAL, law="laplace", epsilon=1)
    assert laplace.standard_error() == pytest.approx(np.full(4, np.sqrt(2 * 4 * 3 / 4)), rel=1e-8)
