"""Noise drawn cell after cell against listed laws: the right law is accepted, one with scales 25 % off is rejected."""

import dataclasses

import numpy as np
import pytest
from scipy import sparse

import holdfast as hf
from holdfast.given import Problem
from holdfast.given.near.in_turn import in_turn
from holdfast.given.near.in_turn import offers as in_turn_offers
from holdfast.given.near.in_turn.offers import Layout, MixtureChain
from holdfast.given.near.walk.walk import LineChain
from holdfast.noise import convergence
from listed_noise import listed, pearson, two_samples

ALARM = 1e-6
CROSSED = [(0,), (1,)]
ALL_PAIRS = [(0, 1), (0, 2), (1, 2)]

# name: shape, margins, kind, scale, reach of the list, draws
CASES = {
    "2×2×2, Laplace": ((2, 2, 2), ALL_PAIRS, "laplace", 4, 30, 2_000),
    "2×2×3, Laplace": ((2, 2, 3), ALL_PAIRS, "laplace", 3, 12, 1_500),
    "2×3×3, Laplace": ((2, 3, 3), ALL_PAIRS, "laplace", 1.5, 5, 1_200),
    "3×3, Laplace": ((3, 3), CROSSED, "laplace", 1.3, 8, 1_500),
    "2×2×3, Gaussian": ((2, 2, 3), ALL_PAIRS, "gaussian", 3, 7, 4_000),
    "2×3×3, Gaussian": ((2, 3, 3), ALL_PAIRS, "gaussian", 1, 4, 4_000),
    "3×3, Gaussian": ((3, 3), CROSSED, "gaussian", 1.5, 7, 4_000),
}


def problem(shape, keep, kind, scale):
    query = hf.histogram(int(np.prod(shape)))
    base = hf.laplace(query, scale=scale) if kind == "laplace" else hf.gaussian(query, scale=scale)
    return Problem(base.base.law, hf.invariant(hf.exact_margins(shape, keep)).system(query.n))


@pytest.mark.parametrize("name", CASES)
def test_draws_have_the_listed_law(name):
    shape, keep, kind, scale, reach, size = CASES[name]
    asked = problem(shape, keep, kind, scale)
    assert in_turn.accepts(asked)
    draws = in_turn.draw(asked, None, size, hf.seeded(3))
    basis = asked.space.lattice_basis().toarray()
    assert pearson(draws, *listed(basis, kind, scale, reach)) > ALARM
    assert pearson(draws, *listed(basis, kind, 1.25 * scale, reach)) < ALARM


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_equalities_may_have_coefficients_and_cells_scales(kind):
    rows = np.array([[1, 2, -1, 0, 0], [0, 1, 1, 3, -1]])
    scales = np.array([2, 1.5, 3, 1.5, 2])
    make = hf.laplace if kind == "laplace" else hf.gaussian
    asked = Problem(make(hf.histogram(5), scale=scales.tolist()).base.law, hf.invariant(rows).system(5))
    draws = in_turn.draw(asked, None, 6_000, hf.seeded(4))
    assert not (draws @ rows.T).any()
    basis = asked.space.lattice_basis().toarray()
    assert pearson(draws, *listed(basis, kind, scales, 40)) > ALARM
    assert pearson(draws, *listed(basis, kind, 2.0, 40)) < ALARM


