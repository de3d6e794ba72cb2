"""A gallery of broken mechanisms: each promises less loss than it has. The auditor must catch every one of them."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

import holdfast as hf
from holdfast.given import Problem
from holdfast.given.baselines import metropolis
from holdfast.given.baselines.chains import Chains
from holdfast.privacy import classical_sigma

CHAIN = hf.Hierarchy.from_parents([-1, 0])
FORK = hf.Hierarchy.from_parents([-1, 0, 0, 0])


def claim(epsilon=1.0, delta=0.0, neighbours="add-remove", **more):
    """A claim somebody makes."""
    return hf.Guarantee(epsilon=epsilon, delta=delta, neighbours=neighbours, because="somebody said so", **more)


@dataclass(frozen=True)
class Own:
    """A researcher's mechanism: a way to draw, a query and a claim."""

    draws: object
    query: hf.Query
    guarantee: hf.Guarantee

    def simulate(self, truth, size, rng):
        return self.draws(np.asarray(truth), size, np.random.default_rng(rng.words(4).tolist()))


def geometric(rng, scale, shape):
    """Integer Laplace noise."""
    share = 1 - math.exp(-1 / scale)
    return rng.geometric(share, shape) - rng.geometric(share, shape)


def wrong_sensitivity():
    """A tree of two levels with the noise of one."""
    query = hf.counts(FORK)
    return Own(lambda truth, size, rng: truth + geometric(rng, 1, (size, truth.size)), query, claim())


def noise_reused():
    """One draw for all cells."""
    return Own(lambda truth, size, rng: truth + geometric(rng, 1, (size, 1)), hf.histogram(5), claim())


def last_cell_without_noise():
    """A loop that ends one too early."""

    def draws(truth, size, rng):
        noise = geometric(rng, 1, (size, truth.size))
        noise[:, -1] = 0
        return truth + noise

    return Own(draws, hf.histogram(4), claim())


def naive_doubles():
    """Laplace noise in doubles by the textbook (Mironov 2012)."""
    return Own(lambda truth, size, rng: truth + rng.laplace(size=(size, truth.size)), hf.histogram(2), claim())


def one_seed_twice():
    """Two tables about the same records, each with the noise of one and the same stream."""

    def draws(truth, size, rng):
        half = truth.size // 2
        noise = geometric(rng, 2, (size, half))
        return truth + np.hstack([noise, noise])

    # A record is in a cell of the first table and then, or not, in one of the second.
    return Own(draws, hf.workload(np.eye(4, dtype=int)), claim())


def seed_in_the_code():
    """Every release starts from the same seed."""
    return lambda truth: truth + geometric(np.random.default_rng(7), 1, truth.shape)


def measurements_beside_bounds():
    """A table given its bounds, with noisy measurements of it beside, for the price of the table."""
    table = hf.laplace(hf.histogram(2), epsilon=1)
    bounded = table.given(hf.nonnegative())

    def draws(truth, size, rng):
        stream = hf.seeded(int(rng.integers(2**60)))
        return np.hstack([bounded.simulate(truth, size, stream), table.simulate(truth, size, stream)])

    return Own(draws, table.query, bounded.guarantee)


def windows_around_the_data():
    """Noise cut at a window around the truth, and called pure."""

    def draws(truth, size, rng):
        return truth + np.clip(geometric(rng, 2, (size, truth.size)), -6, 6)

    return Own(draws, hf.histogram(3), claim(0.5))


def narrow_rows():
    """A row with an exact sum and bounds, each cell cut at the window of one free cell: zeros push a large cell out.

    The fault as it was: windows for a total variation of 1e-7 of one cell alone, at scale 2.
    """
    cells, scale, most = 60, 2, 150
    held = hf.invariant(np.ones((1, cells), dtype=int)) & hf.nonnegative()
    right = hf.laplace(hf.histogram(cells), scale=scale, neighbours="replace-one").given(held)
    reach = math.ceil(scale * math.log(1e7))
    noise, left = np.arange(-reach, reach + 1), np.arange(-most, most + 1)[:, None]
    kept = {}

    def shares(truth):
        """For each cell and each rest of the sum, cumulative chances of its noise, one after the other."""
        behind, found = np.where(left.ravel() == 0, 1.0, 0.0), []
        for law in (np.exp(-np.abs(noise) / scale) * (truth[:, None] + noise >= 0))[::-1]:
            place = left - noise + most
            chance = law * np.where((place >= 0) & (place <= 2 * most), behind[np.clip(place, 0, 2 * most)], 0)
            behind = chance.sum(axis=1)
            total = np.cumsum(chance, axis=1) / np.maximum(behind, 1e-300)[:, None]
            found.append((np.minimum(total, 1) + np.arange(2 * most + 1)[:, None]).ravel())
        return found[::-1]

    def draws(truth, size, rng):
        key = truth.tobytes()
        kept[key] = kept.get(key) or shares(truth)
        drawn, rest = np.zeros((size, cells), dtype=int), np.full(size, most)
        for j, flat in enumerate(kept[key]):
            place = np.searchsorted(flat, rest + rng.random(size) * (1 - 1e-12), side="right")
            drawn[:, j] = noise[place - rest * noise.size]
            rest -= drawn[:, j]
        return truth + drawn

    broken = Own(draws, right.query, replace(right.guarantee, delta=9.8e-6, status="estimated"))
    object.__setattr__(broken, "held", right.held)
    return broken


