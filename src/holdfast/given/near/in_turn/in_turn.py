"""Integer noise given any equalities, cell after cell, and within bounds by drawing again.

Equalities that can be solved in whole numbers leave free cells, which are drawn in turn: each is a whole number with
the law it would have, given those before, if the rest were normal (`in_turn_offers.py`). For Gaussian noise the ratio
of the law to these offers is bounded, with all but a little of the bound reached, and rejection draws the law itself:
this is proved. Laplace noise is Gaussian with a random variance for each cell; offers of variances and cells together
are made to a chain, whose variances are drawn anew in every step. How long it must run is measured by L-lag couplings
(`noise/convergence.py`) before any data is seen; two copies meet as soon as both accept one offer
(docs/theory/walks.md). With bounds and other inequalities, noise that breaks one is drawn again: the run length stays
public, and a table that leaves too little room is refused; where the held figures leave none enough, at once.
"""

from __future__ import annotations

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Array, Bools, Ints, Shared, kept
from holdfast.constraints.system.crossed import crossed_table
from holdfast.evidence import Evidence
from holdfast.given.giving_up import first_kept, last_tries
from holdfast.given.near.in_turn.offers import SEED, Layout, MixtureChain, Rejection
from holdfast.given.near.public_tables import roomy_table
from holdfast.given.problem import Problem, Truth
from holdfast.given.tau import NEAR_WORDS, refuse_rounding
from holdfast.noise.convergence import advanced, meeting_times, needed_steps, run_length
from holdfast.noise.spread import Spread, simulated_spread
from holdfast.randomness import Stream, seeded

#: Most outputs, and most operations for the variances of one offer.
MOST_OUTPUTS, MOST_WORK = 2_000, 3e7
#: Widest noise, as a standard deviation: sums of cells stay exact in doubles, and remainders even.
WIDEST = 2.0**16
#: Fewest dimensions at which bounds are kept by drawing again, and chains that run at once.
FEWEST_BOUNDED, AT_ONCE = 13, 32
#: Noise that breaks a bound is the last that is tried with probability 2^−10: so many draws for each table in the mean,
#: at most, whatever the table.
GIVING_UP_BITS = 10
MEAN_TRIES = 2**GIVING_UP_BITS
#: Least share of offers within the bounds of the roomiest table with the held figures, how many are looked at, and how
#: far that table may be outside by rounding.
LEAST_WITHIN, OFFERS, NEARLY = 0.01, 1_024, 1e-6
#: Largest rate 1/λ of Laplace noise: where noise is narrower, some states are hardly ever left.
LARGEST_RATE = 0.8
#: Least share of offers that are accepted: proved for Gaussian noise, measured for Laplace noise.
LEAST_SHARE = 0.05
#: Fewest steps of any chain, whatever was measured, and how many times longer a chain runs than any pair was apart.
FEWEST_STEPS, LONGER = 20, 3
#: Steps that a tau must leave room for the rounding of.
USUAL_STEPS = 150
#: Steps after which coupled chains are given up.
MOST_STEPS = 2_000
#: Chains whose states errors are measured on.
WALKS = 200

AGAIN_WORDS = (
    "; noise that breaks a bound is drawn again, until a coin ends it, {most} times in the mean at most, which is paid "
    "for in this distance"
)
NO_REFUSALS = "; how much a refusal to draw again tells is not known for Gaussian noise"
TOO_RARE = "noise on this table is too rarely within its bounds: use onto(), less noise or fewer bounds"

#: Numbers of steps that were measured before: problems of one law and one set of equalities share theirs.
MEASURED = Shared(64)

ROUNDED_WORDS = (
    "the draws are made in doubles: their distance from the law is bounded by the number of operations, and this "
    "delta pays for it"
)


@kept
def _found(problem: Problem) -> Rejection | MixtureChain | None:
    law, system = problem.law, problem.system
    if not law.integer or system.branches or None in law.laws or law.n > MOST_OUTPUTS:
        return None
    space = problem.space
    if problem.depends_on_data and (space.dimension < FEWEST_BOUNDED or crossed_table(system) is not None):
        return None
    small = space.rank > 0 and space.dimension > 0 and space.dimension * space.rank**2 <= MOST_WORK
    if not small or float(np.sqrt(law.variances.max())) > WIDEST:
        return None
    layout = Layout.of(problem)
    if layout is None:
        return None
    each = law.of_output([float(scale or 1) for scale in law.scale_values])[layout.cells]
    if law.kind == "laplace" and 1 / each.min() > LARGEST_RATE:
        return None
    if law.kind == "gaussian":
        offers = Rejection.of(layout, each)
        return offers if offers.least_share() >= LEAST_SHARE else None
    made = MixtureChain.of(layout, 1 / each)
    return made if made.share() >= LEAST_SHARE else None


def accepts(problem: Problem) -> bool:
    """Whether equalities are solved in whole numbers and offers often accepted; bounds only with many dimensions."""
    return _found(problem) is not None


def evidence(problem: Problem) -> Evidence:
    """Gaussian noise: the proved bound on rounding. Laplace noise: what the couplings are asked for."""
    again = AGAIN_WORDS.format(most=MEAN_TRIES) if problem.depends_on_data else ""
    if problem.law.kind == "laplace":
        return Evidence(problem.tau, False, NEAR_WORDS.format(tau=problem.tau) + again)
    if problem.depends_on_data:
        return Evidence(_tries(problem) * _rounding(problem), False, ROUNDED_WORDS + again + NO_REFUSALS)
    return Evidence(_rounding(problem), True, ROUNDED_WORDS)


