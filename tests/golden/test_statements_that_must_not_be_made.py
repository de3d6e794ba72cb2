"""Statements that would be false, vacuous or too strong: each is refused or repaired."""

import numpy as np
import pytest

import holdfast as hf

TREE = hf.Hierarchy.from_parents([-1, 0, 0])


@pytest.mark.parametrize("make", [lambda q: hf.laplace(q, scale=1), lambda q: hf.gaussian(q, scale=1)])
@pytest.mark.parametrize("bounds", [hf.nonnegative(), hf.between(0, 9), hf.nonnegative(at=1)])
def test_an_exact_cell_with_bounds_does_not_speak_for_all_neighbours(make, bounds):
    """The exact cell is published: data that differ there have disjoint supports."""
    mechanism = make(hf.histogram(3)).given(hf.invariant([[1, 0, 0]]) & bounds)
    for statement in mechanism.guarantees:
        assert statement.scope == "invariant-sharing"
        assert any("published exactly" in words for words in statement.unprotected)
        assert any("cell 0" in words for words in statement.unprotected)


def test_exact_figures_in_two_moves_are_refused():
    """The second move keeps the first total readable: z_i = y_i − (Σy − T)/3."""
    first = hf.laplace(hf.histogram(3), scale=1).onto(hf.invariant([[1, 1, 1]]))
    with pytest.raises(hf.Refused, match="all at once"):
        _ = first.onto(hf.invariant([[1, 0, 0]])).guarantee


@pytest.mark.parametrize("law", [hf.laplace, hf.gaussian])
def test_exact_figures_after_clipping_are_refused(law):
    """Clipped noise is no longer the base's noise: a subspace number computed from the base would be too small."""
    clipped = law(hf.histogram(2), scale=1, integer=False).onto(hf.nonnegative())
    with pytest.raises(hf.Refused, match="all at once"):
        clipped.onto(hf.invariant([[1, 1]])).release([20, 0])


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("verb", ["given", "onto"])
def test_publishing_everything_is_refused(integer, verb):
    """Nothing is left open: a statement about nothing must not carry a release of the truth."""
    base = hf.laplace(hf.histogram(3), scale=1, integer=integer)
    mechanism = getattr(base, verb)(hf.invariant(np.eye(3, dtype=int)))
    with pytest.raises(hf.Refused, match="no change of a few records"):
        mechanism.release([7, 3, 1])


def test_a_converted_epsilon_is_not_called_attained():
    mechanism = hf.gaussian(hf.counts(TREE), epsilon=2, delta=1e-3).given(hf.consistent(TREE))
    assert not mechanism.guarantee.exact


def test_a_fixed_cell_does_not_count_in_the_price():
    mechanism = hf.laplace(hf.histogram(3), scale=[0.5, 1, 1]).given(hf.fixed(0, 0) & hf.nonnegative())
    alpha = np.exp(-1)
    assert mechanism.guarantee.epsilon == pytest.approx(1 + np.log(1 + alpha - alpha**2), rel=1e-14)


def test_figures_that_no_data_attain_are_not_called_attained():
    assert not hf.laplace(hf.histogram(2), scale=1).given(hf.between(None, 0)).guarantee.exact
    one = hf.laplace(hf.histogram(3), scale=1, neighbours=hf.Neighbours("replace-one", 2))
    assert not one.given(hf.equals([[1, 1, 1]], [1])).guarantee.exact


def test_a_query_known_by_its_sensitivities_states_its_gaussian_guarantee():
    statement = hf.gaussian(hf.query(3, l2=1), epsilon=1, delta=1e-5).guarantee
    assert statement.epsilon <= 1
    assert statement.delta <= 1e-5


def test_the_words_of_a_subspace_statement_do_not_promise_too_much():
    mechanism = hf.laplace(hf.histogram(3), scale=1, integer=False).given(hf.invariant([[1, 1, 1]]))
    words = str(next(s for s in mechanism.guarantees if s.scope == "subspace"))
    assert "whatever else" not in words
    assert "does not cover the noisy part and the exact figures together" in words


def test_calibrated_noise_keeps_its_own_weights():
    base = hf.laplace(hf.histogram(3), scale=[0.5, 1, 2]).onto(hf.equals([[1, 1, 1]], [6]), integer=False)
    scaled = base.calibrated(epsilon=0.1)
    assert np.array_equal(scaled.moves[0].problem.spreads, scaled.base.law.variances)
