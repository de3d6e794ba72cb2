"""What the page needs to answer questions: names, figures and the law of their errors, as one JSON text."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse

from holdfast.arguments import Refused
from holdfast.arrays import Floats, Ints
from holdfast.constraints.system.own_sums import OwnSums
from holdfast.noise.error_model import ErrorModel
from holdfast.noise.spread import Spread, study_size
from holdfast.randomness import seeded
from holdfast.release.certificate.certificate import Certificate
from holdfast.release.certificate.load import LoadedRelease, LoadedTable
from holdfast.release.facts import TableCertificate
from holdfast.release.standalone_verifier.table import told_by
from holdfast.release.storage.tables import in_steps, label_column, texts

#: Rows of a table that the page holds; those of larger ones are read from its CSV when somebody chooses that.
HELD = 50_000
#: Whole numbers that a browser's numbers hold.
LARGEST = 2.0**53
#: Bytes of simulated errors that a page holds, and how near sums of some figures are to the others.
STUDIED, NEAR = 1_200_000, 1e-9
#: Figures, at most, that tell all others, and whose covariance it holds.
MOST_FREE = 24
#: Rows that are looked at, in all, to tell figures that are not measured.
MOST_TRIED = 10**7


def asked(folder: Path, certificate: Certificate) -> str:
    """The JSON of all tables of a release whose files lie in a folder; no end of a script can stand in it."""
    release = LoadedRelease(folder, certificate)
    found = [_told(table) | (_figures(release.read(table)) if _held(table) else {}) for table in certificate.tables]
    text = json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _held(table: TableCertificate) -> bool:
    return table.rows <= HELD and not table.parts


def _told(certificate: TableCertificate) -> dict[str, Any]:
    """What names and levels mean."""
    return {
        "held": _held(certificate),
        "name": certificate.name,
        "figure": certificate.figure,
        "unit": float(certificate.unit),
        "kind": certificate.kind,
        "columns": certificate.columns[1:],
        "labels": certificate.labels,
        "places": certificate.places,
        "margins": _margins(certificate),
        "measured": len(certificate.measured),
        "linked": [[each.name, each.axes] for each in certificate.linked],
        "rows": certificate.rows,
        "outputs": certificate.outputs,
        "confidence": certificate.interval.confidence,
        "sentence": certificate.interval.sentence,
        "csv": certificate.csv,
    }


def _margins(certificate: TableCertificate) -> list[dict[str, Any]]:
    """The levels and the names that each of them tells, those with fewer names first."""
    recoded = {"recoded": [each.model_dump() for each in certificate.recoded]}
    found = [
        each.model_dump(mode="json") | {"level": level, "told": sorted(told_by(recoded, each.axes))}
        for level, each in zip(certificate.levels, certificate.margins, strict=True)
    ]
    return sorted(found, key=lambda each: (each["places"], len(each["axes"])))


def _figures(table: LoadedTable) -> dict[str, Any]:
    """The rows of a table, and the law of their errors."""
    certificate = table.certificate
    names = ["level", *certificate.columns[1:], *map(label_column, certificate.labels)]
    ends = in_steps(table.interval(certificate.interval.confidence), certificate.unit, whole=False)
    found = {
        "names": {name: _names(table.columns[name]) for name in names},
        "value": numbers(table.steps),
        "low": numbers(ends[:, 0]),
        "high": numbers(ends[:, 1]),
    }
    return found | _law(table)


def _law(table: LoadedTable) -> dict[str, Any]:
    """The law of the errors, what it is about and what is certain; `law` is null where it takes simulation."""
    try:
        bars, query, sums = table.error_bars, table.mechanism.query, table.sums
    except Refused:
        return {"known": "nothing"}
    tree, model = query.tree, None if bars.spread is None else bars.spread.model
    rows = None if model is None else _free_rows(model)
    known = "bounds" if bars.spread is None else "simulation" if model is None or rows is None else "law"
    told = {
        "known": known,
        "whole": bars.whole,
        "centre": numbers(np.asarray(bars.centre)),
        "least": numbers(bars.low),
        "most": numbers(bars.high),
        "sums": None if not sums.shape[0] else _sparse(sums),
        "tree": None,
        "law": None,
    }
    if tree is not None and table.certificate.holds.consistent:
        told["tree"] = {"parents": runs(tree.parents), "by": query.n // tree.n}
    if model is not None and rows is not None:
        told["law"] = model_asked(model, *rows)
    elif bars.spread is not None:
        told["law"] = _studied(table, bars.spread)
        told["known"] = "simulation" if told["law"] is None else "law"
    return told


def _free_rows(model: ErrorModel) -> tuple[Any, Any] | None:
    """The rows without outputs that are not measured, and those that tell these; None where a page cannot use them."""
    if model.rows is None:
        return None if None in model.law.laws or model.kind == "normal" else (None, None)
    try:
        rows = model.rows()
    except Refused:
        return None
    unmeasured = ~np.isfinite(model.law.variances)
    if model.kind != "given":
        return None if isinstance(rows, OwnSums) else _without(rows, np.flatnonzero(unmeasured))
    inner = np.zeros(model.law.n, dtype=bool)
    below = np.minimum.reduceat(rows.data, rows.indptr[:-1]) < 0  # a parent counts once and its children less
    inner[rows.indices[(rows.data > 0) & np.repeat(below, np.diff(rows.indptr))]] = True
    tree = bool((inner | ~unmeasured).all() and (np.abs(rows.data) == 1).all())
    return (rows, None) if tree else None


def _without(rows: Any, columns: Ints) -> tuple[Any, Any] | None:
    """Rows that have none of these columns, and one more for each, whose first entry is there."""
    if not columns.size or columns.size * rows.shape[0] > MOST_TRIED:
        return None if columns.size else (rows, None)
    parts = zip(*(np.split(each, rows.indptr[1:-1]) for each in (rows.indices, rows.data)), strict=True)
    left = {r: dict(zip(at.tolist(), data.tolist(), strict=True)) for r, (at, data) in enumerate(parts)}
    told: list[dict[int, float]] = []
    for column in columns.tolist():
        having = [r for r, row in left.items() if column in row]
        if not having:
            return None
        pivot = left.pop(min(having, key=lambda r: len(left[r])))
        told.append({column: pivot.pop(column), **pivot})
        for r in having:
            if r in left:
                share = left[r].pop(column) / told[-1][column]
                for at, value in pivot.items():
                    left[r][at] = left[r].get(at, 0) - share * value
                    if not left[r][at]:
                        del left[r][at]
    return _stacked(list(left.values()), rows.shape[1]), _stacked(told, rows.shape[1])


def _stacked(rows: list[dict[int, float]], n: int) -> Any:
    ends = np.cumsum([0, *map(len, rows)])
    at, values = ([x for row in rows for x in part(row)] for part in (dict.keys, dict.values))
    return sparse.csr_array(
        (np.array(values, dtype=np.float64), np.array(at, dtype=np.int64), ends), shape=(len(rows), n)
    )


def _studied(table: LoadedTable, spread: Spread) -> dict[str, Any] | None:
    """Simulated errors of some outputs, what makes those of all from them, and their covariance; None: too many."""
    size = study_size(table.certificate.outputs)
    if size is None or table.certificate.outputs * size > 3 * STUDIED:
        return None
    errors = table.drawn(size, seeded(0)).astype(np.float64)
    n, few = errors.shape[1], errors[: 20 * errors.shape[1]]
    _, triangle, order = linalg.qr(few, mode="economic", pivoting=True)
    rank = int((np.abs(triangle.diagonal()) > NEAR * np.abs(triangle[0, 0])).sum())
    own, others = order[:rank], order[rank:]
    rest: Floats = linalg.solve_triangular(triangle[:rank, :rank], triangle[:rank, rank:]) if rank else np.zeros((0, n))
    told = next(
        (kind for kind in ("<i1", "<i2", "<f8") if (errors[:, own].astype(kind) == errors[:, own]).all()), "<f8"
    )
    normal = spread.model is not None and spread.model.kind == "normal"
    if not 0 < rank <= MOST_FREE or (not normal and rank * size * np.dtype(told).itemsize > STUDIED):
        return None
    if np.abs(errors[:, others] - errors[:, own] @ rest).max(initial=0) > NEAR * np.abs(errors).max():
        return None
    above = np.array(list(combinations_with_replacement(range(rank), 2)))
    weights = np.sqrt(np.arange(1, n + 1))
    made = weights[own] + rest @ weights[others]
    sums = [np.eye(n)[own[[i, j]]].sum(axis=0) for i, j in above.tolist()]
    errors_of = np.sqrt([spread.variance_of(some) for some in [*sums, weights]])
    sizes = np.array([some.sum() for some in [*sums, weights]])
    for rounded in (0.0, 0.5):  # figures that were rounded add half of their weights to a standard error
        squares = (errors_of - rounded * sizes) ** 2
        pairs = np.zeros((rank, rank))
        pairs[above[:, 0], above[:, 1]] = pairs[above[:, 1], above[:, 0]] = squares[:-1]
        covariance = (pairs - np.add.outer(pairs.diagonal(), pairs.diagonal()) / 4) / 2
        if np.isclose(made @ covariance @ made, squares[-1], rtol=NEAR, atol=NEAR * pairs.max()):
            break
    else:
        return None
    drawn = base64.urlsafe_b64encode(errors[:, own].T.astype(told).tobytes()).decode()
    found = {"own": own.tolist(), "others": others.tolist(), "rest": numbers(rest.ravel())}
    found |= {"covariance": numbers(covariance.ravel()), "rounded": rounded}
    if spread.model is not None and normal:
        return found | {"kind": "normal", "unit": spread.model.unit, "variance": [1]}
    found |= {"unit": 1, "variance": [float(spread.standard_errors.max()) ** 2]}
    return found | {"kind": "study", "size": size, "bytes": told, "drawn": drawn}


def model_asked(model: ErrorModel, rows: Any, told: Any) -> dict[str, Any]:
    """The kinds of noise, which each output has, the rows, and those that tell what is not measured."""
    law = model.law
    which = np.zeros(law.n, dtype=np.int64) if law.which is None else law.which.astype(np.int64)
    spreads = np.ones(law.n) if model.spreads is None else np.where(np.isfinite(model.spreads), model.spreads, 0.0)
    pairs, kind = np.unique(np.column_stack([which, spreads]), axis=0, return_inverse=True)
    laws = [law.laws[int(k)] for k in pairs[:, 0].tolist()]
    sizes = {True: "sigma2", False: "scale"}[law.kind == "gaussian"]
    return {
        "kind": model.kind,
        "gaussian": law.kind == "gaussian",
        "integer": law.integer,
        "unit": model.unit,
        "parameter": [None if one is None else float(getattr(one, sizes)) for one in laws],
        "variance": [None if one is None else one.variance for one in laws],
        "spreads": pairs[:, 1].tolist(),
        "which": runs(kind.ravel()),
        "rows": None if rows is None or not rows.shape[0] else _sparse(rows),
        "told": None if told is None or not told.shape[0] else _sparse(told),
    }


def _sparse(matrix: Any) -> dict[str, Any]:
    return {"sizes": runs(np.diff(matrix.indptr)), "at": runs(matrix.indices), "sign": numbers(np.asarray(matrix.data))}


def _names(column: npt.NDArray[Any]) -> dict[str, Any]:
    """The distinct names as they first occur, and the number of each row's, −1 where there is none."""
    listed = texts(column).tolist()
    number: Mapping[str, int] = {name: k for k, name in enumerate(dict.fromkeys(x for x in listed if x is not None))}
    return {"texts": list(number), "codes": runs(np.array([-1 if x is None else number[x] for x in listed]))}


def runs(values: Any) -> list[int]:
    """Whole numbers as steps from one to the next, each with how often it is made."""
    steps = np.diff(np.asarray(values, dtype=np.int64), prepend=0)
    if not steps.size:
        return []
    first: Ints = np.flatnonzero(np.diff(steps, prepend=steps[0] - 1))
    return np.column_stack([steps[first], np.diff(first, append=steps.size)]).ravel().tolist()


def numbers(values: npt.NDArray[Any]) -> Any:
    """Numbers: one for all as text, whole ones in runs where that is short, others as the bytes of doubles."""
    found = np.asarray(values, dtype=np.float64)
    if found.size and (found == found[0]).all():
        return {
            "all": {np.inf: "Infinity", -np.inf: "-Infinity"}.get(float(found[0]), repr(float(found[0]))),
            "n": found.size,
        }
    if np.isfinite(found).all() and (found % 1 == 0).all() and (np.abs(found) < LARGEST).all():
        steps = runs(found.astype(np.int64))
        return {"runs": steps} if len(steps) < found.size else found.astype(np.int64).tolist()
    return base64.urlsafe_b64encode(found.astype("<f8").tobytes()).decode()
