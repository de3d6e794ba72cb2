"""The errors of projected tables: the inverse of few rows says the same as projecting every output."""

import numpy as np
import pytest

import holdfast as hf
from holdfast.noise import spread as spreads
from holdfast.onto.ways import projection

SHAPE = (4, 5)
MARGINS = hf.invariant(hf.exact_margins(SHAPE, [(0,), (1,)]))
PINNED = MARGINS & hf.fixed([7], [0])


@pytest.mark.parametrize("weights", [None, "noise"])
@pytest.mark.parametrize("held", [MARGINS, PINNED])
def test_errors_by_the_inverse_are_those_of_every_projection(monkeypatch, weights, held):
    query = hf.margins(SHAPE, [(0, 1), (0,), ()])
    rows = hf.consistent(query) & hf.invariant(np.eye(25, dtype=int)[20:24])
    for asked, what in ((hf.margins(SHAPE), held), (query, rows)):
        shares = None if asked.n == 20 else {0: 0.6, 1: 0.3, 2: 0.1}
        base = hf.gaussian(asked, rho=0.5, shares=shares, neighbours="replace-one", integer=False)
        one = base.onto(what, weights=weights, integer=False).standard_error()
        monkeypatch.setattr(projection, "CHUNK", 40)
        other = base.onto(what, weights=weights, integer=False).standard_error()
        monkeypatch.undo()
        assert np.allclose(one, other, rtol=1e-9, atol=1e-9)
        assert (other[one < 1e-6] == 0).all()


def test_large_tables_are_studied_on_fewer_draws(monkeypatch):
    sizes = []
    draw = spreads.Independent.measured_draw
    monkeypatch.setattr(
        spreads.Independent, "measured_draw", lambda law, size, stream: sizes.append(size) or draw(law, size, stream)
    )
    monkeypatch.setattr(spreads, "MOST_DRAWN", 20 * spreads.FEWEST)
    base = hf.laplace(hf.margins(SHAPE), epsilon=1, neighbours="replace-one").onto(MARGINS, integer=False)
    released = base.release(np.full(20, 30), rng=hf.seeded(1))
    sizes.clear()
    ends = released.interval()
    assert sum(sizes) == spreads.FEWEST
    assert (ends[:, 0] < released.values).all()


def test_very_large_tables_have_a_bound_and_are_not_studied(monkeypatch):
    base = hf.laplace(hf.margins(SHAPE), epsilon=1, neighbours="replace-one").onto(MARGINS, integer=False)
    studied = base.release(np.full(20, 30), rng=hf.seeded(1)).interval()
    monkeypatch.setattr(spreads, "MOST_DRAWN", 20 * spreads.FEWEST - 1)
    again = hf.laplace(hf.margins(SHAPE), epsilon=1, neighbours="replace-one").onto(MARGINS, integer=False)
    released = again.release(np.full(20, 30), rng=hf.seeded(1))
    assert not released.spread.measured
    widths = [ends[:, 1] - ends[:, 0] for ends in (studied, released.interval())]
    assert (widths[0] < widths[1]).all()
    assert (widths[1] < 2.5 * widths[0]).all()
