"""Everything public about a piece: where it is, the law of its noise, and what must hold in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import Array, Bools, Floats, Ints, Words
from holdfast.noise import Independent
from holdfast.randomness import Keys
from holdfast.release.pieces.cut import Piece

#: How values become what holds: they are drawn so, or moved level by level, or to the nearest table.
Way = Literal["given", "topdown", "bluedown", "nearest"]


@dataclass(frozen=True, eq=False)
class Rules:
    """What holds in some outputs: `spreads` weigh them, `exact` ones have their true values, and `low` and `high`
    bound the others (∓2**62: not at all). `unit` is the least spread of the whole table.
    """

    spreads: Floats
    exact: Bools
    low: Ints
    high: Ints
    unit: float

    @classmethod
    def of(cls, spreads: Floats, exact: Bools, low: Ints, high: Ints) -> Rules:
        """The rules of a whole table."""
        unit = float(spreads.min(where=~exact, initial=LARGEST))
        return cls(alike(spreads), alike(exact), alike(low), alike(high), unit)

    def at(self, outputs: Ints) -> Rules:
        """The rules of some of them."""
        some = (self.spreads[outputs], self.exact[outputs], self.low[outputs], self.high[outputs])
        return Rules(*some, self.unit)

    def bounds(self, truth: Ints) -> tuple[Ints, Ints]:
        """Bounds of the outputs; an exact one has its true value, which is also that of a fixed one."""
        return np.where(self.exact, truth, self.low), np.where(self.exact, truth, self.high)


@dataclass(frozen=True, eq=False)
class Work:
    """A piece, the law of the noise of its outputs, what holds in the end, and what the noise is conditioned on.

    `drawn` is None where noise is independent. `linear`: what holds in the estimate that intervals stand around, where
    they do.
    """

    piece: Piece
    law: Independent
    way: Way
    rules: Rules
    drawn: Rules | None
    linear: Rules | None


def alike(values: Array) -> Array:
    """The same values; where all are one number, in the memory of one."""
    return np.broadcast_to(values[0], values.shape) if (values == values[0]).all() else values


def measured(work: Work, truth: Ints, keys: Keys) -> Ints:
    """The true values of a piece's own outputs with independent noise; 0 where nothing is measured."""
    law = work.law.at(np.arange(work.piece.own))
    noise = law.measured_draw(1, keys.at("noise", work.piece.node, work.piece.first))[0]
    return np.asarray(noise + truth * np.isfinite(law.variances))


def coins_of(keys: Keys) -> Words:
    """The public coin that decides between equal fractions, the same in all pieces."""
    return keys.at("coin").words(1)
