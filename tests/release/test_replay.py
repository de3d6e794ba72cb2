"""Record and replay: the command runs on one dataset, and again on a neighbouring one with its noisy answers frozen.

The idea of Re:cord-play (arXiv 2602.17454). With the noise's output frozen nothing that leaves the house may differ:
neither table, certificate, report, file names and sizes, ledger nor what is printed; and the answers that went into the
noise may not differ by more than the statement counts. What differs would be a way from the data around the noise.
"""

import shutil
import sqlite3
import warnings
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from holdfast import progress
from holdfast.cli.command import app
from holdfast.mechanism import onto_moves as moving
from holdfast.mechanism.mechanism import Mechanism
from holdfast.release import ends, run
from jobs import ZONES, cube, tree

HEAD = "title: Test\noutput: out\nledger: {file: book.sqlite}\n"
TRIPS = [("North", "N1"), ("North", "N1"), ("North", "N2"), ("South", "S1"), ("South", "S3"), ("South", "S3")]
PEOPLE = [("F", "child"), ("F", "adult"), ("M", "adult"), ("M", "old"), ("F", "old"), ("M", "child")]


def in_scales(mechanism, answers):
    """Answers in scales of their Laplace noise."""
    law = mechanism.base.law
    scales = np.array([float(value) for value in law.scale_values])
    return answers / (scales[0] if law.which is None else scales[law.which])


@dataclass
class Tape:
    """What went into the noise and what came out of it, run by run."""

    playing: bool = False
    answers: list = field(default_factory=list)
    outputs: list = field(default_factory=list)
    replayed: list = field(default_factory=list)

    def noisy(self, original):
        def noisy(mechanism, truth, size, stream):
            if self.playing:
                self.replayed.append((mechanism, np.array(truth)))
                return self.outputs[len(self.replayed) - 1].copy()
            self.answers.append(np.array(truth))
            self.outputs.append(original(mechanism, truth, size, stream).copy())
            return self.outputs[-1].copy()

        return noisy

    def check_sensitivity(self):
        """The answers differ by no more than the statement about one record counts."""
        assert len(self.replayed) == len(self.answers) > 0
        for before, (mechanism, after) in zip(self.answers, self.replayed, strict=True):
            loss = np.abs(in_scales(mechanism, after) - in_scales(mechanism, before)).sum()
            assert loss <= mechanism.guarantee.epsilon * (1 + 1e-9)


@pytest.fixture
def clocks(monkeypatch):
    """One time, one identity and one coin for ties in all runs: they are public, and differ between any two."""
    coins = moving.coins
    monkeypatch.setattr(
        moving, "coins", lambda *words: None if (found := coins(*words)) is None else np.zeros_like(found)
    )
    monkeypatch.setattr(progress, "PATIENCE", 1e6)  # what a busy machine says of its waiting
    monkeypatch.setattr(ends.secrets, "token_hex", lambda size: "0" * 2 * size)
    monkeypatch.setattr(run, "now", lambda: "2026-01-02T03:04:05+00:00")


@pytest.fixture
def tape(clocks, monkeypatch):
    made = Tape()
    monkeypatch.setattr(Mechanism, "_noisy", made.noisy(Mechanism._noisy))
    return made


def everything(folder, records, columns, monkeypatch):
    """Run every verb that could tell something about the records, and return all that leaves the house."""
    monkeypatch.chdir(folder)
    for left in ("out", "book.sqlite"):
        path = folder / left
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    frame = pl.DataFrame(records, schema=columns, orient="row")
    frame.write_parquet(folder / "trips.parquet")
    seen = {}
    for words in (
        ["explain", "spec.yaml"],
        ["release", "spec.yaml"],
        ["verify", "out"],
        ["ledger", "list", "--file", "book.sqlite"],
    ):
        result = CliRunner().invoke(app, words)
        seen[words[0]] = (result.exit_code, result.stdout, result.stderr)
    for path in sorted((folder / "out").iterdir()):
        seen[path.name] = (path.stat().st_size, path.stat().st_mtime, path.read_bytes())
    with sqlite3.connect(folder / "book.sqlite") as book:
        seen["book"] = list(book.iterdump())
    return seen


def replayed(folder, text, records, neighbour, columns, tape, monkeypatch):
    (folder / "zones.csv").write_text(ZONES)
    (folder / "spec.yaml").write_text(HEAD + text)
    first = everything(folder, records, columns, monkeypatch)
    assert first["release"][0] == 0, first["release"]
    assert first["verify"][0] == 0
    tape.playing = True
    return first, everything(folder, neighbour, columns, monkeypatch)


