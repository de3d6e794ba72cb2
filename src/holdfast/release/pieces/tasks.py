"""What a task of a cluster does with a piece. It imports little, since every worker imports it anew."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from holdfast.randomness import Keys
from holdfast.release.pieces import conditioned
from holdfast.release.pieces.passes import ascend, descend


def ascending(secret: bytes) -> Callable[..., tuple[Any, ...]]:
    """What the first pass does with a piece: its exact values, its noisy ones and its head beside what it was given."""

    def one(piece: int, work: bytes, cells: bytes) -> tuple[Any, ...]:
        opened = unpacked(work)
        truth, noisy, head = ascend(opened, unpacked(cells), Keys.of(secret))
        return piece, work, packed(np.where(opened.exact, truth, 0)), packed(noisy), packed(head)

    return one


def descending(secret: bytes) -> Callable[..., tuple[Any, ...]]:
    """What the second pass does with a piece."""

    def one(piece: int, work: bytes, exact: bytes, noisy: bytes, head: bytes, totals: bytes) -> tuple[Any, ...]:
        del head
        values = descend(unpacked(work), unpacked(exact), unpacked(noisy), unpacked(totals), Keys.of(secret))
        return piece, packed(values), noisy

    return one


def telling(piece: int, work: bytes, cells: bytes) -> tuple[Any, ...]:
    """What conditional noise is told of a piece before messages are made."""
    return piece, packed(conditioned.told(unpacked(work), unpacked(cells)))


def grafting(piece: int, work: bytes, cells: bytes, told: bytes) -> tuple[Any, ...]:
    """The messages of the roots of a piece, for the slopes that it is told."""
    pull, *_ = unpacked(told)
    return piece, packed(conditioned.grafts(unpacked(work), unpacked(cells), pull))


def drawing(secret: bytes) -> Callable[..., tuple[Any, ...]]:
    """What draws a piece of conditional noise: its values, and which roots are rejected."""

    def one(piece: int, work: bytes, cells: bytes, told: bytes) -> tuple[Any, ...]:
        pull, totals, attempts = unpacked(told)
        given = unpacked(work), unpacked(cells), pull, totals, attempts
        values, rejected = conditioned.drawn(*given, Keys.of(secret))
        return piece, packed(values), packed(rejected)

    return one


def each(one: Callable[..., tuple[Any, ...]], schema: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A task that does the same with every row."""
    names = [column.split()[0] for column in schema.split(", ")]

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa  # only where Spark is

        types = [pa.int64() if name == "piece" else pa.binary() for name in names]
        for batch in batches:
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                made = one(*row)
                yield pa.RecordBatch.from_arrays([pa.array([x], t) for x, t in zip(made, types, strict=True)], names)

    return task


def packed(content: Any) -> bytes:
    """Write a value down for a task."""
    return zlib.compress(pickle.dumps(content, protocol=5), 1)


def unpacked(content: bytes) -> Any:
    """Read what `packed` wrote."""
    return pickle.loads(zlib.decompress(content))
