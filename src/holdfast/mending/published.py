"""Published tables and hierarchies in the formats of τ-ARGUS (`.tab` with its metadata `.rda`, `.hrc`)."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused, as_array, shown
from holdfast.arrays import Floats
from holdfast.domains import Hierarchy
from holdfast.mending.classifications import (
    Classification,
    Column,
    flat,
    from_children,
    from_hierarchy,
    from_pairs,
    is_total,
    joined,
)
from holdfast.mending.written import Written, is_number, read_column, read_marks
from holdfast.release.storage.argus import LEAD, TOTAL, cells, codes, codes_of, metadata


def argus_hierarchy(path: Path, total: str = TOTAL, lead: str = LEAD) -> Classification:
    """Read a `.hrc` file: the codes below a total."""
    pairs = codes(path, total, lead)
    return from_pairs(pairs, f"{len(pairs):,} codes of {path.name!r} below {total!r}")


def argus_table(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read a `.tab` file by its metadata: columns of codes and of figures, without those of cells that are not safe."""
    variables, rows = cells(path)
    columns = {each.name: [row[i] for row in rows] for i, each in enumerate(variables)}
    figures = [each for each in variables if each.kind in ("NUMERIC", "FREQUENCY")]
    if not figures:
        name = path.with_suffix(".rda").name
        raise Refused(f"{name!r} describes no column of figures: one must be <NUMERIC> or <FREQUENCY>")
    chosen = next((each for each in figures if each.kind == "NUMERIC"), figures[0])
    hidden = [False] * len(rows)
    for each in variables:
        if each.kind == "STATUS":
            safe = {each.words.get("SAFE", "S"), each.words.get("PROTECT", "P"), "S", "P"}
            hidden = [gone or state not in safe for gone, state in zip(hidden, columns[each.name], strict=True)]
    found: dict[str, Any] = {each.name: columns[each.name] for each in variables if each.kind == "RECODEABLE"}
    texts = zip(columns[chosen.name], hidden, strict=True)
    found[chosen.name] = [None if gone else text for text, gone in texts]
    return {name: np.array(column, dtype=object) for name, column in found.items()}


def argus_hierarchies(path: Path) -> dict[str, Classification]:
    """Read the hierarchies that a table's metadata name, by column."""
    description = path.with_suffix(".rda")
    found = {}
    for each in metadata(description)[1]:
        if pairs := codes_of(each, description):
            found[each.name] = from_pairs(pairs, f"{len(pairs):,} codes of {each.words['HIERCODELIST']!r}")
    return found


#: Names by which a column of figures is known among several columns of numbers.
FIGURES = ("value", "figure", "figures", "count", "counts", "obs_value", "n", "freq", "frequency", "population", "pop")
#: Names of the two dimensions of a cross table that have none.
ACROSS = "column"


@dataclass(frozen=True, eq=False)
class Published:
    """A table with one row per figure: columns of labels, figures as they are written, and other numbers by name."""

    columns: dict[str, Column]
    written: Written
    name: str
    beside: dict[str, Floats]

    @property
    def figures(self) -> Floats:
        """The figures, NaN where missing."""
        return self.written.figures


def read_table(table: Any, value: Any, errors: str | None, said: Any = None) -> Published:
    """Read a file or a frame; `value` names the column of figures, `errors` one of their standard errors."""
    marks = read_marks(said)
    if isinstance(table, (str, Path)) and Path(table).suffix.lower() in (".tab", ".rda"):
        marks.setdefault("decimal", ".")
    columns = columns_of(table)
    if not columns or not len(next(iter(columns.values()))):
        raise Refused("the table has no figures: it must have a header and at least one row")
    numbers = _numeric(columns, marks)
    beside = {} if errors is None else {errors: _beside(columns, errors, marks)}
    others = [name for name in numbers if name != errors]
    if value is None:
        value = _value_column(others)
    elif not isinstance(value, str) or value not in columns:
        raise Refused(
            f"value must name a column of the table, one of {', '.join(map(repr, columns))}, found {shown(value)}"
        )
    if value is None:
        return _crossed(columns, others, marks, beside)
    figures = read_column(columns[value], value, marks)
    labels = {name: Column.of(labels_of(found)) for name, found in columns.items() if name not in (value, errors)}
    if not labels:
        raise Refused(f"the table must have a column of labels beside {value!r}: without labels nothing adds up")
    return Published(labels, figures, value, beside)


