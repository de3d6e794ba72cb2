"""Count how often a walk through the code comes back to a file that it had left.

Run: script/walk.py [--all]
Calls are followed in order through the files under src/holdfast, for one release and for one extension. A call site
that leads into a file which the walk had left before counts once, however often it is passed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import holdfast as hf

ROOT = str(Path(hf.__file__).parent)


def returns(walk: Callable[[], Any]) -> set[tuple[str, int, str]]:
    """The call sites (file, line, file called) that lead back to a file already left."""
    left: set[str] = set()
    found: set[tuple[str, int, str]] = set()

    def follow(frame: FrameType, event: str, _: Any) -> None:
        caller, there = frame.f_back, frame.f_code.co_filename
        here = there if caller is None else caller.f_code.co_filename
        if event != "call" or caller is None or here == there or not (here.startswith(ROOT) and there.startswith(ROOT)):
            return
        if there in left:
            found.add((here[len(ROOT) + 1 :], caller.f_lineno, there[len(ROOT) + 1 :]))
        left.update((here, there))  # the caller leaves its own file, and what it calls is left again

    sys.setprofile(follow)
    try:
        walk()
    finally:
        sys.setprofile(None)
    return found


def release() -> Any:
    """Noise given a hierarchy, released once."""
    query = hf.counts(hf.Hierarchy.from_parents([-1, 0, 0, 1, 1]))
    rules = hf.consistent(query) & hf.nonnegative()
    return hf.laplace(query, epsilon=1).given(rules).release(query.answer([3, 1, 4]), rng=hf.seeded(1))


def extension() -> Any:
    """Noise made for an exact total, released once."""
    return hf.extend(hf.histogram(4), hf.invariant([[1, 1, 1, 1]]), rho=1).release([3, 1, 4, 2], rng=hf.seeded(1))


if __name__ == "__main__":
    for walk in (release, extension):
        walk()  # everything is loaded and compiled before the walk that counts
        sites = sorted(returns(walk))
        print(f"{walk.__name__}: {len(sites)} call sites lead back")
        print("".join(f"  {here}:{line} -> {there}\n" for here, line, there in sites if "--all" in sys.argv), end="")
