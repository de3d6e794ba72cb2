"""Numbers in the text of pages without code are those that the library computes."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.linalg import hadamard

import holdfast as hf
from holdfast.noise.reach import reach_of
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


def test_twenty_parts_together():
    parts = [hf.Guarantee(epsilon=0.1, neighbours="add-remove", because="a part")] * 20
    found = [f"{hf.compose(parts, delta=delta).epsilon:.4f}" for delta in (1e-5, 1e-6)]
    says("theory/composition.md", f"Twenty times ε = 0.1: {found[0]} at δ = 1e-5 and {found[1]} at 1e-6")


def test_swaps_in_tables_with_exact_margins():
    def crossed(shape, scale):
        exact = hf.invariant(hf.exact_margins(shape, [(0,), (1,)]))
        made = hf.laplace(hf.margins(shape), scale=scale, neighbours=hf.Neighbours("replace-one", records=2))
        return f"{made.given(exact & hf.nonnegative()).guarantee.epsilon:.3f}"

    prices = {crossed((2, columns), 4) for columns in (3, 4, 8, 128)}
    assert len(prices) == 1
    says("theory/lines.md", f"{prices.pop()} at ε = 1", f"{crossed((3, 3), 2)} at\nε = 2")


@pytest.mark.slow
def test_a_city_given_that_it_adds_up():
    """Mean absolute errors of the row `given`, which has a law of its own."""
    sizes = (43, 61, 1, 69, 69, 20)
    parents = [-1, *[0] * 6, *(borough for borough, zones in enumerate(sizes, start=1) for _ in range(zones))]
    tree = hf.Hierarchy.from_parents(parents)
    made = hf.laplace(hf.counts(tree), epsilon=1).given(hf.consistent(tree))
    errors = np.abs(made.noise(8_000, hf.seeded(3))).mean(axis=0)
    found = [errors[tree.depth == depth].mean() for depth in range(3)]
    text = (ROOT / "docs" / "how-to" / "which-method.md").read_text(encoding="utf-8")
    printed = next(line for line in text.splitlines() if line.startswith("| given |")).split("|")[2:5]
    for mine, theirs, room in zip(found, map(float, printed), (0.08, 0.03, 0.01), strict=True):
        assert mine == pytest.approx(theirs, abs=room)


def test_reaches_of_sums():
    def reach(make, **much):
        return reach_of(make(hf.histogram(1), **much).base.law)(0.025)

    says("theory/error-bars.md", f"{reach(hf.laplace, scale=1, integer=False):.2f} s at 95 %")
    says("theory/error-bars.md", f"this gives {reach(hf.laplace, scale=2):.1f} s at 95 %")
    says("theory/error-bars.md", f"it gives {reach(hf.gaussian, scale=10):.1f} s ({math.sqrt(2 * math.log(40)):.1f} by")
    says("theory/error-bars.md", f"own quantile is {math.log(20) / math.sqrt(2):.1f} s")


def test_projected_noise_of_the_campus():
    says("theory/THEORY.md", f"= {math.sqrt(5980 / 6720):.3f} is the standard", f"{5980 / 6720:.3f} its variance")
    says("theory/THEORY.md", f"true δ is {classical(1, 1e-12):.1f}× the claim")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "shape"), [("102 counties", None), ("5 × 5 table", (5, 5)), ("Berkeley", (2, 2, 6)), ("Rochdale", (2,) * 8)]
)
def test_errors_of_noise_made_for_exact_figures(row, shape):
    if shape is None:
        query = hf.histogram(102)
        total = hf.invariant(np.ones((1, 102), dtype=int))
    else:
        axes = range(len(shape))
        query = hf.margins(shape, [(), *((a,) for a in axes), *combinations(axes, 2)])
        total = hf.consistent(query) & hf.invariant(np.eye(1, query.n, dtype=int))
    gauss, pure = {"rho": 0.5, "neighbours": "replace-one"}, {"epsilon": 1, "neighbours": "replace-one"}
    optimal = hf.extend(query, total, **gauss)
    made = [optimal, hf.extend(query, total, law="gaussian", **gauss), hf.gaussian(query, integer=False, **gauss)]
    made[2] = made[2].onto(total, weights=None)
    if row in ("5 × 5 table", "Berkeley"):  # the others take seconds
        made.append(hf.extend(query, total, law="laplace", **pure))
    found = [(each.standard_error() ** 2).sum() / optimal.evidence.lower_bound for each in made]
    text = (ROOT / "docs" / "how-to" / "noise-made-for-exact-figures.md").read_text(encoding="utf-8")
    cells = next(line for line in text.splitlines() if row in line and line.startswith("|")).split("|")
    printed = [float(cells[k]) for k in (2, 3, 5, 7)]
    assert [round(float(each), 2) for each in found] == printed[: len(found)]


def test_what_equalities_do_to_a_gaussian_delta():
    """Two cells that are equal, and a change of both by one: δ of independent noise, and of noise on the lattice."""
    noise = np.arange(-60, 61)
    both, lattice = (np.exp(-(noise**2) / width) / np.exp(-(noise**2) / width).sum() for width in (8, 4))
    joint = np.outer(both, both)
    before = np.maximum(joint - math.e**2 * np.roll(joint, 1, (0, 1)), 0).sum()
    after = np.maximum(lattice - math.e**2 * np.roll(lattice, 1), 0).sum()
    says("theory/calibration.md", f"{before:.5f} becomes {after:.5f}")
    says("theory/THEORY.md", f"{before:.5f} → {after:.5f}")


def test_prices_that_the_auditor_meets():
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 0])
    cells = hf.laplace(hf.histogram(2), scale=1).given(hf.nonnegative())
    nodes = hf.laplace(hf.counts(tree), scale=2).given(hf.consistent(tree) & hf.nonnegative())
    found = [f"{each.guarantee.epsilon:.4f}" for each in (cells, nodes)]
    says("theory/auditing.md", "a histogram with bounds {}, a tree of\ntwo levels with bounds {}".format(*found))
