"""Whether the time of a release tells of its data: by method, and with a least time. Figures in docs/known-limits.md.

`factor`: the longest median of processor time over the shortest, over four tables of 100 leaves that adding one record
never joins. `told`: how often the longer of two times, one of a table of zeros and one of another table (with one large
leaf; of small counts for whole jobs), is that of the same one of them (0.5: time does not tell).
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import holdfast as hf

TREE = hf.Hierarchy.from_parents(np.concatenate([[-1], np.zeros(10, int), np.repeat(np.arange(1, 11), 10)]))
#: Leaves of the hierarchy that whole jobs release.
ZONES = 300
LEAVES = {
    "zeros": np.zeros(100, dtype=np.int64),
    "one large": np.eye(100, dtype=np.int64)[0] * 100_000,
    "small": np.random.default_rng(1).integers(0, 60, 100),
    "large": np.full(100, 5_000),
}


def mechanisms():
    """The usual methods on a hierarchy of two levels."""
    query, adds, more = hf.counts(TREE), hf.consistent(TREE), hf.nonnegative()
    laplace, gaussian = hf.laplace(query, epsilon=1), hf.gaussian(query, rho=0.1)
    yield "noise", laplace
    yield "given that all adds up", laplace.given(adds)
    yield "given within bounds", laplace.given(adds & more)
    yield "given within bounds, Gaussian", gaussian.given(adds & more)
    yield "onto", laplace.onto(adds & more)
    yield "onto, l1", laplace.onto(adds & more, norm="l1")
    yield "given-then-onto", laplace.given(adds).onto(adds & more)
    yield "topdown", laplace.onto(adds & more, method="topdown")


def told(first, second):
    """How often a pair of times is in its more usual order."""
    above = (np.asarray(first)[:, None] < np.asarray(second)).mean() + (np.asarray(first)[:, None] == second).mean() / 2
    return max(above, 1 - above)


def by_method(draws):
    for name, mechanism in mechanisms():
        times = {table: [] for table in LEAVES}
        for number in range(draws + 2):
            for table in np.random.default_rng(number).permutation(list(LEAVES)).tolist():
                truth = mechanism.query.answer(LEAVES[table])
                start = time.process_time()
                mechanism.release(truth)
                times[table].append(time.process_time() - start)
        usual = [np.median(each[2:]) for each in times.values()]
        medians = ", ".join(f"{table} {1e3 * each:.1f} ms" for table, each in zip(times, usual, strict=True))
        share = told(times["zeros"][2:], times["one large"][2:])
        print(f"{name}: {medians}; factor {max(usual) / min(usual):.2f}, told {share:.2f}", flush=True)


def with_a_least_time(releases, seconds):
    """Whole jobs, published files included, without and with a least time; the time from the call to the folder."""
    tables = {"zeros": np.zeros(ZONES, dtype=int), "small": np.random.default_rng(1).integers(0, 60, ZONES)}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "zones.csv").write_text("zone\n" + "".join(f"z{i}\n" for i in range(ZONES)))
        for at_least in (0.0, seconds):
            times = {table: [] for table in tables}
            for number in range(releases + 1):
                for table, counts in tables.items():
                    (folder / "trips.csv").write_text("zone,n\n" + "".join(f"z{i},{n}\n" for i, n in enumerate(counts)))
                    job = hf.job({
                        "title": "Times", "output": "out", "ledger": str(folder / "ledger.sqlite"),
                        "data": {
                            "source": str(folder / "trips.csv"), "domain": str(folder / "zones.csv"), "count": "n",
                        },
                        "privacy": {"epsilon": 1.0}, "table": {"hierarchy": ["zone"], "root": "city"},
                        "hold": ["consistent", "nonnegative"], "method": "given",
                    })  # fmt: skip
                    job.plan()
                    start = time.perf_counter()
                    job.release(output=folder / f"{table} {at_least} {number}", at_least=at_least)
                    times[table].append(time.perf_counter() - start)
            shown = " and ".join(f"{np.median(each[1:]):.3f} s (to {max(each[1:]):.3f})" for each in times.values())
            share = told(*(each[1:] for each in times.values()))
            print(
                f"whole releases of zeros and small counts, at least {at_least:g} s: {shown}; told {share:.2f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--releases", type=int, default=6)
    parser.add_argument("--at-least", type=float, default=16.0)
    options = parser.parse_args()
    if options.draws:
        by_method(options.draws)
    with_a_least_time(options.releases, options.at_least)


if __name__ == "__main__":
    main()