def chain_that_did_not_move():
    """The Markov chain of `method="metropolis"` as it was sold: pure, though it stops wherever it stands."""
    query = hf.counts(FORK)
    held = hf.consistent(FORK) & hf.nonnegative() & hf.invariant(hf.exact_nodes(FORK, [0]))
    right = hf.laplace(query, scale=8, neighbours="replace-one").given(held)
    problem = Problem(right.base.law, right.held)

    def draws(truth, size, rng):
        target, stream = metropolis.target_of(problem, truth), hf.seeded(int(rng.integers(2**60)))
        chains = Chains.started(target, size, stream)
        chains.run(1, stream)
        return truth + target.noise(chains.leaves)

    broken = Own(draws, query, right.guarantee)
    object.__setattr__(broken, "held", right.held)
    return broken


OWN = [
    wrong_sensitivity,
    noise_reused,
    last_cell_without_noise,
    naive_doubles,
    one_seed_twice,
    measurements_beside_bounds,
    windows_around_the_data,
    narrow_rows,
    chain_that_did_not_move,
]


def price_forgotten():
    """Non-negativity conditioned at the price of the noise alone."""
    base = hf.laplace(hf.histogram(4), epsilon=1)
    return base.given(hf.nonnegative()), base.guarantee


def weights_of_a_union_ignored():
    """A union at the price of its dearer side (TV Thm 12, part 2, as printed)."""
    base = hf.laplace(hf.histogram(1), scale=1)
    union = base.given(hf.between(0, 0) | hf.between(1, 1))
    return union, claim(0.01)


def classical_at_large_epsilon():
    """The papers' σ where it is too small."""
    sigma = classical_sigma(1, 20, Fraction(1, 100))
    return hf.gaussian(hf.histogram(2), scale=sigma, integer=False), claim(20, 0.01)


def classical_whole():
    """The papers' σ with whole noise, where its law can be listed."""
    sigma = classical_sigma(4, 6, Fraction(1, 10**6))
    return hf.gaussian(hf.query(1, l1=4, l2=4), scale=sigma), claim(6, 1e-6)


def one_record_for_several():
    """The loss of one record printed for three."""
    base = hf.laplace(hf.histogram(3), epsilon=1)
    return base, replace(base.guarantee, neighbours=hf.Neighbours("add-remove", records=3))


def signed_leaves():
    """Bounds on leaves that a record can lower, at the price of a unit step."""
    query = hf.workload([[1, -1], [1, -1]])
    base = hf.laplace(query, scale=4, neighbours="replace-one")
    return base.given(hf.consistent(CHAIN) & hf.nonnegative()), claim(1.2140, neighbours="replace-one")


def unequal_weights_below_an_exact_node():
    """Three records of unequal weights, at the price of equal ones."""
    query = hf.workload([[2, 1, 1], [2, 0, 0], [0, 1, 0], [0, 0, 1]])
    held = hf.consistent(FORK) & hf.nonnegative() & hf.invariant(hf.exact_nodes(FORK, [0]))
    relation = hf.Neighbours("add-remove", records=3)
    said = claim(10.829, neighbours=relation, scope="invariant-sharing")
    return hf.laplace(query, scale=[1, 0.2, 8, 8]).given(held), said


CLAIMED = [
    price_forgotten,
    weights_of_a_union_ignored,
    classical_at_large_epsilon,
    classical_whole,
    one_record_for_several,
    signed_leaves,
    unequal_weights_below_an_exact_node,
]


def rows_nearly_parallel():
    """A subspace statement from a projection in doubles, which nearly parallel rows had bent: 1.2 is true."""
    rows = hf.invariant([[1, -20000, 2], [1, -19999, 2]])
    right = hf.laplace(hf.histogram(3), scale=1, integer=False).given(rows)
    (statement,) = [each for each in right.guarantees if each.scope == "subspace"]
    return right, replace(statement, epsilon=1.0524)
