"""Proposals by whole numbers: each below 2**52 stands for one place, and places have the ways of their weights."""

import numpy as np
import pytest

from holdfast.trees.circles.tables import BLOCK, WAYS, Table


def proposals(weights):
    rows = len(weights)
    return Table(np.zeros(rows, dtype=np.int64), weights, np.zeros((2, rows)), np.zeros((2, rows)), lambda *_: None)


@pytest.mark.parametrize("rows", [1, BLOCK, 2 * BLOCK + 5])
def test_the_first_and_the_last_number_of_every_place_propose_it(rows):
    rng = np.random.default_rng(1)
    table = proposals(rng.random((rows, 5)) ** 20 * (rng.random((rows, 5)) < 0.7) + np.eye(5)[rng.integers(0, 5, rows)])
    ways = np.floor(table.weights).astype(np.int64) + (table.weights > 0)
    ends = np.cumsum(ways, axis=1)
    row, place = np.nonzero(ways)
    for number in (ends[row, place] - ways[row, place], ends[row, place] - 1):
        position, told = table.propose(row, number)
        np.testing.assert_array_equal(position, place)
        np.testing.assert_array_equal(told, ways[row, place])
    beyond, _ = table.propose(np.arange(rows), ends[:, -1])
    np.testing.assert_array_equal(beyond, np.full(rows, 5))
    np.testing.assert_array_equal(table.left, WAYS - ends[:, -1])


def test_weights_that_are_no_numbers_leave_none():
    with np.errstate(all="ignore"):
        left = proposals(np.array([[1.0, 2.0], [np.inf, 1.0], [np.nan, 1.0]])).left
    assert left[0] > 0
    assert np.isnan(left[1:]).all()
