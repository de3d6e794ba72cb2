"""Record digests of draws, statements and releases, and compare them after a change that must not change anything.

Run: .venv/bin/python script/draws.py record FILE      before the change
     .venv/bin/python script/draws.py compare FILE     after it: names what differs, and ends with 1 if anything does
One digest for each mechanism (values and statements under one seed), and one for the table of each example, released
by the command with keys from a fixed source. It uses public names and the command only, so files may move freely.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import holdfast as hf
from holdfast.mechanism import mixture

ROOT = Path(__file__).resolve().parent.parent
DRAWS, SEED = 3, 20_26
RELEASED = ("city", "contingency", "crossed", "shifts", "state")
#: Runs the command with keys that follow from a counter, which only this program may do.
WITH_FIXED_KEYS = """
import hashlib, itertools, os, sys, uuid
counter, bits = itertools.count(), os.urandom
# what is compiled is kept under random names: they must not use up keys, or the draws would depend on what was kept
uuid.uuid4 = lambda: uuid.UUID(bytes=bits(16), version=4)
os.urandom = lambda size: hashlib.shake_256(str(next(counter)).encode()).digest(size)
from holdfast.cli import main
main()
"""


def digest(*parts: Any) -> str:
    """A short digest of arrays and texts."""
    total = hashlib.sha256()
    for part in parts:
        total.update(np.ascontiguousarray(part).tobytes() if isinstance(part, np.ndarray) else str(part).encode())
    return total.hexdigest()[:16]


def loaded(name: str, path: Path) -> Any:
    """A script of the project as a module."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def combinations() -> Iterator[tuple[str, Callable[[], tuple[hf.Mechanism, Any]]]]:
    """Every cell of the page of combinations."""
    page = loaded("combinations", ROOT / "script" / "combinations.py")
    for case in page.cases():
        for verb in ("given", "onto") if case.constraint is not None else ("given",):
            for law in ("Laplace", "Gaussian"):
                for integer in (True, False):
                    name = f"{verb} {law} {'integer' if integer else 'real'}: {case.name}"
                    yield name, lambda c=case, w=law, i=integer, v=verb: (page.mechanism(c, w, i, v), c.truth)


