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
        _turn(result.reshape(-1, result.shape[axis], int(np.prod(result.shape[axis + 1 :], dtype=np.int64))))
    return result


def turned_back(coordinates: Floats) -> Floats:
    """Return the tables that have these coordinates."""
    result = np.array(coordinates, dtype=np.float64, order="C")
    for axis in range(1, result.ndim):
        _turn_back(result.reshape(-1, result.shape[axis], int(np.prod(result.shape[axis + 1 :], dtype=np.int64))))
    return result


@compiled(beyond=300)  # called hundreds of times for every area
def _turn(values: Any) -> None:  # pragma: no cover (compiled)
    rows, size, width = values.shape
    total = np.empty(width)
    for row in range(rows):
        table = values[row]
        for k in range(width):
            total[k] = table[0, k]
        for j in range(1, size):
            scale = 1 / np.sqrt(j * (j + 1.0))
            for k in range(width):
                value = table[j, k]
                table[j, k] = (total[k] - j * value) * scale
                total[k] += value
        scale = 1 / np.sqrt(float(size))
        for k in range(width):
            table[0, k] = total[k] * scale


@compiled(beyond=300)  # called hundreds of times for every area
def _turn_back(values: Any) -> None:  # pragma: no cover (compiled)
    rows, size, width = values.shape
    total = np.empty(width)
    for row in range(rows):
        table = values[row]
        scale = 1 / np.sqrt(float(size))
        for k in range(width):
            total[k] = table[0, k] * scale
        for j in range(size - 1, 0, -1):
            scale = 1 / np.sqrt(j * (j + 1.0))
            for k in range(width):
                part = table[j, k] * scale
                table[j, k] = total[k] - j * part
                total[k] += part
        for k in range(width):
            table[0, k] = total[k]
