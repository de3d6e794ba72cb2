"""The secure stream and the seeded streams."""

from __future__ import annotations

import hashlib
import numbers

import numpy as np

from holdfast.arguments import Refused, shown
from holdfast.randomness.stream import KEY_BYTES, Stream


def secure() -> Stream:
    """Return a stream with a fresh key from the operating system, safe across fork and threads.

    The key is known to nobody and kept nowhere but in the stream. This is the stream for releases.
    """
    return Stream(None)


#: Bits of the largest seed.
LONGEST = 4096


def seeded(seed: int) -> Stream:
    """Return the stream of a seed: same seed, same words, on every machine. For tests and studies only.

    Args:
        seed: a whole number.

    Law:
        The key is the BLAKE2b hash of the seed in decimal digits.
    Guarantee:
        None: whoever guesses the seed can subtract the noise, so a release made with such a stream promises nothing.

    Example:
        >>> import holdfast as hf
        >>> cells = hf.laplace(hf.histogram(3), epsilon=1)
        >>> bool((cells.noise(2, hf.seeded(7)) == cells.noise(2, hf.seeded(7))).all())
        True
    """
    if isinstance(seed, (bool, np.bool_)) or not isinstance(seed, numbers.Integral) or seed < 0:
        raise Refused(f"seed must be a whole number of at least 0, found {shown(seed)}")
    if int(seed).bit_length() > LONGEST:
        raise Refused(f"seed must be below 2**{LONGEST}, found a number of {int(seed).bit_length()} bits")
    digits = str(int(seed)).encode()
    return Stream(hashlib.blake2b(digits, digest_size=KEY_BYTES, person=b"holdfast.seeded").digest())
