"""Compiled work on slices of rows, by as many threads as there are processors."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

Result = TypeVar("Result")


def in_threads(work: Callable[[slice], Result], count: int, rows: int = 1) -> list[Result]:
    """Call `work` on slices that cover `count` rows, at least `rows` in each; several slices take several threads."""
    workers = min(os.cpu_count() or 1, max(1, count // rows))
    if workers == 1:
        return [work(slice(0, count))]
    cuts = [count * k // workers for k in range(workers + 1)]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, [slice(*pair) for pair in pairwise(cuts)]))
