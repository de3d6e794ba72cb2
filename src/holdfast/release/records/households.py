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


def refuse_households(engine: duckdb.DuckDBPyConnection, flat: Laid, table: LaidTable) -> None:
    """Refuse a household in two places, with more rows than it may have, or that breaks a tie."""
    query, spec = table.layout.query, flat.spec
    assert isinstance(query, LinkedCounts)
    assert spec.privacy.unit is not None
    household = f"t{len(columns_of(flat.tables))}"
    records = addressed(engine, flat.tables, household)
    joins, sums = [], [f"count(DISTINCT cell0 // {_inside(flat.tables[0])})", "sum(n)"]
    for number, (part, ties) in enumerate(zip(flat.tables, query.ties, strict=True)):
        weights = {"rows": np.ones(ties.shape[1], np.int64)} | {f"tie{t}": tie for t, tie in enumerate(ties)}
        spread = {name: _each(part, each) for name, each in weights.items()}
        engine.register(f"tied_{number}", spread | {"inside": np.arange(_inside(part))})
        joins.append(f"LEFT JOIN tied_{number} ON tied_{number}.inside = cell{number} % {_inside(part)}")
        sums.append(f"sum(n * tied_{number}.rows)")
    for t in range(len(query.ties[0])):
        sums.append(" + ".join(f"sum(n * tied_{number}.tie{t})" for number in range(len(flat.tables))))
    listed = ", ".join(f"({words})::BIGINT AS s{i}" for i, words in enumerate(sums))
    fitting = " AND ".join(f"cell{number} >= 0" for number in range(len(flat.tables)))
    grouped = f"SELECT {listed} FROM ({records}) {' '.join(joins)} WHERE {fitting} GROUP BY {household}"
    limits = [1, spec.privacy.unit.max_records, *query.most]
    wrong = [f"s{i} > {limit}" for i, limit in enumerate(limits)]
    wrong += [f"s{i} <> 0" for i in range(len(limits), len(sums))]
    places, records_over, *rest = (
        engine.execute(f"SELECT {', '.join(f'coalesce(bool_or({each}), false)' for each in wrong)} FROM ({grouped})")
    ).fetchall()[0]
    (nobody,) = engine.execute(f"SELECT coalesce(bool_or({household} IS NULL), false) FROM distinct_values").fetchall()[0]
    at = spec.at["privacy"]["unit"]
    if nobody:
        raise at.refuse("some record has no household: give every record its household")
    if places:
        raise at.refuse("some household has records in two places: give every household one place")
    over = rest[: len(query.most)]
    if records_over or any(over):
        sentence = "some household has more records than max_records, or than most of a linked table: raise the limit"
        raise at.refuse(sentence)
    if any(rest[len(query.most) :]):
        number = rest[len(query.most) :].index(True)
        raise table.layout.at["ties"][number].refuse("some household breaks this tie: correct the data, or the tie")


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
