"""Limits that pages name are those of the code, and the numbers of the page on walks are computed again."""

import math
from itertools import combinations

import numpy as np
import pytest

import holdfast as hf
from holdfast.arguments import LARGEST
from holdfast.auditing.counting import FalseAlarms
from holdfast.constraints.system.rows import TOLERANCE
from holdfast.given import Problem
from holdfast.given.exact import rejection
from holdfast.given.near.in_turn import in_turn, steps
from holdfast.given.near.lines import lines
from holdfast.given.near.listed import listed, search
from holdfast.given.near.two_way import share, two_way
from holdfast.given.near.walk import walk
from holdfast.given.tau import LARGEST_TAU, LEAST_TAU, PRICE, TAU, needed_tau
from holdfast.noise import convergence
from holdfast.release.audit import KINDS
from holdfast.subspace.k_norm import body, facets, relations
from holdfast.subspace.k_norm import walk as k_walk
from holdfast.subspace.lattice import gaussian
from holdfast.trees.messages.messages import MOST_BYTES
from holdfast.trees.plain import sampler
from holdfast.trees.shape.forest import Forest
from holdfast.trees.spread import weighted_sums
from holdfast.trees.tickets import many
from scripts import ROOT

WALKS, LIMITS = "theory/walks.md", "known-limits.md"
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
WORDS = {2_000_000: "two million", 4: "four", 3: "three"}


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
        (LIMITS, f"would exceed {MOST_BYTES / 2**30:.1f} GiB are refused"),
        (LIMITS, f"fit into {many.MOST_CELLS * 8 >> 20} MiB"),
        (LIMITS, f"on a city from some {round(many.FEWEST_VALUES / 270, -3):,.0f} rows on"),
        (LIMITS, f"or hold in {sampler.UTMOST_KEPT * 8 / 1e9:.0f} GiB"),
        (LIMITS, f"Where more than {weighted_sums.MOST_JOINED:,} totals differ"),
        (LIMITS, f"a δ of (1+e^ε)τ, τ = {TAU:.0e}".replace("e-06", "e-6")),
        (LIMITS, f"not narrower than λ = {1 / in_turn.LARGEST_RATE:g}"),
        (LIMITS, f"after {in_turn.MEAN_TRIES:,} tries"),
        (LIMITS, f"where {WORDS[search.MOST_VECTORS]} vectors hold"),
        (LIMITS, f"refused beyond {walk.MOST_DIMENSIONS} dimensions ({lines.MOST_DIMENSIONS} for continuous noise)"),
        (LIMITS, f"up to {gaussian.MOST_DIRECTIONS} open directions and {gaussian.MOST_OUTPUTS:,} outputs"),
        (LIMITS, f"refused beyond {body.MOST_LISTED:,} differences"),
        (LIMITS, f"up to {relations.MOST_RELATIONS} relations, or {facets.MOST_DIMENSIONS} dimensions and"),
        (LIMITS, f"dimensions and {facets.MOST_FACETS:,} facets"),
        (LIMITS, f"(estimated) of up to {k_walk.MOST_DIMENSIONS} dimensions"),
        (LIMITS, f"made-up records of {KINDS} kinds"),
        (WALKS, f"probability γ = {power(2.0**-in_turn.GIVING_UP_BITS, 2)}"),
        (WALKS, f"with γ = {power(2.0**-rejection.GIVING_UP_BITS, 2)}, ends plain rejection"),
        (WALKS, f"Noise below λ = {1 / in_turn.LARGEST_RATE:g} is left"),
        (WALKS, f"variance between {steps.WIDE} and"),
        (WALKS, f"Where this is below 1/{1 / in_turn.LEAST_SHARE:.0f} the noise"),
        (WALKS, f"fewer than 1 in {1 / in_turn.LEAST_WITHIN:.0f} of {in_turn.OFFERS:,} offers"),
        (WALKS, f"tables of more than {in_turn.FEWEST_BOUNDED - 1} dimensions"),
        (WALKS, f"and the run is {WORDS[in_turn.LONGER]} times as long"),
        (WALKS, f"p is at least 1/{1 / walk.LEAST_INSIDE:.0f} by measurement"),
        (WALKS, f"below what {walk.USUAL_LINES:,} steps along lines or {walk.USUAL_ROWS} of"),
        (WALKS, f"From at least {convergence.PAIRS:,} pairs"),
        (WALKS, f"beyond {WORDS[len(convergence.TAILS)]} thresholds, each with a {convergence.CONFIDENCE:.0%}"[:-1]),
        (WALKS, f"the longest run counts, {convergence.FEWEST} steps at least"),
        (WALKS, f"from {power(LEAST_TAU)} to {power(LARGEST_TAU)}"),
        (WALKS, f"the largest power of ten, {power(TAU)} at most"),
        (WALKS, f"At ε = 8 that is {power(needed_tau(8, PRICE / 2))}; at ε = 20 a δ of {power(PRICE)} would take "
                f"{power(needed_tau(20, PRICE / 2))}"),
        (WALKS, f"{search.MOST_FORMS} per depth at most"),
        (WALKS, f"At most {WORDS[search.MOST_VECTORS]} vectors, in {listed.MOST_DIMENSIONS} dimensions at most"),
        (WALKS, f"where it exceeds {power(listed.MOST_HOPED)}. The distance is {power(listed.TINY)}"),
        (WALKS, f"up to y = {share.LARGEST_Y}"),
        (WALKS, f"distance would exceed {power(two_way.LARGEST_DISTANCE)} go to a walk"),
    ],
)  # fmt: skip
def test_a_limit_that_a_page_names(page, words):
    says(page, words)


