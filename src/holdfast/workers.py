"""Compiled work on slices of rows, by as many threads as there are processors."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

from holdfast.randomness import Stream

#: Random words that are drawn at once.
BATCH_WORDS = 1 << 20
#: Random words whose use takes longer than a thread takes to start.
WORTH = 1 << 13

Result = TypeVar("Result")


def in_threads(work: Callable[[slice], Result], count: int, rows: int = 1) -> list[Result]:
    """Call `work` on slices that cover `count` rows, at least `rows` in each; several slices take several threads."""
    workers = min(os.cpu_count() or 1, max(1, count // rows))
    if workers == 1:
        return [work(slice(0, count))]
    cuts = [count * k // workers for k in range(workers + 1)]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, [slice(*pair) for pair in pairwise(cuts)]))


def rows_worth_a_thread(words: int) -> int:
    """How many rows, of so many random words each, a thread should at least have."""
    return -(-WORTH // max(1, words))


def in_steps(work: Callable[[Any, Any, slice], None], states: Any, steps: int, words: int, stream: Stream) -> None:
    """Let `work` take so many steps of every row of states, in place, each with so many random words."""
    count = len(states)
    at_once = max(1, BATCH_WORDS // (words * count))
    for done in range(0, steps, at_once):
        shape = count, min(at_once, steps - done), words
        drawn = stream.words(math.prod(shape)).reshape(shape)
        rows = rows_worth_a_thread(shape[1] * words)
        in_threads(lambda part, drawn=drawn: work(states, drawn, part), count, rows)  # type: ignore[misc]
