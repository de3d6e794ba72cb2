"""The exact law of noise on the whole vectors of a null space, listed, and how far draws are from it."""

import numpy as np
from scipy import stats


def listed(basis, kind, scales, reach, low=None, high=None, inequalities=None):
    """Noise vectors B·k with |k_i| ≤ reach, and their probabilities; bounds on the noise, or G u ≥ h, cut the law."""
    basis = np.asarray(basis)
    dimension = basis.shape[1]
    steps = np.indices((2 * reach + 1,) * dimension).reshape(dimension, -1).T - reach
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
    often = chances * len(draws) >= 5
    place = {row.tobytes(): k for k, row in enumerate(np.ascontiguousarray(noise[often], dtype=np.int64))}
    seen = np.zeros(len(place) + 1)
    for row in np.ascontiguousarray(draws, dtype=np.int64):
        seen[place.get(row.tobytes(), -1)] += 1
    wanted = np.append(chances[often], chances[~often].sum()) * len(draws)
    if wanted[-1] < 5:
        seen, wanted = np.append(seen[:-2], seen[-2:].sum()), np.append(wanted[:-2], wanted[-2:].sum())
    return float(stats.chisquare(seen, wanted * seen.sum() / wanted.sum()).pvalue)


def two_samples(one, other):
    """The p-value of two sets of draws having one law, by the outputs that the first shows often."""
    values, counts = np.unique(one, axis=0, return_counts=True)
    place = {row.tobytes(): k for k, row in enumerate(np.ascontiguousarray(values[counts > 50], dtype=np.int64))}
    seen = np.full((2, len(place) + 1), 0.5)
    for side, rows in enumerate((one, other)):
        for row in np.ascontiguousarray(rows, dtype=np.int64):
            seen[side, place.get(row.tobytes(), -1)] += 1
    return float(stats.chi2_contingency(seen).pvalue)