def asked(shape, keep, make, scale, bounds=None):
    held = hf.invariant(hf.exact_margins(shape, keep))
    base = make(hf.margins(shape), scale=scale, neighbours="replace-one").base
    return Problem(base.law, (held if bounds is None else held & bounds).system(base.query.n))


def pairs(shape):
    return list(combinations(range(len(shape)), 2))


def test_shares_of_two_way_tables_that_are_accepted_at_least():
    found = []
    for shape, make, scale in (((14, 24), hf.laplace, 2), ((3, 40), hf.laplace, 2), ((14, 24), hf.gaussian, 1)):
        made = two_way._proposals(asked(shape, [(0,), (1,)], make, scale))
        of_columns = [float(each) for each in made.layout.scales]
        found.append(math.exp(share.log_least_share(made.table, made.limits, of_columns, made.layout.gaussian)))
        if shape == (14, 24) and make is hf.laplace:
            says(WALKS, f"The distance is about {made.distance * 1e10:.0f}·10⁻¹⁰ for a 14×24 table")
    says(WALKS, f"14×24 at λ = 2: {found[0]:.2f} is proved")
    says(WALKS, f"3×40: {found[1]:.2f} and")
    says(WALKS, f"14×24 at σ = 1: {found[2]:.2f}.")


def test_shares_of_offers_that_are_accepted_at_least():
    narrow, wide = (
        in_turn._found(asked(shape, pairs(shape), hf.gaussian, scale)).least_share()
        for shape, scale in (((3, 3, 3), 0.5), ((4, 4, 5), 1))
    )
    says(WALKS, f"(3×3×3, σ = 0.5: {narrow:.4f}; 4×4×5, σ = 1: {wide:.3f} and")


def test_lists_of_narrow_noise():
    aims = [listed._aim(asked(shape, pairs(shape), hf.laplace, 1)) for shape in ((2, 2, 2, 2), (3, 3, 3))]
    sizes = [len(aim.listed().steps) for aim in aims]
    says(WALKS, f"2⁴ at λ = 1, {sizes[0]:,} vectors for {power(aims[0].distance)} in")
    says(WALKS, f"3×3×3 at λ = 1, {sizes[1]:,} for {power(aims[1].distance)};")
    shares = search.cell_shares(aims[0].basis, np.ones(16))
    assert shares == pytest.approx(np.full(16, 5 / 16), abs=0.05)
    chosen = np.zeros(16)
    chosen[: aims[0].basis.shape[1]] = 1  # one choice of so many outputs
    radii = [search.needed_radius(False, np.ones(16), each, TAU) for each in (chosen, shares)]
    says(WALKS, "R falls from {:.0f} to {:.0f} for λ = 1 and 10⁻⁶".format(*radii))


def test_the_distance_of_a_large_table_with_bounds():
    found = walk.least_tau(asked((100, 100), [(0,), (1,)], hf.laplace, 4, hf.nonnegative()))
    says(WALKS, f"a bounded 100×100 table at λ = 4 gets τ = {found * 1e6:.0f}·10⁻⁶")


def test_wide_noise_within_bounds_is_refused_from_some_number_of_leaves_on():
    def reaches(leaves):
        tree = hf.Hierarchy.from_parents([-1, *[0] * leaves])
        law = hf.laplace(hf.counts(tree), scale=10_000).base.law
        return sampler.reaches(Forest.of(hf.consistent(tree).system(tree.n)), law)

    assert reaches(19_000)
    assert not reaches(21_000)
    says(LIMITS, "at a scale of 10,000 more than 20,000 leaves")


def test_losses_that_draws_cannot_show():
    """Nothing seen in n draws leaves a probability of −log(rate)/n, after some ten thousand tests."""
    assert -math.log(FalseAlarms(tests=9_999).next()) == pytest.approx(40, abs=0.5)
    says(LIMITS, "losses above about log(n/40) for n draws")
