"""Classic contingency tables with all two-way margins exact: both verbs, their errors, and the cells that are pinned.

For each table `ct_*.csv` of up to 200 cells (a table of two axes has its two margins exact): integer Laplace noise of
scale 2 on every cell, conditioned on the exact margins, and the same given non-negativity too; and the noisy table
moved to the nearest one, over the reals and, with non-negativity, in whole numbers. Printed: the way, the mean absolute
error of a cell over the repetitions, the time of all of them, and how many cells the margins pin. What is refused is
printed with its sentence.

    python benchmarks/classic_tables.py --data FOLDER [--repeats 10]
"""

import argparse
import sys
import time
from itertools import combinations
from pathlib import Path

import numpy as np
from pinned import read

import holdfast as hf

MOST_CELLS = 200
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
    return (
        f"  {name}, {mechanism.method}: mean absolute error {errors.mean():.2f} ± {spread:.2f} in "
        f"{time.perf_counter() - start:.1f} s; {statement.scope}, ε = {statement.epsilon:.3g}, "
        f"δ = {statement.delta:.2g}, {statement.records} records, {statement.status}"
    )


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--repeats", type=int, default=10)
    given = options.parse_args()
    for path in sorted(given.data.glob("ct_*.csv")):
        table = read(path)
        if table.size > MOST_CELLS:
            continue
        keep = [(0,), (1,)] if table.ndim == 2 else list(combinations(range(table.ndim), 2))
        query, truth = hf.margins(table.shape), table.ravel()
        figures = hf.invariant(hf.exact_margins(table.shape, keep))
        found = hf.pinned(query, hf.exact_margins(table.shape, keep), truth=truth)
        shape = " × ".join(str(size) for size in table.shape)
        print(f"{path.stem}, {shape}, {found.pinned.size} of {table.size} cells pinned", flush=True)
        base = hf.laplace(query, scale=SCALE)
        within = figures & hf.nonnegative()
        for name, mechanism in {
            "given margins": base.given(figures),
            "given margins and not negative": base.given(within),
            "onto margins": base.onto(figures),
            "onto margins and not negative, whole": base.onto(within, integer=True),
        }.items():
            print(tried(name, mechanism, truth, given.repeats), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
