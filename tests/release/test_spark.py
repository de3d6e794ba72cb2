"""Spark: the cluster counts as every other source does, and draws what one process draws, whatever dies on the way."""

import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import clusters
import holdfast as hf
import town
from clusters import dies_once, sessions
from holdfast.arguments import Refused
from holdfast.release.certificate.verify import verify
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.pieces import area_parts, areas, cut, drawing, parts, passes, spark
from holdfast.release.pieces.passes import Pieces
from holdfast.release.records.sources import Asked, Persons
from holdfast.release.records.spark_frames import distinct
from holdfast.release.records.tabulate import tabulate
from holdfast.release.run import release
from holdfast.release.table import area_cut
from jobs import cube, job, tree
from one_process import gathered, gathered_areas

# Starting a cluster takes a minute where other programs run.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]
ZONES = ["N1"] * 30 + ["N2"] * 20 + ["S1"] * 10 + ["S2"]


def test_the_cluster_counts_as_every_other_source(tmp_path):
    """Names of several types, nothing, names outside the domain; classic and Connect."""
    random = np.random.default_rng(4)
    ages = [None if age == 3 else float(age) for age in random.integers(0, 4, 200)]
    data = {"sex": random.choice(["F", "M", "", "X"], 200).tolist(), "age": ages}
    made = job(tmp_path, cube("nulls: drop, outside: drop").replace("[child, adult, old]", "['0', '1', '2']"))
    expected = tabulate(made, pl.DataFrame(data))[0]
    rows = list(zip(*data.values(), strict=True))
    for session in sessions():
        frame = session.createDataFrame(rows, "sex string, age double")
        np.testing.assert_array_equal(tabulate(made, frame)[0], expected)
    refusing = job(tmp_path, cube("nulls: drop").replace("[child, adult, old]", "['0', '1', '2']"))
    with pytest.raises(Refused, match="outside the public domain"):
        tabulate(refusing, frame)
    with pytest.raises(Refused, match="no column 'age'"):
        tabulate(made, frame.select("sex"))
    with pytest.raises(Refused, match="two columns 'sex'"):
        tabulate(made, frame.selectExpr("sex", "sex", "age"))


def test_the_cluster_limits_persons_whatever_the_partitions(tmp_path):
    random = np.random.default_rng(6)
    rows = [(int(random.integers(0, 30)), str(random.choice(["S1", "S2"])), date(2024, 1, 1)) for _ in range(150)]
    made = job(tmp_path, tree(privacy='epsilon: 1, unit: {column: rider, max_records: 3, key: "a\'b"}'))
    frame = sessions()[0].createDataFrame([*rows, *rows[:40]], "rider int, zone string, day date")
    first = tabulate(made, frame)[0]
    numbers = np.bincount([rider for rider, *_ in (*rows, *rows[:40])])
    assert first.sum() == np.minimum(numbers, 3).sum()
    np.testing.assert_array_equal(first, tabulate(made, frame.repartition(5, "day", "zone"))[0])
    asked = Asked(("zone",), None, Persons("rider", 3, "another key", False))
    assert sum(int(row["n"]) for row in distinct(frame, asked).collect()) == first.sum()
    nobody = sessions()[0].createDataFrame([(None, "S1"), (1, "S1")], "rider int, zone string")
    with pytest.raises(Refused, match="some record has no 'rider'"):
        tabulate(made, nobody)


def test_the_cluster_counts_counted_rows():
    texts = [("a", "12"), ("a", "+3.0"), ("b", "-1"), ("c", "2.5"), ("d", "4611686018427387905"), ("e", None)]
    frame = sessions()[1].createDataFrame(texts, "zone string, n string")
    found = {row["c0"]: row["n"] for row in distinct(frame, Asked(("zone",), "n")).collect()}
    assert found == {"a": 15, "b": None, "c": None, "d": None, "e": None}


def test_a_query_counts_spark_frames():
    shape = hf.Hierarchy.from_frame(
        pl.DataFrame({"borough": ["N", "N", "S"], "zone": ["N1", "N2", "S1"]}), ["borough", "zone"]
    )
    rows = [("N1", 2), ("S1", 3), ("N1", 4)]
    for session in sessions():
        frame = session.createDataFrame(rows, "zone string, trips int")
        assert hf.counts(shape).count(frame, count="trips").tolist() == [6, 3, 6, 0, 3]
        assert hf.counts(shape).count(frame).tolist() == [2, 1, 2, 0, 1]


SHAPE = hf.Hierarchy.from_parents([-1, *[0] * 4, *np.repeat(np.arange(1, 5), 5), *np.repeat(np.arange(5, 25), 6)])
QUERY = hf.counts(SHAPE, by=2)
CELLS = np.random.default_rng(1).geometric(0.3, QUERY.cells) - 1
HELD = hf.consistent(QUERY) & hf.nonnegative()
SECRET = bytes(range(32))


