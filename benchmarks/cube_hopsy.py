"""Laplace noise on a cube with exact margins: effective draws per second against hopsy on the same continuous law.

14 days × 24 hours × 20 zones, margins per day and zone and per hour and zone: 20 independent tables of 14 × 24 cells.
hopsy walks in an orthonormal basis of one table only, which is kinder to it than the whole cube; a cube takes 20 of
them. Its density is a Python function (it offers no Laplace density of its own), the bounds that it needs lie 60 scales
out, and the best of several proposals and step sizes in short runs is measured in a long one. Effective draws are those
of the cell that has fewest, the lesser of those of u and of |u|, with autocovariances averaged over the seeds, so that
the least is not the least lucky. Burn-in is free for both. Bar: at least 20 times hopsy's effective draws per second.

hopsy is installed in an environment of its own, because it is no dependency of this project:
    python3 -m venv ENV && ENV/bin/pip install hopsy
    .venv/bin/python benchmarks/cube_hopsy.py --hopsy ENV/bin/python
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

SHAPE, TABLES = (14, 24), 20
SEEDS, STEPS, SHORT, LONG = 4, 1_000, 20_000, 100_000
FARTHEST, BAR = 60.0, 20
PROPOSALS = {
    "UniformCoordinateHitAndRunProposal": [None],
    "GaussianCoordinateHitAndRunProposal": [2.0, 4.0, 8.0, 16.0],
    "GaussianHitAndRunProposal": [0.5],
}


class Table:
    """Minus the log density of a table's noise in an orthonormal basis."""

    def __init__(self) -> None:
        sides = [np.linalg.qr(np.eye(k)[:, 1:] - 1 / k)[0] for k in SHAPE]
        self.basis = np.kron(*sides)

    def compute_negative_log_likelihood(self, place: Any) -> float:
        return float(np.abs(self.basis @ place).sum())


def rival(proposal: str, step: float | None, steps: int, file: str) -> None:
    """Run in hopsy's environment: write the states, (seeds, states, cells), and print the seconds for them."""
    import hopsy

    table = Table()
    dimension = table.basis.shape[1]
    bounds = np.concatenate([table.basis, -table.basis])
    problem = hopsy.Problem(bounds, np.full(len(bounds), FARTHEST), table, starting_point=np.zeros(dimension))
    thin, states, spent = max(1, steps // 2_000), [], 0.0
    for seed in range(SEEDS):
        made = getattr(hopsy, proposal)(problem)
        if step is not None:
            made.stepsize = step
        chain, rng = hopsy.MarkovChain(problem, made), hopsy.RandomNumberGenerator(seed)
        hopsy.sample(chain, rng, 1, steps // 4)
        start = time.perf_counter()
        _, found = hopsy.sample(chain, rng, steps // thin, thin)
        spent += time.perf_counter() - start
        states.append(np.asarray(found).reshape(-1, dimension) @ table.basis.T)
    np.save(file, np.array(states))
    print(json.dumps(spent))


def least(states: Any) -> float:
    """Effective draws of the cell that has fewest, the lesser of those of u and of |u|."""
    from holdfast.given.baselines.metropolis import effective_draws

    return float(min(effective_draws(states).min(), effective_draws(np.abs(states)).min()))


def hopsy_speed(python: str, proposal: str, step: float | None, steps: int) -> float:
    """Effective draws of a whole cube per second."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "states.npy")
        asked = json.dumps([proposal, step, steps, file])
        run = subprocess.run([python, __file__, "--rival", asked], capture_output=True, text=True, check=True)
        return least(np.load(file)) / json.loads(run.stdout.splitlines()[-1]) / TABLES


def our_speed() -> tuple[float, float]:
    """Effective draws of a whole cube per second, and the independent draws of `noise` per second."""
    import holdfast as hf
    from holdfast.given import Problem
    from holdfast.given.near.gibbs import gibbs
    from holdfast.randomness import secure

    shape = (*SHAPE, TABLES)
    constraint = hf.invariant(hf.exact_margins(shape, [(0, 2), (1, 2)]))
    mechanism = hf.laplace(hf.margins(shape), scale=1, integer=False).given(constraint)
    mechanism.noise(1)
    start = time.perf_counter()
    mechanism.noise(20)
    independent = 20 / (time.perf_counter() - start)
    one = hf.invariant(hf.exact_margins(SHAPE, [(0,), (1,)]))
    base = hf.laplace(hf.margins(SHAPE), scale=1, integer=False).base
    sampler = gibbs.sampler_of(Problem(base.law, one.system(base.query.n)))
    stream = secure()
    now = sampler.run(sampler.start(SEEDS, stream), 100, stream)
    spent, states = 0.0, []
    for _ in range(STEPS):
        start = time.perf_counter()
        sampler.advance(now, stream)
        spent += time.perf_counter() - start
        states.append(now.copy())
    return least(np.stack(states, axis=1)) / spent / TABLES, independent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hopsy", help="the Python of an environment with hopsy")
    parser.add_argument("--rival", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.rival:
        rival(*json.loads(asked.rival))
        return 0
    if not asked.hopsy:
        parser.error("--hopsy is needed")
    short = {}
    for proposal, sizes in PROPOSALS.items():
        for step in sizes:
            short[proposal, step] = hopsy_speed(asked.hopsy, proposal, step, SHORT)
            print(f"hopsy, {proposal}, step {step}: {short[proposal, step]:.3g} effective cubes per second", flush=True)
    best = max(short, key=short.__getitem__)
    theirs = hopsy_speed(asked.hopsy, *best, LONG)
    ours, independent = our_speed()
    print(
        f"{np.prod(SHAPE) * TABLES:,} cells, 740 equalities: {ours:,.0f} effective draws per second ({independent:.1f} "
        f"independent ones within 1e-6 of the law); hopsy, {best[0]}: {theirs:.3g}; ratio {ours / theirs:,.0f} "
        f"(bar {BAR})"
    )
    return 0 if ours / theirs >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
