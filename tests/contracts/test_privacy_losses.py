"""Statements that carry the loss law of integer Gaussian noise: who has one, who loses it, and what it is good for."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

import holdfast as hf
from holdfast.mechanism import mixture
from holdfast.privacy import (
    Guarantee,
    compose,
    for_records,
    integer_gaussian_delta,
    integer_gaussian_epsilon,
    rho_to_epsilon,
)

F = Fraction
TREE = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2])


@pytest.mark.parametrize("budget", [{"scale": 3}, {"rho": F(1, 10)}, {"epsilon": 1, "delta": 1e-6}])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_however_the_noise_is_asked_for_it_converts_by_its_loss_law(budget, neighbours):
    statement = hf.gaussian(hf.counts(TREE), neighbours=neighbours, **budget).guarantee
    (kind,) = statement.losses
    as_mapping = {(size, sigma2): count for size, sigma2, count in kind}
    for delta in (1e-5, 1e-10):
        found = statement.at_delta(delta)
        assert found.epsilon == integer_gaussian_epsilon(as_mapping, delta)
        assert found.epsilon < 0.97 * rho_to_epsilon(statement.rho, delta)
        assert "loss law" in found.because
    assert statement.at_epsilon(2).delta == integer_gaussian_delta(as_mapping, 2)


def test_unlike_scales_per_level_and_per_output_convert_too():
    levels = {depth: 2 + F(depth, 3) for depth in range(TREE.depth.max() + 1)}
    outputs = [2 + F(int(depth), 3) for depth in TREE.depth]
    by_level = hf.gaussian(hf.counts(TREE), scale=levels).guarantee
    by_output = hf.gaussian(hf.counts(TREE), scale=outputs).guarantee
    assert by_level.losses == by_output.losses
    assert by_level.at_delta(1e-10).epsilon < 0.97 * rho_to_epsilon(by_level.rho, 1e-10)


def test_conditioned_noise_has_no_loss_law():
    # The lattice Gaussian keeps ρ, not δ(ε): σ = 2, z₁ = z₂, ε = 2 has 0.00146 where two free outputs have 0.00113.
    free = hf.gaussian(hf.workload([[1], [1]]), scale=2)
    held = free.given(hf.equals([[1, -1]], [0]))
    assert free.guarantee.losses
    assert held.guarantee.losses == ()
    assert free.guarantee.at_epsilon(2).delta < 0.00114 < 0.00146 < held.guarantee.at_epsilon(2).delta
    assert hf.gaussian(hf.histogram(3), scale=2).given(hf.nonnegative()).guarantee.losses == ()
    # What is moved is a function of the free noise.
    assert free.onto(hf.equals([[1, -1]], [0])).guarantee.losses == free.guarantee.losses


def test_losses_go_where_they_no_longer_hold():
    statement = hf.gaussian(hf.histogram(3), scale=2).guarantee
    assert for_records(statement, 2).losses == ()
    continuous = hf.gaussian(hf.histogram(3), scale=2, integer=False).guarantee
    assert continuous.losses == ()


def test_releases_add_up_by_the_united_loss_law():
    one = hf.gaussian(hf.histogram(3), scale=2).guarantee
    two = hf.gaussian(hf.histogram(3), scale=3).guarantee
    both = compose([one, two, one])
    assert both.losses == (((1, F(4), 2), (1, F(9), 1)),)
    expected = integer_gaussian_epsilon({(1, F(4)): 2, (1, F(9)): 1}, 1e-6)
    assert compose([one, two, one], delta=1e-6).epsilon == both.at_delta(1e-6).epsilon == expected
    assert compose([one, for_records(one, 1)]).losses
    assert compose([one, Guarantee(rho=0.1, neighbours="add-remove", because="said")]).losses == ()


def test_json_keeps_them_and_reads_statements_without():
    statement = hf.gaussian(hf.histogram(3), scale=F(7, 3)).guarantee
    plain = statement.as_mapping()
    assert plain["losses"] == [[[1, "49/9", 1]]]
    assert Guarantee.from_json(statement.to_json()) == statement
    del plain["losses"]
    assert Guarantee.from_json(json.dumps(plain)).losses == ()
    assert "losses" not in hf.laplace(hf.histogram(3), epsilon=1).guarantee.as_mapping()


@pytest.mark.parametrize("losses", [[[[1, "0", 1]]], [[[1, "x", 1]]], [[[1, "1/0", 1]]], [[1]], 3, [[[1, "2"]]]])
def test_spoiled_losses_are_refused(losses):
    plain = hf.gaussian(hf.histogram(3), scale=2).guarantee.as_mapping() | {"losses": losses}
    with pytest.raises(hf.Refused):
        Guarantee.from_json(json.dumps(plain))


def test_losses_need_a_rho():
    with pytest.raises(hf.Refused, match="belong to a rho"):
        Guarantee(epsilon=1, neighbours="add-remove", because="said", losses=(((1, F(4), 1),),))


def test_mixtures_keep_the_worst_kind():
    query = hf.histogram(3)
    parts = [hf.gaussian(query, scale=scale) for scale in (2, 5)]
    mixed = mixture(parts, [F(1, 2), F(1, 2)]).guarantee
    assert mixed.at_delta(1e-6).epsilon == parts[0].guarantee.at_delta(1e-6).epsilon


@pytest.mark.parametrize("make", [hf.laplace, hf.gaussian])
def test_fractions_per_output_stay_fractions(make):
    scales = [F(1, 3), F(2, 7), F(1, 3)]
    law = make(hf.histogram(3), scale=scales).base.law
    power = 1 if make is hf.laplace else 2
    assert [law.scale_values[k] for k in law.which] == [value**power for value in scales]
    mixed = hf.laplace(hf.histogram(3), scale=[F(1, 3), float("inf"), 2]).base.law
    assert [mixed.scale_values[k] for k in mixed.which] == [F(1, 3), None, F(2)]
    if make is hf.laplace:
        assert make(hf.histogram(3), scale=scales).guarantee.epsilon == 3.5
    for wrong in ([F(1, 3), -1, 2], [F(1, 3), "a", 2], [F(1, 3), 2], [F(1, 3), float("nan"), 1]):
        with pytest.raises(hf.Refused, match="scale must"):
            make(hf.histogram(3), scale=wrong)
