"""Equalities that are almost parallel: statements, draws and errors against a projector in rationals.

The projector here shares nothing with the package: it eliminates in fractions.
"""

import random
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from scipy import sparse

import holdfast as hf
from holdfast.constraints import NullSpace
from holdfast.constraints.system.enclosed import Encloser, least_eigenvalue
from holdfast.constraints.system.sound_rows import TOO_CLOSE, SoundRows
from holdfast.mechanism import project
from holdfast.privacy.projected_losses import sensitivity_within

PRINTED = [[1, -20000, 2], [1, -19999, 2]]


def projector(rows):
    """Π on the null space of rational rows, dependent or not, as fractions."""
    table = fmpq_mat([[fmpq(Fraction(x).numerator, Fraction(x).denominator) for x in row] for row in rows])
    n = table.ncols()
    reduced, rank = table.rref()
    rows = fmpq_mat([[reduced[i, j] for j in range(n)] for i in range(rank)])
    onto_rows = rows.transpose() * (rows * rows.transpose()).inv() * rows
    return [
        [int(i == j) - Fraction(int(onto_rows[i, j].p), int(onto_rows[i, j].q)) for j in range(n)] for i in range(n)
    ]


def nearly_parallel(rng, n):
    """Whole rows, most of them one row with entries up to 10¹² and small changes."""
    largest = 10 ** rng.randint(1, 12)
    base = [rng.randint(-largest, largest) for _ in range(n)]
    rows = [[rng.choice((1, 1, 1, 2)) * b + rng.randint(-1, 1) for b in base] for _ in range(rng.randint(2, n - 1))]
    if rng.random() < 0.3:
        rows[-1] = [rng.randint(-2, 2) for _ in range(n)]
    kind = rng.randrange(4)
    if kind == 1:
        return [[Fraction(x, divisor) for x in row] for row, divisor in zip(rows, (3, 7, 1, 5, 2, 9), strict=False)]
    return [[float(x) for x in row] for row in rows] if kind == 2 else rows


def mechanism(rng, n):
    """Continuous noise on n cells, and the power and the scales of its loss."""
    law = rng.choice([hf.laplace, hf.gaussian])
    kind = rng.choice(["add-remove", "replace-one"])
    scales = rng.choice([[1] * n, [rng.choice([1, 2, 0.5, 10]) for _ in range(n)]])
    made = law(hf.histogram(n), scale=scales, integer=False, neighbours=kind)
    return made, 1 if law is hf.laplace else 2, [Fraction(s) for s in scales], kind


def true_loss(rows, power, scales, kind):
    """max Σ(|Πd|/λ)^p over all neighbours: ε for Laplace noise, 2ρ for Gaussian noise."""
    columns = list(zip(*projector(rows), strict=True))
    if kind == "replace-one":
        columns = [[a - b for a, b in zip(x, y, strict=True)] for x in columns for y in columns]
    return max(sum((abs(x) / s) ** power for x, s in zip(d, scales, strict=True)) for d in columns)


def check_statements(seed, cases):
    rng = random.Random(seed)
    for _ in range(cases):
        n = rng.randint(3, 6)
        rows = nearly_parallel(rng, n)
        made, power, scales, kind = mechanism(rng, n)
        conditioned = made.given(hf.invariant(rows))
        true = true_loss(rows, power, scales, kind)
        (found,) = (each for each in conditioned.guarantees if each.scope == "subspace") if true else (None,)
        if found is not None:
            stated = Fraction(found.epsilon) if power == 1 else 2 * Fraction(found.rho)
            assert true <= stated <= true * (1 + Fraction(1, 10**9))


def check_lengths(seed, cases):
    """The same without a mechanism: max ‖Πd‖₁ and ‖Πd‖₂."""
    rng = random.Random(seed)
    for _ in range(cases):
        n, power = rng.randint(3, 7), rng.choice([1, 2])
        rows = [[int(x) for x in row] for row in nearly_parallel(rng, n)]
        if not np.any(rows):
            continue
        kind = rng.choice(["add-remove", "replace-one"])
        space = NullSpace.of(sparse.csr_array(np.array(rows)))
        found = Fraction(sensitivity_within(hf.histogram(n), power, kind, space)) ** power
        true = true_loss(rows, power, [1] * n, kind)
        assert true <= found <= true * (1 + Fraction(1, 10**9))


def test_the_printed_case():
    made = hf.laplace(hf.histogram(3), scale=1, integer=False).given(hf.invariant(PRINTED))
    assert made.guarantee.epsilon == pytest.approx(1.2, rel=1e-12)
    assert Fraction(made.guarantee.epsilon) >= Fraction(6, 5)


@pytest.mark.slow
def test_statements_about_nearly_parallel_rows():
    check_statements(1, 12)
    check_lengths(2, 100)


