"""What is proved of every weighted sum of whole noise on a hierarchy, against lists of all tables of small ones."""

import itertools
import math

import numpy as np
import pytest

import holdfast as hf
from holdfast.given.exact.hierarchy import TreeSums
from holdfast.noise import IntegerGaussian, IntegerLaplace
from holdfast.noise.independent import Independent
from holdfast.noise.inversion import Sums
from holdfast.trees.shape.forest import Forest

# a root, two outputs below it, two leaves below each
PARENTS = np.array([-1, 0, 0, 1, 1, 2, 2])
REACH = 8
LEAVES = np.array(list(itertools.product(range(-REACH, REACH + 1), repeat=4)))
TABLES = np.column_stack([LEAVES.sum(axis=1), LEAVES[:, :2].sum(axis=1), LEAVES[:, 2:].sum(axis=1), LEAVES])
KINDS = {
    "laplace": (IntegerLaplace, (1.0, 0.6, 0.8)),
    "small laplace": (IntegerLaplace, (0.5, 0.2, 0.3)),
    "gaussian": (IntegerGaussian, (2.0, 0.7, 1.5)),
    "small gaussian": (IntegerGaussian, (0.2, 0.5, 0.3)),
    "precise total": (IntegerGaussian, (0.1, 3.0, 2.0)),
}


def listed(kind, exact):
    """Sums of a small hierarchy as they are proved, and all tables with their probabilities."""
    make, scales = KINDS[kind]
    law = Independent([make(scale) for scale in scales], np.array([0, 1, 1, 2, 2, 2, 2]), 7)
    fixed = np.isin(np.arange(7), exact)
    log = law.log_density(TABLES) - np.where((TABLES[:, fixed] != 0).any(axis=1), np.inf, 0)
    mass = np.exp(log - log.max())
    return TreeSums(Forest(PARENTS, fixed), law), mass / mass.sum()


WEIGHTS = np.array(list(itertools.product((0.0, 1), (-1.0, 0, 1), (0.0, 1), (-1.0, 0, 1))))


@pytest.mark.parametrize("exact", [[], [1], [0]], ids=["free", "an exact part", "an exact whole"])
@pytest.mark.parametrize("kind", KINDS)
def test_phi_falls_where_leaves_have_one_weight_and_is_smaller_with_other_signs(kind, exact):
    _, mass = listed(kind, exact)
    turns = np.linspace(0, math.pi, 9)
    found = {tuple(leaves): np.array([mass @ np.cos(t * (LEAVES @ leaves)) for t in turns]) for leaves in WEIGHTS}
    for leaves, phi in found.items():
        assert (phi >= -1e-6).all()
        assert (np.diff(found[tuple(np.abs(leaves))]) <= 1e-6).all()
        assert (phi <= found[tuple(np.abs(leaves))] + 1e-6).all()


@pytest.mark.parametrize("exact", [[], [1], [0]], ids=["free", "an exact part", "an exact whole"])
@pytest.mark.parametrize("kind", KINDS)
def test_tilted_means_are_bounded_and_leaves_have_the_sum_of_all_outputs(kind, exact):
    sums, mass = listed(kind, exact)
    stream, sharp = np.random.default_rng(3), 0
    for _ in range(12):
        weights = stream.integers(-2, 3, 7).astype(np.float64)
        x = TABLES @ weights
        seen = mass > 0
        assert (TABLES[seen] @ sums.at_leaves(weights) == x[seen]).all()
        for slope in (0.05, 0.2, 0.5):
            true, proved = math.log(mass @ np.exp(slope * x)), sums.tilted(weights, slope)
            assert proved >= true - 1e-9
            sharp += proved < math.inf
    assert sharp > 12
    total = np.eye(7)[0]
    assert (sums.tilted(total, 0.3) == 0) == (0 in exact)
    assert exact or sums.tilted(total, 0.3) <= sums._alone(np.array([0]), np.array([0.3]))[0]


def test_sums_with_different_weights_of_much_gaussian_noise_cover_as_often_as_they_say():
    """Eight times one leaf and once another: noise of 2.8 does not fill the gaps, which normal noise would."""
    tree = hf.Hierarchy.from_parents(np.concatenate([[-1], np.zeros(21_000, dtype=np.int64)]))
    mechanism = hf.gaussian(hf.counts(tree), scale={0: 1000.0, 1: 2.8}).given(hf.consistent(tree))
    spread = mechanism.release(np.zeros(tree.n, dtype=np.int64), rng=hf.seeded(1)).spread
    weights = np.zeros(tree.n)
    weights[tree.leaves[[0, 300]]] = 8, 1
    places = np.arange(-40, 41)
    mass = np.exp(-(places**2) / (2 * spread.standard_errors[tree.leaves[0]] ** 2))
    law, x = np.outer(mass, mass) / mass.sum() ** 2, np.abs(8 * places[:, None] + places)
    sums = Sums([(spread.characteristic, weights)], math.sqrt(spread.variance_of(weights)))
    for confidence in np.arange(0.5, 0.99, 0.02):
        reach = sums.least_reach((1 - confidence) / 2)
        assert law[x <= reach + 1e-9].sum() >= confidence - 1e-6
    many = np.zeros(tree.n)
    many[tree.leaves[:400]] = 1
    sums = Sums([(spread.characteristic, many)], math.sqrt(spread.variance_of(many)))
    assert sums.least_reach(0.025) / sums.error == pytest.approx(1.96, abs=0.01)
    asked = spread.characteristic.of(many, np.array([0.01]))
    assert asked[0] == pytest.approx(math.exp(-(0.01**2) * sums.error**2 / 2), abs=1e-12)
