"""What a spec protects, column by column, on every page."""

import json
import re

import pytest

from holdfast.privacy import Guarantee
from holdfast.release.certificate.certificate import schema
from holdfast.release.explain import explain
from holdfast.release.job.protecting import EACH_ALONE
from holdfast.release.plan import plan
from holdfast.release.spec.schema import spec_schema
from jobs import cube, job, tree

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
    assert not any("stay outside" in caveat for caveat in made.caveats)


def test_fewer_records_are_possible_and_every_page_says_what_stays_outside(tmp_path):
    made = job(tmp_path, PASSENGERS.format(records=", records: 1"))
    assert made.guarantee.records == 1
    (left,) = [caveat for caveat in made.caveats if "stay outside" in caveat]
    assert "Class, Sex, Survived stay outside" in left
    (said,) = [words for words in explain(made)["How many must change together"] if "stay outside" in words]
    assert said.startswith("The budget counts the statement about one record replaced by another, and Class")
    shown = plan(made).as_mapping()
    assert any("stay outside" in words for words in shown["caveats"])
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
    older = made.guarantee.as_mapping()
    del older["assumes"]
    assert Guarantee.from_json(older).assumes == ()


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
    assert not any(re.search("stays? outside", words) for words in made.caveats)


@pytest.mark.parametrize(
    ("persons", "left"), [(1, "sex, age stay outside"), (2, "sex stays outside"), (3, "sex stays")]
)
def test_fewer_persons_leave_columns_outside_though_one_has_many_records(tmp_path, persons, left):
    rest = "hold: [{exact: [sex]}]\nmethod: given"
    made = job(tmp_path, cube(privacy=PERSONS.format(f", records: {persons}"), rest=rest))
    (said,) = [words for words in made.caveats if "outside:" in words]
    assert left in said
    assert "4 persons with up to 3 records each" in said
