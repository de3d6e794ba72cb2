"""Continuous Laplace noise given one exact total (the continuous twin of THEORY H3), in O(n) a draw.

The row may have coefficients ±c: the law is symmetric, so signs are turned and turned back. A parent that equals
the sum of its children, all with one scale, is such a row.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from holdfast.arrays import Array, Floats, Ints
from holdfast.given.problem import Problem, Truth
from holdfast.noise.spread import Spread
from holdfast.randomness import Stream

#: Steps of the grid on which quantiles of the continuous law are found, per scale λ.
GRID_STEPS = 1_000
#: Longest transform with which a marginal law is computed.
LONGEST = 1 << 24


def accepts(problem: Problem) -> bool:
    """Whether the noise is continuous Laplace of one scale and the only equality has coefficients ±c on all outputs."""
    law = problem.law
    if problem.depends_on_data or law.integer or law.kind != "laplace" or not problem.uniform_scale():
        return False
    rows = problem.space.rows
    if problem.space.rank != 1 or rows.nnz != problem.law.n:
        return False
    sizes = np.abs(rows.data)
    return bool((sizes == sizes[0]).all())


def _signs(problem: Problem) -> Ints:
    row = problem.space.rows.tocoo()
    signs = np.empty(problem.law.n, dtype=np.int64)
    signs[row.coords[1]] = np.sign(row.data)
    return signs


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
    """Draw noise that sums to zero.

    Law: independent Laplace given the sum 0, r(D₁ − D₂) with r ~ Gamma(2n−1, λ/2), D ~ Dirichlet(1, …, 1).
    """
    del truth  # the law does not depend on it
    n, signs = problem.law.n, _signs(problem)
    scale = problem.law.scale_values[0]
    assert scale is not None
    radius = special.gammaincinv(2 * n - 1, stream.uniforms(size)) * (float(scale) / 2)
    shares = -np.log(stream.uniforms(2 * size * n)).reshape(2, size, n)
    shares /= shares.sum(axis=2, keepdims=True)
    return np.asarray(radius[:, None] * (shares[0] - shares[1]) * signs)


def variance(problem: Problem) -> float:
    """Variance of each output's noise, λ²(2n−1)(n−1)/(n(n+1)); 5/6·λ² at n = 3 (TV §4)."""
    n, scale = problem.law.n, problem.law.scale_values[0]
    assert scale is not None
    return float(scale) ** 2 * (2 * n - 1) * (n - 1) / (n * (n + 1))


def spread(problem: Problem) -> Spread:
    n, signs = problem.law.n, _signs(problem)
    each = variance(problem)

    def variance_of(weights: Floats) -> float:
        turned = weights * signs
        if n == 1:
            return 0.0
        return float(each * n / (n - 1) * (turned**2).sum() - each / (n - 1) * turned.sum() ** 2)

    def quantiles(p: float) -> Array:
        return np.full(n, _quantile(problem, p))

    return Spread(np.full(n, np.sqrt(each)), variance_of, quantiles)


def _quantile(problem: Problem, p: float) -> float:
    """Quantile of one output's noise, from its marginal law α^|u|·f(u), f the law of the other n−1 noises' sum.

    f comes from its characteristic function, a power of a positive function: no cancellation. The continuous
    law is the limit of ever finer grids; GRID_STEPS steps per λ put the quantile within about λ/GRID_STEPS.
    """
    n, scale = problem.law.n, problem.law.scale_values[0]
    assert scale is not None
    if n == 1:
        return 0.0
    step = float(scale) / GRID_STEPS
    length = float(scale) / step
    # The window must hold 50 scales of one noise and 14 standard deviations of the others' sum.
    window = 100 * length + 28 * length * np.sqrt(2.0 * n) + 64
    size = int(min(LONGEST, 2 ** np.ceil(np.log2(window))))
    frequencies = 2 * np.pi * np.arange(size // 2 + 1) / size
    # log φ up to a constant; 1 − 2α cos θ + α² = (1−α)² + 4α sin²(θ/2) without cancellation.
    alpha = np.exp(-1 / length)
    ratio = 4 * alpha * np.sin(frequencies / 2) ** 2 / np.expm1(-1 / length) ** 2
    others = np.maximum(np.fft.irfft(np.exp(-(n - 1) * np.log1p(ratio)), size), 0.0)
    places = np.fft.fftfreq(size, 1 / size)
    law = np.exp(-np.abs(places) / length) * others
    order = np.argsort(places, kind="stable")
    cumulative = np.cumsum(law[order]) / law.sum()
    found = places[order][min(int(np.searchsorted(cumulative, p - 1e-12)), size - 1)]
    return float(found) * step