def columns_of(table: Any) -> dict[str, npt.NDArray[Any]]:
    """The columns of a file, frame or mapping, as they are."""
    if isinstance(table, Mapping):
        return {str(name): _as_column(found) for name, found in table.items()}
    if isinstance(table, (str, Path)):
        return _file_columns(Path(table))
    import narwhals as nw

    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError:
        raise Refused(
            f"frame must be a data frame, a path or a mapping of columns, found {type(table).__name__}"
        ) from None
    found = {}
    for name in frame.columns:
        column = frame[name].to_numpy()
        found[str(name)] = column if column.dtype.kind in "iuf" else np.asarray(frame[name].to_list(), dtype=object)
    return found


def _as_column(found: Any) -> npt.NDArray[Any]:
    column = as_array("frame", found)
    if column.ndim != 1:
        raise Refused(f"frame must hold columns of one number or text per row, found {type(found).__name__}")
    return column if column.dtype.kind in "iuf" else np.array(found, dtype=object)


def _file_columns(path: Path) -> dict[str, npt.NDArray[Any]]:
    import duckdb

    from holdfast.release.storage.engine import Unreadable, rows_of, session

    if not os.path.exists(path):
        raise Refused(f"there is no table {str(path)!r}")
    if path.suffix.lower() in (".tab", ".rda"):
        return argus_table(path)
    try:
        found = session().execute(f"SELECT * FROM {rows_of(path)}")
        names = [item[0] for item in found.description or []]
        arrow = found.fetchnumpy()
    except Unreadable as error:
        raise Refused(f"{str(path)!r} cannot be read as a table: {error}") from None
    except duckdb.Error:
        raise Refused(_broken_line(path)) from None
    return {name: _unmasked(arrow[name]) for name in names}


def _unmasked(column: Any) -> npt.NDArray[Any]:
    if not isinstance(column, np.ma.MaskedArray):
        return np.asarray(column)
    if not np.ma.is_masked(column):
        return np.asarray(column.data)
    found = column.data.astype(object)
    found[np.asarray(column.mask)] = None
    return found


def _broken_line(path: Path) -> str:
    """Say which line of a CSV file does not have as many fields as its header."""
    from holdfast.release.storage.engine import header_of

    between, names = header_of(path)
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
        for number, fields in enumerate(csv.reader(lines, delimiter=between), start=1):
            if len(fields) not in (0, len(names)):
                return (
                    f"line {number} of {path.name!r} has {len(fields)} fields where the header has {len(names)}, "
                    f"separated by {between!r}: use one separator throughout, and none inside numbers"
                )
    return f"{str(path)!r} cannot be read as a table"


