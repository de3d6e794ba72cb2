"""Plans: from the spec and public guesses alone, and right about the errors where these are known."""

import json
import math
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from holdfast.release.explain import explain
from holdfast.release.job import choosing
from holdfast.release.job.errors import FAR, GUESS, LAW, Errors, LevelErrors
from holdfast.release.plan import RECORD_BYTES, _uneven, plan
from holdfast.release.records import tabulate
from holdfast.release.spec.places import SpecError
from jobs import cube, job, tree

HISTOGRAM = "data: {name: x, values: {age: [1, 2, 3]}}\nprivacy: {epsilon: 0.5}\ntable: {histogram: age}\n"


def test_the_errors_of_plain_noise_are_those_of_its_law(tmp_path):
    level = plan(job(tmp_path, HISTOGRAM)).tables[0].levels[0]
    a = math.exp(-0.5)  # integer Laplace of scale 2: P(u) ∝ a^|u|, so E|u| = 2a/(1 − a²)
    expected = 2 * a / (1 - a * a)
    # 6,000 draws with a standard deviation below 2.8: six standard errors are 0.22.
    assert level.expected_absolute_error == pytest.approx(expected, abs=0.22)
    assert level.in_words == "integer Laplace, scale 2"
    # P(|u| > 7) is 0.019 and P(|u| > 5) is 0.051: the 2.5 % points are −7 or −6.
    assert level.interval_width in (12, 13, 14)
    assert level.figures == 3


def test_plans_say_how_errors_are_known(tmp_path):
    assert plan(job(tmp_path, tree())).tables[0].errors.basis == LAW
    bounded = "hold: [consistent, nonnegative]\nmethod: given"
    assert plan(job(tmp_path, tree(rest=bounded))).tables[0].errors.basis == FAR
    assert plan(job(tmp_path, tree(table="guess: 0", rest=bounded))).tables[0].errors.basis == GUESS


def test_a_guess_changes_the_expected_errors(tmp_path):
    """Empty zones are known to be near 0 once negative values are ruled out."""
    bounded = "hold: [consistent, nonnegative]\nmethod: onto"
    zones = {}
    for guess in (0, 10_000):
        found = plan(job(tmp_path, tree(table=f"guess: {guess}", rest=bounded)))
        zones[guess] = found.tables[0].levels[-1].expected_absolute_error
    far = plan(job(tmp_path, tree(rest=bounded))).tables[0].levels[-1].expected_absolute_error
    assert zones[0] < 0.8 * zones[10_000]
    assert zones[10_000] == pytest.approx(far, rel=0.1)


def test_a_guess_can_be_a_public_table(tmp_path):
    guess = "zone,count\nN1,5\nS3,7\n"
    text = tree(table="guess: last.csv", rest="hold: [consistent, nonnegative]\nmethod: given")
    table = job(tmp_path, text, last_csv=guess).tables[0]
    assert table.guess.tolist() == [12, 5, 7, 5, 0, 0, 0, 7]
    for content, words in [
        ("zone,count\nX1,5\n", "'X1', which is not in the domain"),
        ("zone,count\nN1,5\nN1,6\n", "names a cell twice"),
        ("zone,count\nN1,-5\n", "whole numbers of 0 or more"),
        ("zone,count\nN1,many\n", "whole numbers of 0 or more"),
        ("zone,number\nN1,5\n", "no column 'count'"),
    ]:
        with pytest.raises(SpecError, match=words) as caught:
            job(tmp_path, text, last_csv=content)
        assert caught.value.key == "table.guess"
    with pytest.raises(SpecError, match="the guess violates what must hold"):
        job(tmp_path, tree(table="guess: 9", rest="hold: [consistent, {between: {high: 8, at: zone}}]\nmethod: onto"))


