"""Samplers on small and large forests for tests, and windows made narrower than any sensible guess."""

from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction

import numpy as np

from holdfast.noise import Independent, IntegerGaussian, IntegerLaplace
from holdfast.trees import undecided
from holdfast.trees.forest import Forest
from holdfast.trees.sampler import Sampler

NONE = 2**62


def noise(kind, scales):
    """Independent noise with one scale per output; inf: not measured."""
    laws, which, known = [], [], {}
    for scale in np.asarray(scales, dtype=float).tolist():
        if scale not in known:
            known[scale] = len(laws)
            exact = Fraction(scale) if np.isfinite(scale) else None
            laws.append(
                None if exact is None else IntegerLaplace(exact) if kind == "laplace" else IntegerGaussian(exact**2)
            )
        which.append(known[scale])
    return Independent(tuple(laws), np.array(which), len(which))


def sampler(parents, kind, scales, low=None, high=None, exact=(), **options):
    """A sampler; bounds are on noise, None: none anywhere."""
    parents = np.asarray(parents, dtype=np.int64)
    n = parents.size
    is_exact = np.zeros(n, dtype=bool)
    is_exact[list(exact)] = True
    scales = np.full(n, scales) if np.ndim(scales) == 0 else scales
    low = np.full(n, -NONE) if low is None else np.asarray(low, dtype=np.int64)
    high = np.full(n, NONE) if high is None else np.asarray(high, dtype=np.int64)
    return Sampler(Forest(parents, is_exact), noise(kind, scales), low, high, **options)


def narrowed(made, width):
    """The same sampler with windows of a few places, so that totals often lie beyond them."""
    guess, pieces = made.guess, made.pieces
    middle = np.rint(guess.centre).astype(np.int64)
    low = np.minimum(np.maximum(middle - width, pieces.lowest), np.maximum(pieces.highest - 3, pieces.lowest))
    high = np.maximum(np.minimum(middle + width, pieces.highest), np.minimum(pieces.lowest + 3, pieces.highest))
    vars(made)["guess"] = replace(guess, low=low, high=high)
    vars(made)["learn"] = False
    return made


@contextmanager
def coins_counted():
    """Count coins tossed for totals beyond a window, and tables drawn again."""
    counts, accept = Counter(), undecided.accept

    def counting(*arguments):
        counts["coins"] += 1
        try:
            accept(*arguments)
        except undecided.Restart:
            counts["restarts"] += 1
            raise

    undecided.accept = counting
    try:
        yield counts
    finally:
        undecided.accept = accept


def sums_up(parents, draws):
    """Whether every parent is the sum of its children in every row."""
    parents = np.asarray(parents)
    totals = np.zeros_like(draws.T)
    below = np.flatnonzero(parents >= 0)
    np.add.at(totals, parents[below], draws.T[below])
    inner = np.unique(parents[below])
    return bool(np.array_equal(totals[inner], draws.T[inner]))
