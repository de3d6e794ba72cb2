"""Limits that pages name are those of the code, and the numbers of the page on walks are computed again."""

import math

import pytest

import holdfast as hf
from holdfast.arguments import LARGEST
from holdfast.auditing.tested_claims import FalseAlarms
from holdfast.constraints.system.rows import TOLERANCE
from holdfast.given import Problem
from holdfast.given.exact import rejection
from holdfast.given.exact.normal import lattice
from holdfast.given.near import coupled_chains as chains
from holdfast.given.near import lines, two_way, walk
from holdfast.given.problem import LARGEST_TAU, LEAST_TAU, PRICE, TAU, needed_tau
from holdfast.noise import convergence
from holdfast.noise.draws.lattice_form import LEAST_ACCEPTANCE
from holdfast.release.audit import KINDS
from holdfast.subspace import k_norm, lattice_noise
from holdfast.trees.circles import sampler
from holdfast.trees.shape.forest import Forest
from scripts import ROOT

WALKS, LIMITS = "theory/walks.md", "known-limits.md"
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
        (LIMITS, f"a δ of (1+e^ε)τ, τ = {TAU:.0e}".replace("e-06", "e-6")),
        (LIMITS, f"in up to {lattice.MOST_DIMENSIONS} dimensions that rows connect"),
        (LIMITS, f"one draw in a {WORDS[round(1 / LEAST_ACCEPTANCE)]} is kept"),
        (LIMITS, f"refused beyond {walk.MOST_DIMENSIONS} dimensions ({lines.MOST_DIMENSIONS} for continuous noise)"),
        (
            LIMITS,
            f"up to {lattice_noise.MOST_DIRECTIONS} open directions and {lattice_noise.MOST_OUTPUTS:,} outputs",
        ),
        (
            LIMITS,
            f"refused beyond {k_norm.MOST_LISTED:,} differences, {k_norm.MOST_DIMENSIONS} dimensions or "
            f"{k_norm.MOST_FACETS:,} facets",
        ),
        (LIMITS, f"made-up records of {KINDS} kinds"),
        (WALKS, f"with γ = {power(2.0**-rejection.GIVING_UP_BITS, 2)}, ends plain rejection"),
        (WALKS, f"p is at least 1/{1 / walk.LEAST_INSIDE:.0f} by measurement"),
        (WALKS, f"below what {walk.USUAL_STEPS:,} steps may add, twice"),
        (WALKS, f"From at least {convergence.PAIRS:,} pairs"),
        (WALKS, f"beyond {WORDS[len(convergence.TAILS)]} thresholds, each with a {convergence.CONFIDENCE:.0%}"[:-1]),
        (WALKS, f"the longest run counts, {chains.FEWEST_STEPS} steps at least"),
        (WALKS, f"from {power(LEAST_TAU)} to {power(LARGEST_TAU)}"),
        (WALKS, f"the largest power of ten, {power(TAU)} at most"),
        (WALKS, f"At ε = 8 that is {power(needed_tau(8, PRICE / 2))}; at ε = 20 a δ of {power(PRICE)} would take "
                f"{power(needed_tau(20, PRICE / 2))}"),
        (WALKS, f"up to y = {two_way.LARGEST_Y}"),
        (WALKS, f"distance would exceed {power(two_way.LARGEST_DISTANCE)} are left to a walk"),
    ],
)  # fmt: skip
def test_a_limit_that_a_page_names(page, words):
    says(page, words)


def test_shares_of_two_way_tables_that_are_accepted_at_least():
    shares = []
    for shape in ((14, 24), (3, 40)):
        held = hf.invariant(hf.exact_margins(shape, [(0,), (1,)]))
        base = hf.laplace(hf.margins(shape), scale=2).base
        made = two_way._proposals(Problem(base.law, held.system(base.query.n)))
        of_columns = [float(each) for each in made.layout.scales]
        shares.append(math.exp(two_way.log_least_share(made.table, made.limits, of_columns)))
        if shape == (14, 24):
            says(WALKS, f"The distance is about {made.distance * 1e10:.0f}·10⁻¹⁰ for a 14×24 table")
    says(WALKS, f"14×24 at λ = 2: {shares[0]:.2f} is proved")
    says(WALKS, f"3×40: {shares[1]:.2f} and")


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
