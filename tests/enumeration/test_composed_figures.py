"""Parts with exact figures, composed: against every output listed (SDP §2.3, Prop 9)."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import holdfast as hf

F = Fraction
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
@pytest.mark.parametrize("parts", PAIRS[:4])
def test_a_composition_loses_no_more_than_it_says(parts, kind):
    parts = (*parts, ("total", 4))
    composed = hf.compose([made(*part, kind) for part in parts])
    assert composed.guarantees[0] == composed
    rows = [row for name, _ in parts for row in (FIGURES[name] or [])]
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
            for name, scale in parts:
                here, there = (law(FIGURES[name], scale, at)[near] for at in ((0, 0, 0), change))
                both = here > 0
                losses.append(float(np.abs(np.log(here[both] / there[both])).max()))
            truth = max(truth, sum(losses))
        assert 0 < truth <= statement.epsilon * (1 + 1e-6)


def test_a_composition_says_all_that_holds():
    parts = [hf.laplace(QUERY, epsilon=e, integer=False).onto(hf.invariant([[1, 1, 1]])) for e in (F(1, 2), 1)]
    composed = hf.compose(parts)
    found = {each.scope: each for each in composed.guarantees}
    assert composed.scope == "invariant-sharing"
    assert (found["invariant-sharing"].epsilon, found["invariant-sharing"].records) == (3.0, 2)
    assert (found["subspace"].epsilon, found["subspace"].records) == (1.5, 1)
    assert hf.compose([parts[1].guarantee] * 2).epsilon == 2.0


def test_a_composition_says_what_its_parts_assume_of_all_data():
    bounded = hf.laplace(QUERY, epsilon=1).given(hf.between(0, 10))
    assert bounded.guarantee.assumes
    exact = hf.laplace(QUERY, epsilon=F(1, 2)).given(hf.invariant([[1, 1, 1]]))
    assert hf.compose([bounded, exact]).assumes == bounded.guarantee.assumes


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