def more() -> Iterator[tuple[str, Callable[[], tuple[Any, Any]]]]:
    """Hierarchies, named methods, noise made for exact figures, unions and mixtures."""
    rng = np.random.default_rng(1)
    parents = np.concatenate([[-1], np.zeros(6), np.repeat(np.arange(1, 7), 30)]).astype(int)
    tree = hf.Hierarchy.from_parents(parents)
    truth = tree.sum_up(rng.geometric(0.1, tree.leaves.size) - 1)
    query, held = hf.counts(tree), hf.consistent(tree) & hf.nonnegative()
    shares = {0: 0.2, 1: 0.3, 2: 0.5}
    for law, base in {
        "Laplace": hf.laplace(query, epsilon=1),
        "Gaussian": hf.gaussian(query, rho=0.5),
        "Laplace shares": hf.laplace(query, epsilon=1, shares=shares),
        "Gaussian shares": hf.gaussian(query, rho=0.5, shares=shares),
        "Laplace replace-one": hf.laplace(query, epsilon=1, neighbours="replace-one"),
    }.items():
        yield f"tree {law} given", lambda b=base: (b.given(held), truth)
        yield f"tree {law} consistent", lambda b=base: (b.given(hf.consistent(tree)), truth)
        yield f"tree {law} onto", lambda b=base: (b.onto(held), truth)
        yield f"tree {law} given then onto", lambda b=base: (b.given(hf.consistent(tree)).onto(hf.nonnegative()), truth)
        yield f"tree {law} l1", lambda b=base: (b.onto(held, norm="l1"), truth)
        for method in ("topdown", "bluedown"):
            yield f"tree {law} {method}", lambda b=base, m=method: (b.onto(held, method=m), truth)
        yield f"tree {law} exact", lambda b=base: (b.given(held & hf.invariant(hf.exact_nodes(tree, [0]))), truth)
    cells, row = hf.histogram(8), hf.invariant(np.ones((1, 8), dtype=int))
    counts = rng.poisson(20, 8)
    for law in ("gaussian", "laplace", "correlated", "optimal", "k-norm"):
        for neighbours in ("add-remove", "replace-one"):
            words = {"epsilon": 1} if law in ("laplace", "k-norm") else {"rho": 0.5}
            words |= {"neighbours": neighbours}
            yield f"extend {law} {neighbours}", lambda a=law, w=words: (hf.extend(cells, row, law=a, **w), counts)
    yield "extend integer", lambda: (hf.extend(cells, row, law="gaussian", rho=0.5, integer=True), counts)
    margins = hf.invariant(hf.exact_margins((3, 4, 2), [(0, 1), (2,)]))
    cube = rng.poisson(30, 24)
    for law in ("gaussian", "optimal", "laplace"):
        words = {"epsilon": 1} if law == "laplace" else {"rho": 0.5}
        yield f"extend cube {law}", lambda a=law, w=words: (hf.extend(hf.margins((3, 4, 2)), margins, law=a, **w), cube)
    two = hf.between(0, 30) | hf.between(40, 60)
    yield "union given", lambda: (hf.laplace(hf.histogram(3), epsilon=1).given(two), np.array([12, 20, 8]))
    yield "union onto", lambda: (hf.laplace(hf.histogram(3), epsilon=1).onto(two), np.array([12, 20, 35]))
    parts = (hf.laplace(cells, epsilon=1), hf.laplace(cells, epsilon=1).onto(hf.nonnegative()))
    yield "mixture", lambda: (mixture(parts, [1, 1]), counts)
    chain = hf.laplace(hf.counts(hf.Hierarchy.from_parents([-1, 0, 0])), epsilon=1)
    pair = hf.consistent(hf.Hierarchy.from_parents([-1, 0, 0]))
    yield "metropolis", lambda: (chain.given(pair, method="metropolis"), np.array([5, 2, 3]))


def mechanisms() -> Iterator[tuple[str, str]]:
    """The digest of each mechanism: its statements, and draws under one seed; or that of its refusal."""
    for name, build in (*combinations(), *more()):
        try:
            built, truth = build()
            drawn = digest(built.simulate(truth, DRAWS, rng=hf.seeded(SEED)))
        except hf.Refused as refusal:
            yield name, f"refused {digest(refusal)}"
            continue
        try:
            promised = "\n".join(str(statement) for statement in built.guarantees)
        except hf.Refused as refusal:
            promised = str(refusal)
        yield name, f"{drawn} {digest(promised)}"


def releases() -> Iterator[tuple[str, str]]:
    """The digest of the table of each example."""
    for name in RELEASED:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(ROOT / "examples" / name, folder, dirs_exist_ok=True)
            for words in (
                [str(ROOT / "examples" / "make_data.py"), name, folder],
                ["-c", WITH_FIXED_KEYS, "release", str(Path(folder) / "spec.yaml"), "--quiet"],
            ):
                subprocess.run([sys.executable, *words], check=True, env=os.environ, stdout=subprocess.DEVNULL)
            tables = sorted((Path(folder) / "release").glob("*.csv"))
            yield f"example {name}", digest(*(path.name + path.read_text(encoding="utf-8") for path in tables))


def main(verb: str, file: str) -> int:
    """Record, or compare with what was recorded."""
    now = dict((*mechanisms(), *releases()))
    path = Path(file)
    if verb == "record":
        path.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
        print(f"recorded {len(now)} digests")
        return 0
    before = json.loads(path.read_text(encoding="utf-8"))
    differ = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    for name in differ:
        print(f"{name}: {before.get(name, 'not there before')} → {now.get(name, 'not there now')}")
    print(f"{len(now) - len(differ)} of {len(now)} digests are as before")
    return 1 if differ else 0


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("record", "compare"):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
