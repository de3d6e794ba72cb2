"""Pieces as tasks of a Spark cluster, classic or Connect.

A task gets what is public about a group of pieces, their counts and the secret from which all substreams are derived,
and nothing else; what it makes is a function of these alone. So a task that dies, runs twice or runs elsewhere changes
nothing, and nothing is kept from one pass to the next: the same words draw the same noise again. A few numbers of each
group come to the driver, and nothing is shuffled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.arguments import Refused
from holdfast.release.pieces.cut import Asked, Group, packed, unpacked
from holdfast.release.records.spark_frames import told as telling

#: What lies in the cluster of a group: its number, what tasks work on, and how that is written; and what it is told.
KEPT, TOLD = "part bigint, work binary, sheet binary", "part bigint, told binary"
#: Tasks that look whether they can write where the table is to be.
LOOKS = 8
UNSHARED = (
    "engine: spark lets tasks write the table, and some of them cannot write to the output folder: name one on a disk "
    "that all workers share, under the same path and for the same user, or write engine: local"
)
READABLE = (
    "engine: spark hands counts and the secret of the noise to the cluster, and this session would write them readably "
    "to disks: start it with spark.io.encryption.enabled=true"
)
OVERHEARD = (
    "engine: spark hands counts and the secret of the noise to the cluster, and this session would send them readably: "
    "start it with spark.network.crypto.enabled=true (and spark.authenticate=true) or with spark.ssl.rpc.enabled=true"
)


@dataclass(frozen=True, eq=False)
class There:
    """The tasks of a cluster, to which groups go with everything that they need; nothing is kept there."""

    session: Any
    groups: Any

    def each(self, what: Asked, told: Mapping[int, Any]) -> dict[int, Any]:
        """Do something with groups, each by its number, and return what each tells; nothing is shuffled."""
        rows = _table({"part": list(told), "told": [packed(each) for each in told.values()]})
        asked = self.session.createDataFrame(rows, TOLD).hint("broadcast")
        found = self.groups.join(asked, "part").mapInArrow(task_of(what), TOLD).toArrow().to_pydict()
        return {group: unpacked(content) for group, content in zip(found["part"], found["told"], strict=True)}


@contextmanager
def cluster(session: Any, groups: Iterable[Group]) -> Iterator[There]:
    """Hand groups to the cluster of a session; each is packed as soon as it is there, and then let go."""
    import pyarrow as pa  # only where Spark is

    refuse_open(session)
    with telling("draw the table"):
        packs: Iterator[dict[str, list[Any]]] = (
            {"part": [number], "work": [packed(group.work)], "sheet": [packed(group.sheet())]}
            for number, group in enumerate(groups)
        )
        yield There(session, session.createDataFrame(pa.concat_tables([_table(each) for each in packs]), KEPT))


def task_of(what: Asked) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A task that does something with every group, one after the other, and tells what comes back."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for at in range(batch.num_rows):
                part, work, sheet, told = (batch.column(name)[at].as_py() for name in ("part", "work", "sheet", "told"))
                found = what(Group(unpacked(work), partial(unpacked, sheet)), unpacked(told))
                yield from _table({"part": [part], "told": [packed(found)]}).to_batches()

    return task


def _table(columns: dict[str, list[Any]]) -> Any:
    import pyarrow as pa  # only where Spark is

    types = {name: pa.int64() if name == "part" else pa.binary() for name in columns}
    return pa.table({name: pa.array(column, types[name]) for name, column in columns.items()})


def refuse_unshared(session: Any, folder: str) -> None:
    """Refuse a folder that tasks do not see, or cannot write to."""

    def look(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            seen = os.access(folder, os.W_OK | os.X_OK)
            yield pa.RecordBatch.from_pydict({"seen": [seen] * batch.num_rows})

    with telling("look at the output folder"):
        found = session.range(LOOKS, numPartitions=LOOKS).mapInArrow(look, "seen boolean").toArrow()["seen"].to_pylist()
    if not all(found):
        raise Refused(UNSHARED)


def refuse_open(session: Any) -> None:
    """Refuse a session that would write or send what is confidential so that others could read it."""
    if session.conf.get("spark.io.encryption.enabled", "false") != "true":
        raise Refused(READABLE)
    safe = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")
    alone = session.conf.get("spark.master", "").startswith("local")  # nothing leaves the machine
    if not alone and all(session.conf.get(key, "false") != "true" for key in safe):
        raise Refused(OVERHEARD)
