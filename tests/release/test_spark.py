"""Spark: the cluster counts as every other source does, and draws what one process draws, whatever dies on the way."""

import os
from datetime import date

import numpy as np
import polars as pl
import pytest

import holdfast as hf
from clusters import sessions
from holdfast.arguments import Refused
from holdfast.randomness import Keys
from holdfast.release.certificate.verify import verify
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.pieces import spark, tasks
from holdfast.release.pieces.whole import Pieces, in_one_process, undivided
from holdfast.release.records.source import Asked, Persons
from holdfast.release.records.spark import distinct
from holdfast.release.records.tabulate import tabulate
from holdfast.release.run import release
from jobs import cube, job, tree

# Starting a cluster takes a minute where other programs run.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]
TOPDOWN = "hold: [consistent, nonnegative]\nmethod: topdown"


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


def some_pieces() -> tuple[Pieces, np.ndarray]:
    shape = hf.Hierarchy.from_parents([-1, *[0] * 4, *np.repeat(np.arange(1, 5), 5), *np.repeat(np.arange(5, 25), 6)])
    query = hf.counts(shape, by=2)
    mechanism = hf.laplace(query, epsilon=1).onto(hf.consistent(query) & hf.nonnegative(), method="topdown")
    return Pieces.of(mechanism), np.random.default_rng(1).geometric(0.3, query.cells) - 1


def test_the_cluster_draws_what_one_process_draws(monkeypatch, tmp_path):
    """Bit for bit; a worker that dies in the first pass changes nothing."""
    pieces, cells = some_pieces()
    secret = bytes(range(32))
    values, noisy = undivided(pieces, cells, Keys.of(secret))
    whole, marker = tasks.ascending, str(tmp_path / "died")

    def dying(given: bytes):
        one = whole(given)

        def once(*row: object):
            if not os.path.exists(marker):
                with open(marker, "w"):
                    os._exit(1)
            return one(*row)

        return once

    monkeypatch.setattr(tasks, "ascending", dying)
    for session in sessions():
        drawn = spark.draw(session, pieces, cells, secret)
        np.testing.assert_array_equal(drawn.noisy, noisy)
        np.testing.assert_array_equal(drawn.values, values)
        assert os.path.exists(marker)


@pytest.mark.parametrize("law", [hf.laplace, hf.gaussian])
def test_the_cluster_conditions_as_one_process_does(monkeypatch, tmp_path, law):
    """Bit for bit, with and without bounds; a worker that dies while it draws changes nothing."""
    whole, marker, secret = tasks.drawing, str(tmp_path / "died"), bytes(range(32))

    def dying(given: bytes):
        one = whole(given)

        def once(*row: object):
            if not os.path.exists(marker):
                with open(marker, "w"):
                    os._exit(1)
            return one(*row)

        return once

    monkeypatch.setattr(tasks, "drawing", dying)
    shape = some_pieces()[0].cut.tree
    query = hf.counts(shape, by=2)
    cells = np.random.default_rng(1).geometric(0.3, query.cells) - 1
    for held, session in zip((hf.consistent(query), hf.consistent(query) & hf.nonnegative()), sessions(), strict=True):
        pieces = Pieces.of(law(query, scale=3).given(held))
        np.testing.assert_array_equal(
            spark.draw(session, pieces, cells, secret).values, in_one_process(pieces, cells, Keys.of(secret))[0]
        )
    assert os.path.exists(marker)


def test_a_release_is_drawn_by_the_cluster(tmp_path):
    made = job(tmp_path, tree("name: trips", rest=f"{TOPDOWN}\nengine: spark"))
    zones = ["N1"] * 30 + ["N2"] * 20 + ["S1"] * 10 + ["S2"]
    frame = sessions()[0].createDataFrame([(zone,) for zone in zones], "zone string")
    ledger = Ledger(tmp_path / "ledger.sqlite")
    folder = release(made, source=frame, ledger=ledger)
    assert verify(folder, ledger).ok
    assert len(ledger.entries()) == 1
    given = job(tmp_path, tree("name: trips", rest="hold: [consistent, nonnegative]\nmethod: given\nengine: spark"))
    assert verify(release(given, source=frame, output=tmp_path / "given", ledger=ledger), ledger).ok
    refused = job(tmp_path, tree("name: trips", rest="hold: [consistent]\nmethod: onto\nengine: spark"))
    with pytest.raises(Refused, match="level by level"):
        release(refused, source=frame, output=tmp_path / "another", ledger=ledger)
    assert len(ledger.entries()) == 2
