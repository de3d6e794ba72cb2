"""How wrong noise made for exact figures is: total squared error of every law as a ratio to the dual lower bound.

Gaussian laws are compared at μ = 1, Laplace and k-norm noise at ε = 1, all against the least error that any Gaussian
noise of μ = 1 can have (THEORY H4). Errors do not depend on the counts: of the data only the shapes are used. Where a
law has no error in closed form it is drawn `DRAWS` times, and the ratio says so. A law that is not done within `LIMIT`
seconds is left. Then the time of one core to make a mechanism, draw from it and state what it promises, as tables grow.
It exits with an error when a bar is missed: the gap of the optimum is above 0.1 %, or some Gaussian law is below it.

    python benchmarks/subspace.py --data FOLDER [--only WORD (or "growth", "random")] [--quick]
"""

import argparse
import csv
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads of small products wait for each other on a busy machine

import numpy as np

import holdfast as hf

Case = tuple[str, hf.Query, hf.Constraint]
KINDS = ("add-remove", "replace-one")
STATE = "Illinois"
#: The gap that the optimum must reach.
BAR = 1e-3
#: Draws of a law whose errors are simulated, and the seconds after which a law is left.
DRAWS, LIMIT = 400, 30


def cases(data: Path) -> Iterator[Case]:
    with (data / "us_counties_2010.csv").open(encoding="utf-8") as file:
        counties = sum(row["state"] == STATE for row in csv.DictReader(file))
    yield f"{counties} counties, total", hf.histogram(counties), hf.invariant(np.ones((1, counties), dtype=int))
    for path in sorted(data.glob("ct_*.csv")):
        with path.open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        axes = [name for name in rows[0] if name not in ("Freq", "n")]
        shape = tuple(len({row[name] for row in rows}) for name in axes)
        keep = [(), *((a,) for a in range(len(axes))), *combinations(range(len(axes)), 2)]
        query = hf.margins(shape, keep)
        total = hf.invariant(np.eye(1, query.n, dtype=int))
        yield f"{path.stem[3:]}: {query.n} margins, total", query, hf.consistent(query) & total
    prefix = hf.workload(np.tril(np.ones((256, 256), dtype=int)))
    yield "256 prefix sums, total", prefix, hf.invariant(np.eye(1, 256, 255, dtype=int))
    shape = (14, 24, 20)
    figures = hf.exact_margins(shape, [(1, 2), (0, 2)])
    yield "14 × 24 × 20 cube, two margins", hf.margins(shape), hf.invariant(figures)


def laws(query: hf.Query, constraint: hf.Constraint, kind: str) -> dict[str, Callable[[], hf.Mechanism]]:
    gauss = {"rho": 0.5, "neighbours": kind}
    pure = {"epsilon": 1, "neighbours": kind}
    return {
        "optimal": lambda: hf.extend(query, constraint, law="optimal", **gauss),
        "extended": lambda: hf.extend(query, constraint, law="gaussian", **gauss),
        "correlated": lambda: hf.extend(query, constraint, law="correlated", **gauss),
        "projected": lambda: hf.gaussian(query, integer=False, **gauss).onto(constraint, weights=None),
        "k-norm": lambda: hf.extend(query, constraint, law="k-norm", **pure),
        "extended Laplace": lambda: hf.extend(query, constraint, law="laplace", **pure),
        "projected Laplace": lambda: hf.laplace(query, integer=False, **pure).onto(constraint, weights=None),
        "conditioned Laplace": lambda: hf.laplace(query, integer=False, **pure).given(constraint),
    }


class TooLong(Exception):
    """A law took longer than the limit."""


def too_long(*_: object) -> None:
    raise TooLong


def squared_error(mechanism: hf.Mechanism) -> tuple[float, str]:
    """The total squared error at ε = 1 (or μ = 1) for all neighbours, and how it was found."""
    statement = next(each for each in mechanism.guarantees if each.scope != "invariant-sharing")
    factor = 1.0 if statement.rho is not None else float(statement.epsilon) ** 2  # continuous noise scales
    try:
        return float((mechanism.standard_error() ** 2).sum()) * factor, ""
    except hf.Refused:
        drawn = mechanism.noise(DRAWS, hf.seeded(1))
        return float((drawn**2).sum(axis=1).mean()) * factor, f" ({DRAWS} draws)"