@pytest.mark.slow
@pytest.mark.parametrize(("entry", "apart"), [(5_000, 1), (30_000, 7), (10**9, 7), (10**15, 1)])
def test_everything_can_be_released(entry, apart):
    cells, truth = hf.histogram(5), [3, 1, 2, 4, 5]
    rows = [[1, -entry, 2, 1, 1], [1, -entry + apart, 2, 1, 1]]
    exact = hf.invariant(rows)
    uneven = [1, 2, 4, 8, 1]
    made = [
        hf.gaussian(cells, scale=1, integer=False).given(exact),
        hf.gaussian(cells, scale=uneven, integer=False).given(exact),
        hf.laplace(cells, scale=1, integer=False).given(exact),
        hf.laplace(cells, scale=uneven, integer=False).onto(exact),
        hf.laplace(cells, scale=2).onto(exact),
        hf.extend(cells, exact, law="gaussian", rho=0.5),
        hf.extend(cells, exact, law="laplace", epsilon=1),
        hf.extend(cells, exact, rho=0.5),
    ]
    for each in made:
        values = each.release(truth, rng=hf.seeded(3)).values
        assert values[1] == pytest.approx(1, abs=1e-6)
        assert each.standard_error()[1] == pytest.approx(0, abs=1e-9)
    claimed = hf.laplace(cells, scale=1).guarantee
    own = project(lambda x: x + np.array([1.5, 2, 0, -1, 0.25]), cells, exact, guarantee=claimed)
    expected = np.array(truth) + np.array(projector(rows), dtype=float) @ [1.5, 2, 0, -1, 0.25]
    np.testing.assert_allclose(own.release(truth).values, expected, atol=1e-9)


def test_errors_are_those_of_the_exact_projector():
    rng = random.Random(4)
    for _ in range(20):
        n = rng.randint(3, 6)
        rows = nearly_parallel(rng, n)
        made = hf.gaussian(hf.histogram(n), scale=1, integer=False).given(hf.invariant(rows))
        expected = [float(row[i]) for i, row in enumerate(projector(rows))]
        np.testing.assert_allclose(made.standard_error() ** 2, expected, atol=1e-9)


def test_real_sides_do_not_tell_rows_apart_by_their_rounding():
    rows = [[1, -(10**9), 3], [1, -(10**9) + 1, 3]]
    asked = hf.query(3, l1=1, l2=1)
    truth = np.array([0.1, 0.7, 12.3])
    values = hf.gaussian(asked, scale=1, integer=False).onto(hf.invariant(rows)).release(truth, rng=hf.seeded(1)).values
    assert values[1] == pytest.approx(0.7, abs=1e-9)
    assert values[0] + 3 * values[2] == pytest.approx(0.1 + 3 * 12.3, abs=1e-9)


def test_large_systems_are_enclosed_too(monkeypatch):
    """The bounds by a least eigenvalue hold what rationals say, and are narrow."""
    monkeypatch.setattr("holdfast.constraints.system.enclosed.AT_ONCE", (0, 0))
    monkeypatch.setattr("holdfast.constraints.system.enclosed.AT_MOST", (0, 0))
    rng = random.Random(6)
    for _ in range(40):
        n = rng.randint(3, 8)
        rows = [[int(x) for x in row] for row in nearly_parallel(rng, n)]
        space = NullSpace.of(sparse.csr_array(np.array(rows)))
        if space.is_zero or np.abs(space.sound.rows.data).max() >= 2**53:
            continue
        found = space.enclosed(np.eye(n))
        true = projector(rows)
        for i in range(n):
            for j in range(n):
                assert abs(Fraction(found.values[i, j]) - true[i][j]) <= Fraction(found.radius[i, j])
        assert found.radius.max() < 1e-11


def test_least_eigenvalues_are_bounded_from_below():
    rng = np.random.default_rng(7)
    for _ in range(60):
        rank = int(rng.integers(1, 12))
        B = rng.integers(-3, 4, (rank, rank + int(rng.integers(0, 6)))).astype(float)
        if np.linalg.matrix_rank(B) < rank:
            continue
        least = np.linalg.eigvalsh(B @ B.T)[0]
        found = least_eigenvalue(sparse.csr_array(B))
        assert found is not None
        assert least / 40 <= found <= least * (1 + 1e-9)


def test_dependent_rows_have_no_proved_eigenvalue():
    assert least_eigenvalue(sparse.csr_array(np.array([[1.0, 1.0], [1.0, 1.0]]))) is None
    almost = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 2.0**-40]])
    assert least_eigenvalue(sparse.csr_array(almost)) is None


def test_what_cannot_be_reduced_is_refused_in_a_sentence(monkeypatch):
    monkeypatch.setattr("holdfast.constraints.system.sound_rows.MOST_REDUCED", 1)
    exact = hf.invariant([[1, -(10**9), 2, 1], [1, -(10**9) + 1, 2, 1]])
    with pytest.raises(hf.Refused) as refusal:
        hf.gaussian(hf.histogram(4), scale=1, integer=False).given(exact).release([1, 2, 3, 4])
    assert str(refusal.value) == TOO_CLOSE


def test_numbers_beyond_doubles_are_enclosed_in_rationals():
    rows = sparse.csr_array(np.array([[2**60 + 1, 1, 0], [0, 3, 2**59 + 7]]))
    found = Encloser(SoundRows.of(rows)).project(np.eye(3))
    true = projector(rows.toarray().tolist())
    for i in range(3):
        for j in range(3):
            assert abs(Fraction(found.values[i, j]) - true[i][j]) <= Fraction(found.radius[i, j])