def least_tau(problem: Problem) -> float:
    """What rounding allows in a usual number of steps, twice; the distance of Gaussian noise is proved in any case."""
    if problem.law.kind == "gaussian":
        return 0.0
    return 2 * USUAL_STEPS * _tries(problem) * _rounding(problem)


def _tries(problem: Problem) -> int:
    """How often noise is drawn for one table in the mean, at most: the distance adds up over these draws."""
    return MEAN_TRIES if problem.depends_on_data else 1


def _rounding(problem: Problem) -> float:
    """What rounding adds to the distance in one draw or one step of a chain, at most (docs/theory/walks.md, §5).

    Errors of offers count 1/share times among those that are accepted.
    """
    n, widest, found = problem.law.n, float(np.sqrt(problem.law.variances.max())), _found(problem)
    offered = n * (2.0**-44 + widest * 2.0**-50)
    if isinstance(found, Rejection):
        return offered / found.least_share()
    return 2 * offered


def _drawn(problem: Problem, size: int, stream: Stream) -> Ints:
    found = _found(problem)
    assert found is not None
    if isinstance(found, Rejection):
        return found.layout.noise(found.draw(size, stream), problem.law.n)
    steps = _steps(problem, found)
    return found.layout.noise(advanced(found, found.start(size, stream), steps, stream), problem.law.n)


def draw(problem: Problem, truth: Truth, size: int, stream: Stream) -> Array:
    """Draw noise such that truth + noise satisfies the system, (size, n).

    *Guarantee:* with bounds the statement holds for the release or refusal (docs/theory/walks.md, Proposition 8).
    """
    if not problem.depends_on_data:
        return _drawn(problem, size, stream)
    table = np.asarray(truth, dtype=np.int64)
    if not _has_room(problem, np.asarray(problem.space.rows @ table, dtype=np.int64).tobytes()):
        raise Refused(TOO_RARE)
    noise = np.empty((size, problem.law.n), dtype=np.int64)
    missing = np.arange(size)
    while missing.size:
        shape = missing.size, -(-AT_ONCE // missing.size)
        found = _drawn(problem, shape[0] * shape[1], stream)
        inside = _within(problem, table, found).reshape(shape)
        first = first_kept(inside, last_tries(inside.size, GIVING_UP_BITS, stream).reshape(shape))
        # A release is one draw; of many, for a study, only the first decides whether there are any.
        if missing[0] == 0 and first[0] == -2:
            raise Refused(TOO_RARE)
        good = first >= 0
        noise[missing[good]] = found.reshape(*shape, -1)[good, first[good]]
        missing = missing[~good]
    return noise


@kept
def _has_room(problem: Problem, held: bytes) -> bool:
    """Whether the roomiest table with these held figures is often enough within bounds; this is public."""
    roomy = roomy_table(problem, np.frombuffer(held, dtype=np.int64))
    found, stream = _found(problem), seeded(SEED)
    assert found is not None
    states = found.draw(OFFERS, stream) if isinstance(found, Rejection) else found.start(OFFERS, stream)
    noise = found.layout.noise(states, problem.law.n)
    return roomy is None or bool(_within(problem, roomy, noise, NEARLY).mean() >= LEAST_WITHIN)


def _within(problem: Problem, table: Array, noise: Ints, slack: float = 0) -> Bools:
    """Which rows of noise leave the table within all bounds and inequalities; the equalities hold by themselves."""
    low, high = problem.system.integer_bounds(problem.unit)
    values, (A, least) = table + noise, problem.system.integer_inequalities(problem.unit)
    inside = ((values + slack >= low) & (values - slack <= high)).all(axis=1)
    return np.asarray(inside & (A @ values.T - least[:, None] >= -slack).all(axis=0))


def spread(problem: Problem) -> Spread | None:
    """Measured on simulated draws: of Gaussian noise, or states of long chains; None where data matter."""
    if problem.depends_on_data:
        return None
    found = _found(problem)
    assert found is not None
    chain = found

    def states(size: int) -> Array:
        stream = seeded(SEED)
        if isinstance(chain, Rejection):
            return chain.layout.noise(chain.draw(size, stream), problem.law.n)
        running = advanced(chain, chain.start(WALKS, stream), _steps(problem, chain), stream)
        kept = []
        for _ in range(-(-size // WALKS)):
            running = chain.advance(running, stream)
            kept.append(chain.layout.noise(running, problem.law.n))
        return np.concatenate(kept)[:size]

    return simulated_spread(states, chains=None if isinstance(chain, Rejection) else WALKS)


def _steps(problem: Problem, chain: MixtureChain) -> int:
    """The number of steps of the chain; it depends on public things only, and is measured once.

    A second set of pairs must bear the first one out, and none of them may have been apart for a third of the run.
    """
    tau = problem.chain_tau / _tries(problem)
    key = chain.layout.combination.shape, chain.layout.combination.tobytes(), chain.rates.tobytes(), tau

    def measured() -> int:
        stream = seeded(SEED)
        found = run_length(chain, tau, stream, most=MOST_STEPS)
        times = meeting_times(chain, found.lag, found.pairs, stream, MOST_STEPS)
        again, longest = needed_steps(times, found.lag, tau), int(times.max()) - found.lag
        steps = max(FEWEST_STEPS, found.steps, again, LONGER * longest)
        refuse_rounding(problem.tau, _tries(problem) * _rounding(problem), steps)
        return steps

    return MEASURED.get(key, measured)
