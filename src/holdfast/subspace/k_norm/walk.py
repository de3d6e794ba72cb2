"""k-norm noise beyond the dimensions in which facets can be listed: a walk in K, with measured convergence.

u = r·x with r ~ Gamma(dimension + 1) and x uniform in K. The walk draws one coordinate of x after the other anew,
uniformly on its chord of K (hit-and-run along coordinates); every draw is the last state of a walk of its own. How long
walks run is measured from K alone by L-lag couplings (`noise/convergence.py`), so the law is near by an estimate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from holdfast.arguments import Refused
from holdfast.arrays import Floats, Ints, Shared
from holdfast.noise.convergence import advanced, run_length
from holdfast.randomness import Stream, seeded
from holdfast.subspace.k_norm.body import Body
from holdfast.subspace.k_norm.gauge import corners_towards
from holdfast.subspace.k_norm.pivots import sweep, sweep_coupled
from holdfast.workers import in_threads, rows_worth_a_thread

#: Most dimensions, and most differences (up to sign) times dimensions: walks are measured in about a minute there.
MOST_DIMENSIONS, MOST_ENTRIES = 12, 600
#: How near the walk comes to its law, in total variation; sweeps after which coupled walks are given up.
TAU, MOST_SWEEPS = 1e-6, 2_000
#: Walks start at corners of K, so much nearer to its middle.
INSIDE = 0.999
#: Walks and sweeps between two of their states, and states, behind measured errors.
WALKS, APART, STATES = 100, 2, 100
#: Rays along which a first facet is looked for; no point is farther beyond it than this.
RAYS, BEYOND = 8, 1e-12
#: Seed of the measurements: they are public and can be repeated.
SEED = 7

#: Numbers of sweeps that were measured before.
MEASURED = Shared(64)


@dataclass(frozen=True, eq=False)
class Walk:
    """Noise x·r in the coordinates of `body`; `first` names the corners of one facet."""

    body: Body
    first: Ints
    largest: float = 1.0
    distance: float = TAU
    name: str = "k-norm (walk)"

    @classmethod
    def of(cls, body: Body) -> Walk:
        """Refuse where a walk would take too long to be measured."""
        count, rank = body.points.shape
        if rank > MOST_DIMENSIONS or count * rank > MOST_ENTRIES:
            raise Refused(
                f"k-norm noise without a structure that is known takes few dimensions and differences, and this query "
                f"has {rank} dimensions and {count} differences: use law='laplace', or laplace(...).given(...)"
            )
        for towards in seeded(SEED).normals(RAYS * rank).reshape(RAYS, rank):
            first = corners_towards(body.moved.T, towards)
            if first.size == rank and _is_facet(body.moved, first):
                return cls(body, first)
        raise Refused("doubles do not tell the facets of K apart: use law='laplace', or laplace(...).given(...)")

    @property
    def note(self) -> str:
        """How long walks run."""
        return f"K has too many facets to list; walks in it take {self.sweeps} sweeps"

    @cached_property
    def _table(self) -> tuple[Floats, Floats, Ints]:
        return self.body.moved, np.ascontiguousarray(self.body.moved.T), self.first

    @cached_property
    def sweeps(self) -> int:
        """How many sweeps bring the walk within TAU of its law, by the couplings."""
        key = self.body.points.tobytes()
        return MEASURED.get(key, lambda: run_length(self, TAU, seeded(SEED), most=MOST_SWEEPS).steps)

    def start(self, count: int, stream: Stream) -> Floats:
        """Corners of K with random signs."""
        chosen = (stream.words(count) % np.uint64(len(self.body.moved))).astype(np.int64)
        signs = np.where(stream.words(count) % np.uint64(2) == 0, INSIDE, -INSIDE)
        return np.asarray(signs[:, None] * self.body.moved[chosen])

    def advance(self, states: Floats, stream: Stream) -> Floats:
        """One sweep over all coordinates of every state."""
        numbers = stream.uniforms(states.size).reshape(states.shape)
        self._in_threads(lambda part: sweep(*self._table, states[part], numbers[part]), len(states))
        return states

    def advance_coupled(self, ahead: Floats, behind: Floats, stream: Stream) -> tuple[Floats, Floats]:
        """One sweep of both states of every pair."""
        numbers = stream.uniforms(3 * ahead.size).reshape(*ahead.shape, 3)
        self._in_threads(lambda part: sweep_coupled(*self._table, ahead[part], behind[part], numbers[part]), len(ahead))
        return ahead, behind

    def _in_threads(self, work: Callable[[slice], bool], count: int) -> None:
        if not all(in_threads(work, count, rows_worth_a_thread(self.body.rank))):
            raise RuntimeError("a walk lost the facet it was on; this is a fault of holdfast")

    @cached_property
    def _states(self) -> Floats:
        """States of long walks, some sweeps apart, in random order."""
        stream = seeded(SEED)
        states = advanced(self, self.start(WALKS, stream), self.sweeps, stream)
        kept = np.empty((STATES, *states.shape))
        for row in kept:
            states = advanced(self, states, APART, stream)
            row[:] = states
        flat = kept.reshape(-1, self.body.rank)
        return flat[np.argsort(stream.words(len(flat)))]

    @cached_property
    def moments(self) -> Floats:
        """E[u uᵀ], measured on long walks: E[r²] = (dimension + 1)(dimension + 2)."""
        rank = self.body.rank
        return np.asarray(self._states.T @ self._states / len(self._states) * (rank + 1) * (rank + 2))

    def draw(self, size: int, stream: Stream) -> Floats:
        """Draw the last states of independent walks, and lengths for them."""
        return self._scaled(advanced(self, self.start(size, stream), self.sweeps, stream), stream)

    def study(self, size: int, stream: Stream) -> Floats:
        """States of long walks with both signs, and lengths for them."""
        signs = np.where(stream.words(size) % np.uint64(2) == 0, 1.0, -1.0)
        return self._scaled(signs[:, None] * np.resize(self._states, (size, self.body.rank)), stream)

    def _scaled(self, states: Floats, stream: Stream) -> Floats:
        lengths = special.gammaincinv(self.body.rank + 1, stream.uniforms(len(states)))
        return np.asarray(lengths[:, None] * states)


def _is_facet(points: Floats, corners: Ints) -> bool:
    """Whether no point lies beyond the corners' hyperplane."""
    table = np.concatenate([points, -points])[corners]
    normal = np.linalg.solve(table, np.ones(len(corners)))
    return bool(np.abs(points @ normal).max() <= 1 + BEYOND)
