"""Compiled work on slices of rows, by as many threads as there are processors."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

from holdfast.randomness import Stream

#: Random words that are drawn at once.
BATCH_WORDS = 1 << 20


def in_threads(work: Callable[[slice], None], count: int, rows: int = 1) -> None:
    """Call `work` on slices that cover `count` rows, at least `rows` in each; several slices take several threads."""
    workers = min(os.cpu_count() or 1, max(1, count // rows))
    if workers == 1:
        work(slice(0, count))
        return
    cuts = [count * k // workers for k in range(workers + 1)]
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, [slice(*pair) for pair in pairwise(cuts)]))


def in_steps(work: Callable[[Any, Any, slice], None], states: Any, steps: int, words: int, stream: Stream) -> None:
    """Let `work` take so many steps of every row of states, in place, each with so many random words."""
    count = len(states)
    at_once = max(1, BATCH_WORDS // (words * count))
    for done in range(0, steps, at_once):
        shape = count, min(at_once, steps - done), words
        drawn = stream.words(math.prod(shape)).reshape(shape)
        in_threads(lambda part, drawn=drawn: work(states, drawn, part), count)  # type: ignore[misc]
