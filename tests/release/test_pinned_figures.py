"""What exact figures give away in a release: refused unless accepted, listed, and remembered by the ledger."""

import json
from pathlib import Path

import numpy as np
import pytest

import jobs
import released
from holdfast.arguments import Refused
from holdfast.release import run
from holdfast.release.certificate.verify import verify
from holdfast.release.disclosure import figure_rows
from holdfast.release.disclosure.disclosure import given_away
from holdfast.release.disclosure.figure_rows import TOO_LARGE
from holdfast.release.disclosure.public_words import published, treatment
from holdfast.release.ends import KEPT, NOTHING
from holdfast.release.explain import explain
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.plan import plan
from holdfast.release.records.tabulate import tabulate
from holdfast.release.run import release

EMPTY_NORTH = {("S2", "South", "F", "old", "X"): 20, ("S3", "South", "M", "child", "Y"): 7}
EXACT_CITY = "{exact: [city]}"


def tree_job(folder, exact, more="", name="out", records=released.RECORDS):
    changes = [(EXACT_CITY, f"{{exact: {exact}}}"), (", categories: [sex]", ""), ("output: out", f"output: {name}")]
    changes += [("method: given", "method: onto")]  # what bounds cost under exact figures is no matter here
    return released.job(folder, "hierarchy", *changes, more=more, records=records)


def test_an_exact_zero_is_refused_before_the_charge(tmp_path):
    job = tree_job(tmp_path, "[borough]", records=EMPTY_NORTH)
    with pytest.raises(
        Refused, match=r"determine 2 other figures.*accept_disclosure: true(.|\n)*nothing was charged"
    ) as found:
        release(job)
    assert "20" not in str(found.value)
    assert "N1" not in str(found.value)
    assert not Ledger(job.spec.ledger_file).entries()
    assert not (tmp_path / "out").exists()


def test_what_is_accepted_is_listed_and_verified(tmp_path):
    job = tree_job(tmp_path, "[borough]", "accept_disclosure: true", records=EMPTY_NORTH)
    folder = release(job)
    assert verify(folder).ok
    certificate = json.loads((folder / "certificate.json").read_text())
    listed = [
        each for each in certificate["tables"][0]["unprotected"] if each["why"] == "determined by the exact figures"
    ]
    assert [(each["level"], each["figures"], each["rows"]) for each in listed] == [("zone", 2, [[3, 4]])]
    assert any("determined by the exact figures" in words and "N1" in words for words in certificate["unprotected"])
    assert "determined by the exact figures" in (folder / "report.html").read_text()


@pytest.mark.slow
def test_a_second_release_that_pins_with_the_first_is_refused(tmp_path):
    release(tree_job(tmp_path, "[North]", name="first"))
    later = tree_job(tmp_path, "[[North, N1]]", name="second")
    with pytest.raises(Refused, match=r"published exactly by '.*' of 20.*, determine 1 other figure "):
        release(later)
    assert len(Ledger(later.spec.ledger_file).entries()) == 1
    alone = tree_job(tmp_path / "elsewhere", "[[North, N1]]", name="second")
    assert verify(release(alone)).ok


def released_meanwhile(monkeypatch, meanwhile, when):
    """Let another release be made once, just before the one that follows is charged or sealed."""
    then = getattr(run.Run, when)

    def late(*given):
        monkeypatch.undo()
        release(meanwhile)
        return then(*given)

    monkeypatch.setattr(run.Run, when, late)


@pytest.mark.parametrize("when", ["charge", "seal"])
def test_figures_of_a_release_that_was_sealed_meanwhile_are_counted(tmp_path, monkeypatch, when):
    """Of two releases at once, whichever is sealed last says what both give away."""
    later = tree_job(tmp_path, "[[North, N1]]", "accept_disclosure: true", name="second")
    released_meanwhile(monkeypatch, tree_job(tmp_path, "[North]", name="first"), when)
    folder = release(later)
    assert verify(folder, Ledger(later.spec.ledger_file)).ok
    certificate = json.loads((folder / "certificate.json").read_text())
    found = {each["why"][:24]: each["rows"] for each in certificate["tables"][0]["unprotected"]}
    assert found["determined by the exact "] == [[4, 4]]
    assert [[1, 1]] in found.values()
    assert "determined by the exact figures" in (folder / "report.html").read_text()
    states = {Path(entry.folder).name: entry.state for entry in Ledger(later.spec.ledger_file).entries()}
    assert states == {"first": "published", "second": "published"}