def _numeric(columns: Mapping[str, npt.NDArray[Any]], marks: Mapping[str, str]) -> list[str]:
    """The columns in which most entries are numbers."""
    found = []
    for name, column in columns.items():
        if column.dtype.kind in "iuf":
            found.append(name)
            continue
        some = [entry for entry in column[:: max(1, column.size // 200)].tolist() if str(entry).strip() not in marks]
        tries = [is_number(entry, marks) for entry in some if entry is not None]
        if tries and sum(tries) > len(tries) / 2:
            found.append(name)
    return found


def _value_column(numbers: Sequence[str]) -> str | None:
    """The column of figures; None where the table is a cross table."""
    if not numbers:
        raise Refused("the table has no column of numbers: name the column of figures with value=")
    if len(numbers) == 1:
        return numbers[0]
    if any(is_total(name) and name.strip() for name in numbers):
        return None
    known = [name for name in numbers if name.strip().lower() in FIGURES]
    if len(known) == 1:
        return known[0]
    raise Refused(
        f"several columns hold numbers, {', '.join(map(repr, numbers[:6]))}: name the column of figures with value=, "
        "or call one 'Total' in a cross table"
    )


def _crossed(
    columns: Mapping[str, npt.NDArray[Any]], numbers: Sequence[str], marks: Mapping[str, str], beside: dict[str, Floats]
) -> Published:
    """A cross table as one row per figure, row by row."""
    if beside:
        raise Refused("a cross table has no column of errors: state a law of noise, or give one row per figure")
    down = {name: Column.of(labels_of(found)) for name, found in columns.items() if name not in numbers}
    if not down:
        raise Refused("a cross table must begin with a column of labels for its rows")
    rows, across = next(iter(down.values())).codes.size, len(numbers)
    read = [read_column(columns[name], name, marks) for name in numbers]
    figures, zero, wide = (
        np.stack([getattr(each, what) for each in read], axis=1).ravel() for what in ("figures", "zero", "wide")
    )
    written = Written(figures, zero, wide, sum((each.marks for each in read), Counter()))
    labels = {name: Column(found.labels, np.repeat(found.codes, across)) for name, found in down.items()}
    name = ACROSS if ACROSS not in labels else f"{ACROSS} label"
    labels[name] = Column(tuple(map(str, numbers)), np.tile(np.arange(across), rows))
    return Published(labels, written, "value", {})


def labels_of(column: npt.NDArray[Any]) -> list[str]:
    """Labels as texts; whole numbers without a fraction, nothing for what is missing."""
    if column.dtype.kind in "iu":
        return list(map(str, column.tolist()))
    if column.dtype.kind == "f":
        return ["" if np.isnan(x) else str(int(x)) if float(x).is_integer() else str(x) for x in column.tolist()]
    return ["" if entry is None or entry != entry else str(entry).strip() for entry in column.tolist()]


def _beside(columns: Mapping[str, npt.NDArray[Any]], name: str, marks: Mapping[str, str]) -> Floats:
    if name not in columns:
        raise Refused(f"errors names the column {name!r}, which the table does not have: it has {', '.join(columns)}")
    return read_column(columns[name], name, marks).figures


#: What each column is said to be; None: nothing adds up in it.
Said = dict[str, "Classification | None"]


def read_domain(domain: Any, columns: Mapping[str, Column]) -> Said:
    """Read what is said: by column, or as one thing for the column whose labels it shares.

    For each column: None (nothing adds up in it), a hf.Hierarchy, a mapping from each label to those that add up to it,
    a frame or file with one row per leaf and one column per level, a `.hrc` file, or a list of these (several
    hierarchies over the same leaves).
    """
    if domain is None:
        return {}
    if isinstance(domain, Mapping) and set(map(str, domain)) <= set(columns):
        return {
            str(name): None if one is None else _one(one, columns[str(name)].labels) for name, one in domain.items()
        }
    known = {label for column in columns.values() for label in column.labels}
    if isinstance(domain, Mapping) and not known & set(map(str, domain)) and not _is_frame(domain, known):
        near = ", ".join(map(repr, columns))
        unknown = next(str(name) for name in domain if str(name) not in columns)
        raise Refused(f"domain speaks of {unknown!r}, which is neither a column nor a label: the columns are {near}")
    best = max(columns, key=lambda name: _shared(domain, columns[name].labels))
    return {best: _one(domain, columns[best].labels)}


def _is_frame(domain: Mapping[Any, Any], known: Collection[str]) -> bool:
    """Whether a mapping holds columns with one row per leaf: as long as each other, and with labels of the table."""
    if any(isinstance(column, (str, Mapping)) or not hasattr(column, "__len__") for column in domain.values()):
        return False
    shared = any(str(entry) in known for column in domain.values() for entry in column)
    return shared and len({len(column) for column in domain.values()}) == 1


def _shared(domain: Any, labels: Sequence[str]) -> int:
    found = _one(domain, labels)
    return len(set(found.labels) & set(labels))


def _one(said: Any, labels: Sequence[str]) -> Classification:
    if isinstance(said, Classification):
        return said
    if isinstance(said, Hierarchy):
        return from_hierarchy(said, f"a hierarchy of {said.n:,} nodes was given")
    if isinstance(said, Mapping) and (set(map(str, said)) & set(labels) or not _is_frame(said, labels)):
        return from_children(said, f"sums of {len(said):,} labels were given")
    if isinstance(said, (list, tuple)):
        parts = [_one(each, labels) for each in said]
        if not parts:
            raise Refused("domain must not give an empty list of hierarchies")
        return joined(parts, f"{len(parts)} hierarchies over the same leaves were given")
    if isinstance(said, (str, Path)) and str(said).lower().endswith(".hrc"):
        total = next((label for label in labels if is_total(label)), TOTAL)
        return argus_hierarchy(Path(said), total)
    columns = {name: labels_of(found) for name, found in columns_of(said).items()}
    return from_levels(columns, labels, _name(said))


def _name(said: Any) -> str:
    return repr(Path(said).name) if isinstance(said, (str, Path)) else "the frame that was given"


def from_levels(columns: Mapping[str, Sequence[str]], labels: Sequence[str], name: str) -> Classification:
    """Read a frame with one row per leaf and one column per level; columns that do not nest are further hierarchies.

    The leaves are the column with the most different labels. Every other column is a level: columns nest where each
    label of one stands with one label of the other. A total that the table has stands above all.
    """
    if not columns or not len(next(iter(columns.values()))):
        raise Refused(f"domain must have at least one row, unlike {name}")
    distinct = {column: len(set(found)) for column, found in columns.items()}
    leaf = max(columns, key=lambda column: (distinct[column], list(columns).index(column)))
    chains: list[list[str]] = []
    for level in sorted((column for column in columns if column != leaf), key=lambda column: -distinct[column]):
        for chain in chains:
            if _determines(columns[chain[-1]], columns[level]):
                chain.append(level)
                break
        else:
            chains.append([level])
    total = next((label for label in labels if is_total(label)), None)
    parts = []
    known = set(labels)
    for chain in chains or [[]]:
        steps = [leaf, *chain]
        pairs: dict[tuple[str, str], None] = {}
        for below, above in pairwise(steps):
            pairs |= dict.fromkeys(zip(columns[below], columns[above], strict=True))
        if total is not None:
            pairs |= dict.fromkeys((label, total) for label in columns[steps[-1]] if label != total)
        if chains and not known & {above for _, above in pairs}:
            continue  # a column of names or codes beside the labels: no level of this table
        if pairs:
            parts.append(from_pairs(pairs, name))
    if not parts:
        return flat(list(dict.fromkeys(columns[leaf])), f"{name}: labels without sums")
    words = f"{name}: " + " and ".join(" > ".join(reversed([leaf, *chain])) for chain in chains or [[]])
    return parts[0] if len(parts) == 1 else joined(parts, words)


def _determines(below: Sequence[str], above: Sequence[str]) -> bool:
    pairs = set(zip(below, above, strict=True))
    return len(pairs) == len({pair[0] for pair in pairs})


def placed(column: str, said: Classification, used: Sequence[str]) -> Classification:
    """The classification of a column, once all its labels are known to it; refused, with their names, otherwise."""
    unknown = [label for label in used if label not in said.place]
    if unknown:
        more = f" and {len(unknown) - 3:,} more" if len(unknown) > 3 else ""
        listed = ", ".join(map(repr, unknown[:3]))
        raise Refused(
            f"column {column!r} has labels of unknown level, {listed}{more}: add them to its domain, or take them out"
        )
    return Classification(said.labels, said.parents, f"column {column!r}: {said.words}")
