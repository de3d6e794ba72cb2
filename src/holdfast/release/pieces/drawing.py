"""Who draws the tables of a job: this process, or the cluster that holds the records."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from holdfast.arguments import Refused, one_of
from holdfast.arrays import Array, Ints
from holdfast.mechanism.release import Release
from holdfast.randomness.stream import KEY_BYTES
from holdfast.release.job.job import Job
from holdfast.release.job.table import Table
from holdfast.release.pieces import spark
from holdfast.release.pieces.whole import Pieces
from holdfast.release.records.spark import spark_frame
from holdfast.release.spec.spec import ENGINES

#: Draws a table from the counts of its cells and its true answer.
Draw = Callable[[Table, Ints, Array], Release]
NO_FRAME = "engine: spark draws where the records are: pass them as a Spark frame from Python, or write engine: local"


def drawing(job: Job, source: Any, engine: str | None = None) -> Draw:
    """Return how tables are drawn, by the spec unless an engine is named; refuse what a cluster cannot draw."""
    asked = job.spec.engine if engine is None else one_of("engine", engine, ENGINES)
    if asked == "local":
        return lambda table, _, truth: table.mechanism.release(truth)
    frame = spark_frame(source)
    if frame is None:
        raise Refused(NO_FRAME)
    session = frame.sparkSession
    spark.refuse_open(session)
    cut = {table.name: Pieces.of(table.mechanism) for table in job.tables}

    def draw(table: Table, cells: Ints, truth: Array) -> Release:
        pieces = cut[table.name]
        checked = pieces.mechanism.checked(truth)
        # The secret is nowhere but here and in the tasks, and serves once.
        return pieces.released(checked, spark.draw(session, pieces, cells, secrets.token_bytes(KEY_BYTES)))

    return draw