def test_a_plan_reads_no_records(tmp_path, monkeypatch):
    def never(*_: object, **__: object) -> None:
        raise AssertionError("records were opened")

    monkeypatch.setattr(tabulate, "opened", never)
    (tmp_path / "trips.parquet").mkdir()  # whoever opens it fails
    made = job(tmp_path, tree(rest="hold: [consistent, {exact: [borough]}]"))
    assert plan(made).seconds is not None
    assert explain(made)


def test_exact_levels_are_marked(tmp_path):
    levels = plan(job(tmp_path, tree(rest="hold: [consistent, {exact: [borough]}]"))).tables[0].levels
    assert [level.exact for level in levels] == [True, True, False]
    assert [level.in_words for level in levels[:2]] == ["none: follows from exact figures", "none: published exactly"]
    assert [level.expected_absolute_error == 0 for level in levels] == [True, True, False]


def test_plans_are_json_and_repeatable(tmp_path):
    def told() -> dict:
        found = plan(job(tmp_path, tree(table="guess: 9", rest="hold: [consistent, nonnegative]"))).as_mapping()
        found.pop("seconds_to_draw")
        return json.loads(json.dumps(found, allow_nan=False))

    first = told()
    assert first == told()
    assert first["tables"][0]["comparison"][0]["expected_absolute_error"] > 0
    assert first["bytes_at_peak"] > 2**20
    assert len(first["statements"]) == len(first["in_words"])


def test_unmeasured_levels_are_named(tmp_path):
    found = plan(job(tmp_path, tree(table="shares: {city: 1, zone: 3}", rest="hold: [consistent]\nmethod: given")))
    assert [level.in_words for level in found.tables[0].levels][1] == "not measured"


def test_explanations_name_what_is_given_away(tmp_path):
    content = "borough,zone\nNorth,N1\nSouth,S1\nSouth,S2\n"
    text = tree(privacy="epsilon: 1, neighbours: replace-one", rest="hold: [consistent, {exact: [borough]}]")
    found = explain(job(tmp_path, text, zones_csv=content))
    away = " ".join(found["What is given away"])
    assert "Published exactly: borough (all 2 figures)." in away
    assert "What is published exactly is not protected" in away
    assert str(found).lower().count("published exactly:") == 1
    assert "compares only data that agree" not in str(found)  # the promise says it
    assert "city / North / N1" in away  # the only zone of its borough
    assert "city / South / S1" not in away
    assert explain(job(tmp_path, tree()))["What is given away"] == [
        "Nothing is published exactly: every figure is protected."
    ]
    assert "within the bounds" in " ".join(
        explain(job(tmp_path, tree(rest="hold: [{between: {high: 9}}]\nmethod: onto")))["What holds in every table"]
    )


def test_cubes_are_planned_by_margin(tmp_path):
    found = plan(job(tmp_path, cube(table="margins: [[sex], [age], []]", rest="method: noise")))
    assert [(level.level, level.figures) for level in found.tables[0].levels] == [("sex", 2), ("age", 3), ("total", 1)]
    assert np.isfinite([level.interval_width for level in found.tables[0].levels]).all()


@pytest.mark.slow
def test_time_is_that_of_uneven_counts_in_which_everything_holds(tmp_path):
    (table,) = job(tmp_path, tree(table="guess: 500", rest="hold: [consistent, {impossible: [S1]}]")).tables
    counts = _uneven(table)
    leaves = counts[table.layout.tree.leaves]
    assert len(set(leaves.tolist())) == leaves.size
    assert leaves[2] == 0
    assert 100 < leaves.mean() < 2500
    assert table.holding.all.system(table.layout.query.n).violation(counts) is None
    bounded = tree(table="guess: 500", rest="hold: [consistent, {between: {low: 499, high: 501, at: [zone]}}]")
    (table,) = job(tmp_path, bounded).tables
    assert _uneven(table).tolist() == table.guess.tolist()
    two = "borough,zone\nNorth,N1\nSouth,S1\n"  # their counts would leave the whole numbers
    (table,) = job(tmp_path, tree(table=f"guess: {2**61 - 1}"), zones_csv=two).tables
    assert _uneven(table).tolist() == table.guess.tolist()
    listed = tree(table="guess: guess.csv", rest="hold: [consistent]")
    (table,) = job(tmp_path, listed, guess_csv="zone,count\nN1,7\nS2,9\n").tables
    assert _uneven(table).tolist() == table.guess.tolist()


