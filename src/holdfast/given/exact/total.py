"""Laplace noise given one exact total (THEORY H3 and its continuous twin), in O(n) a draw.

The row may have coefficients ±c: the law is symmetric, so signs are turned and turned back. A parent that equals
the sum of its children, all with one scale, is such a row.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from holdfast.arrays import Array, Floats, Ints
from holdfast.given.problem import Problem, Truth
from holdfast.noise.error_model import ErrorModel, tilted, wave
from holdfast.noise.inversion import Characteristic
from holdfast.noise.spread import Spread
from holdfast.randomness import Stream
from holdfast.trees.totals.exchanged import exchanged_probabilities, spread_evenly

#: Steps of the grid on which quantiles of the continuous law are found, per scale λ.
GRID_STEPS = 1_000
#: Longest transform with which a marginal law is computed.
LONGEST = 1 << 24
#: Standard errors of the sum of all, and of one output, beyond which a double holds nothing.
BEYOND = 9.0, 30.0


def accepts(problem: Problem) -> bool:
    """Whether the noise is Laplace of one scale and the only equality has coefficients ±c on all outputs."""
    if problem.depends_on_data or problem.law.kind != "laplace" or not problem.uniform_scale():
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

    Law: independent (integer) Laplace given the sum 0, exactly for integers. Integer: two uniform compositions
    of the exchanged total j into n parts each. Continuous: r(D₁ − D₂), r ~ Gamma(2n−1, λ/2), D ~ Dirichlet(1, …, 1).
    """
    del truth  # the law does not depend on it
    n, signs = problem.law.n, _signs(problem)
    scale = problem.law.scale_values[0]
    assert scale is not None
    if problem.law.integer:
        return spread_evenly(np.zeros(size, dtype=np.int64), n, scale, stream) * signs
    radius = special.gammaincinv(2 * n - 1, stream.uniforms(size)) * (float(scale) / 2)
    shares = -np.log(stream.uniforms(2 * size * n)).reshape(2, size, n)
    shares /= shares.sum(axis=2, keepdims=True)
    return np.asarray(radius[:, None] * (shares[0] - shares[1]) * signs)


def variance(problem: Problem) -> float:
    """Variance of each output's noise.

    Integer: 2·E[Var(a₁|j)] with a₁ a part of a uniform composition of j. Continuous: λ²(2n−1)(n−1)/(n(n+1));
    5/6·λ² at n = 3 (TV §4).
    """
    n, scale = problem.law.n, problem.law.scale_values[0]
    assert scale is not None
    if not problem.law.integer:
        return float(scale) ** 2 * (2 * n - 1) * (n - 1) / (n * (n + 1))
    j, probabilities = exchanged_probabilities(n, scale)
    part = j * (j + n) * ((n - 1) / (n**2 * (n + 1)))
    return float(2 * (part * probabilities).sum())


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

    errors = np.full(n, np.sqrt(each))
    if not problem.law.integer:
        return Spread(errors, variance_of, quantiles)
    model = ErrorModel("given", problem.law, lambda: problem.space.rows, problem.law.variances)
    return Spread(errors, variance_of, quantiles, characteristic=_characteristic(problem), model=model)


def _characteristic(problem: Problem) -> Characteristic:
    """Characteristic functions of weighted sums: the mean of Π φ(θ + ωw_i) around the circle, over that at ω = 0."""
    n, signs, (law, *_) = problem.law.n, _signs(problem), problem.law.laws
    assert law is not None
    far = int(np.ceil(BEYOND[0] * np.sqrt(n * law.variance) + BEYOND[1] * np.sqrt(law.variance)))
    angles = 2 * np.pi * np.arange(2 * far) / (2 * far)

    def of(weights: Floats, frequencies: Floats) -> Floats:
        found = np.ones((frequencies.size, angles.size))
        for each, times in zip(*np.unique(weights * signs, return_counts=True), strict=True):
            found *= wave(law, angles + each * frequencies[:, None]) ** times
        return np.asarray(found.sum(axis=1) / (wave(law, angles) ** n).sum())

    def log_mean(weights: Floats, t: float) -> float:
        """Less for the weights but for one that all have, which adds nothing to the sum."""
        distinct, times = np.unique(weights * signs, return_counts=True)
        return min(float(times @ tilted(law, t * np.abs(distinct - one))) for one in (0.0, distinct[times.argmax()]))

    return Characteristic(of, lambda weights: weights * signs, log_mean)


def _quantile(problem: Problem, p: float) -> float:
    """Quantile of one output's noise, from its marginal law α^|u|·f(u), f the law of the other n−1 noises' sum.

    f comes from its characteristic function, a power of a positive function: no cancellation. The continuous
    law is the limit of ever finer grids; GRID_STEPS steps per λ put the quantile within about λ/GRID_STEPS.
    """
    n, scale = problem.law.n, problem.law.scale_values[0]
    assert scale is not None
    if n == 1:
        return 0.0
    step = 1.0 if problem.law.integer else float(scale) / GRID_STEPS
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
