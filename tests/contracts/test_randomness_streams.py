"""Streams give every word once, in threads and across forks; what must be refused is refused."""

import copy
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

from holdfast.arguments import Refused
from holdfast.randomness import Keys, Stream, secure, seeded

SECRET = bytes(range(32))


def run(program: str) -> list[str]:
    """Run a program in an interpreter of its own, where it may fork at will, and return its words."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


FORKS = """
import os, sys
from holdfast.randomness import Keys, secure, seeded
def show(stream, levels):
    # Each level forks before it reads, so that a grandchild may use a stream its parent never touched.
    if levels:
        child = os.fork()
        if child == 0:
            show(stream, levels - 1)
            os._exit(0)
        os.waitpid(child, 0)
    os.write(1, (" ".join(str(w) for w in stream.words(4)) + " | ").encode())
for before in {all_before}:
    stream = {stream}
    for size in before:
        stream.words(size)
    show(stream, 3)
"""


def groups(stream: str, all_before: list[list[int]]) -> list[list[tuple[str, ...]]]:
    """What a stream of which some words were taken, and its forked children, give; one interpreter for all."""
    output = " ".join(run(FORKS.format(stream=stream, all_before=all_before)))
    parts = [tuple(part.split()) for part in output.split("|") if part.split()]
    assert len(parts) == 4 * len(all_before)
    return [parts[start : start + 4] for start in range(0, len(parts), 4)]


@pytest.mark.slow
def test_a_secure_stream_never_repeats_in_forked_children():
    for found in groups("secure()", [[], [1], [5000], [10, 7]]):
        assert len({word for group in found for word in group}) == 16


@pytest.mark.slow
def test_a_seeded_stream_goes_on_alike_in_forked_children():
    all_before = [[], [1], [1021], [5000], [10, 7], [3, 2000, 5, 0, 4000]]
    for before, found in zip(all_before, groups("seeded(9)", all_before), strict=True):
        stream = seeded(9)
        stream.words(sum(before))
        assert found == [tuple(str(word) for word in stream.words(4))] * 4, before


@pytest.mark.slow
def test_a_fork_inside_another_thread_leaves_usable_streams():
    program = """
import os, threading
from holdfast.randomness import secure, seeded
streams = [secure(), seeded(3)]
stop = threading.Event()
def busy():
    while not stop.is_set():
        for stream in streams:
            stream.words(3000)
threads = [threading.Thread(target=busy) for _ in range(2)]
for thread in threads: thread.start()
ends = []
for _ in range(20):
    child = os.fork()
    if child == 0:
        for stream in streams:
            stream.words(10)
        os._exit(7)
    ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
