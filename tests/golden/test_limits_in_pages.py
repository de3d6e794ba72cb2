"""Limits that pages name are those of the code,"""

import math

import pytest

import holdfast as hf
from holdfast.arguments import LARGEST
from holdfast.auditing.tested_claims import FalseAlarms
from holdfast.constraints.system.rows import TOLERANCE
from holdfast.given.exact import rejection
from holdfast.given.exact.normal import lattice
from holdfast.noise.draws.lattice_form import LEAST_ACCEPTANCE
from holdfast.release.audit import KINDS
from holdfast.subspace import lattice_noise
from holdfast.trees.circles import sampler
from holdfast.trees.shape.forest import Forest
from scripts import ROOT

AGAIN, LIMITS = "theory/rejection.md", "known-limits.md"
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
WORDS = {100: "hundred", 4: "four"}


def says(page, words):
    assert words in " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split()), words


def power(number, base=10):
    """A number that is a power, with a raised exponent."""
    exponent = round(math.log(number, base))
    assert float(number) == pytest.approx(float(base) ** exponent)
    return f"{base}{str(exponent).translate(RAISED)}"


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (LIMITS, f"strictly within ±{power(LARGEST, 2)}"),
        (LIMITS, f"({TOLERANCE:.0e}".replace("e-09", "e-9") + " of the size of a row"),
        (LIMITS, f"in up to {lattice.MOST_DIMENSIONS} dimensions that rows connect"),
        (LIMITS, f"one draw in a {WORDS[round(1 / LEAST_ACCEPTANCE)]} is kept"),
        (
            LIMITS,
            f"up to {lattice_noise.MOST_DIRECTIONS} open directions and {lattice_noise.MOST_OUTPUTS:,} outputs",
        ),
        (LIMITS, f"made-up records of {KINDS} kinds"),
        (AGAIN, f"with γ = {power(2.0**-rejection.GIVING_UP_BITS, 2)}, ends plain rejection"),
    ],
)  # fmt: skip
def test_a_limit_that_a_page_names(page, words):
    says(page, words)


def test_wide_noise_is_refused_from_some_number_of_leaves_on():
    def reaches(leaves):
        tree = hf.Hierarchy.from_parents([-1, *[0] * leaves])
        law = hf.laplace(hf.counts(tree), scale=10_000).base.law
        return sampler.reaches(Forest.of(hf.consistent(tree).system(tree.n)), law)

    assert reaches(105_000)
    assert not reaches(115_000)
    says(LIMITS, "at a scale of 10,000 from some 110,000 leaves on")


def test_losses_that_draws_cannot_show():
    """Nothing seen in n draws leaves a probability of −log(rate)/n, after some ten thousand tests."""
    assert -math.log(FalseAlarms(tests=9_999).next()) == pytest.approx(40, abs=0.5)
    says(LIMITS, "losses above about log(n/40) for n draws")
