"""From facet to facet of a simplicial body K = conv(± points), compiled: gauges, chords and walks along coordinates.

A cone over a facet is its corners (points, and opposite points from number `count` on) and the inverse of the table of
corners: coordinates in it are z = inverse·u, and ‖u‖_K = Σz while z ≥ 0. A line leaves a cone where one coordinate
reaches 0; the corner that comes in its place is the first that the turning facet meets (the dual simplex method).
`points` are rows; `columns` is the same table with one column for each point.
"""

from __future__ import annotations

import numpy as np

from holdfast.arrays import Floats, Ints, compiled

#: Facets crossed between two fresh inverses, which remove the rounding errors of the updates.
FRESH = 64
#: Facets crossed on one line after which something is wrong.
MOST_CROSSED = 100_000
#: A point must lie so far beyond a ridge to come in.
BEYOND = 1e-12


@compiled(inner=True)
def refresh(points: Floats, corners: Ints, inverse: Floats) -> None:
    """Invert the table of corners anew."""
    count, rank = points.shape
    table = np.empty((rank, rank))
    for i in range(rank):
        sign = 1.0 if corners[i] < count else -1.0
        for k in range(rank):
            table[k, i] = sign * points[corners[i] % count, k]
    fresh = np.linalg.inv(table)
    for i in range(rank):
        for k in range(rank):
            inverse[i, k] = fresh[i, k]


@compiled(inner=True)
def _products(columns: Floats, row: Floats, found: Floats) -> None:
    """A row times every point."""
    for j in range(found.size):
        found[j] = 0.0
    for i in range(row.size):
        for j in range(found.size):
            found[j] += row[i] * columns[i, j]


@compiled(inner=True)
def follow(
    points: Floats,
    columns: Floats,
    corners: Ints,
    inverse: Floats,
    start: Floats,
    direction: Floats,
    length: float,
    level: float,
) -> float:
    """Go along a line from a start in the cone, until `length` or where ‖·‖_K = level; return how far, or −1."""
    count, rank = points.shape
    begin = 0.0
    heights, sides, stays = np.empty(count), np.empty(count), np.zeros(count, dtype=np.bool_)
    places, speeds, normal = np.empty(rank), np.empty(rank), np.empty(rank)
    for i in range(rank):
        stays[corners[i] % count] = True
    for crossed in range(MOST_CROSSED):
        if crossed % FRESH == 0:
            if crossed > 0:
                refresh(points, corners, inverse)
            for i in range(rank):
                places[i] = speeds[i] = normal[i] = 0.0
                for k in range(rank):
                    places[i] += inverse[i, k] * start[k]
                    speeds[i] += inverse[i, k] * direction[k]
                    normal[i] += inverse[k, i]
            _products(columns, normal, heights)
        end, leaving = length, -1
        size, slope = 0.0, 0.0
        for i in range(rank):
            size += places[i]
            slope += speeds[i]
            if speeds[i] < 0:
                reached = max(begin, -places[i] / speeds[i])
                if reached < end:
                    end, leaving = reached, i
        if slope > 0 and size + end * slope >= level:
            return max(begin, (level - size) / slope)
        if leaving < 0:
            return end
        _products(columns, inverse[leaving], sides)
        stays[corners[leaving] % count] = False
        turn, entering = np.inf, -1
        for j in range(count):
            if stays[j]:
                continue
            side = sides[j]
            if side < -BEYOND:
                found = (heights[j] - 1.0) / side
                if found < turn:
                    turn, entering = found, j
            elif side > BEYOND:
                found = (heights[j] + 1.0) / side
                if found < turn:
                    turn, entering = found, j + count
        if entering < 0:
            return -1.0
        new = entering % count
        sign = 1.0 if entering < count else -1.0
        for j in range(count):
            heights[j] -= turn * sides[j]
        for k in range(rank):
            inverse[leaving, k] /= sign * sides[new]
        places[leaving] /= sign * sides[new]
        speeds[leaving] /= sign * sides[new]
        for i in range(rank):
            if i != leaving:
                share = 0.0
                for k in range(rank):
                    share += inverse[i, k] * points[new, k]
                share *= sign
                for k in range(rank):
                    inverse[i, k] -= share * inverse[leaving, k]
                places[i] -= share * places[leaving]
                speeds[i] -= share * speeds[leaving]
        corners[leaving] = entering
        stays[new] = True
        begin = end
    return -1.0


