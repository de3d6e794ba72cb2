"""Simulated errors are kept from a plan to the release of the same spec, and for nothing else."""

import numpy as np
import pytest

from holdfast.release.job import choosing, kept_errors
from holdfast.release.job.job import Job
from holdfast.release.spec.spec import read_spec
from holdfast.release.table.laid import laid
from jobs import ZONES

SPEC = """\
title: Trips
data: {source: trips.csv, domain: zones.csv}
privacy: {epsilon: 1}
table: {hierarchy: [borough, zone], guess: 3}
hold: [consistent, nonnegative]
output: out
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_errors, "users_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(kept_errors, "FEW", 1)
    (tmp_path / "cache").mkdir()
    (tmp_path / "zones.csv").write_text(ZONES)
    return tmp_path


@pytest.fixture
def simulated(monkeypatch):
    """How often errors were simulated."""
    calls, real = [], choosing.errors

    def counted(*words, **more):
        calls.append(words)
        return real(*words, **more)

    monkeypatch.setattr(choosing, "errors", counted)
    return calls


def table(folder, text=SPEC, keeps=True):
    (folder / "spec.yaml").write_text(text)
    return Job.of(*laid(read_spec(folder / "spec.yaml")), keeps=keeps).tables[0]


def same(one, other):
    for mine, theirs in zip(one.errors.levels, other.errors.levels, strict=True):
        assert np.array_equal(mine.magnitudes, theirs.magnitudes)
        assert np.array_equal(mine.bars, theirs.bars)
        numbers = ("name", "figures", "absolute", "width", "uncertain", "reach")
        assert [getattr(mine, name) for name in numbers] == [getattr(theirs, name) for name in numbers]
    assert one.comparison == other.comparison


def test_the_second_time_nothing_is_simulated_and_all_is_the_same(folder, simulated):
    first = table(folder)
    count = len(simulated)
    assert count > 1
    same(table(folder), first)
    assert len(simulated) == count
    same(table(folder, keeps=False), first)
    assert len(simulated) == 2 * count


@pytest.mark.parametrize(("old", "new"), [("epsilon: 1", "epsilon: 2"), ("guess: 3", "guess: 4")])
def test_another_spec_is_simulated_anew(folder, simulated, old, new):
    table(folder)
    count = len(simulated)
    table(folder, SPEC.replace(old, new))
    assert len(simulated) == 2 * count


def test_another_public_file_or_other_code_is_simulated_anew(folder, simulated, monkeypatch):
    table(folder)
    count = len(simulated)
    (folder / "zones.csv").write_text(ZONES.replace("S3", "S4"))
    table(folder)
    assert len(simulated) == 2 * count
    monkeypatch.setattr(kept_errors, "code", lambda: "other")
    table(folder)
    assert len(simulated) == 3 * count


def test_damaged_files_and_folders_that_are_not_there_cost_time_and_nothing_else(folder, simulated, monkeypatch):
    first = table(folder)
    count = len(simulated)
    for file in (folder / "cache" / "plans").iterdir():
        file.write_text(file.read_text()[:100])
    same(table(folder), first)
    assert len(simulated) == 2 * count
    monkeypatch.setattr(kept_errors, "users_folder", lambda: None)
    same(table(folder), first)
    assert len(simulated) == 3 * count


def test_few_are_kept(folder, monkeypatch):
    monkeypatch.setattr(kept_errors, "MOST_KEPT", 2)
    table(folder)
    assert len(list((folder / "cache" / "plans").iterdir())) == 2
