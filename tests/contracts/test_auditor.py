"""The auditor's manners: what it takes, what it refuses, what it reports, and the command."""

import dataclasses
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import holdfast as hf
from holdfast.auditing import Audit
from holdfast.auditing.gallery import claim, wrong_sensitivity
from holdfast.cli.command import app
from holdfast.release import audit as audited
from holdfast.release.job.job import Job
from holdfast.release.spec.spec import read_spec
from jobs import ZONES

NOISE = hf.laplace(hf.histogram(2), epsilon=1)


def test_a_report_is_frozen_and_speaks_to_people_and_scripts():
    report = hf.audit(NOISE, seconds=0.5)
    assert isinstance(report, Audit)
    assert report.verdict == "not refuted"
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.tests = 0
    words = str(report)
    assert "not refuted" in words
    assert "made-up counts" in words
    assert "1e-09" in words
    plain = json.loads(report.to_json())
    assert plain["schema"] == "holdfast-audit-1"
    assert plain["verdict"] == "not refuted"
    assert plain["how"] == "exact"
    assert plain["epsilon"] == pytest.approx(1, abs=1e-6)
    assert plain["findings"][0]["evidence"]["claimed"] == 1.0
    assert hf.Guarantee.from_json(plain["findings"][0]["statement"]) == NOISE.guarantee


def test_the_same_seed_gives_the_same_findings():
    pairs = [([0, 0, 0, 0], [1, 1, 0, 0])]
    first, second = (str(hf.audit(wrong_sensitivity().mechanism, pairs=pairs, seconds=30, seed=3)) for _ in range(2))
    assert first == second


@pytest.mark.slow
def test_a_users_own_function_is_audited():
    rng = np.random.default_rng(3)
    right = lambda truth: truth + rng.geometric(1 - np.exp(-1), 2) - rng.geometric(1 - np.exp(-1), 2)  # noqa: E731
    report = hf.audit(right, query=hf.histogram(2), guarantee=claim(), seconds=1)
    assert not report.violated
    assert hf.audit(lambda truth: truth, pairs=[([0], [1])], guarantee=claim(), seconds=5).violated
    wrong = lambda truth: {"a": 1}  # noqa: E731
    with pytest.raises(hf.Refused, match="rows of numbers"):
        hf.audit(wrong, pairs=[([0], [1])], guarantee=claim(), seconds=1)


def test_missing_values_are_an_output_like_any_other():
    suppressed = lambda truth: np.where(truth < 5, np.nan, truth + 0.5)  # noqa: E731
    report = hf.audit(suppressed, pairs=[([4], [5])], guarantee=claim(), seconds=5)
    assert report.violated
    assert json.loads(report.to_json())["verdict"] == "violated"


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"mechanism": 3, "guarantee": claim(), "pairs": [([0], [1])]}, "mechanism must be"),
        ({"mechanism": lambda truth: truth}, "promises nothing"),
        ({"mechanism": lambda truth: truth, "guarantee": claim()}, "pairs of truths are needed"),
        ({"mechanism": lambda truth: truth, "guarantee": claim(float("inf"))}, "void"),
        ({"mechanism": lambda truth: truth, "guarantee": 1}, "must be a Guarantee"),
        ({"mechanism": NOISE, "query": 3}, "query must be"),
        ({"mechanism": NOISE, "seconds": 0}, "seconds must be above 0"),
        ({"mechanism": NOISE, "pairs": []}, "at least one pair"),
        ({"mechanism": NOISE, "pairs": 3}, "list of pairs"),
        ({"mechanism": NOISE, "pairs": [([0], [1])]}, "two truths of 2 numbers"),
        ({"mechanism": NOISE, "pairs": [([0, 0], [1, 1])]}, "about none of these pairs"),
        ({"mechanism": hf.laplace(hf.histogram(2), scale=1).given(hf.between(5, 5))}, "no pair|no change|audited"),
    ],
)  # fmt: skip
def test_what_cannot_be_audited_is_refused(arguments, match):
    with pytest.raises(hf.Refused, match=match):
        hf.audit(**arguments)


@pytest.mark.slow
def test_a_statement_about_real_arithmetic_is_not_blamed_for_low_bits():
    report = hf.audit(hf.laplace(hf.histogram(1), epsilon=1, integer=False), seconds=1)
    assert not report.violated
    assert "low bits" in str(report)


SPEC = """\
title: Trips
data: {source: nowhere.csv, domain: zones.csv, name: trips}
privacy: {epsilon: 1}
table: {histogram: zone}
hold: [nonnegative]
method: given
output: out
ledger: {file: book.sqlite}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "zones.csv").write_text(ZONES)
    (tmp_path / "spec.yaml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_command_audits_a_spec_without_its_data(folder):
    made = CliRunner().invoke(app, ["audit", "spec.yaml", "--seconds", "0.5"])
    assert made.exit_code == 0, made.stderr
    assert "nothing was refuted" in made.stdout
    assert not (folder / "book.sqlite").exists()
    assert not (folder / "out").exists()
    told = CliRunner().invoke(app, ["audit", "spec.yaml", "--seconds", "0.5", "--json"])
    found = json.loads(told.stdout)
    assert found["violated"] is False
    assert found["tables"][0]["verdict"] == "not refuted"


def test_the_command_ends_with_6_where_a_statement_is_refuted(folder, monkeypatch):
    original = audited.audited
    monkeypatch.setattr(audited, "audited", lambda made, **how: original(made, guarantee=claim(0.5), **how))
    made = CliRunner().invoke(app, ["audit", "spec.yaml", "--seconds", "5"])
    assert made.exit_code == 6, made.stderr
    assert "VIOLATED" in made.stdout


def test_the_command_refuses_what_cannot_be_audited(folder, monkeypatch):
    def refused(*_, **__):
        raise hf.Refused("nothing can be audited")

    monkeypatch.setattr(audited, "audited", refused)
    made = CliRunner().invoke(app, ["audit", "spec.yaml"])
    assert made.exit_code == 3
    assert "nothing can be audited" in made.stderr


TABLES = """\
title: Trips
data: {source: nowhere.csv, domain: zones.csv, name: trips}
privacy: {epsilon: 2}
tables:
- {name: first, histogram: zone}
- {name: second, histogram: zone}
output: out
"""


@pytest.mark.slow
def test_several_tables_are_audited_together_against_the_total(folder):
    """Each table keeps to its own statement; a total that forgets one of them is refuted by both at once."""
    (folder / "spec.yaml").write_text(TABLES)
    job = Job.from_spec(read_spec("spec.yaml"))
    report = audited.audit(job, seconds=1)
    assert [name for name, _ in report.tables] == ["first", "second", "all tables together"]
    assert not report.violated
    one = dataclasses.replace(job.guarantee, epsilon=job.tables[0].guarantees[0].epsilon)
    forgetful = dataclasses.replace(job, guarantees=(one,))
    assert hf.audit(audited._Together.of(forgetful), seconds=20).violated
