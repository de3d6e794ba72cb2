"""Exact integer noise per second: holdfast against OpenDP on the same vectors, in one run.

Both draw exactly and from the operating system's randomness: integer Laplace and integer Gaussian noise of
scale 3 and 100 on vectors of 100,000 whole numbers. Prints one line per law and scale with the ratio of the
times; each must be at least 20. The cost of the first draw, which makes the tables, is printed beside.
"""

import sys
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import opendp.prelude as dp

from holdfast.noise import IntegerGaussian, IntegerLaplace
from holdfast.randomness import secure

N = 100_000
BAR = 20.0


def best(call: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> int:
    dp.enable_features("contrib")
    stream = secure()
    zeros = np.zeros(N, dtype=np.int64)
    given = zeros.tolist()
    IntegerLaplace(Fraction(2)).draw(1, stream)  # compile
    space = dp.vector_domain(dp.atom_domain(T="i64"), size=N)
    slowest = float("inf")
    for scale in (3, 100):
        laws = {
            "integer Laplace": (
                IntegerLaplace(Fraction(scale)),
                dp.m.make_laplace(space, dp.l1_distance(T="i64"), float(scale)),
            ),
            "integer Gaussian": (
                IntegerGaussian(Fraction(scale) ** 2),
                dp.m.make_gaussian(space, dp.l2_distance(T="i64"), float(scale)),
            ),
        }
        for name, (law, theirs) in laws.items():
            start = time.perf_counter()
            law.draw(1, stream)
            first = time.perf_counter() - start
            mine = best(lambda law=law: zeros + law.draw(N, stream), repeats=9)
            others = best(lambda theirs=theirs: theirs(given), repeats=2)
            ratio = others / mine
            slowest = min(slowest, ratio)
            print(
                f"{name}, scale {scale}, n = {N}: {mine / N * 1e9:.1f} ns per draw, "
                f"OpenDP {others / N * 1e9:.0f} ns, ratio {ratio:.0f} (bar {BAR:g}); "
                f"tables in {first * 1e3:.1f} ms"
            )
    for scale in (1_000, 1_000_000):  # no bar: scales that need several words per draw
        for law in (IntegerLaplace(Fraction(scale)), IntegerGaussian(Fraction(scale) ** 2)):
            law.draw(1, stream)
            mine = best(lambda law=law: law.draw(N, stream), repeats=9)
            print(f"{type(law).__name__}, scale {scale}: {mine / N * 1e9:.1f} ns per draw")
    return 0 if slowest >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
