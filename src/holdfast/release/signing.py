"""Keys that sign releases (Ed25519): made fresh, kept in a private file, named by their fingerprint.

A public key is one line of text, `holdfast-key BASE64 [NAME]`, and a file of such lines is what a reader trusts: a new
line when the key is changed, and a line `revoked FINGERPRINT` for one that was lost.
"""

from __future__ import annotations

import base64
import binascii
import getpass
import hashlib
import json
import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.arguments import Refused
from holdfast.release.standalone_verifier.ed25519 import point_of, times
from holdfast.system import BYTES, NO_LINK, others_may

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

#: Where the passphrase of a key is looked for before anybody is asked.
VARIABLE = "HOLDFAST_PASSPHRASE"
#: The words that begin the lines of a public file, and its name behind that of the private one.
PUBLIC, REVOKED, SUFFIX = "holdfast-key", "revoked", ".pub"
#: What a private file says of itself.
PRIVATE = "PRIVATE KEY-----"
#: Bytes of a public key, and of the longest file that is read.
KEY, LONGEST = 32, 1 << 20


def fingerprint(public: bytes) -> str:
    return f"sha256:{hashlib.sha256(public).hexdigest()}"


@dataclass(frozen=True, eq=False, repr=False)
class Signer:
    """A key that signs; it is never shown."""

    private: Ed25519PrivateKey
    public: bytes

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.public)

    def sign(self, content: bytes) -> bytes:
        return self.private.sign(content)


def write_key(path: Path, passphrase: str | None = None) -> Signer:
    """Write a fresh key to a new file that only its owner can read, and its public part beside it."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    private = Ed25519PrivateKey.generate()
    phrase = passphrase or os.environ.get(VARIABLE)
    how = BestAvailableEncryption(phrase.encode()) if phrase else NoEncryption()
    signer = _signer(private)
    public = path.with_name(f"{path.name}{SUFFIX}")
    write_private(path, private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, how), 0o600)
    write_private(public, f"{PUBLIC} {base64.b64encode(signer.public).decode()}\n".encode(), 0o644)
    return signer


def read_key(path: Path) -> Signer:
    """Read the key in a private file; its passphrase is in the environment, or asked for on a terminal."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    content = read_private(path, "key")
    phrase = os.environ.get(VARIABLE)
    if b"ENCRYPTED" in content and phrase is None:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise Refused(f"the key in {str(path)!r} has a passphrase: set {VARIABLE}")
        phrase = getpass.getpass(f"passphrase of {path}: ")
    given: Any = phrase.encode() if phrase is not None and b"ENCRYPTED" in content else None
    del phrase
    try:
        private = load_pem_private_key(content, given)
    except (ValueError, TypeError):
        raise Refused(f"{str(path)!r} holds no key, or the passphrase is wrong: holdfast key FILE makes one") from None
    if not isinstance(private, Ed25519PrivateKey):
        raise Refused(f"the key in {str(path)!r} is of another kind: holdfast key FILE makes one")
    return _signer(private)


def read_trusted(path: str | Path) -> dict[str, bytes]:
    """Read public keys by their fingerprints, one per line; refuse lines that are none, and revoke none."""
    keys: dict[str, bytes] = {}
    for number, line in enumerate(_public(Path(path)).splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if PRIVATE in line:
            public = f"{Path(path).name}{SUFFIX}"
            raise Refused(f"{str(path)!r} is a private key, which signs: readers need its public part, in {public}")
        if words[0] == PUBLIC and len(words) > 1:
            key = decoded(words[1])
            if len(key) == KEY and not of_small_order(key):
                keys[fingerprint(key)] = key
                continue
        elif words[0] == REVOKED and len(words) > 1 and words[1].startswith("sha256:"):
            continue
        raise Refused(f"line {number} of {str(path)!r} is no key: write {PUBLIC} KEY, or {REVOKED} FINGERPRINT")
    if not keys:
        raise Refused(f"{str(path)!r} names no key: holdfast key FILE writes one into FILE{SUFFIX}")
    return keys


def of_small_order(public: bytes) -> bool:
    """Whether eight times the point of a key is nothing, or its bytes are not those of a point of the curve."""
    point = point_of(public)
    return point is None or times(8, point)[0] == 0


def _signer(private: Ed25519PrivateKey) -> Signer:
    return Signer(private, private.public_key().public_bytes_raw())


def decoded(text: str) -> bytes:
    """Return the bytes that a text in base64 stands for, none where it is not one."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError, TypeError):
        return b""


def write_private(path: Path, content: bytes, mode: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK | BYTES, mode)
    except FileExistsError:
        raise Refused(f"{str(path)!r} exists already: name another file") from None
    except OSError as error:
        raise Refused(f"{str(path)!r} cannot be written: {error.strerror}") from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def read_private(path: Path, what: str) -> bytes:
    """Return the content of a file that only its owner can read."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or others_may(status, 0o077):
                raise Refused(f"others may read the {what} in {str(path)!r}: make it a file of mode 0600")
            return file.read(LONGEST)
    except OSError as error:
        raise Refused(f"the {what} in {str(path)!r} cannot be read: {error.strerror}") from None


def _public(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(LONGEST).decode("utf-8")
    except UnicodeDecodeError:
        raise Refused(f"{str(path)!r} is no file of public keys: holdfast key FILE writes one into FILE.pub") from None
    except OSError as error:
        raise Refused(f"the keys in {str(path)!r} cannot be read: {error.strerror}") from None


# --- detached signatures: a small file beside the one that is signed, with the public key that made it ---------------

#: Version of the JSON form of a signature, and the name of its file behind that of what is signed.
SCHEMA, SIGNED = "holdfast-signature-1", ".sig"


def signature_text(signer: Signer, content: bytes) -> str:
    found = {
        "schema": SCHEMA,
        "fingerprint": signer.fingerprint,
        "key": base64.b64encode(signer.public).decode(),
        "signature": base64.b64encode(signer.sign(content)).decode(),
    }
    return json.dumps(found, indent=1) + "\n"
