"""What the page needs to answer questions: names, figures and the law of their errors, as one JSON text."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.arrays import Ints
from holdfast.constraints.system.own_sums import OwnSums
from holdfast.noise.error_model import ErrorModel
from holdfast.release.certificate.certificate import Certificate
from holdfast.release.certificate.load import LoadedRelease, LoadedTable
from holdfast.release.facts.table import TableCertificate
from holdfast.release.storage.tables import label_column, texts

#: Rows of a table that the page holds; those of larger ones are read from its CSV when somebody chooses that.
HELD = 50_000
#: Whole numbers that a browser's numbers hold.
LARGEST = 2.0**53


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
        "kind": certificate.kind,
        "columns": certificate.columns[1:],
        "labels": certificate.labels,
        "places": certificate.places,
        "levels": certificate.levels,
        "margins": [each.model_dump(mode="json") for each in certificate.margins],
        "measured": len(certificate.measured),
        "recoded": [[each.name, each.axis, max(each.groups)] for each in certificate.recoded],
        "linked": [[each.name, each.axes] for each in certificate.linked],
        "rows": certificate.rows,
        "outputs": certificate.outputs,
        "confidence": certificate.interval.confidence,
        "sentence": certificate.interval.sentence,
        "csv": certificate.csv,
    }


def _figures(table: LoadedTable) -> dict[str, Any]:
    """The rows of a table, and the law of their errors."""
    certificate = table.certificate
    names = ["level", *certificate.columns[1:], *map(label_column, certificate.labels)]
    ends = table.interval(certificate.interval.confidence)
    found = {
        "names": {name: _names(table.columns[name]) for name in names},
        "value": numbers(table.values),
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
    told = {
        "known": "bounds" if bars.spread is None else "law" if model is not None and _tellable(model) else "simulation",
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
    if told["known"] == "law" and model is not None:
        told["law"] = model_asked(model)
    return told


def _tellable(model: ErrorModel) -> bool:
    if model.rows is None:
        return None not in model.law.laws
    try:
        rows = model.rows()
    except Refused:
        return False
    unmeasured = ~np.isfinite(model.law.variances)
    if model.kind != "given" or model.almost_normal:
        return not unmeasured.any() and not isinstance(rows, OwnSums)
    inner = np.zeros(model.law.n, dtype=bool)
    below = np.minimum.reduceat(rows.data, rows.indptr[:-1]) < 0  # a parent counts once and its children less
    inner[rows.indices[(rows.data > 0) & np.repeat(below, np.diff(rows.indptr))]] = True
    return bool((inner | ~unmeasured).all() and (np.abs(rows.data) == 1).all())


def model_asked(model: ErrorModel) -> dict[str, Any]:
    """The kinds of noise, which each output has, and the rows."""
    law = model.law
    which = np.zeros(law.n, dtype=np.int64) if law.which is None else law.which.astype(np.int64)
    spreads = np.ones(law.n) if model.spreads is None else np.where(np.isfinite(model.spreads), model.spreads, 0.0)
    pairs, kind = np.unique(np.column_stack([which, spreads]), axis=0, return_inverse=True)
    laws = [law.laws[int(k)] for k in pairs[:, 0].tolist()]
    sizes = {True: "sigma2", False: "scale"}[law.kind == "gaussian"]
    rows = None if model.rows is None else model.rows()
    return {
        "kind": model.kind,
        "gaussian": law.kind == "gaussian",
        "integer": law.integer,
        "almost": model.almost_normal,
        "unit": model.unit,
        "parameter": [None if one is None else float(getattr(one, sizes)) for one in laws],
        "variance": [None if one is None else one.variance for one in laws],
        "spreads": pairs[:, 1].tolist(),
        "which": runs(kind.ravel()),
        "rows": None if rows is None or not rows.shape[0] else _sparse(rows),
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
