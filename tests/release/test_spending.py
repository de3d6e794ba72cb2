"""What plan, explain and release say about the ledger before anything is spent, and about charges without a table."""

import pytest
from typer import Exit

import holdfast as hf
import released
from holdfast.cli.ending import ending
from holdfast.release import run
from holdfast.release.explain import explain
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.plan import plan
from jobs import job

BUDGET = "ledger: {file: ledger.sqlite, budget: {epsilon: 3}}"
EMPTY = "There is no ledger"


def test_a_plan_and_an_explanation_say_what_is_left_of_a_budget(tmp_path):
    made = released.job(tmp_path, more=BUDGET)
    before = plan(made).spending
    assert before[0].startswith(EMPTY)
    assert before[1:] == (
        "On this dataset nothing was spent so far per record; its budget is ε = 3, of which ε = 3 is left.",
        "This release would cost ε = 1, and leave ε = 2 of the budget.",
    )
    assert tuple(explain(made)["What was spent"]) == before == tuple(plan(made).as_mapping()["spending"])
    for number in range(3):
        run.release(made, output=tmp_path / f"out{number}")
    spent, refused = plan(made).spending
    assert "ε = 3 was spent so far" in spent
    assert refused.startswith("A release would be refused: the budget of 'trips' per record is ε = 3 and ε = 0 is left")
    assert "ask for less, or raise the budget" in refused


def test_without_a_budget_the_remedy_is_named(tmp_path):
    assert "no budget is set: ledger: {budget:" in " ".join(plan(released.job(tmp_path)).spending)


def test_a_release_repeated_after_it_ended_early_says_what_was_charged(tmp_path, monkeypatch):
    made = released.job(tmp_path, more=BUDGET)
    written = run.write_release
    monkeypatch.setattr(run, "write_release", lambda begun, *of: 1 / 0 if begun.charged else written(begun, *of))
    with pytest.raises(ZeroDivisionError):
        run.release(made)
    monkeypatch.undo()
    notes = []
    run.release(made, note=notes.append)
    (said,) = notes
    assert "a charge of ε = 1 for 'Trips'" in said
    assert "drawn, not published" in said
    assert "charged anew" in said
    assert any("drawn, not published" in words for words in plan(made).spending)
    notes.clear()
    assert len(Ledger(made.spec.ledger_file).entries()) == 2
    run.release(made, output=tmp_path / "again", note=notes.append)
    assert len(notes) == 1  # what was published is not spoken of


def test_the_curator_alone_hears_which_figures_are_determined(tmp_path):
    records = {("N1", "North", "F", "child", "X"): 5, ("S2", "South", "F", "old", "X"): 20}
    changes = ("method: given", "method: onto"), ("{exact: [city]}, {impossible: [{zone: S1}]}", "{exact: [borough]}")
    made = released.job(tmp_path, "hierarchy", *changes, records=records)
    asides = []
    with pytest.raises(hf.Refused) as refusal:  # no man is in the North, so none is in its zones
        run.release(made, aside=asides.append)
    assert "N1" not in str(refusal.value)
    (told,) = asides
    assert told.startswith("what the exact figures determine in the table 'table': ")
    assert "zone" in told


def test_one_place_has_one_account_however_it_is_written(tmp_path):
    folder = tmp_path.resolve() / "data"
    (folder / "sub").mkdir(parents=True)
    (folder / "r.csv").write_text("sex,age\n")
    (folder / "link.csv").symlink_to(folder / "r.csv")
    (tmp_path / "way").symlink_to(folder)
    text = "data: {{source: {source}, values: {{sex: [F, M]}}}}\nprivacy: {{epsilon: 1}}\ntable: {{histogram: sex}}\n"
    ways = (
        "data/r.csv",
        "./data/sub/../r.csv",
        "data/link.csv",
        "way/r.csv",
        folder / "r.csv",
        f"sqlite:///{folder}/r.csv",
    )
    assert {job(tmp_path, text.format(source=way)).dataset for way in ways} == {str(folder / "r.csv")}
    ways = ("postgresql://db/trips", "postgres://me@DB:5432/trips", "postgresql+psycopg://db/trips?sslmode=require")
    assert {job(tmp_path, text.format(source=way)).dataset for way in ways} == {"postgresql://db/trips"}
    assert job(tmp_path, text.format(source="postgresql://db:99/trips")).dataset == "postgresql://db:99/trips"


PASSENGERS = (
    "data: {{name: ship, values: {{Class: [1st, 2nd], Sex: [M, F], Age: [Child, Adult], Survived: [dead, alive]}}}}\n"
    "privacy: {{neighbours: replace-one, epsilon: 1{records}}}\ntable: {{cube: [Class, Sex, Age, Survived]}}\n"
    "hold: [{{exact: [[Class, Survived], [Sex]]}}]\nmethod: onto\nledger: {{file: book.sqlite}}\n"
)


def test_a_release_about_one_record_does_not_shut_the_ledger_for_others(tmp_path):
    one, two = (job(tmp_path, PASSENGERS.format(records=records)) for records in (", records: 1", ""))
    ledger = Ledger(one.spec.ledger_file)
    assert not any("beside a release" in words for words in plan(two).spending)
    ledger.set_budget("ship", "record", epsilon=10)
    assert plan(one).spending[-1] == (
        "The budget counts it for one record replaced by another; everything that can change changes with 2 of them: "
        "beside a release that counts these it costs ε = 2."
    )
    for made, identity in ((one, "first"), (two, "second")):
        parts = [table.statements for table in made.tables]
        ledger.charge(made.dataset, made.unit, parts, release=identity, title="", spec_hash="", when="")
    assert ledger.spent("ship", "record").epsilon == pytest.approx(3)
    assert ledger.spent("ship", "record").records == 2


def test_what_cannot_be_added_up_has_an_exit_code_of_its_own_and_names_the_remedy(tmp_path, capsys):
    made = job(tmp_path, PASSENGERS.format(records=""))
    ledger = Ledger(made.spec.ledger_file)
    ledger.set_budget("ship", "record", epsilon=10)
    only = made.tables[0].mechanism.about(1)
    ledger.charge("ship", "record", [[only]], release="first", title="", spec_hash="", when="")
    assert "privacy: {neighbours: replace-one, records: 1}" in plan(made).spending[-1]
    with pytest.raises(Exit) as ended, ending(False):
        ledger.check("ship", "record", [table.statements for table in made.tables], None)
    assert ended.value.exit_code == 7
    assert "ask for what the releases before it state" in capsys.readouterr().err
    again = job(tmp_path, PASSENGERS.format(records=", records: 1"))
    ledger.check("ship", "record", [table.statements for table in again.tables], None)
