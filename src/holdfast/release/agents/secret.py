"""The secret that agents share: made fresh, handed over in a private file or in the environment, never shown."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from pathlib import Path

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Ints
from holdfast.randomness import Keys, Stream

#: Where the command looks for the secret when no file is named.
VARIABLE = "HOLDFAST_SECRET"
#: Bytes of a secret, and of the check behind it: a phrase that somebody made up, or a slip of the pen, has none.
SIZE, CHECK = 32, 4
#: Longest file that is read.
LONGEST = 4096


def write_secret(path: Path) -> None:
    """Write a fresh secret to a new file that only its owner can read."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise Refused(f"{str(path)!r} exists already: every release needs a new secret, name another file") from None
    except OSError as error:
        raise Refused(f"{str(path)!r} cannot be written: {error.strerror}") from None
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{with_check(secrets.token_bytes(SIZE)).hex()}\n")


def with_check(secret: bytes) -> bytes:
    """Return a secret with its check behind it, a one-way hash of it."""
    return secret + hashlib.blake2b(secret, digest_size=CHECK, person=b"holdfast.check").digest()


def read_secret(path: Path | None) -> Keys:
    """Return the keys of the secret in a private file, or in the environment where no file is named."""
    if path is not None:
        return _keys(_content(path), f"the file {str(path)!r}")
    if VARIABLE not in os.environ:
        raise Refused(f"the agents' secret is missing: name its file with --secret, or set {VARIABLE}")
    return _keys(os.environ[VARIABLE], f"the variable {VARIABLE}")


def _content(path: Path) -> str:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode) or mode & 0o077:
                raise Refused(f"others may read the secret in {str(path)!r}: make it a file of mode 0600")
            return file.read(LONGEST).decode("ascii", errors="replace")
    except OSError as error:
        raise Refused(f"the secret in {str(path)!r} cannot be read: {error.strerror}") from None


def _keys(text: str, where: str) -> Keys:
    secret = _decoded(text)
    del text  # whatever is wrong, nothing of it is repeated, not even by what prints the variables of a traceback
    if secret is None:
        raise Refused(f"{where} holds no secret, or not all of it: holdfast secret FILE makes one")
    return Keys.of(secret)


def _decoded(text: str) -> bytes | None:
    """The secret, where its check is right."""
    try:
        content = bytes.fromhex(text.strip())
    except ValueError:
        return None
    return content[:SIZE] if content == with_check(content[:SIZE]) and len(content) == SIZE + CHECK else None


def identity(keys: Keys, *public: str) -> str:
    """Return the name of the release that a secret makes of a spec and its public files; it tells nothing about it."""
    return f"{keys.at('release', *public).bits(128):032x}"


def noise_keys(keys: Keys, release: str) -> Keys:
    """Return the keys from which the noise of one release is made."""
    return Keys.drawn_from(keys.at("noise", release))


def commitment(keys: Keys, release: str, agent: str, truth: Ints, noise: Ints) -> str:
    """Return a keyed hash of an agent's true values and noise: without the secret it tells nothing about them."""
    return _sealed(keys.at("commitment", release, agent), truth, noise)


def common_mark(keys: Keys, release: str, head: Ints) -> str:
    """Return a keyed hash of the noise that all agents have in common: equal where they made the same."""
    return _sealed(keys.at("common", release), head)


def _sealed(stream: Stream, *parts: Ints) -> str:
    content = b"".join(np.ascontiguousarray(part, dtype="<i8").tobytes() for part in parts)
    key = stream.words(8).astype("<u8").tobytes()
    return hashlib.blake2b(content, key=key, digest_size=32, person=b"holdfast.slice").hexdigest()
