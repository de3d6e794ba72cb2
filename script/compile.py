"""Compile what the tests use before they start, on two processors: pytest's workers would each compile all of it.

Run: .venv/bin/python script/compile.py
Every example of every way (tests/contracts/test_ways.py) is drawn once. Compiled code is kept beside the sources, so
this takes minutes once and seconds later. Python's own byte code is made along with it.
"""

from __future__ import annotations

import compileall
import gc
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
#: Ways whose examples are drawn in a process of their own.
APART = {("given", "hierarchy"), ("given", "tied_totals")}
#: Names of one frame, each of eight bytes; see `with_room`.
NAMES = 60_000
#: Large packages that tests use and the draws here do not.
PACKAGES = ("cvxpy", "hypothesis", "openpyxl", "pandas", "polars", "psycopg", "scipy.stats", "sqlalchemy")


def draw(*, apart: bool) -> None:
    """Draw the examples of the ways that are compiled apart, with their errors, or of all others."""
    gc.disable()  # compiling makes many objects and leaves few: looking for garbage takes a twentieth of it
    sys.path[:0] = [str(ROOT / "tests" / "contracts"), str(ROOT / "tests" / "support")]
    from test_ways import EXAMPLES, applied

    import holdfast as hf
    from holdfast.arrays import Sized
    from holdfast.trees.nearest import levelwise, nearest

    levelwise.serves = nearest.serves = lambda *_: False  # what plain numpy does is not compiled
    Sized.__call__ = lambda self, *arguments: self.compiled(*arguments)  # nor what is small
    for verb, way, example in (parameters.values for parameters in EXAMPLES):
        if ((verb, way) in APART) == apart:
            applied(verb, way, example).simulate(example.truth, 2, rng=hf.seeded(1))
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2])
    query = hf.counts(tree)
    noisy = query.answer([5, 0, 7])
    if apart:
        hf.laplace(query, epsilon=1).given(hf.consistent(tree)).release(noisy, rng=hf.seeded(1)).interval(0.9)
        crossed = hf.nonnegative() & hf.invariant(hf.exact_margins((4, 5), [(0,), (1,)]))
        network = hf.laplace(hf.margins((4, 5)), epsilon=1).onto(crossed, norm="l1", integer=True)
        network.simulate(list(range(20)), 2, rng=hf.seeded(1))
        return
    must = hf.consistent(tree) & hf.nonnegative() & hf.between(0, 4, at=[3])
    for norm in ("l2", "l1"):
        for integer in (True, False):
            hf.gaussian(query, scale=[1, 2, 1, 1, 2, 1]).onto(must, norm=norm, integer=integer).image(noisy)


def with_room(call: Callable[[], None]) -> None:
    """Call from a very large frame: a twentieth of the time goes otherwise into memory that is fetched and given back.

    Python keeps frames in pieces of 16 kB, and a loop that calls across the end of one needs another at every call. A
    piece is at least twice as large as the first frame in it.
    """
    made: dict[str, Any] = {}
    names = "=".join(f"x{i}" for i in range(NAMES))
    exec(f"def wide(call):\n    if call is None:\n        {names} = 0\n    call()\n", made)
    made["wide"](call)


def keep_byte_code() -> None:
    """Let Python keep its byte code of everything: workers that start at once would each make all of it."""
    for folder in ("src", "tests"):
        compileall.compile_dir(ROOT / folder, quiet=1)
    for name in PACKAGES:
        import_module(name)


def main() -> int:
    """Draw both halves at once, each in a process of its own."""
    halves = [subprocess.Popen([sys.executable, __file__, name]) for name in ("apart", "others")]
    keep_byte_code()
    return max(half.wait() for half in halves)


if __name__ == "__main__":
    if sys.argv[1:]:
        with_room(lambda: draw(apart=sys.argv[1] == "apart"))
    else:
        sys.exit(main())
