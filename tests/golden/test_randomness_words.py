"""The words of seeded and keyed streams, which must never change, with their derivation."""

import hashlib
import math

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from holdfast.randomness import Keys, seeded

GOLDEN_SEED_0 = [5993988633495946324, 13959458926747930496, 6890081889724073232, 13038672042862637490]
GOLDEN_FINGERPRINT = "84a60e3428a7d00f47aae6e78655b2c6"


def key_stream(key: bytes, blocks: int) -> list[int]:
    """AES-256-CTR from its definition: block j of the key stream is the encryption of j, high byte first."""
    one_block = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    stream = b"".join(one_block.update(j.to_bytes(16, "big")) for j in range(blocks))
    return [int.from_bytes(stream[i : i + 8], "little") for i in range(0, len(stream), 8)]


def test_the_first_words_of_seed_0():
    assert seeded(0).words(4).tolist() == GOLDEN_SEED_0


def test_seeded_words_are_aes_in_counter_mode_under_the_hash_of_the_seed():
    for seed in (0, 7, 10**30):
        key = hashlib.blake2b(str(seed).encode(), digest_size=32, person=b"holdfast.seeded").digest()
        assert seeded(seed).words(4000).tolist() == key_stream(key, 2000)


def test_keyed_words_are_aes_in_counter_mode_under_the_keyed_hash_of_the_path():
    secret = b"sixteen bytes or more"
    inner = hashlib.blake2b(secret, digest_size=32, person=b"holdfast.secret").digest()
    path = b"s" + (4).to_bytes(8, "little") + b"zone" + b"i" + (1).to_bytes(8, "little") + b"\x07"
    key = hashlib.blake2b(path, key=inner, digest_size=32, person=b"holdfast.path").digest()
    assert Keys.of(secret).at("zone", 7).words(6).tolist() == key_stream(key, 3)
    assert Keys.of(secret).fingerprint == GOLDEN_FINGERPRINT


def test_uniforms_and_normals_follow_their_words():
    words = seeded(0).words(4)
    assert seeded(0).uniforms(4).tolist() == [(int(word >> np.uint64(12)) + 0.5) / 2**52 for word in words]
    # The low bit is the sign and the other 63 are the tail probability; Φ comes from the error function.
    for word, normal in zip(words.tolist(), seeded(0).normals(4).tolist(), strict=True):
        tail = math.erfc(abs(normal) / math.sqrt(2)) / 2
        assert math.isclose(tail, ((word >> 1) + 0.5) / 2**64, rel_tol=1e-13)
        assert (normal < 0) == bool(word & 1)


def test_uniforms_stay_inside_the_unit_interval():
    class Extreme(type(seeded(0))):  # type: ignore[misc]
        def words(self, count):
            return np.array([0, 2**64 - 1], dtype=np.uint64)[:count]

    extreme = Extreme(bytes(32))
    low, high = extreme.uniforms(2)
    assert 0 < low < high < 1
    farthest, middle = extreme.normals(2)
    assert 9.1 < farthest < 9.3
    assert abs(middle) < 1e-15