@compiled(inner=True)
def locate(points: Floats, columns: Floats, first: Ints, point: Floats, corners: Ints, inverse: Floats) -> float:
    """Find the cone over a point, from a first facet; return its gauge, or −1."""
    count, rank = points.shape
    for i in range(rank):
        corners[i] = first[i]
    refresh(points, corners, inverse)
    middle, way = np.zeros(rank), np.empty(rank)
    for i in range(rank):
        sign = 1.0 if first[i] < count else -1.0
        for k in range(rank):
            middle[k] += sign / rank * points[first[i] % count, k]
    for k in range(rank):
        way[k] = point[k] - middle[k]
    if follow(points, columns, corners, inverse, middle, way, 1.0, np.inf) < 0:
        return -1.0
    gauge = 0.0
    for i in range(rank):
        for k in range(rank):
            gauge += inverse[i, k] * point[k]
    return gauge


@compiled
def gauges(points: Floats, columns: Floats, first: Ints, targets: Floats) -> Floats:
    """‖u‖_K of every row; −1 where it is not found."""
    rank = points.shape[1]
    corners, inverse = first.copy(), np.empty((rank, rank))
    found = np.empty(len(targets))
    for k in range(len(targets)):
        found[k] = locate(points, columns, first, targets[k], corners, inverse)
    return found


@compiled(inner=True)
def _chord(
    points: Floats, columns: Floats, corners: Ints, inverse: Floats, state: Floats, axis: int
) -> tuple[float, float]:
    """The least and the largest value of one coordinate in K, the others as they are; (0, −1) if not found."""
    direction = np.zeros(state.size)
    direction[axis] = 1.0
    up = follow(points, columns, corners.copy(), inverse.copy(), state, direction, np.inf, 1.0)
    direction[axis] = -1.0
    down = follow(points, columns, corners.copy(), inverse.copy(), state, direction, np.inf, 1.0)
    if up < 0 or down < 0:
        return 0.0, -1.0
    return state[axis] - down, state[axis] + up


@compiled(inner=True)
def _move(
    points: Floats, columns: Floats, corners: Ints, inverse: Floats, state: Floats, axis: int, value: float
) -> None:
    """Change one coordinate, and go to the cone over the new state."""
    direction = np.zeros(state.size)
    direction[axis] = 1.0 if value > state[axis] else -1.0
    follow(points, columns, corners, inverse, state, direction, abs(value - state[axis]), np.inf)
    state[axis] = value


@compiled
def sweep(points: Floats, columns: Floats, first: Ints, states: Floats, numbers: Floats) -> bool:
    """Draw every coordinate of every state anew, uniformly on its chord; False if a facet was not found."""
    rank = points.shape[1]
    corners, inverse = first.copy(), np.empty((rank, rank))
    for row in range(len(states)):
        if locate(points, columns, first, states[row], corners, inverse) < 0:
            return False
        for axis in range(rank):
            low, high = _chord(points, columns, corners, inverse, states[row], axis)
            if high < low:
                return False
            _move(points, columns, corners, inverse, states[row], axis, low + numbers[row, axis] * (high - low))
    return True


@compiled
def paired(low: float, high: float, other_low: float, other_high: float, numbers: Floats) -> tuple[float, float]:
    """Draw uniform numbers on two intervals, equal with the largest probability there is."""
    value = low + numbers[0] * (high - low)
    width, other_width = high - low, other_high - other_low
    if other_low <= value <= other_high and numbers[1] * other_width <= width:
        return value, value
    # What is left of the other law: all of it beyond the first interval, a part of its density within.
    start, stop = max(low, other_low), min(high, other_high)
    if start >= stop:
        return value, other_low + numbers[2] * other_width
    share = max(0.0, 1.0 - other_width / width)
    before, within, after = start - other_low, share * (stop - start), other_high - stop
    place = numbers[2] * (before + within + after)
    if place < before:
        return value, other_low + place
    if place < before + within:
        return value, start + (place - before) / share
    return value, stop + (place - before - within)


@compiled
def sweep_coupled(points: Floats, columns: Floats, first: Ints, ahead: Floats, behind: Floats, numbers: Floats) -> bool:
    """The same for both states of every pair, each coordinate equal with the largest probability there is."""
    rank = points.shape[1]
    corners, inverse = first.copy(), np.empty((rank, rank))
    other_corners, other_inverse = first.copy(), np.empty((rank, rank))
    for row in range(len(ahead)):
        one, other = ahead[row], behind[row]
        if locate(points, columns, first, one, corners, inverse) < 0:
            return False
        if locate(points, columns, first, other, other_corners, other_inverse) < 0:
            return False
        for axis in range(rank):
            low, high = _chord(points, columns, corners, inverse, one, axis)
            other_low, other_high = _chord(points, columns, other_corners, other_inverse, other, axis)
            if high < low or other_high < other_low:
                return False
            value, other_value = paired(low, high, other_low, other_high, numbers[row, axis])
            _move(points, columns, corners, inverse, one, axis, value)
            _move(points, columns, other_corners, other_inverse, other, axis, other_value)
    return True
