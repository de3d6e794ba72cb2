"""A release that may not be published before a time: who sees when it appears does not see how long it took."""

import pytest
from typer.testing import CliRunner

import holdfast as hf
import released
from holdfast.cli.command import app
from holdfast.release import ends, run


def called(*words: str):
    """What the command says and how it ends."""
    return CliRunner().invoke(app, list(words))


class Clock:
    """Time that passes when somebody waits, or when records are counted."""

    def __init__(self) -> None:
        self.now, self.waited = 100.0, []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.now += seconds


def published_at(folder, monkeypatch, counting: float, at_least: float):
    """When a release appears whose counting takes so long, what was waited for, and what the curator is told."""
    clock, told, seen = Clock(), [], []
    count, publish = run.tabulate, run.publish

    def counted(*args):
        clock.now += counting
        return count(*args)

    def appears(*args):
        seen.append(clock.now)
        publish(*args)

    monkeypatch.setattr(ends, "time", clock)
    monkeypatch.setattr(run, "tabulate", counted)
    monkeypatch.setattr(run, "publish", appears)
    run.release(released.job(folder, "moved"), at_least=at_least, aside=told.append)
    monkeypatch.undo()
    return seen, clock.waited, told


def test_a_release_appears_when_the_least_time_is_over_however_long_it_took(tmp_path, monkeypatch):
    for number, counting in enumerate((1.0, 7.5)):
        seen, waited, told = published_at(tmp_path / str(number), monkeypatch, counting, at_least=10.0)
        assert (seen, waited, told) == ([110.0], [10.0 - counting], [])
    assert published_at(tmp_path / "none", monkeypatch, 3.0, at_least=0.0) == ([103.0], [], [])


def test_the_curator_alone_is_told_that_it_took_longer(tmp_path, monkeypatch):
    seen, waited, told = published_at(tmp_path, monkeypatch, 12.0, at_least=10.0)
    assert (seen, waited) == ([112.0], [])
    assert told == ["the release took 2.0 s longer than the least time: when it appears may tell of the data"]


def test_the_least_time_is_asked_for_on_the_command_and_in_python(tmp_path, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(ends, "time", clock)
    spec = released.written(tmp_path, "moved")
    assert hf.job(spec).release(output=tmp_path / "one", at_least=3).values.size == 8
    assert clock.waited == [3.0]
    assert called("release", str(spec), "--output", str(tmp_path / "two"), "--at-least", "4.5").exit_code == 0
    assert clock.waited == [3.0, 4.5]
    for wrong in (-1, 1e300):
        with pytest.raises(hf.Refused, match="at_least must lie between 0 and 86,400 seconds, found"):
            hf.job(spec).release(output=tmp_path / "three", at_least=wrong)
        assert (
            called("release", str(spec), "--output", str(tmp_path / "three"), "--at-least", str(wrong)).exit_code == 3
        )