def test_a_plan_says_what_every_record_takes_where_persons_are_chosen(tmp_path):
    assert plan(job(tmp_path, tree())).as_mapping()["bytes_per_record"] == 0
    persons = tree(privacy="epsilon: 1, unit: {column: rider, max_records: 3}")
    assert plan(job(tmp_path, persons)).as_mapping()["bytes_per_record"] == RECORD_BYTES


MANDATE = """\
title: Residents
data: {source: counts.csv, domain: places.csv, values: {age: [young, old]}, count: n}
privacy: {neighbours: replace-one, epsilon: 1}
table: {hierarchy: [county, tract, block], root: state, categories: [age]}
hold: [consistent, nonnegative, {exact: [FIGURE]}]
output: out
"""
#: Numba takes a second to be loaded, and whole minutes to compile what moves tables.
WITHOUT = "import sys, holdfast as hf; hf.job('spec.yaml').plan(); assert 'numba' not in sys.modules"


@pytest.mark.parametrize("figure", ["county", "{of: county, by: []}"])
def test_exact_counties_are_planned_without_compiling(tmp_path, figure):
    blocks = [f"C{i % 5},T{i % 60},B{i}" for i in range(1500)]
    (tmp_path / "places.csv").write_text("\n".join(["county,tract,block", *blocks]))
    (tmp_path / "spec.yaml").write_text(MANDATE.replace("FIGURE", figure))
    subprocess.run([sys.executable, "-c", WITHOUT], cwd=tmp_path, check=True)


@pytest.mark.parametrize("method", ["given", "topdown", "bluedown"])
def test_what_is_not_simulated_is_never_better(tmp_path, method):
    """Far from bounds; simulated all the same, and compared with the method that the plan names."""
    holds = "hold: [consistent, nonnegative, {exact: [borough]}]"
    said = {each.method: each.refused for each in job(tmp_path, tree(rest=holds)).tables[0].comparison}
    better = said[method].rpartition(" ")[2]
    of = {
        name: job(tmp_path, tree(rest=f"{holds}\nmethod: {name}")).tables[0].errors.score for name in (method, better)
    }
    assert of[better] <= 1.02 * of[method]
    guessed = job(tmp_path, tree(table="guess: 30", rest=holds)).tables[0].comparison
    assert not any(each.refused for each in guessed)


def test_methods_that_few_tables_leave_open_are_simulated_more(monkeypatch):
    """Of two whose errors are near each other both are measured again; one that is far behind is not."""
    scores = {("given", choosing.COMPARED): 9.0, ("onto", choosing.COMPARED): 2.0, ("both", choosing.COMPARED): 2.5}
    scores |= {("onto", choosing.NUMBERS): 3.0, ("both", choosing.NUMBERS): 2.4}
    levels = {key: LevelErrors("zone", 1, score, 1.0, 0.2) for key, score in scores.items()}

    def measured(_, one, __, numbers):
        return Errors((levels[one.method, numbers],), LAW, 10 if numbers == choosing.COMPARED else 30)

    monkeypatch.setattr(choosing, "_measured", measured)
    monkeypatch.setattr(choosing, "_never_better", lambda *_: None)
    monkeypatch.setattr(choosing, "simulated_tables", lambda *_: 30)
    tried = [choosing.Tried(method, "laplace", object()) for method in ("given", "onto", "both")]
    choosing._measure(SimpleNamespace(layout=None), tried)
    assert [each.errors.score for each in tried] == [9.0, 3.0, 2.4]
