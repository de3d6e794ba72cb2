"""What a certified table tells: noisy answers with their precision and the law of their errors, and what is exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.arguments import Refused
from holdfast.arrays import Floats
from holdfast.noise.spread import Spread
from holdfast.release.certificate.load import LoadedTable
from holdfast.release.storage.tables import Named, texts
from holdfast.together.universe import Rows

#: Outputs whose covariance is written out where their noise is not independent.
MOST_DEPENDENT = 100
#: Variances below this share of the largest are rounding: the draw says nothing else there than what is exact.
FLAT = 1e-9
#: The least variance of a measurement.
LEAST = 1e-30


@dataclass(frozen=True, eq=False)
class Measured:
    """A table of one folder, in steps of its figure.

    `figures`: of each output its number among all. `answers` is the draw whose errors have the law `spread`;
    `precision` weighs it (n, n). `equal` (k, n) and `right`: what holds exactly. `low`, `high`: what is certain.
    """

    who: str
    rows: Rows
    answers: Floats
    precision: Any
    spread: Spread
    noise: Callable[[int, Any], Any]
    equal: Any
    right: Floats
    low: Floats
    high: Floats
    gaussian: bool
    whole: bool
    nonnegative: bool

    @property
    def outputs(self) -> int:
        return self.answers.size

    @cached_property
    def best(self) -> bool:
        """Whether the precision is that of the law of the errors, so that weights by it are the best ones."""
        few = self.outputs <= MOST_DEPENDENT
        return few or self.spread.model is None or self.spread.model.kind != "given" or self.gaussian

    @classmethod
    def of(cls, who: str, table: LoadedTable, part: tuple[str, str] | None) -> Measured:
        """Read what a table tells; refused with the reason where the law of its errors is not public."""
        facts, made = table.certificate, table.mechanism
        if facts.linked:
            raise Refused(f"{who} is one of several linked tables, which are not combined: they are tied to each other")
        drawn = replace(made, moves=()) if made.moves and table.noisy is not None else made
        if drawn.depends_on_data or (spread := drawn.unit_spread()) is None:
            why = "was drawn given bounds" if made.source.depends_on_data else "was moved within bounds"
            raise Refused(
                f"{who} {why} and has no measurements beside it, so the law of its errors depends on the data: make it "
                "with method: onto or given-then-onto, which publish measurements"
            )
        answers = table.steps[: facts.outputs] if drawn is made else table._draw
        system, low, high = made.held, table.error_bars.low, table.error_bars.high
        equal, right = sparse.csr_array((0, facts.outputs)), np.zeros(0)
        if system is not None:
            space = system.null_space()
            equal, right = space.rows, space.sides_of(np.asarray(table.steps[: facts.outputs]))
        return cls(
            who,
            Rows.of(who, facts, table.columns, part),
            np.asarray(answers, dtype=np.float64),
            _precision(who, drawn, spread, facts.outputs),
            spread,
            drawn.noise,
            sparse.csr_array(equal).astype(np.float64),
            np.asarray(right, dtype=np.float64),
            low,
            high,
            drawn.base.law.kind == "gaussian",
            table.error_bars.whole,
            facts.holds.nonnegative,
        )

    @classmethod
    def known(cls, who: str, columns: Named, values: Floats, others: Sequence[Measured]) -> Measured:
        """Figures known without noise, named by columns that other sources have."""
        chains = [tuple(name for name in chain if name in columns) for each in others for chain in each.rows.chains]
        named = {name for chain in chains for name in chain}
        if odd := [name for name in columns if name not in named]:
            raise Refused(
                f"{who} has a column {odd[0]!r} that no folder has: name figures as the folders do, and 'value'"
            )
        n = values.size
        rows = Rows(
            who, tuple(filter(None, chains)), {name: texts(each).tolist() for name, each in columns.items()}, some=True
        )
        still, whole = np.zeros(n), bool((values % 1 == 0).all())
        nothing = Spread(still, lambda _: 0.0, lambda _: still)
        exact = sparse.eye_array(n, format="csr")
        return cls(who, rows, values, sparse.csr_array((n, n)), nothing, lambda size, _: np.zeros((size, n)), exact,
                   values, values, values, True, whole, True)  # fmt: skip


def _precision(who: str, drawn: Any, spread: Spread, n: int) -> Any:
    """The inverse of the covariance, on what is not exact.

    Gaussian noise given that equalities hold weighs as if it were independent and moved onto them: both have one law
    (SDP Theorem 22). Other noise given equalities is weighed so too where it has many outputs, with the scale at which
    the variances agree in sum: that is linear and unbiased, and near the best.
    """
    law, unit = drawn.base.law, float(drawn.base.unit)
    plain = not drawn.moves and drawn.source.law is None
    if plain and (drawn.source.system is None or law.kind == "gaussian" or n > MOST_DEPENDENT):
        variances = law.variances * unit**2
        return sparse.diags_array(np.where(np.isfinite(variances), 1 / np.maximum(variances, LEAST), 0.0), format="csr")
    if n > MOST_DEPENDENT:
        raise Refused(
            f"{who} has noise that is not independent in {n:,} figures, and at most {MOST_DEPENDENT} are combined so"
        )
    own = np.eye(n)
    single = np.array([spread.variance_of(row) for row in own])
    covariance = np.diag(single)
    for i in range(n):
        for j in range(i):
            both = (spread.variance_of(own[i] + own[j]) - single[i] - single[j]) / 2
            covariance[i, j] = covariance[j, i] = both
    sizes, vectors = np.linalg.eigh(covariance)
    kept = sizes > FLAT * sizes[-1]
    return sparse.csr_array((vectors[:, kept] / sizes[kept]) @ vectors[:, kept].T)
