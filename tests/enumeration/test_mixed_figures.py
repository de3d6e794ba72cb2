"""Mixtures of parts with exact figures, alone and composed: against every output listed (SDP §2.3, TV Thm 16)."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import holdfast as hf
from holdfast.mechanism import mixture, project

F = Fraction
HALF = [F(1, 2), F(1, 2)]
QUERY = hf.histogram(3)
FIGURES = {
    "none": None,
    "total": [[1, 1, 1]],
    "pair": [[1, 1, 0]],
    "difference": [[1, -1, 0]],
}
REACH = 12
POINTS = np.array(list(product(range(-REACH, REACH + 1), repeat=3)))


def mass(rows, scale, noise):
    """The weight of each noise, 0 where a figure would not stay."""
    weights = np.exp(-np.abs(noise).sum(axis=1) / scale)
    return weights if rows is None else np.where((noise @ np.array(rows).T == 0).all(axis=1), weights, 0.0)


def law(rows, scale, truth):
    """The law of q(x) + noise given that the figures stay, on all points near; the noise does not depend on x."""
    return mass(rows, scale, POINTS - np.asarray(truth)) / mass(rows, scale, POINTS).sum()


def changes(kind, records):
    """All differences that so many records can make."""
    units = [np.eye(3, dtype=int)[i] for i in range(3)]
    single = [u * s for u in units for s in (1, -1)] if kind == "add-remove" else [u - v for u in units for v in units]
    found = {(0, 0, 0)}
    for _ in range(records):
        found |= {tuple(np.add(old, new)) for old in found for new in single}
    return [np.array(each) for each in sorted(found) if any(each)]


def worst(parts, kind, records):
    """Largest log-ratio of the mixture over changes that keep the figures of all parts, near the middle."""
    rows = [row for name, _ in parts for row in (FIGURES[name] or [])]
    # Moving the truth moves the law; points far out only add what windows cut off.
    near = (np.abs(POINTS) <= 3).all(axis=1)
    here = sum(law(FIGURES[name], scale, (0, 0, 0)) for name, scale in parts)[near]
    found = 0.0
    for change in changes(kind, records):
        if rows and (np.array(rows) @ change).any():
            continue
        there = sum(law(FIGURES[name], scale, change) for name, scale in parts)[near]
        assert ((here > 0) == (there > 0)).all()
        both = here > 0
        found = max(found, float(np.abs(np.log(here[both] / there[both])).max()))
    return found


def made(name, scale, kind):
    mechanism = hf.laplace(QUERY, scale=scale, neighbours=kind)
    return mechanism if FIGURES[name] is None else mechanism.given(hf.invariant(FIGURES[name]))


PAIRS = [
    (("total", 1), ("total", 3)),
    (("total", 1), ("none", 2)),
    (("none", 1), ("pair", 2)),
    (("total", 2), ("pair", 1)),
    (("difference", 1), ("pair", 2)),
]


@pytest.mark.parametrize("kind", ["add-remove", "replace-one"])
@pytest.mark.parametrize("parts", PAIRS)
def test_a_mixture_with_figures_loses_no_more_than_it_says(parts, kind):
    mechanism = mixture([made(*part, kind) for part in parts], HALF)
    published = any(FIGURES[name] for name, _ in parts)
    for statement in mechanism.guarantees:
        if statement.scope == "subspace":
            continue
        truth = worst(parts, kind, statement.records)
        assert 0 < truth <= statement.epsilon * (1 + 1e-6)
        assert bool(statement.unprotected) == published


def test_the_worst_part_is_met_where_all_parts_have_the_same_figure():
    mechanism = mixture([made("total", 1, "replace-one"), made("total", 3, "replace-one")], HALF)
    assert mechanism.guarantee.scope == "all"
    # Far out the narrow part weighs nothing and in the middle it leads: the ratio lies between those of the parts.
    truth = worst((("total", 1), ("total", 3)), "replace-one", 1)
    assert 2 / 3 < truth <= mechanism.guarantee.epsilon == 2.0


def test_neighbours_that_do_not_share_all_figures_are_not_covered():
    # Both figures are shared by exchanging cells 0 and 1 only, never by a change of cell 2.
    mechanism = mixture([made("total", 1, "replace-one"), made("pair", 1, "replace-one")], HALF)
    (statement,) = [each for each in mechanism.guarantees if each.records == 1]
    assert statement.scope == "invariant-sharing"
    assert any("cell 2" in words for words in statement.unprotected)


def test_subspace_statements_mix_for_what_no_figure_fixes():
    parts = [
        hf.laplace(QUERY, scale=scale, integer=False).onto(hf.invariant(FIGURES[name]))
        for name, scale in (("total", 1), ("pair", 2))
    ]
    mechanism = mixture(parts, HALF)
    scopes = {each.scope: each for each in mechanism.guarantees}
    assert scopes["subspace"].epsilon == 1.0
    assert scopes["subspace"].records == 1
    together = hf.invariant(FIGURES["total"]) & hf.invariant(FIGURES["pair"]) & hf.invariant([[1, 0, 0]])
    everything = mixture([part.onto(together) for part in (hf.laplace(QUERY, scale=1, integer=False),)], [1])
    with pytest.raises(hf.Refused, match="no change of a few records"):
        _ = everything.guarantee  # nothing is left open: a statement would be about nothing


def test_data_that_one_part_cannot_have_are_refused_whatever_the_coin_says():
    query = hf.histogram(2)
    parts = [hf.laplace(query, scale=1).onto(hf.fixed([0], [0])), hf.laplace(query, scale=1)]
    mechanism = mixture(parts, [F(1, 10**9), 1 - F(1, 10**9)])
    with pytest.raises(hf.Refused, match="violates what must hold"):
        mechanism.release([1, 1])


@pytest.mark.parametrize("kind", ["add-remove", "replace-one"])
@pytest.mark.parametrize("parts", PAIRS[:4])
def test_composition_takes_mixtures(parts, kind):
    mixed = mixture([made(*part, kind) for part in parts], HALF)
    beside = made("total", 4, kind)
    composed = hf.compose([mixed, beside])
    assert composed.guarantees[0] == composed
    rows = [row for name, _ in (*parts, ("total", 4)) for row in (FIGURES[name] or [])]
    for statement in composed.guarantees:
        if statement.scope == "subspace":
            continue
        # Outputs are independent: the worst log-ratios over one change add up.
        near = (np.abs(POINTS) <= 3).all(axis=1)
        truth = 0.0
        for change in changes(kind, statement.records):
            if (np.array(rows) @ change).any():
                continue
            losses = []
            for group in (parts, (("total", 4),)):
                here = sum(law(FIGURES[name], scale, (0, 0, 0)) for name, scale in group)[near]
                there = sum(law(FIGURES[name], scale, change) for name, scale in group)[near]
                both = here > 0
                losses.append(float(np.abs(np.log(here[both] / there[both])).max()))
            truth = max(truth, sum(losses))
        assert 0 < truth <= statement.epsilon * (1 + 1e-6)


def test_composition_takes_projected_mechanisms_and_says_all_that_holds():
    claim = hf.laplace(QUERY, epsilon=F(1, 2)).guarantee
    projected = project(lambda truth: truth, QUERY, hf.invariant(FIGURES["total"]), guarantee=claim)
    beside = hf.laplace(QUERY, epsilon=1, integer=False).onto(hf.invariant(FIGURES["total"]))
    composed = hf.compose([projected, beside])
    found = {each.scope: each for each in composed.guarantees}
    assert composed.scope == "invariant-sharing"
    assert (found["invariant-sharing"].epsilon, found["invariant-sharing"].records) == (3.0, 2)
    assert (found["subspace"].epsilon, found["subspace"].records) == (1.5, 1)
    assert "was not checked" in " ".join(composed.caveats)
    assert hf.compose([beside.guarantee] * 2).epsilon == 2.0


def test_more_records_are_stated_where_they_can_change_more():
    exact = hf.invariant([[1, 1, 0]])
    parts = [hf.laplace(QUERY, scale=1).given(exact), hf.laplace(QUERY, scale=2)]
    composed = hf.compose(parts)
    one, two = composed.guarantees[:2]
    assert (one.records, two.records) == (1, 2)
    assert any("cell 0" in words for words in one.unprotected)
    assert not any("cell 0" in words for words in two.unprotected)
    assert (one.epsilon, two.epsilon) == (1.5, 3.0)


def test_a_composition_is_a_statement():
    composed = hf.compose([made("none", 1, "add-remove")] * 2)
    assert composed == hf.Guarantee.from_json(composed.to_json())
    assert composed.guarantees == (composed,)
    assert math.isclose(composed.at_delta(1e-6).epsilon, 2.0)


def test_a_mixture_says_what_its_parts_assume_of_all_data():
    bounded = hf.laplace(QUERY, epsilon=1).given(hf.between(0, 10))
    assert bounded.guarantee.assumes
    free = hf.laplace(QUERY, epsilon=F(1, 2))
    assert mixture([bounded, free], HALF).guarantee.assumes == bounded.guarantee.assumes
    figures = mixture([bounded.given(hf.invariant([[1, 1, 1]])), free.given(hf.invariant([[1, 1, 0]]))], HALF)
    assert all(each.assumes == bounded.guarantee.assumes for each in figures.guarantees)
    assert hf.compose([figures, free]).assumes == bounded.guarantee.assumes