def drawn_there(session: Any, pieces: Pieces) -> tuple[np.ndarray, np.ndarray]:
    """What the cluster draws, brought here."""
    with spark.cluster(session, pieces.groups(CELLS)) as there:
        return gathered(pieces, CELLS, SECRET, there)


@pytest.mark.parametrize(("method", "dying"), [("topdown", "measure_all"), ("bluedown", "finished")])
def test_the_cluster_draws_what_one_process_draws(monkeypatch, tmp_path, method, dying):
    """Bit for bit, classic and Connect, however many pieces a task has; a worker that dies changes nothing."""
    monkeypatch.setattr(cut, "GROUPED", 100)
    pieces = Pieces.of(hf.laplace(QUERY, epsilon=1).onto(HELD, method=method))
    assert pieces.cut.groups.tolist() == [0, 2, 3, 4]
    values, noisy = gathered(pieces, CELLS, SECRET)
    monkeypatch.setattr(passes, dying, dies_once(getattr(passes, dying), tmp_path / "died"))
    for session in sessions():
        found = drawn_there(session, pieces)
        np.testing.assert_array_equal(found[1], noisy)
        np.testing.assert_array_equal(found[0], values)
    assert (tmp_path / "died").exists()


REST = "hold: [consistent, nonnegative]\nmethod: {}\nengine: spark"


def test_a_release_is_written_in_parts_where_it_is_drawn(monkeypatch, tmp_path):
    """Charged once though a worker dies while it writes; both verifications and `load` read the parts as one table."""
    made = job(tmp_path, tree("name: trips", rest=REST.format("topdown")))
    frame = sessions()[0].createDataFrame([(zone,) for zone in ZONES], "zone string")
    ledger = Ledger(tmp_path / "ledger.sqlite")
    monkeypatch.setattr(cut, "GROUPED", 1)
    monkeypatch.setattr(parts, "write", dies_once(parts.write, tmp_path / "died"))
    monkeypatch.setattr(drawing, "write", parts.write)
    folder = release(made, source=frame, ledger=ledger)
    assert (tmp_path / "died").exists()
    assert len(ledger.entries()) == 1
    assert sorted(path.name for path in (folder / "table.parquet").iterdir()) == [f"0000{i}.parquet" for i in range(3)]
    assert not list(folder.glob(".*"))
    assert {path.stat().st_mtime % 86_400 for path in folder.rglob("*")} == {0}
    verdict = verify(folder, ledger)
    assert verdict.ok, verdict
    told = subprocess.run([sys.executable, folder / "verify.py"], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout
    table = hf.load(folder).table()
    local = hf.load(release(made, source=frame, output=tmp_path / "local", ledger=ledger, engine="local")).table()
    for name, column in local.names.items():
        assert table.names[name].tolist() == column.tolist()
    assert table.certificate.interval == local.certificate.interval
    assert (table.noisy is None) == (local.noisy is None)
    assert np.isfinite(table.interval()).all() == np.isfinite(local.interval()).all()


def test_a_census_is_drawn_and_written_where_it_is(monkeypatch, tmp_path):
    """Margins in areas, by a classic session: a worker dies while it writes, and the table is that of one process."""
    monkeypatch.setattr(area_cut, "STRETCH", 300)
    monkeypatch.setattr(drawing.secrets, "token_bytes", bytes)
    town.write(tmp_path)
    made = town.job(tmp_path, ("output: {folder: out", "engine: spark\noutput: {folder: out")).made
    frame = sessions()[0].read.csv(str(tmp_path / "persons.csv"), header=True)
    at_once = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = frame.sparkSession.conf.get(at_once)
    monkeypatch.setattr(area_parts, "write", dies_once(area_parts.write, tmp_path / "died"))
    folder = release(made, source=frame, ledger=Ledger(tmp_path / "ledger.sqlite"))
    assert (tmp_path / "died").exists()
    assert verify(folder).ok, verify(folder)
    values, _, _ = gathered_areas(areas.AreaPieces.of(made.tables[0].mechanism), tabulate(made, frame)[0], bytes(32))
    np.testing.assert_array_equal(hf.load(folder).table().values, values)
    assert frame.sparkSession.conf.get(at_once) == before  # the user's settings are left alone


def test_a_killed_executor_and_twins_change_nothing(tmp_path):
    """Executors are processes of their own here: one is killed while it draws, and a twin writes before its elder."""
    sessions()  # skips where there is no Spark
    script = Path(clusters.__file__).with_name("killed_executors.py")
    found = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "killed True, lingered True, all as in one process", found.stderr[-2000:]
