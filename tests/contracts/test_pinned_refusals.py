"""What `pinned` refuses, and in which words."""

import numpy as np
import pytest

import holdfast as hf

HISTOGRAM = hf.histogram(3)
TOTAL = hf.invariant([[1, 1, 1]])
TREE = hf.Hierarchy.from_parents([-1, 0, 0])


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: hf.pinned(HISTOGRAM, TOTAL), "either figures"),
        (lambda: hf.pinned(HISTOGRAM, TOTAL, [3], truth=[1, 1, 1]), "either figures"),
        (lambda: hf.pinned(HISTOGRAM, TOTAL, [3, 4]), "shape"),
        (lambda: hf.pinned(HISTOGRAM, TOTAL, [2.5]), "whole"),
        (lambda: hf.pinned(HISTOGRAM, TOTAL, [-1]), "contradict"),
        (lambda: hf.pinned(HISTOGRAM, TOTAL & hf.between(0, 1), [4]), "contradict"),
        (lambda: hf.pinned(HISTOGRAM, hf.invariant([[2, 2, 2]]), [3]), "contradict"),
        (lambda: hf.pinned(HISTOGRAM, hf.nonnegative(), [3]), "publish something"),
        (lambda: hf.pinned(HISTOGRAM, [[1, 1, 1]], [3]), "must be a constraint"),
        (lambda: hf.pinned(HISTOGRAM, hf.invariant([[2**0.5, 1, 1]]), [3]), "rational"),
        (lambda: hf.pinned(hf.query(3, l1=1), TOTAL, [3]), "known cells"),
        (lambda: hf.pinned(hf.workload([[0.5, 1.0, 1.0]]), hf.invariant([[1]]), [3]), "known cells"),
        (lambda: hf.pinned(HISTOGRAM, TOTAL, [3], of=hf.query(3, l1=1)), "of must be"),
        (lambda: hf.pinned(HISTOGRAM, TOTAL, [3], of=hf.histogram(4)), "same 4 cells"),
        (lambda: hf.pinned(HISTOGRAM, TOTAL, [3], earlier=[3]), "entry 0"),
        (lambda: hf.pinned(HISTOGRAM, TOTAL, [3], seconds=0), "above 0"),
        (lambda: hf.pinned(HISTOGRAM, TOTAL, [2**61]), "smaller"),
        (lambda: hf.pinned(hf.counts(TREE), hf.exact_nodes(TREE, [0, 1]), [2, 3]), "contradict"),
        (lambda: hf.pinned(hf.margins((2, 2)), hf.exact_margins((2, 2), [(0,), (1,)]), [1, 2, 3, 4]), "contradict"),
        (
            lambda: hf.pinned(HISTOGRAM, TOTAL & (hf.fixed([0], [0]) | hf.fixed([0], [1])), [3]),
            "union",
        ),
    ],
)
def test_refusals(ask, words):
    with pytest.raises(hf.Refused, match=words):
        ask()


def test_a_refusal_never_prints_a_figure():
    with pytest.raises(hf.Refused) as refusal:
        hf.pinned(HISTOGRAM, TOTAL & hf.between(0, 1), truth=np.array([7919, 0, 0]))
    assert "7919" not in str(refusal.value)
