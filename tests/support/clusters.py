"""A Spark cluster of two threads on this machine, classic and Connect at once, for all tests of a process."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

#: What one thread of a test needs, and nothing that others could reach.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    # Compiling for speed takes longer than these tests.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.io.encryption.enabled": "true",
    "spark.log.level": "OFF",
    "spark.ui.showConsoleProgress": "false",
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
}


def prepared() -> None:
    """Let workers find this Python and this source; skip the test where there is no Java or Spark."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, which is not installed: on Debian, apt-get install default-jre-headless")
    if find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed: pip install holdfast[spark]")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    source = os.path.dirname(os.path.dirname(os.path.abspath(find_spec("holdfast").origin)))  # type: ignore[union-attr, arg-type]
    os.environ["PYTHONPATH"] = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)


@cache
def sessions() -> tuple[Any, Any]:
    """Return a classic session and a Connect session of one cluster; skip the test where there is no Java or Spark."""
    prepared()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Spark speaks of pandas, which is not used
        from pyspark.sql import SparkSession
        from pyspark.sql.connect.session import SparkSession as Remote

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        building = SparkSession.builder.master("local[2, 4]").config("spark.connect.grpc.binding.port", port)
        for key, value in SETTINGS.items():
            building = building.config(key, value)
        return building.getOrCreate(), Remote.builder.remote(f"sc://127.0.0.1:{port}").create()


def dies_once(what: Callable[..., Any], marker: Path) -> Callable[..., Any]:
    """The same as a task does it whose worker dies the first time; a file tells that it has."""
    path = str(marker)

    def once(*given: Any, **named: Any) -> Any:
        if not os.path.exists(path):
            with open(path, "w"):
                os._exit(1)
        return what(*given, **named)

    return once
