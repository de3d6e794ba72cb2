"""What the ways that draw by chains share: how long chains run, what is said about it, draws, and errors.

A way makes a `Chain` (`noise/convergence.py`: `start`, `advance`, `advance_coupled`) at the true table. How long it
runs is measured by couplings at public tables, before confidential data is seen, and draws are the last states of
independent chains.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.arrays import Array, Bools, Shared
from holdfast.evidence import Evidence
from holdfast.given.problem import Problem, refuse_rounding
from holdfast.noise.convergence import MOST_STEPS, Chain, advanced, worst_run_length
from holdfast.noise.spread import Spread, simulated_spread
from holdfast.randomness import Stream, seeded

#: Fewest steps of any chain, whatever was measured.
FEWEST_STEPS = 20
#: Chains whose states errors are measured on.
STUDY_CHAINS = 200
#: Chains that run at once.
AT_ONCE = 4_096
#: Seed of the measurements: they are public and can be repeated.
SEED = 6
#: Numbers of steps that were measured before, by all that they depend on.
MEASURED = Shared(64)

WORDS = (
    "this is measured and not proved: the draws come from chains that run until they are near the law of this "
    "statement (within total variation {tau:.3g} by L-lag couplings, at 99 % confidence)"
)
PROBED = "; the law depends on the data here, so that was measured at public tables and may differ at the true one"


def evidence(problem: Problem) -> Evidence:
    """What the couplings are asked for; a draw is refused where they do not give it."""
    return Evidence(problem.tau, False, WORDS.format(tau=problem.tau) + PROBED * problem.depends_on_data)


def measured_steps(
    key: Hashable,
    chains: Callable[[], Sequence[Chain]],
    problem: Problem,
    tau: float,
    *,
    rounding: float = 0.0,
    most: int = MOST_STEPS,
    check: Callable[[Sequence[Chain], int], None] | None = None,
) -> int:
    """How long chains run: the longest that any public table asks for, measured once for each key.

    `tau` is what the couplings are asked for; `rounding`, what one step adds to the distance, may take half of the
    problem's. `check` may refuse what chains of this length do at the public tables.
    """

    def measured() -> int:
        probes = chains()
        steps = max(FEWEST_STEPS, worst_run_length(probes, tau, seeded(SEED), most=most).steps)
        refuse_rounding(problem.tau, rounding, steps)
        if check is not None:
            check(probes, steps)
        return steps

    return MEASURED.get((key, problem.tau, tau), measured)


@dataclass(frozen=True, eq=False)
class Run:
    """A chain, for how many steps it runs, the noise that its states stand for, and which states count."""

    chain: Chain
    steps: int
    noise: Callable[[Array], Array]
    inside: Callable[[Array], Bools] | None = None

    def draw(self, size: int, stream: Stream) -> Array:
        """Noise from `size` independent chains; chains that end outside start again, since to give up would tell."""
        drawn: list[Array] = []
        missing = size
        while missing:
            states = self.chain.start(min(missing, AT_ONCE), stream)
            states = advanced(self.chain, states, self.steps, stream)
            states = states if self.inside is None else states[self.inside(states)]
            drawn.append(self.noise(states))
            missing -= len(states)
        return np.concatenate(drawn)

    def spread(self) -> Spread:
        """Errors measured on states of long chains, an eighth of a run apart."""

        def states(size: int) -> Array:
            stream, apart = seeded(SEED), max(1, self.steps // 8)
            running = advanced(self.chain, self.chain.start(STUDY_CHAINS, stream), self.steps, stream)
            kept = []
            for _ in range(-(-size // STUDY_CHAINS)):
                running = advanced(self.chain, running, apart, stream)
                kept.append(self.noise(running).copy())
            return np.concatenate(kept)[:size]

        return simulated_spread(states, chains=STUDY_CHAINS)