@pytest.mark.parametrize(("when", "became"), [("charge", NOTHING), ("seal", KEPT)])
def test_what_a_release_that_was_sealed_meanwhile_pins_is_refused(tmp_path, monkeypatch, when, became):
    later, told = tree_job(tmp_path, "[[North, N1]]", name="second"), []
    released_meanwhile(monkeypatch, tree_job(tmp_path, "[North]", name="first"), when)
    with pytest.raises(Refused, match="determine 1 other figure ") as found:
        release(later, aside=told.append)
    assert found.value.__notes__ == [became]
    assert "N2" in told[0]
    assert not (tmp_path / "second").exists()
    assert len(Ledger(later.spec.ledger_file).figures(later.dataset)) == 1


def test_explain_and_plan_name_what_published_figures_determine(tmp_path):
    first = tree_job(tmp_path, "[North, [North, N1]]", "accept_disclosure: true", name="first")
    before = " ".join(explain(first)["What is given away"])
    assert "may determine others" in before
    assert "N2 = 3" not in before
    release(first)
    later = tree_job(tmp_path, "[city]", name="second")
    words = " ".join(explain(later)["What is given away"])
    assert "already determine city / North / N2 = 3." in words
    assert "release looks before it charges" in words
    assert plan(later).as_mapping()["disclosed"] == list(plan(later).disclosed)
    assert any("N2 = 3" in sentence for sentence in plan(later).disclosed)


def test_figures_of_one_table_are_read_as_sums_of_another(tmp_path):
    """Margins of sex and of age are exact in a cube; a later table by age knows its figures already."""
    cube = released.job(tmp_path, "contingency", ("output: out", "output: first"), more="accept_disclosure: true")
    release(cube)
    ages = released.job(tmp_path, "histogram", ("output: out", "output: second"))
    (found,) = given_away(ages, Ledger(ages.spec.ledger_file).figures(ages.dataset))
    assert found.ranges.low.tolist() == found.ranges.high.tolist() == [67, 3, 200]
    sums = released.job(tmp_path, "margins", ("output: out", "output: third"))
    (found,) = given_away(sums, Ledger(sums.spec.ledger_file).figures(sums.dataset))
    assert found.ranges.low[-1] == found.ranges.high[-1] == 270
    zones = tree_job(tmp_path, "[borough]", name="fourth")
    (found,) = given_away(zones, Ledger(zones.spec.ledger_file).figures(zones.dataset))
    # No column in common, but the sum of all sexes is the number of all records.
    assert found.ranges.low[0] == found.ranges.high[0] == 270
    assert found.rows.tolist() == [0]


@pytest.mark.slow
def test_a_figure_that_was_published_exactly_before_is_not_protected_by_noise(tmp_path):
    release(tree_job(tmp_path, "[North, [South, S2]]", name="first"))
    changes = [(f"{EXACT_CITY}, ", ""), (", categories: [sex]", ""), ("output: out", "output: second")]
    later = released.job(tmp_path, "hierarchy", *changes, ("title: Trips", "title: Later"))
    told = "exactly before, in 'Trips' of "
    for sentences in (plan(later).disclosed, explain(later)["What is given away"]):
        (words,) = [words for words in sentences if told in words]
        assert words.endswith(
            "so that the noise on it protects nothing: borough (city / North), zone (city / South / S2)."
        )
    assert "Nothing is published exactly by this release." in explain(later)["What is given away"]
    folder = release(later)
    assert verify(folder).ok
    certificate = json.loads((folder / "certificate.json").read_text())
    assert [each["rows"] for each in certificate["tables"][0]["unprotected"]] == [[[0, 0]], [[1, 1]], [[6, 6]]]
    assert any(told in words for words in certificate["unprotected"])
    assert "protects nothing" in (folder / "report.html").read_text()
    # Published exactly once more, it is what this release publishes and needs no warning.
    again = tree_job(tmp_path, "[North, [South, S2]]", "accept_disclosure: true", name="third")
    assert not any(told in words for words in plan(again).disclosed)


def test_figures_that_are_too_many_to_look_at_are_told(tmp_path, monkeypatch):
    release(released.job(tmp_path, "contingency", ("output: out", "output: first"), more="accept_disclosure: true"))
    sums = released.job(tmp_path, "margins", ("output: out", "output: second"))
    kept = Ledger(sums.spec.ledger_file).figures(sums.dataset)
    assert TOO_LARGE not in given_away(sums, kept)[0].notes
    monkeypatch.setattr(figure_rows, "MOST_CELLS", 1)
    assert TOO_LARGE in given_away(sums, kept)[0].notes


def test_figures_are_kept_in_public_words(tmp_path):
    job = tree_job(tmp_path, "[city, [South, S2]]")
    answers = [table.layout.query.answer(cells) for table, cells in zip(job.tables, tabulate(job), strict=True)]
    (kept,) = published(job, answers)
    groups = {tuple(group["columns"]): (group["values"], group["counts"]) for group in kept["groups"]}
    assert groups == {(): ([[]], [270]), ("borough", "zone"): ([["South", "S2"]], [200])}


