"""Signatures by Ed25519 (RFC 8032), checked with whole numbers alone."""

from __future__ import annotations

import hashlib
import json
import re

from holdfast.release.standalone_verifier.reading import Broken, Json, hash_of

Point = tuple[int, int, int, int]
P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def added(one: Point, two: Point) -> Point:
    a, b = (one[1] - one[0]) * (two[1] - two[0]) % P, (one[1] + one[0]) * (two[1] + two[0]) % P
    c, d = 2 * one[3] * two[3] * D % P, 2 * one[2] * two[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(factor: int, point: Point) -> Point:
    found = (0, 1, 1, 0)
    while factor:
        if factor & 1:
            found = added(found, point)
        point, factor = added(point, point), factor >> 1
    return found


def point_of(text: bytes) -> Point | None:
    """Return the point that 32 bytes stand for, None where there is none."""
    number = int.from_bytes(text, "little")
    sign, y = number >> 255, number & ((1 << 255) - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


def is_signature(key: bytes, signature: bytes, content: bytes) -> bool:
    """Say whether the key with this public part made the signature."""
    base = point_of((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))
    public, commitment = point_of(key), point_of(signature[:32])
    factor = int.from_bytes(signature[32:], "little")
    if base is None or public is None or commitment is None or len(signature) != 64 or factor >= ORDER:
        return False
    if times(8, public)[0] == 0:  # of small order: signatures by such a key can be made by anybody
        return False
    digest = hashlib.sha512(signature[:32] + key + content).digest()
    left = times(factor, base)
    right = added(commitment, times(int.from_bytes(digest, "little") % ORDER, public))
    same_x = (left[0] * right[2] - right[0] * left[2]) % P == 0
    return same_x and (left[1] * right[2] - right[1] * left[2]) % P == 0


# --- one draw: what was fixed before it is one hash, and the nonce that its words are made of was given afterwards

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
