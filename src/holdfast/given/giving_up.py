"""When drawing again is given up: after a number of tries that a coin decides, so that a refusal is an output too.

Noise that does not satisfy what must hold is drawn again. A fixed number of tries would tell how rare success is: the
chance of a refusal, (1 − p)^N, differs between neighbours by any factor. Here each try that fails is the last one with
probability γ, whatever the data.

*Guarantee* (docs/theory/walks.md, Proposition 8): for Laplace noise, and tries whose law given the equalities does not
depend on the data, the statement about the conditional law holds for the release *or refusal*, with the same ε.
"""

from __future__ import annotations

import numpy as np

from holdfast.arrays import Bools, Ints
from holdfast.randomness import Stream

Flags = Bools


def last_tries(count: int, bits: int, stream: Stream) -> Flags:
    """Which of so many tries are the last ones if they fail: each with probability 2^−bits, exactly."""
    return np.asarray(stream.words(count) >> np.uint64(64 - bits) == 0)


def first_kept(kept: Flags, last: Flags) -> Ints:
    """For every row of tries the first that is kept; −1 where none is, −2 where a last try failed before it."""
    tries = np.arange(kept.shape[1])
    first = np.where(kept.any(axis=1), kept.argmax(axis=1), kept.shape[1])
    stopped = (last & (tries < first[:, None])).any(axis=1)
    return np.where(stopped, -2, np.where(first < kept.shape[1], first, -1))
