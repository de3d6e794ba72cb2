"""The orthogonal change of basis along every axis of a table: first the constant, then contrasts.

Along an axis of s values coordinate 0 is their sum over √s, and coordinate j compares value j with those before it,
(x_0 + … + x_{j−1} − j·x_j)/√(j(j + 1)). Running sums turn it and turn it back, in place of a matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.arrays import Floats, compiled


def turned(values: Floats) -> Floats:
    """Return the coordinates of tables, one for each entry of the first axis."""
    result = np.array(values, dtype=np.float64, order="C")
    for axis in range(1, result.ndim):
        if result.shape[axis] > 1:
            _turn(_along(result, axis), lengths(result.shape[axis]))
    return result


def turned_back(coordinates: Floats) -> Floats:
    result = np.array(coordinates, dtype=np.float64, order="C")
    for axis in range(1, result.ndim):
        if result.shape[axis] > 1:
            _turn_back(_along(result, axis), lengths(result.shape[axis]))
    return result


def lengths(size: int) -> Floats:
    """Return 1/√s, and 1/√(j(j + 1)) for the contrasts of an axis of s values."""
    j = np.arange(size, dtype=np.float64)
    j[0] = 1.0
    found: Floats = 1 / np.sqrt(j * (j + 1.0))
    found[0] = 1 / np.sqrt(float(size))
    return found


def _along(values: Floats, axis: int) -> Floats:
    return values.reshape(-1, values.shape[axis], int(np.prod(values.shape[axis + 1 :], dtype=np.int64)))


@compiled(beyond=40)  # called hundreds of times for every area
def _turn(values: Any, scales: Any) -> None:  # pragma: no cover (compiled)
    total = np.empty(values.shape[2])
    for row in range(values.shape[0]):
        turn_one(values[row], scales, total)


@compiled(beyond=40)  # called hundreds of times for every area
def _turn_back(values: Any, scales: Any) -> None:  # pragma: no cover (compiled)
    total = np.empty(values.shape[2])
    for row in range(values.shape[0]):
        turn_one_back(values[row], scales, total)


@compiled(inner=True)
def turn_one(table: Any, scales: Any, total: Any) -> None:  # pragma: no cover (compiled)
    """Turn one table along its first axis, in place; total: room for a row."""
    size, width = table.shape
    if width == 1:  # the last axis: no row to run along
        one = table[0, 0]
        for j in range(1, size):
            value = table[j, 0]
            table[j, 0] = (one - j * value) * scales[j]
            one += value
        table[0, 0] = one * scales[0]
        return
    for k in range(width):
        total[k] = table[0, k]
    for j in range(1, size):
        scale = scales[j]
        for k in range(width):
            value = table[j, k]
            table[j, k] = (total[k] - j * value) * scale
            total[k] += value
    scale = scales[0]
    for k in range(width):
        table[0, k] = total[k] * scale


@compiled(inner=True)
def turn_one_back(table: Any, scales: Any, total: Any) -> None:  # pragma: no cover (compiled)
    """Turn the coordinates of one table back along its first axis, in place; total: room for a row."""
    size, width = table.shape
    if width == 1:
        one = table[0, 0] * scales[0]
        for j in range(size - 1, 0, -1):
            part = table[j, 0] * scales[j]
            table[j, 0] = one - j * part
            one += part
        table[0, 0] = one
        return
    scale = scales[0]
    for k in range(width):
        total[k] = table[0, k] * scale
    for j in range(size - 1, 0, -1):
        scale = scales[j]
        for k in range(width):
            part = table[j, k] * scale
            table[j, k] = total[k] - j * part
            total[k] += part
    for k in range(width):
        table[0, k] = total[k]
