"""The demo, and the doctor: what it calls missing is missing, and it shows no figure."""

import json
import os
from collections import namedtuple

import pytest
from typer.testing import CliRunner

from holdfast.cli import machine
from holdfast.cli.command import app


def called(*words: str):
    return CliRunner().invoke(app, list(words))


@pytest.fixture(scope="module")
def city(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "city"
    return folder, called("demo", "--output", str(folder), "--json")


def test_the_demo_releases_a_made_up_city_and_names_the_report(city):
    folder, made = city
    told = json.loads(made.stdout)
    assert (made.exit_code, told["verified"]) == (0, True)
    assert told["report"] == str(folder / "release" / "report.html")
    assert (folder / "release" / "report.html").exists()
    assert called("plan", str(folder / "spec.yaml"), "--quiet").exit_code == 0


def test_the_demo_makes_the_zones_of_the_example(city, request):
    example = request.config.rootpath / "examples" / "city" / "zones.csv"
    assert (city[0] / "zones.csv").read_text() == example.read_text()


def test_the_demo_writes_over_nothing(city):
    again = called("demo", "--output", str(city[0]))
    assert again.exit_code == 3
    assert "exists already" in again.stderr


def diagnosed(*words: str) -> tuple[int, dict]:
    made = called("doctor", "--json", *words)
    return made.exit_code, {line["what"]: line for line in json.loads(made.stdout)["checks"]}


def test_the_doctor_finds_nothing_wrong_beside_a_sound_ledger(city):
    code, lines = diagnosed("--file", str(city[0] / "ledger.sqlite"), "--folder", str(city[0]))
    assert code == 0
    assert "unbroken" in lines["ledger"]["says"]
    assert not any(line["ok"] is False for line in lines.values())


def test_the_doctor_finds_a_damaged_ledger(city, tmp_path):
    broken = tmp_path / "ledger.sqlite"
    content = (city[0] / "ledger.sqlite").read_bytes()
    broken.write_bytes(content.replace(b"city trips", b"town trips"))
    code, lines = diagnosed("--file", str(broken), "--folder", str(tmp_path))
    assert (code, lines["ledger"]["ok"]) == (5, False)


def test_the_doctor_finds_a_folder_that_is_none_and_a_key_that_is_none(tmp_path):
    (tmp_path / "office.key").write_text("no key")
    code, lines = diagnosed("--folder", str(tmp_path / "none"), "--key", str(tmp_path / "office.key"))
    assert code == 5
    assert [lines[what]["ok"] for what in ("locks", "disk", "key")] == [False] * 3


def test_the_doctor_finds_locks_that_do_not_hold(tmp_path, monkeypatch):
    monkeypatch.setattr("holdfast.system.lock", lambda _: None)
    assert diagnosed("--folder", str(tmp_path))[1]["locks"]["ok"] is False


def test_the_doctor_finds_a_full_disk_and_a_clock_that_goes_wrong(tmp_path, monkeypatch):
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda _: usage(1 << 20))
    monkeypatch.setattr(machine, "MADE", "9999-01-01")
    lines = diagnosed("--folder", str(tmp_path))[1]
    assert [lines[what]["ok"] for what in ("disk", "clock")] == [False, False]


def test_the_doctor_tells_a_missing_package_from_an_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(
        machine, "requires", lambda _: ["numpy>=2.1", "no-such-package>=1", "polars; extra == 'polars'"]
    )
    monkeypatch.setitem(machine.EXTRAS, "polars", ("no_such_package", "frames of polars"))
    lines = diagnosed("--folder", str(tmp_path))[1]
    assert lines["packages"]["says"] == "missing: no-such-package; install holdfast again"
    assert lines["polars"]["ok"] is None
    assert "pip install 'holdfast[polars]'" in lines["polars"]["says"]


def test_the_doctor_leaves_nothing_behind(tmp_path):
    diagnosed("--folder", str(tmp_path))
    assert os.listdir(tmp_path) == []