for thread in threads: thread.join()
print(*ends)
"""
    assert run(program) == ["7"] * 20


def test_threads_share_a_stream_without_repeating_or_tearing_words():
    stream, taken = seeded(4), {}

    def take(name):
        sizes = [1, 7, 1023, 1024, 3000, 2] * 20
        taken[name] = [stream.words(size) for size in sizes]

    threads = [threading.Thread(target=take, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pieces = [piece for pieces in taken.values() for piece in pieces]
    everything = np.concatenate(pieces)
    whole = seeded(4).words(everything.size)
    assert np.array_equal(np.sort(everything), np.sort(whole))
    # Each request is one unbroken run of the stream.
    place = {int(word): i for i, word in enumerate(whole)}
    for piece in pieces:
        start = place[int(piece[0])]
        assert np.array_equal(piece, whole[start : start + piece.size])


def test_the_words_do_not_depend_on_how_they_are_asked_for():
    sizes = [1, 3, 1020, 1, 0, 5000, 7, 1024, 1023, 40_000, 2]
    stream = seeded(5)
    pieces = np.concatenate([stream.words(size) for size in sizes])
    assert np.array_equal(pieces, seeded(5).words(sum(sizes)))


def test_words_belong_to_the_caller():
    stream, twin = seeded(6), seeded(6)
    stream.words(10)[:] = 0
    twin.words(10)
    assert np.array_equal(stream.words(2000), twin.words(2000))


def test_bits_are_the_leading_bits_of_words():
    words = [int(word) for word in seeded(8).words(3)]
    number = words[0] | words[1] << 64 | words[2] << 128
    assert seeded(8).bits(192) == number
    assert seeded(8).bits(130) == number >> 62
    assert seeded(8).bits(0) == 0


def test_secure_streams_differ_and_are_not_reproducible():
    one, other = secure(), secure()
    assert not one.reproducible
    assert not np.array_equal(one.words(4), other.words(4))
    assert seeded(1).reproducible
    assert Keys.fresh().at(1).reproducible


def test_paths_have_streams_of_their_own():
    keys = Keys.of(SECRET)
    paths = [
        (),
        ("",),
        ("", ""),
        ("a", "b"),
        ("ab",),
        ("asb",),
        ("a", "sb"),
        ("a", "b", ""),
        (1,),
        ("1",),
        (-1,),
        (255,),
        (256,),
        (1, 1),
    ]
    paths += [(0,), (65,), ("A",), (0, 0), (2**70,), ("\u00e9",), ("e\u0301",)]
    first = {tuple(keys.at(*path).words(2).tolist()) for path in paths}
    assert len(first) == len(set(paths)) == len(paths)
    assert np.array_equal(keys.at("a", 1).words(9), keys.at("a", np.int64(1)).words(9))


def test_other_secrets_have_other_streams():
    secrets = [SECRET, SECRET[:16], SECRET + b"\0", SECRET[::-1]]
    assert len({tuple(Keys.of(secret).at("a").words(2).tolist()) for secret in secrets}) == 4
    assert len({Keys.of(secret).fingerprint for secret in secrets}) == 4


def test_the_same_path_agrees_across_processes():
    program = "from holdfast.randomness import Keys; print(*Keys.of(bytes(range(32))).at('zone', 7).words(5))"
    assert run(program) == [str(word) for word in Keys.of(SECRET).at("zone", 7).words(5)]


def test_keys_drawn_from_a_stream_follow_it():
    stream = seeded(2)
    one, two = Keys.drawn_from(stream), Keys.drawn_from(stream)
    assert one.fingerprint == Keys.drawn_from(seeded(2)).fingerprint != two.fingerprint
    assert one.fingerprint == Keys.of(seeded(2).words(4).tobytes()).fingerprint
    assert Keys.fresh().fingerprint != Keys.fresh().fingerprint


def test_keys_never_show_their_secret():
    keys = Keys.of(SECRET)
    inside = keys._secret
    for shown in (repr(keys), str(keys), f"{keys}", keys.fingerprint):
        for hidden in (SECRET, inside):
            assert hidden.hex()[:12] not in shown
            assert repr(hidden)[2:10] not in shown
    assert "0x" not in repr(keys.at(1))


@pytest.mark.parametrize("made", [secure, lambda: seeded(1), Keys.fresh, lambda: Keys.fresh().at(3)])
def test_nothing_can_be_copied_or_pickled(made):
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(Refused, match="cannot be copied or pickled"):
            attempt(made())


@pytest.mark.parametrize("seed", [-1, True, np.True_, 1.0, np.float64(2), "1", None, 1j])
def test_bad_seeds_are_refused(seed):
    with pytest.raises(Refused, match=r"^seed must be a whole number of at least 0, found "):
        seeded(seed)


@pytest.mark.parametrize("element", [True, 1.0, None, b"a", ("a",), np.float64(1)])
def test_bad_path_elements_are_refused(element):
    with pytest.raises(Refused, match=r"^path must hold whole numbers and text only"):
        Keys.of(SECRET).at("a", element)


def test_other_bad_input_is_refused():
    with pytest.raises(Refused, match="path must hold text that UTF-8 can write"):
        Keys.of(SECRET).at("\ud800")
    with pytest.raises(Refused, match="secret must have at least 16 bytes, found 15"):
        Keys.of(bytes(15))
    with pytest.raises(Refused, match="secret must be bytes, found str"):
        Keys.of("secret" * 10)  # type: ignore[arg-type]
    with pytest.raises(Refused, match="stream must be a random stream, found Generator"):
        Keys.drawn_from(np.random.default_rng(1))  # type: ignore[arg-type]
    for count in (-1, 1.5, True, "3"):
        for draw in (Stream.words, Stream.bits, Stream.uniforms, Stream.normals):
            with pytest.raises(Refused, match=r"^count must be"):
                draw(seeded(1), count)  # type: ignore[arg-type]
