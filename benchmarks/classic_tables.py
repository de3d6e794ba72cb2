"""Classic contingency tables with all two-way margins exact: both verbs, their errors, and the cells that are pinned.

For each table `ct_*.csv` (one of two axes has its two margins exact; above 300 cells closed forms only): integer
Laplace and Gaussian noise of scale 2 on every cell, conditioned on the exact margins, and Laplace noise given non-
negativity too; and the noisy table moved to the nearest one, over the reals and, with non-negativity, in whole numbers.
Printed: the way, the mean absolute error of a cell over the repetitions, the time of all of them with the measurement
of run lengths, and how many cells the margins pin. What is refused is printed with its sentence.

    python benchmarks/classic_tables.py --data FOLDER [--repeats 10] [--verb given|onto]
"""

import argparse
import sys
import time
from itertools import combinations
from pathlib import Path

import numpy as np
from pinned import read

import holdfast as hf

#: Of larger tables only what has a closed form is measured.
MOST_CELLS = 300
SCALE = 2


def tried(name: str, mechanism: hf.Mechanism, truth: np.ndarray, repeats: int) -> str:
    start = time.perf_counter()
    try:
        tables = mechanism.simulate(truth, repeats, rng=hf.seeded(1))
        statement = mechanism.guarantee
    except hf.Refused as refusal:
        return f"  {name}: refused in {time.perf_counter() - start:.1f} s: {refusal}"
    errors = np.abs(tables - truth).mean(axis=1)
    spread = errors.std(ddof=1) / np.sqrt(repeats)
    budget = f"ρ = {statement.rho:.3g}" if statement.epsilon is None else f"ε = {statement.epsilon:.3g}"
    return (
        f"  {name}, {mechanism.method}: mean absolute error {errors.mean():.2f} ± {spread:.2f} in "
        f"{time.perf_counter() - start:.1f} s; {statement.scope}, {budget}, "
        f"δ = {statement.delta:.2g}, {statement.records} records, {statement.status}"
    )


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--repeats", type=int, default=10)
    options.add_argument("--verb", choices=["given", "onto"])
    given = options.parse_args()
    for path in sorted(given.data.glob("ct_*.csv")):
        table = read(path)
        shape = " × ".join(str(size) for size in table.shape)
        keep = [(0,), (1,)] if table.ndim == 2 else list(combinations(range(table.ndim), 2))
        query, truth = hf.margins(table.shape), table.ravel()
        figures = hf.invariant(hf.exact_margins(table.shape, keep))
        base, gaussian = hf.laplace(query, scale=SCALE), hf.gaussian(query, scale=SCALE)
        within = figures & hf.nonnegative()
        if table.size > MOST_CELLS:
            print(f"{path.stem}, {shape}, {table.size} cells: closed forms only", flush=True)
            ways = {
                "given margins, real Gaussian": hf.gaussian(query, scale=SCALE, integer=False).given(figures),
                "onto margins": base.onto(figures),
            }
        else:
            found = hf.pinned(query, hf.exact_margins(table.shape, keep), truth=truth)
            print(f"{path.stem}, {shape}, {found.pinned.size} of {table.size} cells pinned", flush=True)
            ways = {
                "given margins": base.given(figures),
                "given margins, Gaussian": gaussian.given(figures),
                "given margins and not negative": base.given(within),
                "onto margins": base.onto(figures),
                "onto margins and not negative, whole": base.onto(within, integer=True),
            }
        for name, mechanism in ways.items():
            if given.verb is None or name.startswith(given.verb):
                print(tried(name, mechanism, truth, given.repeats), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
