"""Chains for continuous noise: couplings that meet and are faithful, laws on lines, faces that held figures leave."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

import holdfast as hf
from holdfast.arrays import Shared
from holdfast.given import Problem
from holdfast.given.near import coupled_chains as near_chains
from holdfast.given.near import line_steps, lines
from holdfast.given.near.lines import Polytope
from holdfast.noise.convergence import advanced, meeting_times

CROSSED = hf.invariant(hf.exact_margins((3, 4), [(0,), (1,)]))
TABLE = hf.margins((3, 4))


def made(constraint=CROSSED, make=hf.laplace, scale=1.0, query=TABLE):
    return Problem(make(query, scale=scale, integer=False).base.law, constraint.system(query.n), tau=1e-4)


def chains():
    """A chain of each kind, with two states that are far apart."""
    free = lines._Face.of(made(), Polytope.of(made(), None)).chain(np.zeros(12))
    far = advanced(free, free.start(1, hf.seeded(1)), 5, hf.seeded(2))[0]
    yield "equalities", free, np.zeros(6), 8 * far
    for make in (hf.laplace, hf.gaussian):
        bounded = made(CROSSED & hf.nonnegative(), make)
        truth = np.array([4, 0, 2, 1, 0, 3, 1, 5, 2, 2, 0, 1])
        face = lines._Face.of(bounded, Polytope.of(bounded, truth))
        chain = face.chain(truth.astype(float))
        yield make.__name__, chain, *advanced(chain, chain.start(2, hf.seeded(1)), 5, hf.seeded(2))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(3))
def test_coupled_copies_each_move_as_one_alone(number):
    _, chain, first, second = list(chains())[number]
    count = 3_000
    ahead, behind = (np.tile(state, (count, 1)) for state in (first, second))
    for step in range(2):
        ahead, behind = chain.advance_coupled(ahead, behind, hf.seeded(10 + step))
    for start, moved in ((first, ahead), (second, behind)):
        alone = advanced(chain, np.tile(start, (count, 1)), 2, hf.seeded(20))
        for i in range(0, alone.shape[1], 2):
            assert stats.ks_2samp(alone[:, i], moved[:, i]).pvalue > 1e-8


@pytest.mark.parametrize("number", range(3))
def test_coupled_copies_meet_and_stay_together(number):
    name, chain, first, _ = list(chains())[number]
    times = meeting_times(chain, 1, 100, hf.seeded(3), 400)
    assert times.max() <= 400, name
    together = np.tile(first, (50, 1))
    ahead, behind = chain.advance_coupled(together, together.copy(), hf.seeded(4))
    assert np.array_equal(ahead, behind)
    assert not np.array_equal(ahead, np.tile(first, (50, 1)))


@pytest.mark.parametrize("square", [False, True])
def test_quantiles_on_a_line_invert_the_integrated_density(square):
    rng = np.random.default_rng(5)
    for trial in range(30):
        m = rng.integers(1, 6)
        w, v = rng.normal(scale=3, size=m), rng.choice([-2.0, -1, 1, 0.5], size=m)
        rates = rng.choice([0.5, 1, 3], size=m)
        low, high = w - rng.exponential(2, size=m), w + rng.exponential(2, size=m)
        if trial % 3 == 0:
            low[:], high[:] = -np.inf, np.inf
        if trial % 3 == 1:
            high[:] = np.inf
        one = np.arange(m), np.array([0, m])
        line = line_steps.Lines(
            one[1], one[0], v, np.array([0, 1]), np.array([0]), np.ones(1), rates, square, low, high
        )
        room = np.empty((4, m + 2))
        count, log_total = line_steps._pieces(line, w, 0, room)

        def density(t, w=w, v=v, rates=rates):
            at = w + t * v
            return np.exp(-(rates * (at**2 / 2 if square else np.abs(at))).sum())

        ends = np.sort([(low - w) / v, (high - w) / v], axis=0)
        first, last = max(ends[0].max(), -60.0), min(ends[1].min(), 60.0)
        breaks = np.sort(np.clip(np.append(-w / v, [first, last]), first, last))
        total = sum(integrate.quad(density, a, b, epsabs=0, epsrel=1e-9, limit=200)[0] for a, b in pairwise(breaks))
        for share in (1e-6, 0.2, 0.5, 0.9, 1 - 1e-6):
            t = line_steps._quantile(line, room, count, share)
            cut = np.sort(np.clip(np.append(breaks, t), first, t))
            below = sum(integrate.quad(density, a, b, epsabs=0, epsrel=1e-9, limit=200)[0] for a, b in pairwise(cut))
            assert below / total == pytest.approx(share, rel=1e-5, abs=1e-9)
            found = line_steps._log_density(line, room, count, log_total, t)
            assert np.exp(found) == pytest.approx(density(t) / total, rel=1e-6)


def test_far_tails_of_cut_laws_are_drawn_there():
    for kind, make in (("laplace", hf.laplace), ("gaussian", hf.gaussian)):
        query, constraint = hf.histogram(2), hf.at_least([[1, 1]], [200]) & hf.between(0, 500)
        problem = Problem(make(query, scale=1, integer=False).base.law, constraint.system(2), tau=1e-4)
        values = lines.draw(problem, np.array([100.0, 100.0]), 500, hf.seeded(6)) + 100
        assert (values.sum(axis=1) >= 200 - 1e-9).all(), kind
        assert np.isfinite(values).all()


def test_cells_that_held_figures_pin_do_not_move_and_the_others_do():
    constraint = CROSSED & hf.nonnegative()
    truth = np.array([[0, 0, 0, 0], [3, 0, 1, 2], [1, 0, 2, 4]]).ravel()  # a row and a column of zeros
    problem = made(constraint)
    noise = lines.draw(problem, truth, 300, hf.seeded(7)).reshape(-1, 3, 4)
    assert (noise[:, 0] == 0).all()
    assert (noise[:, :, 1] == 0).all()
    assert (noise[:, 1:, [0, 2, 3]].std(axis=0) > 0.1).all()
    assert (noise.reshape(-1, 12) + truth >= 0).all()


def test_chains_start_inside_and_leave_the_truth_also_where_it_is_a_corner():
    constraint = hf.invariant(hf.exact_margins((3, 3), [(0,), (1,)])) & hf.nonnegative()
    problem = made(constraint, query=hf.margins((3, 3)))
    for truth in np.array([[2, 0, 0, 0, 2, 0, 0, 0, 2], [0, 2, 0, 0, 0, 2, 2, 0, 0], [0, 0, 2, 2, 0, 0, 0, 2, 0]]):
        polytope = Polytope.of(problem, truth)
        face = lines._Face.of(problem, polytope)
        chain = face.chain(truth.astype(float))
        first = face.noise(chain.start(1, hf.seeded(1)))[0] + truth
        assert (first > 0.01).all()
        assert np.allclose(polytope.rows @ first, polytope.held)
        noise = lines.draw(problem, truth, 200, hf.seeded(11))
        assert (noise.std(axis=0) > 0.1).all()
        assert (np.abs(noise).max(axis=1) > 1e-6).all()


def test_run_lengths_are_shared_by_tables_with_the_same_held_figures(monkeypatch):
    monkeypatch.setattr(near_chains, "MEASURED", Shared(4))
    problem = made(CROSSED & hf.nonnegative(), scale=1.25)
    one = np.array([[4, 0, 2, 1], [0, 3, 1, 5], [2, 2, 0, 1]])
    two = one + np.array([[-1, 1, 0, 0], [0, 0, 0, 0], [1, -1, 0, 0]])
    lines.draw(problem, one.ravel(), 1, hf.seeded(8))
    lines.draw(problem, two.ravel(), 1, hf.seeded(8))
    assert len(near_chains.MEASURED) == 1