@pytest.mark.slow
def test_records_treated_by_other_rules_are_left_aside(tmp_path):
    release(tree_job(tmp_path, "[North]", name="first"))
    changes = [(EXACT_CITY, "{exact: [[North, N1]]}"), (", categories: [sex]", ""), ("output: out", "output: second")]
    changes += [("method: given", "method: onto")]
    changes += [("name: trips,", "name: trips, nulls: {category: N1},")]
    later = released.job(tmp_path, "hierarchy", *changes)
    assert "other rules" in " ".join(explain(later)["What is given away"])
    assert verify(release(later)).ok


@pytest.mark.parametrize(
    "change",
    [
        ("[F, M, D]", "[F, M, D, X]"),  # a record with sex X counts in the second job and not in the first
        ("histogram: sex", "cube: [sex, age]"),  # one without a known age counts in the first and not in the second
        ("{exact: total}", "{exact: total}, {impossible: F}"),
    ],
)
def test_figures_about_other_kept_records_are_left_aside(tmp_path, change):
    text = (
        "data: {name: x, values: {sex: [F, M, D], age: [child, old]}, nulls: drop, outside: drop}\n"
        "privacy: {epsilon: 1}\ntable: {histogram: sex}\nhold: [nonnegative, {exact: total}]\nmethod: onto\n"
    )
    first, same, other = (jobs.job(tmp_path, words) for words in (text, f"{text}# again\n", text.replace(*change)))
    assert treatment(first) == treatment(same)
    assert treatment(first) != treatment(other)
    (kept,) = published(first, [np.array([3, 4, 0])])
    (found,) = given_away(other, [{**kept, "release": "'First'"}])
    assert "other rules" in found.notes[0]
    assert found.ranges is None
    assert given_away(same, [{**kept, "release": "'First'"}])[0].ranges is not None


@pytest.mark.slow
def test_figures_that_contradict_earlier_ones_are_told_apart(tmp_path):
    release(tree_job(tmp_path, "[North]", name="first"))
    other = dict(released.RECORDS) | {("N1", "North", "F", "child", "X"): 500}
    later = tree_job(tmp_path, "[[North, N1]]", name="second", records=other)
    answers = [table.layout.query.answer(cells) for table, cells in zip(later.tables, tabulate(later), strict=True)]
    (found,) = given_away(later, Ledger(later.spec.ledger_file).figures(later.dataset), answers)
    assert "contradict" in found.notes[0]
    assert found.rows.size == 0
    assert verify(release(later)).ok


def test_figures_that_cannot_be_looked_at_are_not_called_contradictions(tmp_path):
    release(tree_job(tmp_path, "[North]", name="first"))
    later = tree_job(tmp_path, "[[North, N1]]", name="second")
    answers = [table.layout.query.answer(cells) for table, cells in zip(later.tables, tabulate(later), strict=True)]
    earlier = Ledger(later.spec.ledger_file).figures(later.dataset)
    for group in earlier[0]["groups"]:
        group["counts"] = [2**61 for _ in group["counts"]]
    (found,) = given_away(later, earlier, answers)
    assert found.notes[0].startswith("earlier exact figures are not looked at: figures must add up to less than")
    assert found.ranges is not None


@pytest.mark.slow
@pytest.mark.parametrize("first", ["[South]", "[borough]"])
def test_only_the_figures_that_contradict_are_left_aside(tmp_path, first):
    release(tree_job(tmp_path, first, name="first"))
    corrected = dict(released.RECORDS) | {("S2", "South", "F", "old", "X"): 190}
    if first == "[South]":
        release(tree_job(tmp_path, "[North]", "accept_disclosure: true", name="second", records=corrected))
    # South contradicts the first release; North still stands: with South it determines the city, and with N1 it
    # determines N2. No single table publishes both summands of the city, so that its noise protects nothing.
    later = tree_job(tmp_path, "[South, [North, N1]]", name="third", records=corrected)
    answers = [table.layout.query.answer(cells) for table, cells in zip(later.tables, tabulate(later), strict=True)]
    (found,) = given_away(later, Ledger(later.spec.ledger_file).figures(later.dataset), answers)
    assert "contradict" in found.notes[0]
    assert [str(later.tables[0].layout.query.labels[i]) for i in found.rows] == ["city", "city / North / N2"]
    with pytest.raises(Refused, match="determine 2 other figures "):
        release(later)


@pytest.mark.parametrize("value", ["'yes'", "1", "[true]"])
def test_accept_disclosure_is_true_or_false(tmp_path, value):
    with pytest.raises(Refused, match=r"accept_disclosure.*true or false"):
        released.job(tmp_path, more=f"accept_disclosure: {value}")
