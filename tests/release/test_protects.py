"""What a spec protects, column by column, on every page."""

import json
import re

import pytest

from holdfast.privacy import Guarantee
from holdfast.release.certificate.certificate import schema
from holdfast.release.certifying import TableFiles, certificate_of, table_certificate
from holdfast.release.explain import explain
from holdfast.release.facts import Interval
from holdfast.release.job.protecting import EACH_ALONE
from holdfast.release.plan import plan
from holdfast.release.spec.spec import spec_schema
from holdfast.release.standalone_verifier.facts import columns
from jobs import cube, job, tree

UNCOVERED = re.compile("(is|are) not covered by the promise")
PASSENGERS = (
    "data: {{name: ship, values: {{Class: [1st, 2nd, 3rd, Crew], Sex: [M, F], Age: [Child, Adult], "
    "Survived: [dead, alive]}}}}\n"
    "privacy: {{neighbours: replace-one, epsilon: 1{records}}}\ntable: {{cube: [Class, Sex, Age, Survived]}}\n"
    "hold: [{{exact: [[Class, Survived], [Sex]]}}]\nmethod: onto\n"
)


def test_the_total_is_about_as_many_as_must_change_together(tmp_path):
    made = job(tmp_path, PASSENGERS.format(records=""))
    assert made.guarantee.records == 2
    assert made.guarantee.epsilon == pytest.approx(1)
    (table,) = made.tables
    assert {row.column: row.records for row in table.protects.rows} == {"Class": 2, "Sex": 2, "Age": 1, "Survived": 2}
    assert {row.column: row.epsilon for row in table.protects.rows}["Age"] == pytest.approx(0.5)
    assert table.protects.outside(made.guarantee.neighbours) == ()
    words = explain(made)["How many must change together"]
    assert "Sex: 2 records replaced, epsilon 1; one record alone changes nothing of it." in words
    assert not any(UNCOVERED.search(caveat) for caveat in made.caveats)
    answers = {row.column: row for row in made.guarantee.columns}
    assert answers["Sex"].answer.startswith("hidden (ε 1: at most 74 of 100")
    assert answers["Age"].answer.startswith("hidden (ε 0.5: at most 63 of 100")
    assert not answers["Being in the data"].covered


def test_fewer_records_are_possible_and_every_page_says_what_stays_outside(tmp_path):
    made = job(tmp_path, PASSENGERS.format(records=", records: 1"))
    assert made.guarantee.records == 1
    (left,) = [caveat for caveat in made.caveats if UNCOVERED.search(caveat)]
    assert left.startswith("Class, Sex, Survived are not covered")
    told = explain(made)
    assert left[:40] in " ".join(told["How many must change together"])
    heading, rows = next(iter(told.items()))
    assert heading == "Can somebody learn it?"
    outside = "not covered by this promise (ε 2 when two records change together)."
    assert rows[1:] == [
        f"Class, Sex, Survived: {outside}",
        "Age: hidden (ε 1: at most 74 of 100 guesses are right).",
    ]
    assert f"Class, Sex, Survived: {outside}" in str(made.guarantee)
    assert Guarantee.from_json(made.guarantee.to_json()) == made.guarantee
    shown = plan(made).as_mapping()
    assert any(UNCOVERED.search(words) for words in shown["caveats"])
    columns = {row["column"]: row for row in shown["tables"][0]["protects"]["columns"]}
    assert columns["Class"]["epsilon"] == pytest.approx(2)
    json.dumps(shown["tables"][0]["protects"])


def test_boroughs_and_their_zones(tmp_path):
    replaced = job(
        tmp_path, tree(privacy="epsilon: 1, neighbours: replace-one", rest="hold: [consistent, {exact: [borough]}]")
    )
    rows = {row.column: row for row in replaced.tables[0].protects.rows}
    assert (rows["borough"].records, rows["zone"].records) == (2, 2)
    assert rows["zone"].together.alone.pairs == 1 + 3
    added = job(tmp_path, tree(rest="hold: [consistent, {exact: [borough]}]\nmethod: given"))
    assert added.guarantee.records == 4
    assert job(tmp_path, tree(rest="hold: [consistent]")).tables[0].protects is None


def test_exact_figures_of_several_cubes_are_looked_at_together(tmp_path):
    """[sex] exact in one table and [age] in the other: a record of sex × age alone changes neither by itself."""
    text = (
        "data: {name: x, values: {sex: [F, M], age: [child, adult, old]}}\n"
        "privacy: {neighbours: replace-one, epsilon: 1}\n"
        "tables:\n- {name: both, cube: [sex, age], hold: [{exact: [[sex]]}], method: onto}\n"
        "- {name: ages, histogram: age, hold: [{exact: [age]}], method: onto}\n"
    )
    with pytest.raises(ValueError, match="no change of a few records"):
        job(tmp_path, text)  # the second table has nothing left to protect
    text = text.replace("hold: [{exact: [age]}]", "hold: [{exact: [total]}]")
    made = job(tmp_path, text)
    assert EACH_ALONE not in made.caveats
    rows = {row.column: row.records for table in made.tables for row in table.protects.rows}
    assert rows == {"sex": 2, "age": 1}