def test_wide_noise_is_drawn_by_remainders():
    """σ = 60 on one line of 8 cells: whole numbers of variance 450, each drawn with the right frequency."""
    asked = problem((2, 2, 2), ALL_PAIRS, "gaussian", 60)
    draws = in_turn.draw(asked, None, 40_000, hf.seeded(5))
    basis = asked.space.lattice_basis().toarray()
    assert pearson(draws, *listed(basis, "gaussian", 60, 200)) > ALARM
    assert pearson(draws, *listed(basis, "gaussian", 63, 200)) < ALARM
    assert pearson(draws // 2 * 2, *listed(basis, "gaussian", 60, 200)) < ALARM


@pytest.mark.parametrize(("kind", "scale"), [("laplace", 3), ("gaussian", 2)])
def test_noise_that_breaks_a_bound_is_drawn_again(kind, scale, monkeypatch):
    """Bounds on cells and a row of inequalities; small tables are other ways' work unless asked for."""
    monkeypatch.setattr(in_turn, "FEWEST_BOUNDED", 1)
    truth, order = (
        np.array([1, 0, 2, 1, 1, 0, 0, 3, 1, 1, 1, 2]),
        np.eye(12, dtype=int)[[2]] - np.eye(12, dtype=int)[[6]],
    )
    base = problem((2, 2, 3), ALL_PAIRS, kind, scale)
    held = hf.invariant(hf.exact_margins((2, 2, 3), ALL_PAIRS)) & hf.nonnegative() & hf.ordered([6, 2])
    asked = Problem(base.law, held.system(12))
    draws = in_turn.draw(asked, truth, 800, hf.seeded(6))
    basis = asked.space.lattice_basis().toarray()

    def law(by, low):
        return listed(basis, kind, by, 9, low, inequalities=(order, -(order @ truth)))

    assert (draws + truth >= 0).all()
    assert pearson(draws, *law(scale, -truth)) > ALARM
    assert pearson(draws, *law(scale / 2, -truth)) < ALARM
    assert pearson(draws, *law(scale, -truth - 1)) < ALARM


def chain_of(shape, scale):
    asked = problem(shape, ALL_PAIRS, "laplace", scale)
    return asked, MixtureChain.of(Layout.of(asked), np.full(asked.law.n, 1 / scale))


def test_offered_variances_weighed_by_their_tilt_are_those_of_independent_noise(monkeypatch):
    """Also where narrow ones are written as one: the tilt they are kept by is the one that their weights undo."""
    monkeypatch.setattr(in_turn_offers, "NARROWEST", 4.0)
    layout, typical, held = chain_of((2, 2, 3), 3)[1].layout, np.full(12, 20.0), np.full(12, 0.95)
    chain = MixtureChain(layout, np.full(12, 1 / 3), typical, held, True)
    alone = dataclasses.replace(chain, held=np.zeros(12))._offered_scales(20_000, hf.seeded(11)).ravel()
    offered = chain._offered_scales(20_000, hf.seeded(12)).ravel()
    weights = np.sqrt(0.05 + 0.95 * offered / 20)
    for limit in (4.0, 10.0, 30.0):
        kept = weights * (offered <= limit)
        share, wanted = kept.mean() / weights.mean(), (alone <= limit).mean()
        error = np.hypot((kept - share * weights).std() / weights.mean(), np.sqrt(wanted * (1 - wanted)))
        assert abs(share - wanted) < 5.5 * error / np.sqrt(offered.size)


def test_a_coupled_chain_has_the_law_of_a_chain():
    """Each copy by itself: after a coupled step the copy behind is compared with a plain step from its start."""
    _, chain = chain_of((2, 2, 3), 3)
    size, stream = 8_000, hf.seeded(7)
    move = np.zeros(12)
    move[: chain.layout.free] = 1
    move[chain.layout.free :] = move[: chain.layout.free] @ chain.layout.combination
    ahead, behind, plain = (np.tile(k * move, (size, 1)) for k in (1, 0, 0))
    chain.advance_coupled(ahead, behind, stream)
    chain.advance(plain, stream)
    assert 0.2 < (ahead == behind).all(axis=1).mean() < 0.9
    assert two_samples(plain, behind) > ALARM
    assert two_samples(plain, ahead) < ALARM
    assert two_samples(plain, chain.start(size, stream)) < ALARM


def test_chains_that_met_stay_together():
    _, chain = chain_of((2, 3, 3), 2)
    states = chain.start(300, hf.seeded(8))
    ahead, behind, stream = states.copy(), states.copy(), hf.seeded(9)
    for _ in range(5):
        chain.advance_coupled(ahead, behind, stream)
    assert np.array_equal(ahead, behind)
    assert (ahead != states).any(axis=1).mean() > 0.5


@pytest.mark.parametrize("factor", [1, 2])
def test_moves_that_do_not_connect_are_caught(factor):
    """Walks along double moves, from starts that are whole noise: they stay in their classes and never meet."""
    asked, chain = chain_of((2, 2, 3), 3)
    moves = sparse.csr_array(factor * asked.space.lattice_basis().T)
    lines = LineChain.of(asked, moves, np.zeros(12, dtype=np.int64))

    class Spread:
        advance, advance_coupled = staticmethod(lines.advance), staticmethod(lines.advance_coupled)

        def start(self, count, stream):
            return chain.layout.noise(chain.start(count, stream), 12)

    if factor == 1:
        assert convergence.run_length(Spread(), 1e-6, hf.seeded(10), most=500).steps < 500
    else:
        with pytest.raises(hf.Refused, match="did not meet"):
            convergence.run_length(Spread(), 1e-6, hf.seeded(10), most=500)
