"""The auditor catches every mechanism of the gallery, and calls no correct one violated."""

import numpy as np
import pytest

import broken
import holdfast as hf
from scripts import program

#: Quick ones of the gallery that are caught by draws; the others are in the slow tier.
QUICK = (broken.wrong_sensitivity, broken.naive_doubles, broken.chain_that_did_not_move)


def caught(report):
    assert report.verdict == "violated", str(report)
    assert report.violated
    assert report.epsilon > report.worst.evidence.claimed
    assert report.confidence >= 1 - 1e-9
    assert report.pair
    return report


@pytest.mark.parametrize("made", broken.CLAIMED, ids=lambda made: made.__name__)
def test_claims_below_the_law_are_refuted_by_listing(made):
    mechanism, claim = made()
    report = caught(hf.audit(mechanism, guarantee=claim, seconds=20))
    assert report.how == "exact"
    assert report.tests == 0


@pytest.mark.parametrize("made", QUICK, ids=lambda made: made.__name__)
def test_broken_mechanisms_are_refuted_by_draws(made):
    assert caught(hf.audit(made(), seconds=20)).how == "sampled"


@pytest.mark.slow
@pytest.mark.parametrize("made", [each for each in broken.OWN if each not in QUICK], ids=lambda made: made.__name__)
def test_the_other_broken_mechanisms_are_refuted_by_draws(made):
    assert caught(hf.audit(made(), seconds=40)).how == "sampled"


@pytest.mark.slow
def test_a_subspace_statement_below_the_truth_is_refuted():
    mechanism, claim = broken.rows_nearly_parallel()
    assert caught(hf.audit(mechanism, guarantee=claim, seconds=40)).epsilon < 1.2


def test_a_function_with_its_seed_in_the_code_is_refuted():
    pairs = [([0, 0], [0, 1])]
    caught(hf.audit(broken.seed_in_the_code(), pairs=pairs, guarantee=broken.claim(), seconds=20))


def test_the_numbers_of_the_known_faults():
    """The faults as they were: the auditor finds the true losses that enumeration gave."""
    mechanism, claim = broken.signed_leaves()
    assert hf.audit(mechanism, guarantee=claim, seconds=20).epsilon == pytest.approx(1.3245446, abs=1e-6)
    mechanism, claim = broken.unequal_weights_below_an_exact_node()
    assert 11.15 < hf.audit(mechanism, guarantee=claim, seconds=20).epsilon < 11.190058
    mechanism, claim = broken.price_forgotten()
    assert hf.audit(mechanism, guarantee=claim, seconds=20).epsilon == pytest.approx(1.2090805, abs=1e-6)


CORRECT = {
    "independent": hf.laplace(hf.histogram(5), epsilon=1),
    "bounds": hf.laplace(hf.histogram(3), scale=2).given(hf.nonnegative()),
    "moved": hf.laplace(hf.histogram(3), epsilon=1).onto(hf.nonnegative()),
    "real": hf.gaussian(hf.histogram(3), rho=0.5, integer=False),
}


@pytest.mark.parametrize("name", CORRECT)
def test_correct_mechanisms_are_not_refuted(name):
    report = hf.audit(CORRECT[name], seconds=1)
    assert report.verdict == "not refuted", str(report)
    assert report.epsilon <= report.worst.evidence.claimed + 1e-9


def test_a_mixture_and_noise_made_for_exact_figures_are_not_refuted():
    query = hf.histogram(3)
    mixed = hf.mixture([hf.laplace(query, epsilon=1), hf.laplace(query, epsilon=0.5)], [0.5, 0.5])
    made = hf.extend(query, hf.invariant(np.ones((1, 3), dtype=int)), law="laplace", epsilon=1)
    for mechanism in (mixed, made):
        assert not hf.audit(mechanism, seconds=1).violated


@pytest.fixture(scope="module")
def generator():
    return program("script/combinations.py")


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["given", "onto"])
def test_no_mechanism_of_the_page_of_combinations_is_refuted(generator, verb):
    audited = 0
    for number, case in enumerate(generator.cases()):
        law, integer = ("Laplace", "Gaussian")[number % 2], (number // 2 + (verb == "given")) % 2 == 0  # a quarter each
        try:
            report = hf.audit(generator.mechanism(case, law, integer, verb), seconds=0.02)
        except hf.Refused:
            continue  # what the page refuses, or what promises nothing
        assert not report.violated, (case.name, integer, str(report))
        audited += 1
    assert audited >= 17
