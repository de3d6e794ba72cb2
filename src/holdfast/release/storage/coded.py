"""A column of names as codes, which take little memory, and the hash of such columns."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from holdfast.arrays import Bools, Ints

Texts = npt.NDArray[np.object_]


class Coded(NamedTuple):
    """A column of names: the distinct ones, None among them, and which of them each row has."""

    texts: Texts
    codes: Ints

    @property
    def column(self) -> Texts:
        """The names of all rows."""
        return self.texts[self.codes]

    @property
    def told(self) -> Bools:
        """Whether a row has a name."""
        return np.array([text is not None for text in self.texts], dtype=bool)[self.codes]

    def at(self, rows: Ints) -> Coded:
        """Some rows, whose names are numbered in the order in which they first occur."""
        codes = self.codes[rows]
        place = np.full(self.texts.size, codes.size)
        place[codes[::-1]] = np.arange(codes.size - 1, -1, -1)
        used = np.argsort(place)[: int((place < codes.size).sum())]
        number = np.zeros(self.texts.size, np.int64)
        number[used] = np.arange(used.size)
        return Coded(self.texts[used], number[codes])


def hash_names(found: Any, name: str, column: Coded) -> None:
    """Put a column of a part into the hash of a domain: its names as they first occur, and the codes of its rows."""
    texts, codes = column.at(np.arange(column.codes.size))
    found.update(json.dumps([name, texts.tolist()], ensure_ascii=False, separators=(",", ":")).encode())
    found.update(codes.astype("<u4").tobytes())
