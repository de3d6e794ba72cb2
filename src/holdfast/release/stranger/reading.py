"""Files of a release as the standard library reads them: plain, and saying everything once."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import stat
from typing import Any

Json = dict[str, Any]
Rows = dict[str, list[Any]]
#: Bytes of the largest certificate or signature that is read.
LARGEST = 1 << 30


class Broken(Exception):
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
    """Return the hash of some bytes as certificates write it."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def seal_of(certificate: Json) -> str:
    """Return the hash of everything in a certificate but its seal."""
    rest = {key: value for key, value in certificate.items() if key != "seal"}
    text = json.dumps(rest, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hash_of(text.encode())


def lines_of(folder: str, name: str) -> list[list[str]]:
    """Read the lines of a CSV file, the header first."""
    text = content_of(os.path.join(folder, name), None).decode("utf-8")
    lines = list(csv.reader(text.splitlines(keepends=True), strict=True))
    if not lines:
        raise Broken(f"{name} is empty")
    head, body = lines[0], [line for line in lines[1:] if line]
    if len(set(head)) < len(head) or any(len(line) != len(head) for line in body):
        raise Broken(f"{name} has rows of unequal length")
    return [head, *body]


def names_of(name: str, parts: int) -> list[str]:
    """The files of a table: one of its own name, or as many parts in a folder."""
    return [f"{name}/{number:05d}{os.path.splitext(name)[1]}" for number in range(parts)] or [name]


def rows_of(folder: str, name: str, parts: int = 0, count: int | None = None) -> Rows:
    """Read a CSV file: texts, and None where nothing stands.

    The rows of parts begin with their number in the table, and are put in its order; `count`: each must be there once.
    """
    files = [lines_of(folder, each) for each in names_of(name, parts)]
    head = files[0][0]
    if any(lines[0] != head for lines in files):
        raise Broken(f"the parts of {name} do not have the same columns")
    body = [line for lines in files for line in lines[1:]]
    if parts and (count is not None or head[0] == "row"):
        if head[0] != "row" or not all(re.fullmatch("0|[1-9][0-9]{0,17}", line[0]) for line in body):
            raise Broken(f"the rows of {name} have no numbers")
        body.sort(key=lambda line: int(line[0]))
        numbers = [int(line[0]) for line in body]
        if len(set(numbers)) < len(numbers) or (count is not None and numbers != list(range(count))):
            raise Broken(f"the parts of {name} do not have every row once")
        head, body = head[1:], [line[1:] for line in body]
    return {key: [line[place] or None for line in body] for place, key in enumerate(head)}
