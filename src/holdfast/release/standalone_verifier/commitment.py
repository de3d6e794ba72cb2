"""One draw: what was fixed before it is one hash, and the nonce that its words are made of was given afterwards."""

from __future__ import annotations

import json
import re

from holdfast.release.standalone_verifier.ed25519 import is_signature
from holdfast.release.standalone_verifier.reading import Broken, Json, hash_of

#: A nonce in hexadecimal digits: 16 bytes cannot be guessed, 64 are a signature.
NONCE = r"^(?:[0-9a-f]{2}){16,64}$"
#: What an officer signs begins with these words, so that no signature of anything else is a nonce.
COMMITMENT = "holdfast-commitment-1"


def commitment_of(certificate: Json) -> str:
    """The hash of all that was fixed before the draw, with the ledger up to there: what an officer is shown."""
    fixed, charge = certificate["commitment"], certificate["ledger"]
    if charge is None:
        raise Broken("its commitment is in no ledger")
    names = certificate["release"], certificate["spec_hash"], fixed["opening"], fixed["code"]
    words = [COMMITMENT, *names, charge["row"], charge["hash"]]
    return hash_of(json.dumps(words, separators=(",", ":")).encode())


def signed_words(commitment: str) -> bytes:
    """What an officer signs; the signature is the nonce."""
    return f"{COMMITMENT} {commitment}".encode()


def nonce_words(certificate: Json, officers: dict[str, bytes] | None) -> str:
    """Say what is known of the nonce; a key of `officers`, public ones by their fingerprints, must have made it."""
    fixed, commitment = certificate["commitment"], commitment_of(certificate)
    if not re.fullmatch(NONCE, fixed["nonce"]):
        raise Broken("its nonce is none")
    if officers is None:
        return f"{commitment} was fixed before the nonce, says the ledger; ask who gave the nonce, or name their key"
    for name, public in officers.items():
        if is_signature(public, bytes.fromhex(fixed["nonce"]), signed_words(commitment)):
            if name == certificate["signed_by"]:
                raise Broken("the nonce was given by whoever signed the release, and shows nothing")
            return f"{commitment} was fixed before the nonce, which {name} made of it; an opening shows the draw"
    raise Broken("no officer whom you trust gave the nonce for this commitment")
