"""A secret from which any process derives the same substreams."""

from __future__ import annotations

import hashlib
import numbers
import os
from typing import Any, NoReturn, SupportsIndex

import numpy as np

from holdfast.arguments import Refused, of_type, shown
from holdfast.randomness.stream import KEY_BYTES, Stream

_SMALLEST_SECRET = 16  # bytes: 128 bits are beyond guessing
_WORDS = KEY_BYTES // 8


def _encoded(path: tuple[int | str, ...]) -> bytes:
    """Write a path so that no two paths share their bytes: kind, length and content of each element."""
    parts = []
    for element in path:
        if isinstance(element, str):
            kind = b"s"
            try:
                content = str(element).encode("utf-8")
            except UnicodeEncodeError:
                raise Refused("path must hold text that UTF-8 can write, found a lone surrogate") from None
        elif isinstance(element, numbers.Integral) and not isinstance(element, (bool, np.bool_)):
            kind = b"i"
            number = int(element)
            content = number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)
        else:
            raise Refused(f"path must hold whole numbers and text only, found {shown(element)}")
        parts += [kind, len(content).to_bytes(8, "little"), content]
    return b"".join(parts)


class Keys:
    """A secret, and for every path of whole numbers and texts a stream of its own.

    Two holders of one secret derive the same stream for the same path, in any process and in any order; the
    streams of different paths are unrelated. The secret is never shown, copied or pickled: hand the bytes
    themselves to `Keys.of` over a channel that keeps secrets.

    Args:
        secret: 32 random bytes.

    Law:
        The key of a path is the keyed BLAKE2b hash of the path, in which kind and length of every element are written,
        so ("a", "b") and ("ab",), or 1 and "1", have different keys.

    Example:
        >>> import holdfast as hf
        >>> one, other = hf.Keys.of(bytes(32)), hf.Keys.of(bytes(32))
        >>> bool((one.at("north", 1).words(4) == other.at("north", 1).words(4)).all())
        True
    """

    __slots__ = ("_fingerprint", "_secret")

    def __init__(self, secret: bytes) -> None:
        of_type("secret", secret, bytes)
        # Secrets of any length become a key of the hash; the purposes below are kept apart by `person`.
        self._secret = hashlib.blake2b(secret, digest_size=KEY_BYTES, person=b"holdfast.secret").digest()
        self._fingerprint = hashlib.blake2b(b"", key=self._secret, digest_size=16, person=b"holdfast.print").hexdigest()

    @classmethod
    def fresh(cls) -> Keys:
        """Return keys with a fresh secret from the operating system."""
        return cls(os.urandom(KEY_BYTES))

    @classmethod
    def drawn_from(cls, stream: Stream) -> Keys:
        """Return keys whose secret is the next 256 bits of a stream."""
        if not isinstance(stream, Stream):
            raise Refused(f"stream must be a random stream, found {type(stream).__name__}")
        return cls(stream.words(_WORDS).astype("<u8").tobytes())

    @classmethod
    def of(cls, secret: bytes) -> Keys:
        """Return the keys of a secret of at least 16 bytes; it must come from a secure source."""
        if not isinstance(secret, bytes):
            raise Refused(f"secret must be bytes, found {type(secret).__name__}")
        if len(secret) < _SMALLEST_SECRET:
            raise Refused(f"secret must have at least {_SMALLEST_SECRET} bytes, found {len(secret)}")
        return cls(secret)

    def at(self, *path: int | str) -> Stream:
        """Return the stream of a path, from its first word on."""
        key = hashlib.blake2b(_encoded(path), key=self._secret, digest_size=KEY_BYTES, person=b"holdfast.path").digest()
        return Stream(key)

    @property
    def fingerprint(self) -> str:
        """A one-way digest of the secret, safe to publish: it tells two secrets apart and nothing else."""
        return self._fingerprint

    def __repr__(self) -> str:
        return f"<keys {self._fingerprint}>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise Refused("keys cannot be copied or pickled, because their secret must not travel unnoticed")

    def __copy__(self) -> NoReturn:
        self.__reduce_ex__(2)

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        self.__reduce_ex__(2)
