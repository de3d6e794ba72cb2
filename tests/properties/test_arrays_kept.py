"""What is kept with an owner: computed once, bounded, forgotten when asked, gone with its owner, safe with threads."""

import gc
import pickle
import threading
import weakref

import pytest

from holdfast.arrays import MOST_KEPT, Owner, Shared, kept

CALLS = []


class Thing(Owner):
    def __init__(self, size):
        self.size = size


@kept
def doubled(thing, times=1, *, more=0):
    CALLS.append((thing.size, times, more))
    return [thing] * times


@kept
def nothing(thing):
    CALLS.append("nothing")


def test_results_are_made_once_for_each_owner_and_arguments():
    CALLS.clear()
    one, two = Thing(1), Thing(2)
    assert doubled(one) is doubled(one)
    assert doubled(one, 2) is doubled(one, 2)
    assert doubled(one, 2) is not doubled(one, 2, more=1)
    assert doubled(two) is not doubled(one)
    assert CALLS == [(1, 1, 0), (1, 2, 0), (1, 2, 1), (2, 1, 0)]


def test_a_result_of_none_is_kept_too():
    CALLS.clear()
    thing = Thing(1)
    assert nothing(thing) is None
    assert nothing(thing) is None
    assert CALLS == ["nothing"]


def test_only_the_newest_few_are_kept():
    CALLS.clear()
    thing = Thing(1)
    for times in range(MOST_KEPT + 1):
        doubled(thing, times)
    doubled(thing, MOST_KEPT)
    assert len(CALLS) == MOST_KEPT + 1
    doubled(thing, 0)
    assert len(CALLS) == MOST_KEPT + 2


def test_what_is_forgotten_is_made_again():
    CALLS.clear()
    thing = Thing(1)
    doubled(thing)
    nothing(thing)
    thing.forget(doubled)
    doubled(thing)
    nothing(thing)
    assert CALLS == [(1, 1, 0), "nothing", (1, 1, 0)]
    thing.forget()
    nothing(thing)
    assert CALLS[-1] == "nothing"
    assert len(CALLS) == 4


def test_an_owner_goes_although_its_results_name_it():
    thing = Thing(1)
    doubled(thing)
    seen = weakref.ref(thing)
    del thing
    gc.collect()
    assert seen() is None


def test_copies_begin_with_nothing():
    thing = Thing(3)
    doubled(thing)
    assert "_memo" not in vars(pickle.loads(pickle.dumps(thing)))


def test_threads_get_one_result():
    thing = Thing(1)
    wait, seen = threading.Barrier(8), []

    def ask():
        wait.wait()
        seen.append(doubled(thing, 7))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(each is seen[0] for each in seen)


def test_equal_keys_share_one_result_and_the_newest_few_stay():
    shared, made = Shared(2), []
    for key in ((1, b"a"), (1, b"a"), (2,), (3,), (1, b"a")):
        assert shared.get(key, lambda key=key: made.append(key) or key) == key
        assert len(shared) <= 2
    assert made == [(1, b"a"), (2,), (3,), (1, b"a")]


def test_what_fails_is_not_shared():
    shared = Shared(2)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            shared.get("key", lambda: 1 // 0)
    assert len(shared) == 0
