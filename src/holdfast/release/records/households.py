"""Households one by one, before linked tables are counted: every one has its rows in one place and keeps the ties.

The statement is about households of this kind; one that is not is refused, and nothing is cut. A refusal never says
which household it is about, or how many there are.
"""

from __future__ import annotations

import duckdb
import numpy as np
import numpy.typing as npt

from holdfast.arrays import Ints
from holdfast.queries.areas.linked import LinkedCounts
from holdfast.release.records.cells import addressed, columns_of
from holdfast.release.table.laid import Laid, LaidTable

#: What can be wrong with a household but for the ties, and what to do.
REMEDIES = {
    "has no name": "give every record its household",
    "has records in two places": "give every household one place",
    "has more records than max_records, or than most of a linked table": "raise the limit",
}


def refuse_households(engine: duckdb.DuckDBPyConnection, flat: Laid, table: LaidTable) -> None:
    """Refuse a household in two places, with more rows than it may have, or that breaks a tie; and records of none."""
    found, at = faults(engine, flat, table), flat.spec.at["privacy"]["unit"]
    for words, households in found.items():
        if households:
            place = at if words in REMEDIES else table.layout.at["ties"]
            remedy = REMEDIES.get(words, "correct the data, or the tie")
            raise place.refuse(f"some household {words}: {remedy}; holdfast check shows how many")


def faults(engine: duckdb.DuckDBPyConnection, flat: Laid, table: LaidTable) -> dict[str, int]:
    """Return how many households have each fault, in words: confidential, for the curator's eyes alone."""
    query, unit = table.layout.query, flat.spec.privacy.unit
    assert isinstance(query, LinkedCounts)
    assert unit is not None
    household = f"t{len(columns_of(flat.tables))}"
    records = addressed(engine, flat.tables, household)
    joins, sums = [], [f"count(DISTINCT cell0 // {_inside(flat.tables[0])})", "sum(n)"]
    for number, (part, ties) in enumerate(zip(flat.tables, query.ties, strict=True)):
        weights = {"rows": np.ones(ties.shape[1], np.int64)} | {f"tie{t}": tie for t, tie in enumerate(ties)}
        spread = {name: _each(part, each) for name, each in weights.items()}
        engine.register(f"tied_{number}", spread | {"inside": np.arange(_inside(part))})
        joins.append(f"LEFT JOIN tied_{number} ON tied_{number}.inside = cell{number} % {_inside(part)}")
        sums.append(f"sum(n * tied_{number}.rows)")
    numbers = range(len(flat.tables))
    sums += [" + ".join(f"sum(n * tied_{number}.tie{t})" for number in numbers) for t in range(len(query.ties[0]))]
    listed = ", ".join(f"({words})::BIGINT AS s{i}" for i, words in enumerate(sums))
    fitting = " AND ".join(f"cell{number} >= 0" for number in range(len(flat.tables)))
    grouped = (
        f"SELECT {household} IS NULL AS nobody, {listed} FROM ({records}) {' '.join(joins)} WHERE {fitting} "
        f"GROUP BY {household}"
    )
    limits = [1, unit.max_records, *query.most]
    over = [f"s{i} > {limit}" for i, limit in enumerate(limits)]
    broken = [f"s{i} <> 0" for i in range(len(limits), len(sums))]
    asked = ["nobody", over[0], " OR ".join(over[1:]), *broken]
    counts = ", ".join(f"count(*) FILTER (WHERE {each})" for each in asked)
    named = [*REMEDIES, *(f"breaks tie {t + 1}" for t in range(len(broken)))]
    (row,) = engine.execute(f"SELECT {counts} FROM ({grouped})").fetchall()
    return dict(zip(named, row, strict=True))


def of_linked(flat: Laid, cells: list[npt.NDArray[np.int64]]) -> dict[str, Ints]:
    """Return the cells of every linked table without the records that it does not count."""
    found = {}
    for part, counted in zip(flat.tables, cells, strict=True):
        chosen = part.layout.counted
        assert chosen is not None
        found[part.name] = counted.reshape(-1, chosen.size)[:, chosen].sum(axis=1)
    return found


def _inside(part: LaidTable) -> int:
    """The number of cells of one place, those by which records are chosen included."""
    return int(np.prod([key.size for key in part.layout.keys[1:]], dtype=np.int64))


def _each(part: LaidTable, weights: Ints) -> Ints:
    """Return weights of the cells for every choice of records; 0 where a record is not counted."""
    chosen = part.layout.counted
    assert chosen is not None
    return np.outer(weights, chosen).ravel().astype(np.int64)
