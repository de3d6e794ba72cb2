"""The largest sets that an increasing condition still admits, without listing all subsets.

A set that is refused holds a smallest refused set; every admitted set must lack one of its members. Branching over
which member is the first that is missing meets every largest admitted set exactly once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.arguments import Refused

#: Sets that are looked at before giving up.
MOST_SETS = 20_000

Condition = Callable[[frozenset[int]], bool]


def largest_admitted(n: int, admits: Condition) -> Iterator[frozenset[int]]:
    """Yield every subset of 0 … n−1 that is admitted and in no larger admitted one.

    `admits` holds for every subset of an admitted set. Refused when more than MOST_SETS sets had to be looked at.
    """
    everything = frozenset(range(n))
    waiting = [(frozenset[int](), frozenset[int]())]  # what is left out, what must stay
    looked_at = 0
    while waiting:
        out, stays = waiting.pop()
        looked_at += 1
        if looked_at > MOST_SETS:
            raise Refused(
                f"outputs must be named here: more than {MOST_SETS} sets of outputs would have to be looked at"
            )
        chosen = everything - out
        if admits(chosen):
            if not any(admits(chosen | {member}) for member in out):
                yield chosen
            continue
        refused = _smallest_refused(chosen, stays, admits)
        must_stay = stays
        for member in sorted(refused - stays):
            waiting.append((out | {member}, must_stay))
            must_stay = must_stay | {member}


def _smallest_refused(chosen: frozenset[int], stays: frozenset[int], admits: Condition) -> frozenset[int]:
    """Return a refused subset of which every part is admitted, with as few members outside `stays` as comes easily."""
    kept = chosen
    for member in [*sorted(chosen - stays), *sorted(chosen & stays)]:
        if not admits(kept - {member}):
            kept = kept - {member}
    return kept
