"""Who goes first among equals: a public hash of an output's number and of a coin, independent of the data.

Ties decided by the order of the outputs, or by one hash for all releases, would favour the same outputs every time. So
every release throws a coin of 64 bits, which is public, and outputs are hashed under it: a fresh order each time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from holdfast.arrays import compiled

#: The key of the hash: the first 64 bits of the fraction of the golden ratio.
KEY = np.uint64(0x9E3779B97F4A7C15)


def coins_of(ties: npt.NDArray[np.uint64] | None, size: int) -> npt.NDArray[np.int64]:
    """The coins of `size` tables as whole numbers to be mixed into those of the outputs; None: a coin of 0 for all."""
    return np.zeros(size, dtype=np.int64) if ties is None else ties.astype(np.uint64).view(np.int64)


@compiled
def tie_hash(number):  # type: ignore[no-untyped-def]
    """A hash of an output's number (splitmix64)."""
    z = (np.uint64(number) + np.uint64(1)) * KEY
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def smallest(keys, count, rank):  # type: ignore[no-untyped-def]
    """The rank-th smallest of the first `count` keys, which are rearranged.

    Keys are sorted into 64 buckets by the first six bits in which they differ, and the right bucket is kept.
    """
    buckets, last = np.empty(64, np.int64), np.uint64(63)
    while count > 6:
        spread = np.uint64(0)
        for i in range(count):
            spread |= keys[i] ^ keys[0]
        if spread == np.uint64(0):
            return keys[0]
        shift = np.uint64(60)
        while spread >> shift == np.uint64(0):
            shift -= np.uint64(6)
        buckets[:] = 0
        for i in range(count):
            buckets[(keys[i] >> shift) & last] += 1
        bucket = 0
        while buckets[bucket] < rank:
            rank -= buckets[bucket]
            bucket += 1
        kept = 0
        for i in range(count):
            key = keys[i]
            keys[kept] = key
            kept += ((key >> shift) & last) == np.uint64(bucket)
        count = kept
    for i in range(1, count):
        key, k = keys[i], i
        while k > 0 and keys[k - 1] > key:
            keys[k] = keys[k - 1]
            k -= 1
        keys[k] = key
    return keys[rank - 1]