def test_assumptions_are_said_and_read_back(tmp_path):
    rest = "hold: [{impossible: [{sex: F, age: old}]}]\nmethod: onto"
    made = job(tmp_path, cube(rest=rest))
    assert made.guarantee.assumes
    assert "It assumes of every possible dataset" in str(made.guarantee)
    assert Guarantee.from_json(made.guarantee.to_json()) == made.guarantee


def test_the_schemas_know_the_new_keys():
    assert "records" in spec_schema()["$defs"]["PrivacySpec"]["properties"]
    assert "protects" in schema()["$defs"]["TableCertificate"]["properties"]


PERSONS = "unit: {{column: who, max_records: 3}}, neighbours: add-remove, epsilon: 2{}"


def test_persons_change_with_all_their_records(tmp_path):
    """Exact [sex]: two persons leave and two come before a sex can become another, with up to three records each."""
    rest = "hold: [{exact: [sex]}]\nmethod: given"
    made = job(tmp_path, cube(privacy=PERSONS.format(""), rest=rest))
    rows = {row.column: row for row in made.tables[0].protects.rows}
    assert made.guarantee.records == 12
    assert (rows["sex"].records, rows["age"].records) == (4, 2)
    assert rows["sex"].epsilon == pytest.approx(2)
    assert rows["age"].statement.records == 6
    assert rows["age"].epsilon == pytest.approx(1)
    assert str(rows["sex"]).startswith("sex: 4 persons with up to 3 records each added or removed, epsilon 2")
    assert not any(UNCOVERED.search(words) for words in made.caveats)
    assert str(made.guarantee).startswith("Up to 4 persons (values of 'who'), whatever their records: ")


@pytest.mark.parametrize(
    ("persons", "left"), [(1, "sex, age are not covered"), (2, "sex is not covered"), (3, "sex is not")]
)
def test_fewer_persons_leave_columns_outside_though_one_has_many_records(tmp_path, persons, left):
    rest = "hold: [{exact: [sex]}]\nmethod: given"
    made = job(tmp_path, cube(privacy=PERSONS.format(f", records: {persons}"), rest=rest))
    (said,) = [words for words in made.caveats if UNCOVERED.search(words)]
    assert said.startswith(left)
    assert "4 persons with up to 3 records each" in said
    (row,) = [row for row in made.guarantee.columns if row.column == "sex"]
    assert not row.covered
    assert "when four persons come or go together" in row.answer


def test_the_first_words_name_the_person_and_a_value_costs_twice_a_person_who_comes_or_goes(tmp_path):
    made = job(tmp_path, cube(privacy=PERSONS.format("")))
    for words in (str(made.guarantee), explain(made)["Who is protected"][0]):
        assert words.startswith("One who, whatever their records")
    assert [row.answer[:12] for row in made.guarantee.columns] == ["hidden (ε 2:"] * 3
    assert all(row.answer.endswith("for all records of one person together ε 4") for row in made.guarantee.columns[1:])
    assert made.guarantee.columns[0].column == "Being in the data"
    alone = job(tmp_path, cube(privacy="neighbours: replace-one, epsilon: 2"))
    assert [row.covered for row in alone.guarantee.columns] == [False, True, True]
    assert alone.guarantee.columns[1].answer.startswith("hidden (ε 2:")


def test_columns_of_a_table_without_exact_figures_stand_beside_those_of_another(tmp_path):
    """An exact sex in one table: it takes two records to change it, one to change an age of the other table."""
    text = (
        "data: {name: x, values: {sex: [F, M], age: [child, adult, old], tenure: [own, rent]}}\n"
        "privacy: {neighbours: replace-one, epsilon: 1, records: 1}\n"
        "tables:\n- {name: both, cube: [sex, age], hold: [{exact: [[sex]]}], method: onto}\n"
        "- {name: homes, histogram: tenure, method: noise}\n"
    )
    answers = {row.column: row for row in job(tmp_path, text).guarantee.columns}
    assert [answers[name].covered for name in ("sex", "age", "tenure")] == [False, True, True]
    assert answers["tenure"].answer == answers["age"].answer


def test_verifiers_see_columns_that_are_called_covered_and_are_not(tmp_path):
    made = job(tmp_path, PASSENGERS.format(records=", records: 1"))
    interval = Interval(confidence=0.95, basis=None, sentence="")
    tables = [table_certificate(table, "", interval, TableFiles("table", "table")) for table in made.tables]
    honest = certificate_of(made, "0" * 32, "2026-01-01", tables, []).as_mapping()
    assert list(columns(honest)) == []
    rows = honest["statements"][0]["columns"]
    assert [row["column"] for row in rows if row["covered"]] == ["Age"]
    next(row for row in rows if row["column"] == "Survived")["covered"] = True
    assert list(columns(honest)) == [
        "the column Survived is said to be covered, and the statement is about fewer records"
    ]
    rows.clear()
    assert "does not say which columns" in next(columns(honest))
