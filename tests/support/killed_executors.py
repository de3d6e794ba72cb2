"""A release by two executors of their own processes, one of which is killed while it draws; twins are started too.

Run: killed_executors.py FOLDER. Prints what the tests compare; fails where the table is not the one of one process.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clusters import SETTINGS, prepared

ZONES = "borough,zone\n" + "".join(f"B{i},B{i}Z{j}\n" for i in range(6) for j in range(4))
TWINS = {"spark.speculation": "true", "spark.speculation.interval": "200ms", "spark.speculation.quantile": "0.3"}


def kills_its_executor(what: Callable[..., Any], marker: str) -> Callable[..., Any]:
    """The same, but the first time the executor is killed to which the worker belongs."""

    def once(*given: Any, **named: Any) -> Any:
        if not os.path.exists(marker):
            with open(marker, "w"), open(f"/proc/{os.getppid()}/stat") as daemon:
                os.kill(int(daemon.read().rsplit(")", 1)[1].split()[1]), signal.SIGKILL)
        return what(*given, **named)

    return once


def lingers(what: Callable[..., Any], marker: str) -> Callable[..., Any]:
    """The same, but the first time it takes so long that a twin is started, which is done before it."""

    def once(*given: Any, **named: Any) -> Any:
        if not os.path.exists(marker):
            with open(marker, "w"):
                time.sleep(30)
        return what(*given, **named)

    return once


def main(folder: Path) -> None:
    prepared()
    warnings.simplefilter("ignore")
    from pyspark.sql import SparkSession

    import holdfast as hf
    from holdfast.release.certificate.verify import verify
    from holdfast.release.ledger.ledger import Ledger
    from holdfast.release.pieces import cut, drawing, passes
    from holdfast.release.pieces.passes import Pieces
    from holdfast.release.records.tabulate import tabulate
    from holdfast.release.run import release
    from jobs import job, tree
    from one_process import gathered

    building = SparkSession.builder.master("local-cluster[2,1,1024]")
    settings = {key: value for key, value in SETTINGS.items() if "connect" not in key and key != "spark.plugins"}
    memory = {"spark.executor.memory": "600m", "spark.executor.memoryOverhead": "384m"}
    session = building.config(map=settings | TWINS | memory).getOrCreate()
    cut.GROUPED = 8  # four groups, of one piece or two
    passes.measure_all = kills_its_executor(passes.measure_all, str(folder / "killed"))
    drawing.write = lingers(drawing.write, str(folder / "lingered"))
    drawing.secrets.token_bytes = bytes
    made = job(folder, tree("name: t", rest="hold: [consistent, nonnegative]\nmethod: topdown"), zones_csv=ZONES)
    frame = session.createDataFrame([(f"B{i % 6}Z{i % 4}",) for i in range(200)], "zone string").repartition(6)
    ledger = Ledger(folder / "ledger.sqlite")
    out = release(made, source=frame, engine="spark", ledger=ledger)
    values, _ = gathered(Pieces.of(made.tables[0].mechanism), tabulate(made, frame)[0], bytes(32))
    assert (hf.load(out).values == values).all(), "the table is another one"
    assert verify(out, ledger).ok
    assert len(ledger.entries()) == 1
    print(f"killed {(folder / 'killed').exists()}, lingered {(folder / 'lingered').exists()}, all as in one process")
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
