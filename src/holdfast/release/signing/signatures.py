"""Detached signatures: a small file beside the one that is signed, with the public key that made it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from holdfast.arguments import Refused
from holdfast.release.signing.keys import KEY, SIGNATURE, Signer, Trusted, decoded, fingerprint, signed_by
from holdfast.release.storage.files import plain_json, read_plain

#: Version of the JSON form of a signature, and the name of its file behind that of what is signed.
SCHEMA, SUFFIX = "holdfast-signature-1", ".sig"
NOBODY = "signed by nobody, so that whoever could change it could have made it"


def signature_text(signer: Signer, content: bytes) -> str:
    """Return the file that signs some bytes."""
    found = {
        "schema": SCHEMA,
        "fingerprint": signer.fingerprint,
        "key": base64.b64encode(signer.public).decode(),
        "signature": base64.b64encode(signer.sign(content)).decode(),
    }
    return json.dumps(found, indent=1) + "\n"


def signer_of(path: Path, content: bytes) -> str:
    """Return the fingerprint of the key whose signature of these bytes is in a file; refused where it is wrong."""
    try:
        found: Any = plain_json(read_plain(path))
        key, signature = decoded(found["key"]), decoded(found["signature"])
        whole = found["schema"] == SCHEMA and set(found) == {"schema", "fingerprint", "key", "signature"}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise Refused(f"the signature {path.name} is missing, or cannot be read") from None
    named = len(key) == KEY and len(signature) == SIGNATURE and found["fingerprint"] == fingerprint(key)
    if not whole or not named or not signed_by(key, signature, content):
        raise Refused(f"the signature {path.name} is not one of the file that it stands beside")
    return fingerprint(key)


def judged(signer: str | None, trusted: Trusted | None) -> tuple[str | None, str]:
    """Return what is wrong with who signed something, or None, and otherwise what to say of it."""
    if signer is None:
        return (None if trusted is None else f"it is {NOBODY}", NOBODY)
    if trusted is None:
        return None, f"signed by {signer}; name the public key with --key to know whose that is"
    return trusted.wrong_with(signer), f"signed by {signer}, which you trust"
