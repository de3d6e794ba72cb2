"""Uniform weak compositions: ways to write a total as an ordered sum of whole parts, each equally likely.

A composition of j into k parts is a choice of k−1 bars among j+k−1 places (stars and bars). The smaller of
bars and stars is chosen by Floyd's sampling in a bit set: O(k + j/64), in whole numbers throughout, so the law
is exact.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from holdfast.arrays import compiled
from holdfast.randomness import Stream

#: Words kept ready beyond one per choice; a choice needs a second word with probability below 2**-20.
SPARE_WORDS = 64
#: Compositions are made in batches of about this many words, to bound the memory they take.
BATCH_WORDS = 1 << 22


@compiled
def _fill(totals, parts, words, out):  # type: ignore[no-untyped-def]
    """Fill out[r] with a uniform composition of totals[r]; return the words used, or -1 if they ran out."""
    used = 0
    largest = np.uint64(0xFFFFFFFFFFFFFFFF)
    most = 0
    for total in totals:
        most = max(most, total)
    taken = np.zeros((most + parts - 1) // 64 + 1, dtype=np.uint64)
    one = np.uint64(1)
    for row in range(totals.size):
        total = totals[row]
        places = total + parts - 1
        bars = parts - 1
        choose_bars = bars <= total
        chosen = bars if choose_bars else total
        for block in range(places // 64 + 1):
            taken[block] = np.uint64(0)
        # Floyd: for t = places−chosen … places−1 take a uniform r ≤ t, or t itself when r is taken already.
        for t in range(places - chosen, places):
            bound = np.uint64(t) + one
            excess = (largest % bound + one) % bound  # 2**64 mod bound: words above 2**64 − excess are drawn again
            while True:
                if used >= words.size:
                    return -1
                word = words[used]
                used += 1
                if word <= largest - excess:
                    break
            r = np.int64(word % bound)
            if (taken[r >> 6] >> np.uint64(r & 63)) & one:
                r = np.int64(t)
            taken[r >> 6] |= one << np.uint64(r & 63)
        part = 0
        out[row, :] = 0
        for place in range(places):
            marked = ((taken[place >> 6] >> np.uint64(place & 63)) & one) == one
            if marked == choose_bars:
                part += 1
            else:
                out[row, part] += 1
    return used


def uniform_compositions(totals: npt.NDArray[np.int64], parts: int, stream: Stream) -> npt.NDArray[np.int64]:
    """Return one uniform weak composition of each total into the given number of parts, shape (size, parts)."""
    totals = np.ascontiguousarray(totals, dtype=np.int64)
    out = np.empty((totals.size, parts), dtype=np.int64)
    if parts == 1:
        out[:, 0] = totals
        return out
    choices = np.minimum(totals, parts - 1)
    start = 0
    while start < totals.size:
        needed = np.cumsum(choices[start:])
        stop = start + max(1, int(np.searchsorted(needed, BATCH_WORDS)))
        words = stream.words(int(needed[stop - start - 1]) + SPARE_WORDS)
        # Reading a longer prefix of the same stream leaves the law as it is: the first words decide the same.
        while _fill(totals[start:stop], parts, words, out[start:stop]) < 0:
            words = np.concatenate([words, stream.words(words.size)])
        start = stop
    return out
