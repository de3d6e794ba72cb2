"""Who goes first among equals: a public keyed hash of an output's number, independent of the data.

Ties decided by the order of the outputs would favour the first of them every time; a hash favours none systematically.
"""

from __future__ import annotations

import numba
import numpy as np

#: The key of the hash: the first 64 bits of the fraction of the golden ratio.
KEY = np.uint64(0x9E3779B97F4A7C15)


@numba.njit(cache=True, nogil=True)
def tie_hash(number):  # type: ignore[no-untyped-def]
    """A hash of an output's number (splitmix64)."""
    z = (np.uint64(number) + np.uint64(1)) * KEY
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@numba.njit(cache=True, nogil=True)
def smallest(keys, count, rank):  # type: ignore[no-untyped-def]
    """The rank-th smallest of the first `count` keys, which are rearranged (Hoare's selection)."""
    low, high, wanted = 0, count - 1, rank - 1
    while low < high:
        pivot = keys[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                i += 1
                j -= 1
        if wanted <= j:
            high = j
        elif wanted >= i:
            low = i
        else:
            break
    return keys[wanted]
