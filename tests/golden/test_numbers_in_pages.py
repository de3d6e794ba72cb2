"""Numbers in the text of pages without code are those that the library computes."""

import math

import numpy as np
import pytest
from scipy.linalg import hadamard

import holdfast as hf
from scripts import ROOT


def says(page, *numbers):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for number in numbers:
        assert str(number) in text, number


def classical(epsilon, delta):
    """The true δ of the printed σ, as a part of the claim."""
    made = hf.gaussian(hf.histogram(1), epsilon=epsilon, delta=delta, integer=False, calibration="classical")
    return made.guarantee.delta / delta


def test_the_classical_formula():
    ratio = f"{classical(1, 1e-12):.1f}"
    first = next(k / 10 for k in range(40, 60) if classical(k / 10, 1e-6) > 1)
    says("theory/calibration.md", f"the true δ is {ratio} times the claim", f"from ε ≈ {first}")
    says("papers/errata.md", f"the true δ is {ratio}·10⁻¹²", f"from ε ≈ {first}")


def test_prices_of_bounds():
    parents = [-1, *[0] * 6]
    for borough, zones in enumerate((43, 61, 1, 69, 69, 20), start=1):
        parents += [borough] * zones
    tree = hf.Hierarchy.from_parents(parents)
    bounded = hf.consistent(tree) & hf.nonnegative()
    prices = [
        f"{hf.laplace(hf.counts(tree), scale=3 / e).given(bounded).guarantee.epsilon - e:.4f}" for e in (0.5, 1, 2, 4)
    ]
    says("theory/nonnegativity.md", *prices)


def test_bounds_and_exact_margins():
    shape = (2, 2)
    exact = hf.invariant(hf.exact_margins(shape, [(0,), (1,)]))
    made = hf.laplace(hf.margins(shape), scale=4, neighbours=hf.Neighbours("replace-one", records=2))
    found = made.given(exact & hf.nonnegative()).guarantee.epsilon
    says("theory/orders-and-lines.md", f"at base ε = 1: {found:.3f}")


def test_corrections_of_the_papers():
    says("papers/errata.md", f"√(5980/6720) = {math.sqrt(5980 / 6720):.3f}", "ε = ln 9")
    cells, total = hf.histogram(4), hf.invariant(np.ones((1, 4), dtype=int))
    own = hf.extend(cells, total, law="laplace", epsilon=1, basis=hadamard(4)[:, 1:] / 2)
    projected = hf.laplace(cells, epsilon=1, integer=False).onto(total)
    ratio = (own.standard_error() ** 2).sum() / (projected.standard_error() ** 2).sum()
    assert ratio == pytest.approx(2.25)
    says("papers/errata.md", f"error {ratio:.4g} times", "Δ₁ = 1.5")
    says("papers/linear-refinement.md", f"allows {100 * math.e / (1 + math.e):.0f}")


def test_variances_of_both_views():
    """(2n−1)(n−1)/(n(n+1))·λ² given the total, 2(1−1/n)·λ² when projected."""
    for n in (3, 5):
        noise = hf.laplace(hf.histogram(n), scale=1, integer=False)
        total = hf.equals(np.ones((1, n), dtype=int), [7])
        given, moved = (made.standard_error()[0] ** 2 for made in (noise.given(total), noise.onto(total)))
        assert given == pytest.approx((2 * n - 1) * (n - 1) / (n * (n + 1)))
        assert moved == pytest.approx(2 * (1 - 1 / n))
    says("papers/two-views.md", "(2n−1)(n−1)/(n(n+1))·λ²", "2(1−1/n)·λ²")
