"""k-norm noise where few relations hold between the columns, in any number of dimensions.

With m cells and c relations, each u off a null set has one shortest z, with c zeros. A set Z of zeros has the weight
|det κ_Z|, κ (m, c) the coefficients of the relations, and signs σ of the other cells go with it exactly if Σ σ_j κ_j is
Σ_{i∈Z} s_i κ_i with |s| ≤ 1 (duality). So zeros are drawn by their weight and signs by fair coins, until they go
together. Costs of cells differ by about one part in a million, so that no two sets of zeros fit
(docs/theory/subspace.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy import linalg, special

from holdfast.arrays import Floats, Ints
from holdfast.randomness import Stream, seeded

#: Sets of zeros that are listed, and relations.
MOST_SETS, MOST_RELATIONS = 100_000, 5
#: Least share of tries that are kept, and tries that it is measured on.
LEAST_KEPT, TRIES = 1e-3, 20_000
#: Costs are smaller than 1 (of pairs: ½) by this part, and by up to as much again.
CHEAPER = 1e-6
#: Tries that are made at once, by their number of cells; signs behind measured errors.
BATCH, STUDY = 1 << 21, 10_000


@dataclass(frozen=True, eq=False)
class Relations:
    """A law of noise z on m cells: density ∝ exp(−Σ costs·|z|), of the z that are shortest for their u.

    With `pairs`, Σz = 0, and a relation is one of the columns and of their number.
    """

    kernel: Floats
    pairs: bool
    largest: float = 1.0
    distance: float = 0.0
    name: str = "k-norm (relations)"

    @classmethod
    def of(cls, points: Floats, pairs: bool) -> Relations | None:
        """None where there are too many relations, or signs would hardly ever go with zeros."""
        count = points.shape[1]
        table = np.vstack([points, np.ones((1, count))]) if pairs else points
        many = count - len(table)
        if not 1 <= many <= MOST_RELATIONS or math.comb(count, many) > MOST_SETS:
            return None
        found = cls(np.ascontiguousarray(linalg.qr(table.T)[0][:, len(table) :]), pairs)
        stream = seeded(count)
        kept = sum(len(found._tried(found.at_once, stream)[0]) for _ in range(-(-TRIES // found.at_once)))
        return found if kept >= LEAST_KEPT * TRIES else None

    @property
    def note(self) -> str:
        """How many relations there are."""
        many = self.kernel.shape[1]
        return f"K has {len(self.kernel)} columns with {many} relation{'s' if many > 1 else ''}"

    @property
    def at_once(self) -> int:
        """How many tries are made at once."""
        return max(1, min(TRIES, BATCH // len(self.kernel)))

    @cached_property
    def costs(self) -> Floats:
        """What one unit of each cell costs: at most 1, or ½ for pairs, so that no difference costs more than 1."""
        count = len(self.kernel)
        return np.asarray((1 - CHEAPER * (1 + seeded(count).uniforms(count))) * (0.5 if self.pairs else 1.0))

    @cached_property
    def _sets(self) -> tuple[Ints, Floats, Floats]:
        """Every set of zeros that can be, the running sum of the weights, and the inverse of each κ_Z."""
        count, many = self.kernel.shape
        zeros = np.array(list(combinations(range(count), many)), dtype=np.int64)
        weights = np.abs(np.linalg.det(self.kernel[zeros]))
        kept = weights > 1e-12 * weights.max()
        zeros = zeros[kept]
        return zeros, np.cumsum(weights[kept]), np.linalg.inv(self.kernel[zeros])

    @cached_property
    def _chances(self) -> Floats:
        """C(d − 1, p − 1) as parts of the largest, for p = 0 … d + 1 positive cells."""
        places = np.arange(self._dimension)
        logs = -special.gammaln(places + 1) - special.gammaln(self._dimension - places)
        return np.concatenate([[0.0], np.exp(logs - logs.max()), [0.0]])

    def _tried(self, tries: int, stream: Stream) -> tuple[Floats, Ints]:
        """Signs (0 at zeros) of the tries in which they go together, and how many are positive."""
        count = len(self.kernel)
        zeros, ends, inverses = self._sets
        chosen = np.minimum(np.searchsorted(ends, stream.uniforms(tries) * ends[-1]), ends.size - 1)
        words = stream.words(tries * -(-count // 64)).view(np.uint8).reshape(tries, -1)
        signs = 2.0 * np.unpackbits(words, axis=1, count=count) - 1.0
        np.put_along_axis(signs, zeros[chosen], 0.0, axis=1)
        needed = ((signs * self.costs) @ self.kernel)[:, None, :] @ inverses[chosen]
        kept = (np.abs(needed[:, 0]) <= self.costs[zeros[chosen]]).all(axis=1)
        positive = (signs > 0).sum(axis=1)
        if self.pairs:  # p positive and q negative cells that balance weigh C(p + q − 2, p − 1)
            kept &= stream.uniforms(tries) <= self._chances[positive]
        return signs[kept], positive[kept]

    def draw(self, size: int, stream: Stream) -> Floats:
        """Draw zeros and signs, then the sizes of the cells."""
        found, have = [], 0
        while have < size:
            signs = self._tried(self.at_once, stream)[0]
            sizes = -np.log(stream.uniforms(signs.size)).reshape(signs.shape) * np.abs(signs)
            cheapest = float(self.costs.min())
            if self.pairs:
                above, below = np.where(signs > 0, sizes, 0.0), np.where(signs < 0, sizes, 0.0)
                lengths = special.gammaincinv(self._dimension, stream.uniforms(len(signs))) / (2 * cheapest)
                sizes = lengths[:, None] * (
                    above / above.sum(axis=1, keepdims=True) + below / below.sum(axis=1, keepdims=True)
                )
            else:
                sizes = sizes / cheapest
            # The sizes are drawn as if every cell were the cheapest.
            kept = -np.log(stream.uniforms(len(sizes))) >= sizes @ (self.costs - cheapest)
            found.append((signs * sizes)[kept])
            have += int(kept.sum())
        return np.concatenate(found)[:size]

    def study(self, size: int, stream: Stream) -> Floats:
        """Independent draws."""
        return self.draw(size, stream)

    @property
    def _dimension(self) -> int:
        return len(self.kernel) - self.kernel.shape[1] - self.pairs

    @cached_property
    def moments(self) -> Floats:
        """E[z zᵀ] given zeros and signs in closed form (costs taken as equal), averaged over simulated ones."""
        stream, total, have = seeded(0), np.zeros((len(self.kernel),) * 2), 0
        while have < STUDY:
            signs, positive = self._tried(self.at_once, stream)
            have += len(signs)
            if self.pairs:
                # Dirichlet shares of r on both sides, E r² = d(d + 1).
                p, q = positive[:, None], self._dimension + 1 - positive[:, None]
                above, below = np.where(signs > 0, 1.0, 0.0), np.where(signs < 0, 1.0, 0.0)
                both = (above / (p * (p + 1))).T @ above + (below / (q * (q + 1))).T @ below
                cross = (above / (p * q)).T @ below
                total += both + np.diag(np.diagonal(both)) - cross - cross.T
            else:
                both = signs.T @ signs
                total += both + np.diag(np.diagonal(both))
        factor = self._dimension * (self._dimension + 1) if self.pairs else 1
        return np.asarray(total * factor / have)
