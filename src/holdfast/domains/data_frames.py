"""Data frames of any library: reading the nodes of a hierarchy, one row per leaf, and making one of columns."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from holdfast.arguments import LARGEST, Refused, listed, one_of, shown
from holdfast.arrays import Ints

# --- single values as names, where Python and not the engine reads them: the same texts that the engine writes -------


def text_of(value: Any) -> str | None:
    """Write a value: whole numbers without a fraction, nothing for empty texts and missing numbers."""
    if value is None or value == "" or value != value:  # a number that is none differs from itself
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (float, Decimal)):
        whole = math.isfinite(value) and -LARGEST <= value <= LARGEST and value == int(value)
        return str(int(value)) if whole else repr(value) if isinstance(value, float) else format(value, "f")
    if isinstance(value, datetime):
        text = value.isoformat(" ")
        return text.rstrip("0") if value.microsecond and value.tzinfo is None else text
    if isinstance(value, (bytes, memoryview, dict, list, tuple, set)):
        raise Refused(
            f"a column of the records holds values of the type {type(value).__name__}; texts, whole numbers or dates "
            "are needed"
        )
    return value.isoformat() if isinstance(value, date) else str(value)


#: Data frames that can be made, in the order in which they are looked for.
BACKENDS: tuple[Any, ...] = ("polars", "pandas", "pyarrow")


def frame_of(columns: Mapping[str, Any], backend: str | None) -> Any:
    """Return columns as a data frame of a library, or of the first that is installed."""
    import narwhals as nw

    if backend is not None:
        one_of("backend", backend, BACKENDS)
    for name in BACKENDS if backend is None else (backend,):
        try:
            return nw.from_dict(columns, backend=name).to_native()
        except ImportError:
            continue
    wanted = "polars, pandas or pyarrow" if backend is None else backend
    raise Refused(f"a data frame needs {wanted}, which is not installed: pip install it")


def nodes_of_frame(
    frame: Any, levels: Sequence[str], root: str | None
) -> tuple[Ints, npt.NDArray[np.object_], tuple[str, ...]]:
    """Return (parents, labels, level names), nodes breadth-first and in order of first appearance."""
    names = _columns_asked(levels, root)
    columns = _read(frame, names)
    rows = columns[0][0].size
    parents: list[Ints] = []
    labels: list[npt.NDArray[np.object_]] = []
    above = np.full(rows, -1, np.int64)  # the node of each row one level up
    count = 0
    if root is not None:
        parents, labels, above, count = [above[:1]], [np.array([root], object)], np.zeros(rows, np.int64), 1
    for code, distinct in columns:
        _, first, inverse = np.unique((above + 1) * distinct.size + code, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))  # position of each distinct path by first appearance
        first = np.sort(first)
        parents.append(above[first])
        labels.append(distinct[code[first]])
        above = count + rank[inverse]
        count += first.size
    if first.size < rows:
        repeated = int(np.setdiff1d(np.arange(rows), first)[0])
        path = " / ".join(str(distinct[code[repeated]]) for code, distinct in columns)
        raise Refused(f"frame must have one row per leaf, but the path {path!r} occurs twice")
    flat = np.concatenate(labels)
    flat.flags.writeable = False
    return np.concatenate(parents), flat, names if root is None else (root, *names)


def _columns_asked(levels: Any, root: Any) -> tuple[str, ...]:
    names = [levels] if isinstance(levels, str) else listed("levels", levels, "a list of column names")
    if not names or not all(isinstance(name, str) for name in names):
        raise Refused(f"levels must be a list of at least one column name, found {shown(levels)}")
    if len(set(names)) < len(names):
        raise Refused("levels must not name a column twice")
    if root is not None and (not isinstance(root, str) or not root.strip()):
        raise Refused(f"root must be a text that is not empty or None, found {shown(root)}")
    if root in names:
        raise Refused(f"root must differ from the levels, but {root!r} is also a level")
    return tuple(names)


def _read(frame: Any, names: tuple[str, ...]) -> list[tuple[Ints, npt.NDArray[np.object_]]]:
    """Return for each column the codes of its rows and the distinct labels they stand for."""
    if isinstance(frame, dict):  # columns already read, one list of texts each
        if missing := [name for name in names if name not in frame]:
            raise Refused(f"frame has no column {missing[0]!r}: it has {', '.join(map(repr, frame))}")
        return [_coded(name, frame[name]) for name in names]
    import narwhals as nw

    try:
        table = nw.from_native(frame)
    except TypeError:
        raise Refused(
            f"frame must be a table that narwhals can read, found an object of type {type(frame).__name__}"
        ) from None
    available = table.collect_schema().names()
    for name in names:
        if name not in available:
            near = difflib.get_close_matches(name, available, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise Refused(f"levels must name columns of the frame, but there is no column {name!r}{hint}")
    chosen = table.select(*names)
    eager: nw.DataFrame[Any] = chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen
    if len(eager) == 0:
        raise Refused("frame must have at least one row")
    for name in names:
        null = eager[name].is_null().to_numpy()
        if null.any():
            _refuse_nameless(name, int(np.argmax(null)))
    return [_coded(name, eager[name].to_list()) for name in names]


def _refuse_nameless(name: str, row: int) -> NoReturn:
    raise Refused(f"frame must have a name in every row, but column {name!r} has none in row {row}")


def _coded(name: str, values: list[Any]) -> tuple[Ints, npt.NDArray[np.object_]]:
    numbered = {value: i for i, value in enumerate(dict.fromkeys(values))}
    code = np.fromiter(map(numbered.__getitem__, values), np.int64, len(values))
    for value in numbered:
        missing = value != value  # only a missing number differs from itself
        if missing or (isinstance(value, str) and not value.strip()):
            _refuse_nameless(name, int(np.argmax(code == numbered[value])))
        if isinstance(value, (float, complex)):
            raise Refused(f"frame must hold texts or whole numbers, but column {name!r} holds fractions")
    labels = list(map(str, numbered))
    distinct = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    if len(distinct) < len(labels):  # 1 and "1" are one name
        code = np.fromiter(map(distinct.__getitem__, labels), np.int64, len(labels))[code]
    return code, np.array(list(distinct), dtype=object)
