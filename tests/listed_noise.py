"""The exact law of noise on the whole vectors of a null space, listed, and how far draws are from it."""

import itertools

import numpy as np
from scipy import stats


def listed(basis, kind, scales, reach, low=None, high=None, inequalities=None):
    """Noise vectors B·k with |k_i| ≤ reach, and their probabilities; bounds on the noise, or G u ≥ h, cut the law."""
    basis = np.asarray(basis)
    n, dimension = basis.shape
    steps = np.array(list(itertools.product(range(-reach, reach + 1), repeat=dimension)))
    noise = steps @ basis.T
    keep = np.ones(len(noise), dtype=bool)
    if low is not None:
        keep &= (noise >= low).all(axis=1)
    if high is not None:
        keep &= (noise <= high).all(axis=1)
    if inequalities is not None:
        rows, limits = inequalities
        keep &= (noise @ np.asarray(rows).T >= limits).all(axis=1)
    noise = noise[keep]
    sizes = np.abs(noise) / scales if kind == "laplace" else noise**2 / (2 * np.asarray(scales) ** 2)
    chances = np.exp(-sizes.sum(axis=1))
    return noise, chances / chances.sum()


def pearson(draws, noise, chances):
    """The p-value of draws (size, n) under a listed law; outputs that are expected less than 5 times are one class."""
    place = {row.tobytes(): k for k, row in enumerate(np.ascontiguousarray(noise, dtype=np.int64))}
    counts = np.zeros(len(noise) + 1)
    for row in np.ascontiguousarray(draws, dtype=np.int64):
        counts[place.get(row.tobytes(), -1)] += 1
    expected = np.append(chances, max(0.0, 1 - chances.sum())) * len(draws)
    often = expected >= 5
    seen = np.append(counts[often], counts[~often].sum())
    wanted = np.append(expected[often], expected[~often].sum())
    if wanted[-1] < 5:
        seen, wanted = np.append(seen[:-2], seen[-2:].sum()), np.append(wanted[:-2], wanted[-2:].sum())
    return float(stats.chisquare(seen, wanted * seen.sum() / wanted.sum()).pvalue)
