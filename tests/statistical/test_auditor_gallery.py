"""The auditor catches every mechanism of the gallery, and calls no correct one violated."""

import numpy as np
import pytest

import holdfast as hf
from holdfast.mechanism import mixture
from scripts import program

GALLERY = hf.audit.gallery
#: Caught by listing both laws.
LISTED = (
    "price_forgotten",
    "weights_of_a_union_ignored",
    "classical_at_large_epsilon",
    "one_record_for_several",
    "signed_leaves",
)
#: Quick ones that are caught by draws; the others are in the slow tier.
QUICK = ("wrong_sensitivity", "naive_doubles", "seed_in_the_code", "cells_below_three")


def caught(report):
    assert report.verdict == "violated", str(report)
    assert report.violated
    assert report.epsilon > report.worst.evidence.claimed
    assert report.confidence >= 1 - 1e-9
    assert report.pair
    return report


@pytest.mark.parametrize("name", LISTED)
def test_claims_below_the_law_are_refuted_by_listing(name):
    report = caught(GALLERY[name]().audited(seconds=20))
    assert report.how == "exact"
    assert report.tests == 0


@pytest.mark.parametrize("name", QUICK)
def test_broken_mechanisms_are_refuted_by_draws(name):
    assert caught(GALLERY[name]().audited(seconds=30)).how == "sampled"


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in GALLERY if name not in (*QUICK, *LISTED)])
def test_the_other_broken_mechanisms_are_refuted_by_draws(name):
    report = caught(GALLERY[name]().audited(seconds=40))
    assert report.how == "sampled"
    assert name != "rows_nearly_parallel" or report.epsilon < 1.2


def test_the_report_says_which_true_counts_were_tried():
    right = hf.laplace(hf.histogram(4), epsilon=1)
    walked = [note for note in hf.audit(right, seconds=4).findings[0].notes if "true counts" in note]
    assert walked[0].startswith("one cell was tried at the true counts 0, 1, 2, 3")
    assert not any("true counts" in note for note in hf.audit(right, seconds=0.1).findings[0].notes)


def test_the_numbers_of_the_known_faults():
    """The faults as they were: the auditor finds the true losses that enumeration gave."""
    assert GALLERY["signed_leaves"]().audited(seconds=20).epsilon == pytest.approx(1.3245446, abs=1e-6)
    assert GALLERY["price_forgotten"]().audited(seconds=20).epsilon == pytest.approx(1.2090805, abs=1e-6)


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
    mixed = mixture([hf.laplace(query, epsilon=1), hf.laplace(query, epsilon=0.5)], [0.5, 0.5])
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
    assert audited >= 16