def compare(name: str, query: hf.Query, constraint: hf.Constraint, kind: str) -> bool:
    """Print one line of ratios, and the refusals; say whether the bars are met."""
    refused, bound, least, met = [], np.nan, np.inf, True
    print(f"{name}, {kind}:", end="", flush=True)
    for law, make in laws(query, constraint, kind).items():
        start = time.perf_counter()
        signal.alarm(LIMIT)
        try:
            mechanism = make()
            error, way = squared_error(mechanism)
        except (hf.Refused, TooLong, StopIteration) as trouble:
            reason = {
                TooLong: f"not done in {LIMIT} s",
                StopIteration: "no statement for all neighbours",
            }.get(type(trouble), f"refused: {trouble}")
            refused.append(f"  {law} {reason}")
            continue
        finally:
            signal.alarm(0)
        seconds = time.perf_counter() - start
        if law == "optimal":
            bound, gap, least = mechanism.evidence.lower_bound, mechanism.evidence.relative_gap, error
            met = gap < BAR
            print(f" optimal {error / bound:.6f} (gap {gap:.0e}, {seconds:.1f} s)", end="", flush=True)
            continue
        gaussian = law in ("extended", "correlated", "projected")
        met = met and not (gaussian and error < least * (1 - 1e-6))
        if law == "extended Laplace":
            way += f" [{mechanism.method}]"
        print(f"; {law} {error / bound:.3f}{way}", end="", flush=True)
    print("" if met else "  BAR MISSED", *refused, sep="\n" if refused else "", flush=True)
    return met


def growth(quick: bool) -> None:
    """Time of one core to make a mechanism, to know its errors, to draw once, and to state what it promises."""
    for n in (10**4, 10**5) if quick else (10**4, 10**5, 10**6):
        side = round(n ** (1 / 3))
        tree = hf.Hierarchy.from_parents(np.r_[-1, np.zeros(100, dtype=int), 1 + np.arange(n) % 100])
        nodes = hf.counts(tree)
        structured: dict[str, tuple[hf.Query, hf.Constraint]] = {
            "histogram, total": (hf.histogram(n), hf.invariant(np.ones((1, n), dtype=int))),
            "cube, two-way margins": (
                hf.histogram(side**3),
                hf.invariant(hf.exact_margins((side,) * 3, [(0, 1), (0, 2), (1, 2)])),
            ),
            "tree, exact root": (nodes, hf.consistent(tree) & hf.invariant(hf.exact_nodes(tree, [0]))),
            "tree, exact level": (nodes, hf.consistent(tree) & hf.invariant(hf.exact_nodes(tree, range(1, 101)))),
        }
        for name, (query, constraint) in structured.items():
            for kind in KINDS:
                for law in ("gaussian", "optimal"):
                    print(f"{name}, {query.n} outputs, {kind}, {law}:", end="", flush=True)
                    timed(query, constraint, kind, law)


def timed(query: hf.Query, constraint: hf.Constraint, kind: str, law: str) -> None:
    """Print the four times, or the refusal."""
    times = [time.process_time()]
    try:
        mechanism = hf.extend(query, constraint, law=law, neighbours=kind, rho=0.5)
    except hf.Refused as trouble:
        print(f" refused: {trouble}", flush=True)
        return
    for step in (mechanism.standard_error, lambda: mechanism.noise(1, hf.seeded(1)), lambda: mechanism.guarantees):
        times.append(time.process_time())
        step()
    made, known, drawn, stated = np.diff([*times, time.process_time()])
    print(f" made {made:.2f} s, errors {known:.2f} s, draw {drawn:.2f} s, statements {stated:.2f} s", flush=True)


def random_workloads(quick: bool) -> bool:
    """The gap of the optimum on random workloads, and what it costs; say whether the bar is met."""
    generator = np.random.default_rng(3)
    met = True
    for n in (50, 100) if quick else (50, 100, 200, 500):
        query, constraint = (
            hf.workload(generator.standard_normal((n, 4 * n))),
            hf.invariant(np.ones((1, n), dtype=int)),
        )
        for kind in KINDS:
            start, used = time.perf_counter(), time.process_time()
            found = hf.extend(query, constraint, neighbours=kind, rho=0.5).evidence
            seconds, cpu = time.perf_counter() - start, time.process_time() - used
            spherical = hf.extend(query, constraint, law="gaussian", neighbours=kind, rho=0.5).evidence.objective
            met = met and found.relative_gap < BAR and found.objective <= spherical
            print(
                f"random workload {n} × {4 * n}, {kind}: gap {found.relative_gap:.1e} in {seconds:.1f} s "
                f"({cpu:.1f} s of one core); extended {spherical / found.lower_bound:.3f}",
                flush=True,
            )
    return met


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--only", default="")
    options.add_argument("--quick", action="store_true")
    given = options.parse_args()
    signal.signal(signal.SIGALRM, too_long)
    met = True
    for name, query, constraint in cases(given.data):
        if given.only in name:
            for kind in KINDS:
                met = compare(name, query, constraint, kind) and met
    if given.only in "growth":
        growth(given.quick)
    if given.only in "random":
        met = random_workloads(given.quick) and met
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
