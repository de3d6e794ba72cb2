"""Files of a release as the standard library reads them: plain, and saying everything once."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import json
import math
import os
import re
import stat
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
Rows = dict[str, list[Any]]
#: Bytes of the largest certificate or signature that is read.
LARGEST = 1 << 30
#: Lines that are read at once.
AT_ONCE = 1 << 12


class Broken(ValueError):
    """Something is not as certified."""


def content_of(path: str, most: int | None = LARGEST) -> bytes:
    """Read a plain file, of so many bytes at most; links are not followed."""
    found = os.lstat(path)
    if most is not None and found.st_size > most:
        raise Broken(f"{os.path.basename(path)} is larger than certified")
    if not stat.S_ISREG(found.st_mode):
        raise Broken(f"{os.path.basename(path)} is a link, or no plain file")
    with open(path, "rb") as file:
        return file.read()


def json_of(content: bytes) -> Any:
    """Read JSON in which no key occurs twice and every number is one."""

    def once(pairs: list[tuple[str, Any]]) -> Json:
        if len({key for key, _ in pairs}) < len(pairs):
            raise Broken("a key occurs twice")
        return dict(pairs)

    def refuse(name: str) -> Any:
        raise Broken(f"{name} is not JSON")

    try:
        return json.loads(content, object_pairs_hook=once, parse_constant=refuse)
    except (ValueError, RecursionError):
        raise Broken("it is not JSON") from None


def hash_of(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def hash_of_file(folder: str, name: str) -> tuple[int, str]:
    """Return the size of a file and its hash, read piece by piece."""
    digest, size = hashlib.sha256(), 0
    with open(os.path.join(folder, name), "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
            size += len(piece)
    return size, "sha256:" + digest.hexdigest()


def seal_of(certificate: Json) -> str:
    """Return the hash of everything in a certificate but its seal."""
    rest = {key: value for key, value in certificate.items() if key != "seal"}
    text = json.dumps(rest, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hash_of(text.encode())


def columns_of(folder: str, name: str) -> Rows:
    """Read the columns of a CSV file by their names: texts, and None where nothing stands."""
    text = io.StringIO(content_of(os.path.join(folder, name), None).decode("utf-8"), newline="")
    longest = csv.field_size_limit(LARGEST)
    try:
        lines = filter(None, csv.reader(text, strict=True))
        head = next(lines, [])
        columns: list[list[Any]] = [[] for _ in head]
        while some := list(itertools.islice(lines, AT_ONCE)):
            if set(map(len, some)) != {len(head)}:
                raise Broken(f"{name} has rows of unequal length")
            for column, more in zip(columns, zip(*some, strict=True), strict=True):
                column.extend([text or None for text in more])
    finally:
        csv.field_size_limit(longest)
    if not head or len(set(head)) < len(head):
        raise Broken(f"{name} is empty, or has two columns of one name")
    return dict(zip(head, columns, strict=True))


def names_of(name: str, parts: int) -> list[str]:
    """The files of a table: one of its own name, or as many parts in a folder."""
    return [f"{name}/{number:05d}{os.path.splitext(name)[1]}" for number in range(parts)] or [name]


def rows_of(folder: str, name: str, parts: int = 0, count: int | None = None) -> Rows:
    """Read a CSV file. The rows of parts begin with their number in the table, and are put in its order.

    `count`: each of so many must be there once.
    """
    files = [columns_of(folder, each) for each in names_of(name, parts)]
    if any(list(columns) != list(files[0]) for columns in files):
        raise Broken(f"the parts of {name} do not have the same columns")
    rows = files[0]
    for columns in files[1:]:
        rows = {key: column + columns[key] for key, column in rows.items()}
    if parts and (count is not None or "row" in rows):
        if next(iter(rows)) != "row" or not all(re.fullmatch("0|[1-9][0-9]{0,17}", text or "") for text in rows["row"]):
            raise Broken(f"the rows of {name} have no numbers")
        numbers = list(map(int, rows.pop("row")))
        order = sorted(range(len(numbers)), key=numbers.__getitem__)
        if len(set(numbers)) < len(numbers) or (count is not None and sorted(numbers) != list(range(count))):
            raise Broken(f"the parts of {name} do not have every row once")
        rows = {key: [column[row] for row in order] for key, column in rows.items()}
    return rows


# --- figures of one table: counts, sums and means ---------------------------------------------------------------------


#: How counts are called in files, and what the column of a sum may be called.
VALUE, COLUMN = "value", "[A-Za-z][A-Za-z0-9_]{0,99}"


def figure_columns(figure: str) -> tuple[str, str, str]:
    """The columns of a figure and the ends of its interval: those of counts are called value, low and high."""
    return (VALUE, "low", "high") if figure == VALUE else (figure, f"{figure}_low", f"{figure}_high")


def mean_of(column: str) -> str:
    """How files call the mean of a column."""
    return f"{column}_mean"


def means(rows: Rows, column: str) -> Iterator[str]:
    """Find means that are not the sum divided by the count, or that have no ends around where they may be."""
    three = zip(*(rows[name] for name in figure_columns(mean_of(column))), strict=True)
    for mean, total, count in zip(three, rows[column], rows["value"], strict=True):
        if None in mean:
            if any(each is not None for each in mean):
                yield f"a mean of {column} is given in part"
        elif not float(count or 0) > 0 or not math.isclose(float(mean[0]), float(total or 0) / float(count or 1)):
            yield f"a mean of {column} is not the sum divided by the count"
        elif not float(mean[1]) <= float(mean[2]):
            yield f"the interval of a mean of {column} ends before it begins"
