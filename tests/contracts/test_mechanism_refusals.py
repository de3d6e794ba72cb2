"""Every public constructor and verb answers bad input with one sentence; nothing is drawn, no value is printed."""

import math

import numpy as np
import pandas as pd
import pytest

import holdfast as hf

TREE = hf.Hierarchy.from_parents([-1, 0, 0])
QUERY = hf.counts(TREE)
CELLS = hf.histogram(3)
BASE = hf.laplace(CELLS, epsilon=1)
SECRET = 86_753
TOTAL = hf.invariant([[1, 1, 1]])

CASES = {
    # budgets
    "no budget": (lambda: hf.laplace(CELLS), "exactly one way"),
    "two budgets": (lambda: hf.laplace(CELLS, epsilon=1, scale=2), "epsilon and scale"),
    "epsilon zero": (lambda: hf.laplace(CELLS, epsilon=0), "epsilon must be above 0"),
    "epsilon negative": (lambda: hf.laplace(CELLS, epsilon=-1), "epsilon must be above 0"),
    "epsilon NaN": (lambda: hf.laplace(CELLS, epsilon=float("nan")), "epsilon must be a finite number"),
    "epsilon infinite": (lambda: hf.laplace(CELLS, epsilon=float("inf")), "epsilon must be a finite number"),
    "epsilon text": (lambda: hf.laplace(CELLS, epsilon="1"), "epsilon must be a number"),
    "scale zero": (lambda: hf.laplace(CELLS, scale=0), "scale must be above 0"),
    "scale NaN": (lambda: hf.laplace(CELLS, scale=[1, float("nan"), 1]), "NaN at position 1|finite numbers"),
    "scale of another length": (lambda: hf.laplace(CELLS, scale=[1, 2]), r"shape \(3,\), found shape \(2,\)"),
    "scale infinite everywhere": (lambda: hf.laplace(CELLS, scale=np.inf), "finite for at least one"),
    "scale absurd": (lambda: hf.laplace(CELLS, scale=2.0**60), "scale"),
    "gaussian without delta": (lambda: hf.gaussian(CELLS, epsilon=1), "delta goes with epsilon"),
    "gaussian delta alone": (lambda: hf.gaussian(CELLS, rho=1, delta=1e-6), "delta goes with epsilon"),
    "delta zero": (lambda: hf.gaussian(CELLS, epsilon=1, delta=0), "strictly between 0 and 1"),
    "delta one": (lambda: hf.gaussian(CELLS, epsilon=1, delta=1), "strictly between 0 and 1"),
    "rho negative": (lambda: hf.gaussian(CELLS, rho=-0.5), "rho must be above 0"),
    "rho and epsilon": (lambda: hf.gaussian(CELLS, epsilon=1, delta=1e-6, rho=1), "epsilon and rho"),
    "calibration unknown": (
        lambda: hf.gaussian(CELLS, epsilon=1, delta=1e-6, calibration="clasical"),
        "did you mean 'classical'",
    ),
    "calibration with rho": (
        lambda: hf.gaussian(CELLS, rho=1, calibration="classical"),
        "calibration goes with epsilon",
    ),
    "shares with scale": (lambda: hf.laplace(QUERY, scale=1, shares={0: 1}), "shares divide a budget"),
    "shares without levels": (lambda: hf.laplace(CELLS, epsilon=1, shares={0: 1}), "query with levels"),
    "shares of an unknown level": (lambda: hf.laplace(QUERY, epsilon=1, shares={"level 3": 1}), "did you mean 'level"),
    "shares negative": (lambda: hf.laplace(QUERY, epsilon=1, shares={0: -1, 1: 2}), "must not be negative"),
    "shares all zero": (lambda: hf.laplace(QUERY, epsilon=1, shares={0: 0}), "more than 0"),
    "shares empty": (lambda: hf.laplace(QUERY, epsilon=1, shares={}), "at least one level"),
    "shares twice": (lambda: hf.laplace(QUERY, epsilon=1, shares={0: 1, "level 0": 1}), "twice"),
    "neighbours unknown": (lambda: hf.laplace(CELLS, epsilon=1, neighbours="add-remve"), "did you mean 'add-remove'"),
    "records zero": (lambda: hf.Neighbours("add-remove", records=0), "records must be at least 1"),
    "integer not a truth value": (lambda: hf.laplace(CELLS, epsilon=1, integer="yes"), "integer must be True or False"),
    "a real workload and integer noise": (lambda: hf.laplace(hf.workload([[0.5, 1.0]]), epsilon=1), "grid"),
    "not a query": (lambda: hf.laplace(3, epsilon=1), "a query is expected"),
    "nothing can change": (
        lambda: hf.laplace(hf.histogram(1), epsilon=1, neighbours="replace-one"),
        "no neighbouring data",
    ),
    # verbs
    "given something else": (lambda: BASE.given("consistent"), "a constraint is expected"),
    "onto something else": (lambda: BASE.onto(None), "a constraint is expected"),
    "given after onto": (lambda: BASE.onto(hf.nonnegative()).given(TOTAL), "given.. after onto.. has no known law"),
    "a constraint of another size": (
        lambda: BASE.given(hf.consistent(hf.Hierarchy.from_parents([-1, 0, 0, 0, 0]))),
        "5 values|about 5",
    ),
    "an irrational invariant": (lambda: BASE.given(hf.invariant([[1, np.sqrt(2), 0]])), "not a simple fraction"),
    "an irrational side of a union": (
        lambda: BASE.given(hf.at_least([[1, np.sqrt(2), 0]], [9]) | hf.at_least([[-1, -np.sqrt(2), 0]], [1])),
        "not a simple fraction",
    ),
    "no whole solution": (lambda: BASE.given(hf.equals([[2, 2, 2]], [5])), "whole numbers"),
    "norm unknown": (lambda: BASE.onto(hf.nonnegative(), norm="l3"), "norm must be one of"),
    "weights unknown": (lambda: BASE.onto(hf.nonnegative(), weights="nois"), "did you mean 'noise'"),
    "weights negative": (lambda: BASE.onto(TOTAL, weights=[1, -1, 1]), "weights must be above 0"),
    "weights of another shape": (lambda: BASE.onto(TOTAL, weights=[1, 1]), "shape"),
    "method unknown": (lambda: BASE.given(TOTAL, method="rejecion"), "did you mean 'rejection'"),
    "a method that cannot": (lambda: BASE.given(TOTAL, method="boxes").noise(1), "method 'boxes' cannot"),
    "whole numbers from continuous noise": (
        lambda: hf.laplace(CELLS, epsilon=1, integer=False).onto(hf.nonnegative(), integer=True),
        "integer noise",
    ),
    "whole numbers that may not exist": (
        lambda: BASE.onto(hf.at_least([[1, 1, 0], [-1, -1, 0], [1, -1, 0], [-1, 1, 0]], [1, -1, 0, 0])).method,
        "could not decide whether whole numbers satisfy",
    ),
    "unmeasured leaves on a hierarchy": (
        lambda: (
            hf.laplace(QUERY, scale=[1, np.inf, np.inf])
            .onto(hf.consistent(TREE) & hf.nonnegative())
            .simulate([2, 1, 1], 1)
        ),
        "measure them",
    ),
    "a method that cannot move": (
        lambda: BASE.onto(TOTAL & hf.nonnegative(), method="orders").method,
        "leave method out",
    ),
    "onto a union and an invariant": (
        lambda: BASE.onto((hf.between(0, 1) | hf.between(3, 4)) & TOTAL).simulate([0, 0, 0], 1),
        "a union together with invariants",
    ),
    "calibrated to nothing": (lambda: BASE.calibrated(), "exactly one way"),
    "calibrated to what it has not": (lambda: BASE.calibrated(rho=1), "promises no rho"),
    # draws
    "truth of another shape": (lambda: BASE.release([1, 2]), r"truth must have shape \(3,\), found shape \(2,\)"),
    "truth not whole": (lambda: BASE.release([1, 2.5, 3]), "position 1 is not whole"),
    "truth NaN": (lambda: BASE.release([1, np.nan, 3]), "position 1 is not finite"),
    "truth beyond 2**62": (lambda: BASE.release([1, 2**62, 3]), "2\\*\\*62"),
    "truth as text": (lambda: BASE.release(["a", "b", "c"]), "truth must hold numbers"),
    "truth inconsistent": (
        lambda: hf.laplace(QUERY, scale=1).given(hf.consistent(TREE)).release([SECRET, 1, 1]),
        "truth violates what must hold: .*node 0",
    ),
    "truth negative": (lambda: BASE.given(hf.nonnegative()).release([1, -SECRET, 1]), "nonnegative at position 1"),
    "truth beyond its bound": (lambda: BASE.onto(hf.between(0, 5)).release([1, SECRET, 1]), "position 1"),
    "truth against a fixed cell": (lambda: BASE.given(hf.fixed(2, 0)).release([1, 1, SECRET]), "fixed"),
    "size zero": (lambda: BASE.noise(0), "size must be at least 1"),
    "size fractional": (lambda: BASE.noise(1.5), "size must be a whole number"),
    "rng a numpy generator": (lambda: BASE.noise(1, rng=np.random.default_rng(1)), "rng must be a stream"),
    "noise that depends on data": (lambda: BASE.given(hf.nonnegative()).noise(1), "depends on the data"),
    "errors that depend on data": (lambda: BASE.onto(hf.nonnegative()).standard_error(), "depends on the data"),
    "image without onto": (lambda: BASE.image([1, 2, 3]), "has none"),
    "image of an invariant": (lambda: BASE.onto(TOTAL).image([1, 2, 3]), "reads the confidential data"),
    "image of another shape": (lambda: BASE.onto(hf.nonnegative()).image([1, 2]), "noisy must have shape"),
    "seed negative": (lambda: hf.seeded(-1), "seed"),
    "an unmeasured output": (lambda: hf.laplace(QUERY, scale={0: 1}).release([2, 1, 1]), "not measured"),
    # statements
    "no statement": (
        lambda: (
            hf.gaussian(QUERY, rho=1, neighbours=hf.Neighbours("replace-one", 2))
            .given(hf.consistent(TREE) & hf.nonnegative())
            .release([2, 1, 1])
        ),
        "no privacy statement is known",
    ),
    "a gaussian union": (
        lambda: hf.gaussian(CELLS, rho=1).given(hf.between(0, 1) | hf.between(3, 4)).release([0, 0, 0]),
        "union",
    ),
    "a union of equalities, continuous": (
        lambda: hf.laplace(CELLS, epsilon=1, integer=False).given(hf.fixed(0, 0) | hf.fixed(0, 1)).guarantee,
        "no defined weights",
    ),
    "delta without epsilon": (lambda: hf.gaussian(CELLS, delta=1e-6), "delta goes with epsilon, which is missing"),
    "exact nodes without invariant": (lambda: BASE.given(hf.exact_nodes(TREE, [0])), "invariant"),
    "exact nodes in a conjunction": (lambda: hf.nonnegative() & hf.exact_nodes(TREE, [0]), "invariant"),
    "a labelled series": (lambda: BASE.release(pd.Series([1, 2, 3], index=["a", "b", "c"])), "labelled"),
    "a masked array": (lambda: BASE.release(np.ma.array([1, 2, 3], mask=[0, 1, 0])), "masked"),
    "one guarantee to compose": (lambda: hf.compose(BASE.guarantee), "a list of guarantees"),
    "a guarantee from nothing": (lambda: hf.Guarantee.from_json(None), "JSON text or a mapping"),
    # releases
    "confidence one": (lambda: BASE.release([1, 2, 3]).interval(1), "confidence"),
    "an interval that would leak": (
        lambda: BASE.given(hf.nonnegative()).release([1, 2, 3]).interval(),
        "depends on the data",
    ),
    "weights of an estimate": (lambda: BASE.release([1, 2, 3]).estimate([1, 2]), "weights must have shape"),
    "a frame of an unknown kind": (lambda: BASE.release([1, 2, 3]).to_frame("panda"), "did you mean 'pandas'"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_refused_with_one_sentence(name):
    action, sentence = CASES[name]
    with pytest.raises(hf.Refused, match=sentence) as caught:
        action()
    message = str(caught.value)
    assert str(SECRET) not in message
    assert "\n" not in message
    assert len(message) < 300


def test_a_refusal_is_a_value_error():
    assert issubclass(hf.Refused, ValueError)


def test_rejection_that_would_not_end_is_refused():
    """Two opposite inequalities leave two planes; noise of scale 10^7 falls on them once in 10^7 draws or so."""
    planes = hf.at_least([[1, 1, 1], [-1, -1, -1]], [30, -31])  # with −30 they would be one equality
    mechanism = hf.laplace(CELLS, scale=10**7).given(planes)
    with pytest.raises(hf.Refused, match="did not end"):
        mechanism.simulate([10, 10, 10], 1, rng=hf.seeded(1))


@pytest.mark.slow
def test_a_domain_too_large_to_list_is_refused_quickly():
    crossed = hf.invariant(hf.exact_margins((3, 3), [(0,), (1,)])) & hf.nonnegative()
    mechanism = hf.laplace(hf.margins((3, 3)), epsilon=1).given(crossed)
    assert mechanism.simulate([1, 0, 2, 0, 1, 1, 0, 3, 0], 1).shape == (1, 9)
    with pytest.raises(hf.Refused, match="too many tables"):
        mechanism.release([100 * i for i in range(9)])


@pytest.mark.parametrize(
    "held",
    [hf.nonnegative(), hf.ordered([0, 1, 2]), hf.invariant([[1, 1, 0]]), hf.between(0, 9, at=[0])],
    ids=str,
)
@pytest.mark.parametrize("law", [hf.laplace, hf.gaussian])
def test_noise_that_nothing_limits_has_no_statement(held, law):
    """Output 2 is not measured and can grow without end: what is stated is refused as the release is."""
    mechanism = law(hf.histogram(3), scale=[1, 1, math.inf]).given(held)
    sentences = set()
    for act in (lambda: mechanism.guarantee, lambda: mechanism.release([1, 2, 3])):
        with pytest.raises(hf.Refused) as refusal:
            act()
        sentences.add(str(refusal.value))
    assert len(sentences) == 1
    assert mechanism.guarantees == ()
    assert mechanism.about(1) is None


def test_a_move_that_determines_unmeasured_outputs_has_its_statement():
    mechanism = hf.laplace(hf.histogram(3), scale=[1, 1, math.inf]).onto(hf.invariant([[1, 1, 1]]))
    assert mechanism.guarantee.epsilon == 2
    assert hf.laplace(hf.histogram(3), scale=[1, 1, math.inf]).given(hf.between(0, 9)).guarantee.epsilon < 2
