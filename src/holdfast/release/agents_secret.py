"""The secret that agents share: made fresh, handed over in a private file or in the environment, never shown."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from pathlib import Path

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.randomness import Keys

#: Where the command looks for the secret when no file is named.
VARIABLE = "HOLDFAST_SECRET"
#: Bytes of a fresh secret.
SIZE = 32
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
        file.write(secrets.token_hex(SIZE) + "\n")


def read_secret(path: Path | None) -> Keys:
    """Return the keys of the secret in a private file, or in the environment where no file is named."""
    if path is None:
        text = os.environ.get(VARIABLE)
        if text is None:
            raise Refused(f"the agents' secret is missing: name its file with --secret, or set {VARIABLE}")
        return _keys(text, f"the variable {VARIABLE}")
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode) or mode & 0o077:
                raise Refused(f"others may read the secret in {str(path)!r}: make it a file of mode 0600")
            text = file.read(LONGEST).decode("ascii", errors="replace")
    except OSError as error:
        raise Refused(f"the secret in {str(path)!r} cannot be read: {error.strerror}") from None
    return _keys(text, f"the file {str(path)!r}")


def _keys(text: str, where: str) -> Keys:
    try:
        return Keys.of(bytes.fromhex(text.strip()))
    except ValueError:  # whatever is wrong, nothing of the text is repeated
        raise Refused(f"{where} holds no secret: holdfast secret FILE makes one, of hexadecimal digits") from None


def identity(keys: Keys, *public: str) -> str:
    """Return the name of the release that a secret makes of a spec and its public files; it tells nothing about it."""
    return f"{keys.at('release', *public).bits(128):032x}"


def noise_keys(keys: Keys, release: str) -> Keys:
    """Return the keys from which the noise of one release is made."""
    return Keys.drawn_from(keys.at("noise", release))


def commitment(keys: Keys, release: str, agent: str, truth: npt.NDArray[np.int64]) -> str:
    """Return a keyed hash of an agent's true values: without the secret it tells nothing about them."""
    key = keys.at("commitment", release, agent).words(8).astype("<u8").tobytes()
    content = np.ascontiguousarray(truth, dtype="<i8").tobytes()
    return hashlib.blake2b(content, key=key, digest_size=32, person=b"holdfast.slice").hexdigest()
