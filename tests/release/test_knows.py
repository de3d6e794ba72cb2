"""`holdfast audit --knows FILE`: what an adversary with worlds in mind learns from a job's table."""

import json

import pytest
from typer.testing import CliRunner

import holdfast as hf
from holdfast.cli.command import app
from holdfast.release.audit import gain

CELLS = {"near": [3, 0, 2, 1], "far": [4, 0, 2, 1]}


@pytest.fixture
def job(tmp_path):
    (tmp_path / "zones.csv").write_text("borough,zone\nNorth,a\nNorth,b\nSouth,c\nSouth,d\n")
    (tmp_path / "spec.yaml").write_text(
        "title: Trips\ndata: {source: trips.csv, domain: zones.csv}\nprivacy: {unit: record, neighbours: add-remove, "
        "epsilon: 1.0}\ntable: {hierarchy: [borough, zone], root: city}\nhold: [consistent]\nmethod: given\noutput: "
        "out/\n"
    )
    return tmp_path / "spec.yaml"


def worlds(folder, *lines):
    path = folder / "worlds.yaml"
    path.write_text("\n".join(lines))
    return path


@pytest.mark.slow
def test_a_world_and_its_neighbour(job):
    file = worlds(
        job.parent,
        "worlds:",
        f"- {{cells: {CELLS['near']}, secret: true}}",
        f"- {{cells: {CELLS['far']}, secret: false, odds: 3}}",
    )
    _, found = gain(hf.job(job).made, file)
    assert found.before == 0.25
    assert found.log_odds <= 1 + 1e-9
    assert 0.75 - 5 * found.standard_error <= found.right_after < 0.9


@pytest.mark.slow
def test_the_command_says_what_is_learned(job):
    file = worlds(
        job.parent, "worlds:", "- {cells: [3, 0, 2, 1], secret: true}", "- {cells: [4, 0, 2, 1], secret: false}"
    )
    found = CliRunner().invoke(app, ["audit", str(job), "--seconds", "1", "--knows", str(file), "--json"])
    assert found.exit_code == 0, found.output
    learned = json.loads(found.stdout)["learned"]
    assert learned["status"] == "simulated"
    assert 0.5 < learned["right_after"] < 0.74


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("worlds: 3", "two or more worlds"),
        ("- 1", "must map names"),
        ("worlds: [{cells: [1, 2], secret: true}, {cells: [1, 2, 3, 4], secret: false}]", "shape"),
        ("worlds: [{cells: [1, 2, 3, 4]}, {cells: [1, 2, 3, 4], secret: false}]", "'secret', true or false"),
        ("table: other\nworlds: []", "table must be one of"),
    ],
)
def test_refusals(job, text, words):
    made = hf.job(job).made
    with pytest.raises(hf.Refused, match=words):
        gain(made, worlds(job.parent, text))
    with pytest.raises(hf.Refused, match="cannot be read"):
        gain(made, job.parent / "none.yaml")
