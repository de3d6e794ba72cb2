"""A stream of random words: AES-256 in counter mode under one key.

The words of a stream are the key stream of AES-256-CTR from block 0 on, in 64-bit words, low byte first. The
state that matters is one number, how many words were given out: everything else can be rebuilt from it
and the key, which is what makes the stream safe across fork.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, NoReturn, SupportsIndex

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy.special import ndtri

from holdfast.arguments import Refused, of_type, whole
from holdfast.system import after_fork_in_child

KEY_BYTES = 32  # AES-256
#: Words that are asked for at once.
MOST_WORDS = 2**30
_BLOCK_WORDS = 2  # one AES block is 16 bytes
_BUFFER_WORDS = 1024  # small requests are served from 8 KiB of words made at once
# What the cipher encrypts to show its key stream. A quarter MiB stays in the processor's second cache.
_ZEROS = bytes(1 << 18)

# How many forks lie between the first process and this one; with the process number it names this process.
_generation = 0
# Guards the renewal of streams after a fork; made anew in each child, where no other thread can hold it.
_renewal = threading.Lock()


def _after_fork_in_child() -> None:
    global _generation, _renewal
    _generation += 1
    _renewal = threading.Lock()


after_fork_in_child(_after_fork_in_child)


def _process() -> tuple[int, int]:
    """Name this process: the count catches reused process numbers, the number catches forks made in C."""
    return _generation, os.getpid()


class Stream:
    """A stream of random words; made by `secure`, `seeded` or `Keys.at`, never directly.

    Threads may share a stream: every word is given out once. A secure stream that is used in a forked child
    takes a fresh key there and never repeats its parent's words. Seeded and keyed streams stay deterministic:
    after a fork, parent and child both continue with the *same* next words; give each process its own path
    (`Keys.at`) instead. Streams cannot be copied or pickled, since a copy would repeat the words.

    Args:
        key: 32 bytes, or None for a secure one.

    Law:
        The words are independent and uniform if AES-256 is a pseudorandom permutation under an unknown key: after q
        blocks the key stream differs from uniform words by at most q²/2¹²⁹ more than that.

    Example:
        >>> import holdfast as hf
        >>> hf.seeded(7).words(2).dtype
        dtype('uint64')
    """

    __slots__ = ("_buffer", "_cipher", "_given", "_key", "_lock", "_process", "_taken", "reproducible")

    reproducible: bool
    """True for seeded and keyed streams: whoever has the seed or the key can make the words again."""

    def __init__(self, key: bytes | None) -> None:
        if key is not None and len(of_type("key", key, bytes)) != KEY_BYTES:
            raise Refused(f"key must be {KEY_BYTES} bytes, or None for one from the system, found {len(key)}")
        self.reproducible = key is not None
        self._start(key, 0)

    def _start(self, key: bytes | None, given: int) -> None:
        """Set the state in which `given` words were given out; a key of None is taken from the system."""
        self._key = os.urandom(KEY_BYTES) if key is None else key
        counter = (given // _BLOCK_WORDS).to_bytes(16, "big")
        # CTR gives the key stream by encrypting zeros; no message is encrypted, so nothing is authenticated.
        self._cipher = Cipher(algorithms.AES(self._key), modes.CTR(counter)).encryptor()
        if given % _BLOCK_WORDS:
            self._cipher.update(bytes(8))
        self._buffer = np.empty(0, dtype=np.uint64)
        self._taken = 0
        self._given = given
        self._lock = threading.Lock()
        self._process = _process()  # last: only now the state is whole

    def _renew(self) -> None:
        """Make the stream this process's own: the fork may have copied it in the middle of a request."""
        with _renewal:
            if self._process != _process():
                if self.reproducible:
                    self._start(self._key, self._given)
                else:
                    self._start(None, 0)

    def _fill(self, target: npt.NDArray[np.uint64]) -> None:
        """Write the next words of the cipher straight into an array."""
        view = memoryview(target.view(np.uint8))  # type: ignore[arg-type]  # an array is a buffer
        for start in range(0, len(view), len(_ZEROS)):
            part = view[start : start + len(_ZEROS)]
            self._cipher.update_into(_ZEROS[: len(part)] if len(part) < len(_ZEROS) else _ZEROS, part)
        if sys.byteorder == "big":  # the words are defined low byte first
            target.byteswap(inplace=True)

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        """Return the next `count` words, each uniform on 0 … 2**64 − 1; the array belongs to the caller."""
        count = whole("count", count, at_least=0, at_most=MOST_WORDS)
        result = np.empty(count, dtype=np.uint64)
        if count == 0:
            return result
        if self._process != _process():
            self._renew()
        with self._lock:
            kept = min(count, self._buffer.size - self._taken)
            result[:kept] = self._buffer[self._taken : self._taken + kept]
            self._taken += kept
            missing = count - kept
            if missing >= _BUFFER_WORDS:
                self._fill(result[kept:])
            elif missing:
                buffer = np.empty(_BUFFER_WORDS, dtype=np.uint64)
                self._fill(buffer)
                result[kept:] = buffer[:missing]
                self._buffer, self._taken = buffer, missing
            self._given += count
        return result

    def bits(self, count: int) -> int:
        """Return a whole number of exactly `count` random bits, uniform on 0 … 2**count − 1."""
        count = whole("count", count, at_least=0, at_most=MOST_WORDS)
        words = self.words(-(-count // 64))
        return int.from_bytes(words.astype("<u8").tobytes(), "little") >> (-count % 64)

    def uniforms(self, count: int) -> npt.NDArray[np.float64]:
        """Return `count` doubles strictly inside (0, 1): middles of 2**52 equal cells; for continuous laws only."""
        # With 53 bits the middle of the last cell would round to 1.
        return ((self.words(count) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52

    def normals(self, count: int) -> npt.NDArray[np.float64]:
        """Return `count` standard normal doubles by inversion. For continuous laws only.

        The low bit of a word is the sign and the other 63 give the tail probability, so that tails are as
        fine as the middle; no draw lies beyond ±9.2.
        """
        words = self.words(count)
        tails = ((words >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-64
        negative = (words & np.uint64(1)).astype(np.bool_)
        result: npt.NDArray[np.float64] = ndtri(tails)
        return np.where(negative, result, -result)

    def __repr__(self) -> str:
        return f"<{'reproducible' if self.reproducible else 'secure'} random stream>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise Refused("a random stream cannot be copied or pickled, because the copy would repeat its words")

    def __copy__(self) -> NoReturn:
        self.__reduce_ex__(2)

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        self.__reduce_ex__(2)
