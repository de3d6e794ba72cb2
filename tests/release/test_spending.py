"""What plan, explain and release say about the ledger before anything is spent, and about charges without a table."""

import pytest

import holdfast as hf
import released
from holdfast.release import run
from holdfast.release.explain import explain
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.plan import plan

BUDGET = "ledger: {file: ledger.sqlite, budget: {epsilon: 3}}"
EMPTY = "There is no ledger"


def test_a_plan_and_an_explanation_say_what_is_left_of_a_budget(tmp_path):
    job = released.job(tmp_path, more=BUDGET)
    before = plan(job).spending
    assert before[0].startswith(EMPTY)
    assert before[1:] == (
        "On this dataset nothing was spent so far per record; its budget is ε = 3, of which ε = 3 is left.",
        "This release would cost ε = 1, and leave ε = 2 of the budget.",
    )
    assert tuple(explain(job)["What was spent"]) == before == tuple(plan(job).as_mapping()["spending"])
    for number in range(3):
        run.release(job, output=tmp_path / f"out{number}")
    spent, refused = plan(job).spending
    assert "ε = 3 was spent so far" in spent
    assert refused.startswith("A release would be refused: the budget of 'trips' per record is ε = 3 and ε = 0 is left")
    assert "ask for less, or raise the budget" in refused


def test_without_a_budget_the_remedy_is_named(tmp_path):
    assert "no budget is set: ledger: {budget:" in " ".join(plan(released.job(tmp_path)).spending)


def test_a_release_repeated_after_it_ended_early_says_what_was_charged(tmp_path, monkeypatch):
    job = released.job(tmp_path, more=BUDGET)
    monkeypatch.setattr(run, "write_release", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run.release(job)
    monkeypatch.undo()
    notes = []
    run.release(job, note=notes.append)
    (said,) = notes
    assert "a charge of ε = 1 for 'Trips'" in said
    assert "drawn, not published" in said
    assert "charged anew" in said
    assert any("drawn, not published" in words for words in plan(job).spending)
    notes.clear()
    assert len(Ledger(job.spec.ledger_file).entries()) == 2
    run.release(job, output=tmp_path / "again", note=notes.append)
    assert len(notes) == 1  # what was published is not spoken of


def test_the_curator_alone_hears_which_figures_are_determined(tmp_path):
    records = {("N1", "North", "F", "child", "X"): 5, ("S2", "South", "F", "old", "X"): 20}
    changes = ("method: given", "method: onto"), ("{exact: [city]}, {impossible: [{zone: S1}]}", "{exact: [borough]}")
    job = released.job(tmp_path, "hierarchy", *changes, records=records)
    asides = []
    with pytest.raises(hf.Refused) as refusal:  # no man is in the North, so none is in its zones
        run.release(job, aside=asides.append)
    assert "N1" not in str(refusal.value)
    (told,) = asides
    assert told.startswith("what the exact figures determine in the table 'table': ")
    assert "zone" in told
