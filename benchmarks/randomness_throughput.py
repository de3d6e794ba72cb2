"""Random words per second: the secure stream against numpy's default generator, in one run.

Prints one line per request size with the ratio of the times; in bulk it must stay below 4.
"""

import sys
import time
from collections.abc import Callable

import numpy as np

from holdfast.randomness import secure

BAR = 4.0


def best(call: Callable[[], object], repeats: int = 7) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> int:
    stream, generator = secure(), np.random.default_rng()
    bulk = 0.0
    for count in (1_000, 100_000, 10_000_000):
        calls = max(1, 1_000_000 // count)

        def ours(count: int = count, calls: int = calls) -> None:
            for _ in range(calls):
                stream.words(count)

        def numpys(count: int = count, calls: int = calls) -> None:
            for _ in range(calls):
                generator.integers(0, 2**64, count, dtype=np.uint64)

        mine, theirs = best(ours), best(numpys)
        bulk = mine / theirs
        print(
            f"words, {count} at a time: {calls * count / mine / 1e6:.0f} M/s, "
            f"numpy {calls * count / theirs / 1e6:.0f} M/s, ratio of times {bulk:.2f} (bar {BAR:g})"
        )
    return 0 if bulk <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
