"""Scores: numbers computed from one output by which two laws may be told apart. What they are is learned from draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arrays import Floats
from holdfast.auditing.pairs import Pair

Values = npt.NDArray[Any]

#: Outputs that are looked at one by one, and pairs of outputs.
COLUMNS, COUPLES = 8, 36
#: Outputs up to which a full covariance is estimated, and bins of an output whose density is estimated.
FULL, BINS = 60, 24
#: Distinct tables up to which each is an event of its own.
DISTINCT = 2_000


@dataclass(frozen=True, eq=False)
class Score:
    """A function of tables (size, n) with one number for each, and its name in words."""

    words: str
    of: Callable[[Values], Floats]


def scores(one: Values, other: Values, pair: Pair, low_bits: bool) -> list[Score]:
    """Every score worth trying for these two samples of draws, (size, n) each."""
    columns = _columns(one, other, pair)
    found = [Score(f"output {i}", lambda values, i=i: values[:, i].astype(np.float64)) for i in columns]  # type: ignore[misc]
    found += _linear(one, other, columns)
    found += _simple(one, pair)
    found += _couples(one, other, columns)
    found += _densities(one, other, columns)
    if _whole(one) and _whole(other):
        found += [Score(f"output {i} odd or even", lambda values, i=i: np.mod(values[:, i], 2.0)) for i in columns[:3]]  # type: ignore[misc]
        found.append(Score("the sum odd or even", lambda values: np.mod(values.sum(axis=1), 2.0)))
    elif low_bits:
        found += [
            Score(f"the lowest bit of output {i}", lambda values, i=i: lowest_bit(values[:, i]))  # type: ignore[misc]
            for i in columns
        ]
    found += _tables(one, other)
    return found


def lowest_bit(values: Values) -> Floats:
    """The exponent of the lowest bit that is set in each double; 1100 for 0 and what is not finite."""
    mantissa, exponent = np.frexp(values.astype(np.float64))
    usual = np.isfinite(mantissa) & (mantissa != 0)
    whole = np.where(usual, np.abs(mantissa) * 2.0**53, 1.0).astype(np.int64)
    lowest = np.log2((whole & -whole).astype(np.float64))
    return np.where(usual, exponent - 53 + lowest, 1100.0)


def _whole(values: Values) -> bool:
    return values.dtype.kind in "iu" or bool((values == np.rint(values)).all())


def _finite(values: Values) -> Floats:
    if values.dtype.kind in "iu":
        return values.astype(np.float64)
    return np.clip(values.astype(np.float64, copy=False), -1e150, 1e150)


def _columns(one: Values, other: Values, pair: Pair) -> list[int]:
    """The outputs whose draws differ most, those that the change touches, and the last."""
    a, b = _finite(one), _finite(other)
    spread = np.sqrt((a.var(axis=0) + b.var(axis=0)) / 2)
    shift = np.abs(a.mean(axis=0) - b.mean(axis=0)) / np.where(spread > 0, spread, 1e-12)
    shift += np.abs(a.std(axis=0) - b.std(axis=0)) / np.where(spread > 0, spread, 1e-12)
    if pair.one.size == one.shape[1]:
        shift += 0.05 * (pair.one != pair.other)
    chosen = np.argsort(-shift, kind="stable")[:COLUMNS].tolist()
    return list(dict.fromkeys([*chosen, one.shape[1] - 1]))


def _linear(one: Values, other: Values, columns: list[int]) -> Iterator[Score]:
    """Sums of outputs weighed as a linear classifier would."""
    a, b = _finite(one), _finite(other)
    shift = b.mean(axis=0) - a.mean(axis=0)
    variance = (a.var(axis=0) + b.var(axis=0)) / 2
    plain = shift / np.where(variance > 0, variance, 1.0)
    yield Score("a weighted sum of all outputs", lambda values: _finite(values) @ plain)
    sharp = plain[columns]
    yield Score("a weighted sum of the outputs that differ most", lambda values: _finite(values[:, columns]) @ sharp)
    if 1 < one.shape[1] <= FULL:
        covariance = (np.cov(a.T) + np.cov(b.T)) / 2
        ridge = 1e-9 * float(np.trace(covariance)) / one.shape[1] + 1e-300
        full = np.linalg.lstsq(covariance + ridge * np.eye(one.shape[1]), shift, rcond=None)[0]
        yield Score("a linear classifier", lambda values: _finite(values) @ full)


def _simple(one: Values, pair: Pair) -> Iterator[Score]:
    """Numbers that need no learning."""
    yield Score("the least output", lambda values: values.min(axis=1).astype(np.float64))
    yield Score("the largest output", lambda values: values.max(axis=1).astype(np.float64))
    yield Score("the sum of all outputs", lambda values: _finite(values).sum(axis=1))
    yield Score("the number of outputs that are 0", lambda values: (values == 0).sum(axis=1).astype(np.float64))
    if pair.one.size != one.shape[1]:
        return
    for end, words in ((pair.one, "one"), (pair.other, "other")):
        yield Score(
            f"the number of outputs equal to the {words} truth",
            lambda values, end=end: (values == end).sum(axis=1).astype(np.float64),  # type: ignore[misc]
        )
    changed = pair.one != pair.other
    if changed.any():
        size = np.abs(_finite(one[:, changed]) - pair.one[changed]).mean(axis=0)
        rate = 1 / np.where(size > 0, size, 1.0)

        def nearer(values: Values) -> Floats:
            seen = _finite(values[:, changed])
            return (np.abs(seen - pair.one[changed]) - np.abs(seen - pair.other[changed])) @ rate

        yield Score("how much nearer the output is to the other truth", nearer)


def _couples(one: Values, other: Values, columns: list[int]) -> Iterator[Score]:
    """Differences and sums of two outputs that take one value often, or lie elsewhere in the two samples."""
    n = one.shape[1]
    others = dict.fromkeys([*columns, *range(min(n, 12)), *((i + n // 2) % n for i in columns)])
    couples = [(i, j) for i in columns[:4] for j in others if i != j][:COUPLES]
    ranked = []
    for i, j in couples:
        for sign, words in ((-1, "minus"), (1, "plus")):
            a, b = (_finite(sample[:, i]) + sign * _finite(sample[:, j]) for sample in (one[:600], other[:600]))
            points = np.sort(np.concatenate([a, b]))
            apart = np.abs(_share(a, points) - _share(b, points)).max()
            usual = np.unique(np.round(a, 9), return_counts=True)[1].max() / len(a)
            ranked.append((apart + usual, i, j, sign, words))
    for _, i, j, sign, words in sorted(ranked, reverse=True)[:6]:

        def combined(values: Values, i: int = i, j: int = j, sign: int = sign) -> Floats:
            return np.round(_finite(values[:, i]) + sign * _finite(values[:, j]), 9)

        yield Score(f"output {i} {words} output {j}", combined)


def _share(sample: Floats, points: Floats) -> Floats:
    return np.searchsorted(np.sort(sample), points, side="right") / len(sample)


def _densities(one: Values, other: Values, columns: list[int]) -> Iterator[Score]:
    """Log-ratios of estimated densities, output by output, and their sum."""
    made = []
    for i in columns[:6]:
        a, b = _finite(one[:, i]), _finite(other[:, i])
        pooled = np.concatenate([a, b])
        values = np.unique(pooled)
        edges = values if len(values) <= BINS else np.unique(np.quantile(pooled, np.linspace(0, 1, BINS + 1)[1:-1]))
        counts = [np.bincount(np.searchsorted(edges, part, side="right"), minlength=len(edges) + 1) for part in (a, b)]
        made.append((i, edges, np.log(counts[0] + 0.5) - np.log(counts[1] + 0.5)))

    def ratio(values: Values) -> Floats:
        found = [table[np.searchsorted(edges, _finite(values[:, i]), side="right")] for i, edges, table in made]
        return np.asarray(np.sum(found, axis=0))

    yield Score("a sum of estimated log-ratios of the outputs that differ most", ratio)


def _tables(one: Values, other: Values) -> Iterator[Score]:
    """A log-ratio for every table that was seen often, where few different ones are seen."""
    both = _bytes(np.concatenate([one, other]))
    names, where = np.unique(both, return_inverse=True)
    if len(names) > DISTINCT or len(names) > len(both) // 2:
        return
    counts = [np.bincount(part, minlength=len(names)) for part in np.split(where.ravel(), [len(one)])]
    table = np.append(np.log(counts[0] + 0.5) - np.log(counts[1] + 0.5), 0.0)

    def ratio(values: Values) -> Floats:
        seen = _bytes(values.astype(one.dtype))
        at = np.minimum(np.searchsorted(names, seen), len(names) - 1)
        return table[np.where(names[at] == seen, at, len(names))]

    yield Score("an estimated log-ratio of whole tables", ratio)


def _bytes(values: Values) -> Values:
    rows = np.ascontiguousarray(values)
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
