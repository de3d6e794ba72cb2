"""How long a Markov chain must run: L-lag couplings (Biswas, Jacob and Vanetti 2019), many pairs at once.

Two copies of a chain start independently, one `lag` steps ahead, and are coupled until they meet. With T the step at
which the copy ahead meets the other, the law after t steps is within E[max(0, ⌈(T − lag − t)/lag⌉)] of the target in
total variation. At least 1,000 meeting times are collected; beyond several thresholds a geometric tail is fitted, and
the run is as long as the worst 99 % upper limit asks. This is an estimate and proves nothing. Meeting times depend on
the law: where that depends on data, measure at public tables only and never print them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import special

from holdfast.arguments import Refused
from holdfast.arrays import Array, Ints
from holdfast.randomness import Stream

States = Array

#: Pairs whose meeting times are collected, and pairs of the pilot run that chooses the lag.
PAIRS, PILOTS = 1_000, 64
#: Steps after which a pair that has not met is given up.
MOST_STEPS = 20_000
#: Confidence of the upper limit; half of what is left goes to the share of late pairs, half to their rate.
CONFIDENCE = 0.99
#: Shares of pairs that count as the tail, each with its own fit; the worst one decides.
TAILS = (0.5, 0.25, 0.1, 0.03)
#: Fewest pairs that a tail is fitted to.
FEWEST = 20


class Chain(Protocol):
    """A Markov chain on arrays: each row of (count, width) is one state.

    `advance` and `advance_coupled` return new rows or change the given ones in place. The coupling is faithful: each
    copy by itself moves as `advance` does, and rows that are equal stay equal. Starts are spread out at least as widely
    as the target: copies that start at one point may meet before either has left it, and tell nothing.
    """

    def start(self, count: int, stream: Stream) -> States:
        """Independent states at step 0, (count, width)."""

    def advance(self, states: States, stream: Stream) -> States:
        """One step of every row."""

    def advance_coupled(self, ahead: States, behind: States, stream: Stream) -> tuple[States, States]:
        """One step of every pair of rows, coupled."""


@dataclass(frozen=True)
class RunLength:
    """How many steps bring a chain within `distance` of its target, and the lag and number of pairs behind that."""

    steps: int
    distance: float
    lag: int
    pairs: int


def advanced(chain: Chain, states: States, steps: int, stream: Stream) -> States:
    for _ in range(steps):
        states = chain.advance(states, stream)
    return states


def meeting_times(chain: Chain, lag: int, pairs: int, stream: Stream, most: int = MOST_STEPS) -> Ints:
    """The step at which the copy ahead meets the other, for so many pairs; refused if one does not meet in time."""
    ahead = advanced(chain, chain.start(pairs, stream), lag, stream)
    behind = chain.start(pairs, stream)
    times = np.full(pairs, lag, dtype=np.int64)
    open_pairs = np.arange(pairs)
    step = lag
    while True:
        apart = ~(ahead == behind).all(axis=1)
        times[open_pairs[~apart]] = step
        if not apart.any():
            return times
        if step >= most + lag:
            raise Refused(
                "how near the draws come to their law could not be measured, because coupled chains did not meet "
                f"within {most} steps: use onto(), other noise or fewer constraints"
            )
        if not apart.all():
            open_pairs, ahead, behind = open_pairs[apart], ahead[apart], behind[apart]
        ahead, behind = chain.advance_coupled(ahead, behind, stream)
        step += 1


def mean_bound(times: Ints, lag: int, step: int) -> float:
    """The bound on the total variation after so many steps, as the mean over these meeting times."""
    return float(np.maximum(0, -((lag + step - times) // lag)).mean())


def needed_steps(times: Ints, lag: int, tau: float) -> int:
    """The least number of steps at which the 99 % upper limit of the bound is at most tau, by every fitted tail.

    With share P of the pairs later than h, and P(T > h + e | T > h) = q^e, the bound at t ≥ h − lag is at most
    P·q^(lag + t − h)/(1 − q^lag).
    """
    ordered = np.sort(times)
    miss = (1 - CONFIDENCE) / 2
    steps = 0
    for share in TAILS:
        fewest = min(times.size, max(FEWEST, math.ceil(share * times.size)))
        threshold = int(ordered[-fewest]) - 1
        late = ordered[ordered > threshold] - threshold
        most = (
            float(special.betainccinv(late.size + 1, times.size - late.size, miss)) if late.size < times.size else 1.0
        )
        # The k-th success came at trial Σe: the rate is at least this, at this confidence (Clopper and Pearson).
        log_rest = math.log1p(-float(special.betaincinv(late.size, int(late.sum()) - late.size + 1, miss)))
        log_sum = math.log(-math.expm1(lag * log_rest))
        found = threshold - lag + math.ceil((math.log(tau) + log_sum - math.log(most)) / log_rest)
        steps = max(steps, found, threshold - lag)
    return max(1, steps)


def _lag(chain: Chain, stream: Stream, most: int) -> int:
    """A lag after which nine of ten pairs have met within as many steps again."""
    lag = 1
    while True:
        late = int(np.quantile(meeting_times(chain, lag, PILOTS, stream, most) - lag, 0.9))
        if late <= lag:
            return lag
        lag = late


def run_length(chain: Chain, tau: float, stream: Stream, *, pairs: int = PAIRS, most: int = MOST_STEPS) -> RunLength:
    """Measure how many steps bring the chain within tau of its target; refused where that cannot be measured."""
    lag = _lag(chain, stream, most)
    return RunLength(needed_steps(meeting_times(chain, lag, pairs, stream, most), lag, tau), tau, lag, pairs)


def worst_run_length(
    chains: Sequence[Chain], tau: float, stream: Stream, *, pairs: int = PAIRS, most: int = MOST_STEPS
) -> RunLength:
    """How many steps bring each of several chains within tau: one for each public table at which the law is probed.

    The pairs are shared out over the chains, and each chain has fits of its own; the longest run counts.
    """
    each = -(-pairs // len(chains))
    found = [run_length(chain, tau, stream, pairs=each, most=most) for chain in chains]
    worst = max(found, key=lambda one: one.steps)
    return RunLength(worst.steps, tau, worst.lag, each * len(chains))
