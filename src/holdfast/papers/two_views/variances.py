"""n cells with an exact total (TV Prop 18, §4): variances of the two views, and the conjecture, proved by H9."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import integrate

from holdfast.constraints import equals
from holdfast.mechanism import laplace
from holdfast.papers.reproduction import Claim, Findings, Row, Study
from holdfast.pictures import Layer, plane
from holdfast.queries import histogram

#: Numbers of cells whose variances are drawn, and draws of each.
CELLS, DRAWS = (2, 3, 4, 5, 10, 30), 40_000
#: A measured variance may be this many standard errors from the formula.
FAR = 5.0


def by_conditioning(n: int) -> float:
    """The variance of a cell given the total, at λ = 1 (THEORY H9)."""
    return (2 * n - 1) * (n - 1) / (n * (n + 1))


def by_imaging(n: int) -> float:
    """The variance of a projected cell, at λ = 1 (TV Prop 18)."""
    return 2 * (1 - 1 / n)


def findings(study: Study) -> Findings:
    """Draw both, integrate n = 2 and 3, and compare with the formulas."""
    stream, size = study.stream(), study.times(DRAWS, 2_000)
    rows, off = [], []
    for n in CELLS:
        base = laplace(histogram(n), scale=1, integer=False)
        total = equals(np.ones((1, n), dtype=int), [0])
        printed = {"imaging": by_imaging(n), "conditioning": {3: 5 / 6}.get(n)}
        for name, mechanism, formula in (
            ("conditioning", base.given(total), by_conditioning(n)),
            ("imaging", base.onto(total), by_imaging(n)),
        ):
            squares = np.asarray(mechanism.noise(size, stream))[:, 0] ** 2
            row = Row.of(f"n = {n}, {name} (formula {formula:.4f})", printed[name], squares)
            rows.append(row)
            assert isinstance(row.computed, float)
            off.append(abs(row.computed - formula) / row.error)
    exact = [_integrated(2), _integrated(3)]
    rows.append(Row("n = 3, conditioning, by quadrature", 5 / 6, exact[1]))
    claims = (
        Claim("Proposition 18 holds", max(off[1::2]) < FAR, f"at most {max(off[1::2]):.1f} standard errors away"),
        Claim(
            "at n = 3 conditioning has variance 5/6·λ²", abs(exact[1] - 5 / 6) < 1e-6, f"by quadrature {exact[1]:.8f}"
        ),
        Claim(
            "the conjecture: conditioning has the smaller variance for every n",
            all(by_conditioning(n) < by_imaging(n) for n in range(2, 100_001)) and max(off[::2]) < FAR,
            "H9 proves it: (2n−1)(n−1)/(n(n+1)) against 2(1−1/n), ratio (2n−1)/(2n+2) < 1; draws are at most "
            f"{max(off[::2]):.1f} standard errors from the formula, and at n = 2 quadrature gives {exact[0]:.8f}",
        ),
    )
    sizes = [2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100]
    picture = plane(
        [
            Layer("imaging", "line", sizes, [by_imaging(n) for n in sizes]),
            Layer("conditioning", "line", sizes, [by_conditioning(n) for n in sizes]),
            Layer("drawn", "points", [n for n in CELLS for _ in "ab"], [float(r.computed) for r in rows[:-1]]),
        ],
        "cells n",
        "variance of one cell, in λ²",
        logarithmic=True,
    )
    caption = "Variance of one of n cells with an exact total; both tend to 2λ², conditioning from further below."
    return Findings(claims, tuple(rows), ((caption, picture),))


def _integrated(n: int) -> float:
    """The conditioned variance at λ = 1 for two or three cells, by quadrature of the density on the total's line."""
    if n == 2:
        return _ratio(lambda u: math.exp(-2 * abs(u)))
    return _ratio(lambda u: _two(u) * math.exp(-abs(u)))


def _two(u: float) -> float:
    """∫ exp(−|v| − |u + v|) dv for u ≥ 0: between −u and 0, and twice beyond."""

    def density(v: float) -> float:
        return math.exp(-abs(v) - abs(u + v))

    return float(integrate.quad(density, -u, 0)[0] + 2 * integrate.quad(density, 0, np.inf)[0])


def _ratio(density: Callable[[float], float]) -> float:
    above = integrate.quad(lambda u: u * u * density(u), 0, 40)[0]
    return float(above / integrate.quad(density, 0, 40)[0])