BOUNDED = "hold: [consistent, nonnegative]\nmethod: "
REPLACE = "epsilon: 1, neighbours: replace-one"
MARGINS = "hold: [nonnegative, {exact: [[sex], [age]]}]\naccept_disclosure: true\nmethod: onto"
LEVEL = "hold: [consistent, nonnegative, {exact: [borough]}]\nmethod: given"
SWAPPED = [("F", "old"), ("F", "adult"), ("M", "adult"), ("M", "child"), ("F", "old"), ("M", "child")]
JOBS = {
    "a tree, conditioned": (tree(rest=BOUNDED + "given"), TRIPS, [*TRIPS, ("South", "S2")]),
    "a tree, moved": (tree(rest=BOUNDED + "onto"), TRIPS, [*TRIPS, ("South", "S2")]),
    "one record less": (tree(rest=BOUNDED + "onto"), TRIPS, TRIPS[1:]),
    "topdown": (tree(rest=BOUNDED + "topdown"), TRIPS, TRIPS[1:]),
    "an exact level": (tree(privacy=REPLACE, rest=LEVEL), TRIPS, [("North", "N2"), *TRIPS[1:]]),
    "a cube": (cube(rest="hold: [nonnegative]"), PEOPLE, [*PEOPLE, ("M", "old")]),
    "exact margins": (cube(privacy=REPLACE, rest=MARGINS), PEOPLE, SWAPPED),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_nothing_but_the_noisy_answers_depends_on_the_data(name, tmp_path, tape, monkeypatch):
    text, records, neighbour = JOBS[name]
    columns = ["borough", "zone"] if records is TRIPS else ["sex", "age"]
    first, second = replayed(tmp_path, text, records, neighbour, columns, tape, monkeypatch)
    assert first.keys() == second.keys()
    for what, seen in first.items():
        assert second[what] == seen, what
    tape.check_sensitivity()


@pytest.mark.slow
def test_a_leak_around_the_noise_is_seen(tmp_path, tape, monkeypatch):
    """A certificate that tells how many records there were would be noticed."""
    original = run.report
    counted = run.tabulate
    seen = []

    def tabulate(*words):
        cells = counted(*words)
        seen.append(sum(int(each.sum()) for each in cells))
        return cells

    monkeypatch.setattr(run, "tabulate", tabulate)
    monkeypatch.setattr(run, "report", lambda *words: original(*words) + f"<!-- {seen[-1:]} records -->")
    text, records, neighbour = JOBS["one record less"]
    first, second = replayed(tmp_path, text, records, neighbour, ["borough", "zone"], tape, monkeypatch)
    assert any(second[what] != seen for what, seen in first.items())


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_the_public_recorder_finds_nothing(name, tmp_path, clocks, monkeypatch):
    """dp-recorder itself, where it is installed. It is on no registry, so it is no dependency of the tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of its own imports
        recorder = pytest.importorskip("dp_recorder.auditing.audit_primitives")
    original, drawing = Mechanism._noisy, []

    @recorder.audit_spec("noise", "answers", "loss", lambda one, other: float(np.abs(one - other).sum()))
    def noisy(answers, loss):
        return original(*drawing[-1])

    def drawn(mechanism, truth, size, stream):
        drawing.append((mechanism, truth, size, stream))
        return noisy(in_scales(mechanism, truth), float(mechanism.guarantee.epsilon)).copy()

    monkeypatch.setattr(Mechanism, "_noisy", drawn)
    text, records, neighbour = JOBS[name]
    columns = ["borough", "zone"] if records is TRIPS else ["sex", "age"]
    (tmp_path / "zones.csv").write_text(ZONES)
    (tmp_path / "spec.yaml").write_text(HEAD + text)
    auditor = recorder.Auditor()
    for data in (records, neighbour):
        with auditor:
            recorder.ensure_equality(published=everything(tmp_path, data, columns, monkeypatch))
        if data is records:
            auditor.set_replay()
    auditor.validate_records()
    # It would have seen a leak: the number of records beside the frozen table.
    auditor = recorder.Auditor()
    with auditor:
        recorder.ensure_equality(count=len(records))
        auditor.set_replay()
        with pytest.raises(AssertionError, match="Equality"):
            recorder.ensure_equality(count=len(records) + 1)
