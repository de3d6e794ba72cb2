"""Count how often a walk through the code comes back to a file that it had left.

Run: script/walk.py
Calls are followed in order through the files under src/holdfast, for one release and for one extension. A call site
that leads into a file which the walk had entered before and left counts once, however often it is passed.
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
        caller = frame.f_back
        if event != "call" or caller is None or not frame.f_code.co_filename.startswith(ROOT):
            return
        here, there = caller.f_code.co_filename, frame.f_code.co_filename
        if here == there or not here.startswith(ROOT):
            return
        if there in left:
            found.add((here[len(ROOT) + 1 :], caller.f_lineno, there[len(ROOT) + 1 :]))
        left.add(here)  # whoever calls into another file leaves its own
        left.add(there)  # and what was called is left when it returns

    sys.setprofile(follow)
    try:
        walk()
    finally:
        sys.setprofile(None)
    return found


def release() -> Any:
    """Noise given a hierarchy, released once."""
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1])
    query = hf.counts(tree)
    rules = hf.consistent(tree) & hf.nonnegative()
    return hf.laplace(query, epsilon=1).given(rules).release(query.answer([3, 1, 4]), rng=hf.seeded(1))


def extension() -> Any:
    """Noise made for an exact total, released once."""
    mechanism = hf.extend(hf.histogram(4), hf.invariant([[1, 1, 1, 1]]), rho=1)
    return mechanism.release([3, 1, 4, 2], rng=hf.seeded(1))


if __name__ == "__main__":
    for walk in (release, extension):
        walk()  # everything is loaded and compiled before the walk that counts
        found = returns(walk)
        inside = sum(here.startswith("mechanism/") or there.startswith("mechanism/") for here, _, there in found)
        print(f"{walk.__name__}: {len(found)} call sites lead back, {inside} of them from or into mechanism/")
        for each in sorted(found) if "--all" in sys.argv else ():
            print("  {}:{} -> {}".format(*each))
