"""A release that is killed or interrupted anywhere: nothing is visible or a whole release, and all is charged."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from killing import lost

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # a hundred processes take their time on a busy machine

SHARED = Path(__file__).parents[1] / "support"
#: Points along the lines that run, and in time.
KILLS, INTERRUPTS = (48, 2), (7, 2)


def ended(folder, way, points):
    paths = [str(SHARED), *filter(None, [os.environ.get("PYTHONPATH")])]
    spilled = folder.with_name(f"{folder.name}-spilled")  # a killed process leaves its temporary folder behind
    spilled.mkdir()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(spilled)}
    command = [sys.executable, str(SHARED / "killing.py"), str(folder), way, *map(str, points)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=580)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == sum(points)
    return found


def assert_every_phase_was_met(points):
    phases = {(point["charges"], point["drawn"], bool(point["partial"]), point["visible"]) for point in points}
    assert {(0, False, False, False), (1, True, False, True)} <= phases


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    return ended(tmp_path_factory.mktemp("killed"), "kill", KILLS)


def test_killed_at_any_point_nothing_is_lost(killed):
    for point in killed:
        assert lost(point) is None


def test_the_kill_points_lie_in_every_phase(killed):
    assert sum(point["status"] == -9 for point in killed) >= KILLS[0]
    assert_every_phase_was_met(killed)
    left = {tuple(point["partial"] or ()) for point in killed}
    tables = ("table.csv", "table.parquet")
    alone = (*tables, "verify.py")
    assert {(), tables, alone, ("datapackage.json", *alone)} <= left
    assert ("certificate.json", "datapackage.json", "report.html", *alone) in left


def test_interrupted_at_any_point_nothing_is_lost_and_nothing_is_left_over(tmp_path):
    points = ended(tmp_path, "interrupt", INTERRUPTS)
    assert_every_phase_was_met(points)
    for point in points:
        assert lost(point) is None
        assert point["partial"] is None
        if point["drawn"] and not point["visible"]:
            assert "the ledger keeps the charge" in point["error"]
        if not point["charges"]:
            assert "keeps the charge" not in (point["error"] or "")
