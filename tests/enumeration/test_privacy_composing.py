"""Mechanisms with exact figures of their own, composed: against all changes of records and all values of the noise."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import holdfast as hf

REACH = 4


def changes(cells, kind, records):
    """All changes of at most so many records, counts of cells after minus before."""
    steps = np.array(list(itertools.product(range(-records, records + 1), repeat=cells)))
    sizes = np.abs(steps).sum(axis=1)
    if kind == "add-remove":
        return steps[(sizes <= records) & (sizes > 0)]
    return steps[(sizes <= 2 * records) & (sizes > 0) & (steps.sum(axis=1) == 0)]


def noises(rows, n):
    """All whole vectors of the null space within reach."""
    grid = np.array(list(itertools.product(range(-REACH, REACH + 1), repeat=n)))
    return grid[~(grid @ np.array(rows).T).any(axis=1)]


def true_loss(W, rows, scales, d):
    """The largest log ratio of the law of noise given rows·u = 0 to itself moved by W d, over the listed noise."""
    change = W @ d
    u = noises(rows, len(scales))
    return float(((np.abs(u + change) - np.abs(u)) / np.array(scales)).sum(axis=1).max())


def kept(parts, d):
    return all(not (np.array(rows) @ (W @ d)).any() for W, rows, _ in parts)


def composed(parts, kind):
    mechanisms = [
        hf.laplace(hf.workload(W), scale=scales, neighbours=kind).given(hf.invariant(rows)) for W, rows, scales in parts
    ]
    return hf.compose(mechanisms)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["add-remove", "replace-one"])
def test_no_change_that_keeps_all_figures_shows_more_than_is_promised(kind):
    """Pairs of mechanisms on four cells with figures of their own: records are counted right, losses not too small."""
    random = np.random.default_rng(7)
    attained = compared = more_records = 0
    while compared < 8:
        parts = []
        for _ in range(2):
            W = np.eye(4, dtype=np.int64)[: int(random.integers(3, 5))]
            W[0] += random.integers(0, 2, size=4)
            rows = random.integers(0, 2, size=(1, len(W)))
            if not rows.any():
                rows[0, 0] = 1
            parts.append((W, rows.tolist(), (2.0 ** random.integers(0, 3, size=len(W))).tolist()))
        try:
            total = composed(parts, kind)
        except hf.Refused:
            assert not any(kept(parts, each) for each in changes(4, "replace-one", 2))
            continue
        counted = total.neighbours.kind
        d = [each for each in changes(4, counted, total.records) if kept(parts, each)]
        assert d
        smaller = changes(4, counted, total.records - 1) if total.records > 1 else ()
        assert not any(kept(parts, each) for each in smaller)
        worst = max(sum(true_loss(*part, each) for part in parts) for each in d)
        assert worst <= total.epsilon * (1 + 1e-12)
        assert total.scope == "invariant-sharing" or all(kept(parts, each) for each in changes(4, kind, 1))
        attained += worst > total.epsilon * (1 - 1e-9)
        more_records += total.records > 1
        compared += 1
    assert attained >= 3
    assert more_records >= 3


def test_rows_and_columns_exact_in_two_tables_need_a_swap():
    """Each table alone hides one replaced record; no replaced record keeps rows and columns, two do."""
    cells = hf.margins((2, 2))
    rows, columns = (
        hf.laplace(cells, scale=scale, neighbours="replace-one").given(
            hf.invariant(hf.exact_margins((2, 2), [(axis,)]))
        )
        for axis, scale in ((0, 2), (1, 4))
    )
    assert rows.guarantee.records == columns.guarantee.records == 1
    together = hf.compose([rows, columns])
    assert (together.records, together.scope) == (2, "invariant-sharing")
    assert together.epsilon == 4 / 2 + 4 / 4
    assert any("hf.pinned" in caveat for caveat in together.caveats)
    by_words = hf.compose([rows.guarantee, columns.guarantee])
    assert any("hf.pinned" in caveat for caveat in by_words.caveats)


def test_what_figures_determine_together_is_named():
    """A total, and the sum of all cells but one: the last cell follows by subtraction."""
    cells = hf.histogram(4)
    total = hf.laplace(cells, scale=1).given(hf.invariant([[1, 1, 1, 1]]))
    others = hf.laplace(cells, scale=1).onto(hf.invariant([[1, 1, 1, 0]]))
    together = hf.compose([total, others])
    assert any(item.startswith("cell 3 (determined") for item in together.unprotected)
    assert not any("determined" in item for item in hf.compose([total, total]).unprotected)
    alone = hf.compose([total.guarantee, others.guarantee])
    assert any("different exact figures" in caveat for caveat in alone.caveats)  # although both say "invariant row 0"


def test_a_private_table_beside_an_exact_total_counts_for_the_records_that_change():
    cells = hf.histogram(3)
    total = hf.laplace(cells, scale=1).given(hf.invariant([[1, 1, 1]]))
    plain = hf.laplace(cells, scale=2)
    together = hf.compose([total, plain])
    assert (together.records, together.scope) == (2, "invariant-sharing")
    assert together.epsilon == 2 / 1 + 2 / 2
    assert hf.compose([plain, plain]) == hf.compose([plain.guarantee] * 2)


def test_all_neighbours_are_covered_where_all_keep_the_figures():
    total = hf.laplace(hf.histogram(3), scale=1, neighbours="replace-one").given(hf.invariant([[1, 1, 1]]))
    together = hf.compose([total, total])
    assert (together.scope, together.records, together.epsilon) == ("all", 1, 4.0)


def test_equalities_of_one_part_limit_the_data_of_both():
    """In one part x₁ = x₂ always: then so it is in the other, and two records change together or none."""
    cells = hf.histogram(3)
    same = hf.laplace(cells, scale=1).given(hf.equals([[1, -1, 0]], [0]))
    plain = hf.laplace(cells, scale=[1, 4, 1000])
    together = hf.compose([same, plain])
    assert together.scope == "all"
    assert together.epsilon == pytest.approx(1 + 1 / 1000)  # one record of the third cell
    assert any("cell 0" in item for item in together.unprotected)
    with pytest.raises(hf.Refused, match="says nothing about 2"):
        hf.compose([together, hf.Guarantee(epsilon=1, neighbours=hf.Neighbours("add-remove", 2), because="a theorem")])


def test_noise_on_a_null_space_joins_by_its_statement_about_all():
    cells = hf.histogram(4)
    total = hf.laplace(cells, scale=1).given(hf.invariant([[1, 1, 1, 1]]))
    extended = hf.extend(cells, hf.invariant([[1, 1, 1, 1]]), law="laplace", epsilon=Fraction(1, 2))
    together = hf.compose([total, extended])
    assert (together.records, together.scope) == (2, "invariant-sharing")
    assert together.epsilon == 2 + 2 * 0.5


def test_what_cannot_be_composed_is_refused():
    cells = hf.histogram(4)
    total = hf.laplace(cells, scale=1).given(hf.invariant([[1, 1, 1, 1]]))
    with pytest.raises(hf.Refused, match="same neighbours"):
        hf.compose([total, hf.laplace(cells, scale=1, neighbours="replace-one")])
    with pytest.raises(hf.Refused, match="same known cells"):
        hf.compose([total, hf.laplace(hf.histogram(3), scale=1)])
    halves = [hf.invariant(np.eye(4, dtype=int)[half].tolist()) for half in ([0, 1], [2, 3])]
    each = [hf.laplace(cells, scale=1).given(half) for half in halves]
    with pytest.raises(hf.Refused, match="all parts together"):
        hf.compose(each)
    with pytest.raises(hf.Refused, match="union beside exact figures"):
        hf.compose([total, hf.laplace(cells, scale=1).given(hf.between(0, 1, at=[0]) | hf.between(5, 6, at=[0]))])
    with pytest.raises(hf.Refused, match="list of guarantees or of mechanisms"):
        hf.compose(total)


@pytest.mark.parametrize("W", [[[1, 0], [1, 0]], [[0, 1], [0, 1]], [[1, 0], [0, 1]], [[0, 1], [1, 0]]])
def test_a_record_that_changes_two_bounded_outputs_pays_for_both(W):
    """Outputs at least 0: the loss between the empty table and one record, listed."""
    scales, outputs = np.array([0.4, 0.8]), np.array(list(itertools.product(range(40), repeat=2)))
    statement = hf.laplace(hf.workload(W), scale=scales.tolist()).given(hf.nonnegative()).guarantee
    laws = []
    for cells in ([0, 0], [1, 0], [0, 1]):
        weights = np.exp(-(np.abs(outputs - np.array(W) @ cells) / scales).sum(axis=1))
        laws.append(np.log(weights / weights.sum()))
    worst = max(float(np.abs(laws[0] - law).max()) for law in laws[1:])
    assert worst <= statement.epsilon + 1e-9
    assert not statement.exact or worst == pytest.approx(statement.epsilon)
