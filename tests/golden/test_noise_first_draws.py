"""First draws of seeded noise, which must never change: studies are repeated from their seeds."""

from fractions import Fraction

import pytest

from holdfast.noise import IntegerGaussian, IntegerLaplace
from holdfast.randomness import seeded

# Each row follows from the words of seed 0 and the exact cumulative probabilities in the order 0, −1, 1, −2,
# … (tests/enumeration checks that correspondence). Example: the first word over 2^64 is 0.32493…; for scale 3
# P(0) = 0.16514… and P(−1) = P(1) = 0.11833…, so F_2 = 0.28347… < U < F_3 = 0.40180…: the third symbol, 1.
GOLDEN = {
    IntegerLaplace(Fraction(3)): [1, 4, 1, -4, -3, 3, 0, 0],
    IntegerLaplace(Fraction(1000)): [482, 1410, -496, -1229, 911, 1173, 196, 54],
    IntegerLaplace(Fraction(10**9)): [
        -371869328,
        -1344724197,
        -519895705,
        1288587371,
        956157429,
        -1096008050,
        205704364,
        56755183,
    ],
    IntegerGaussian(Fraction(9)): [1, 3, 1, 3, -3, 3, -1, 0],
    IntegerGaussian(Fraction(10**6)): [420, 1433, -510, -1243, 937, 1275, 246, -1471],
}


@pytest.mark.parametrize("law", list(GOLDEN), ids=str)
def test_first_draws_of_seed_0(law):
    assert law.draw(8, seeded(0)).tolist() == GOLDEN[law]
