"""Sides of which one holds are asked for by name, hold in every release, and are checked from its files alone."""

import json

import jsonschema
import numpy as np
import pytest

from holdfast.constraints import at_least, between, equals
from holdfast.mechanism.base_mechanisms import laplace
from holdfast.queries import histogram
from holdfast.release.certificate.certificate import seal_of
from holdfast.release.certificate.verify import verify
from holdfast.release.disclosure.disclosure import given_away
from holdfast.release.explain import explain
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.plan import plan
from holdfast.release.run import release
from holdfast.release.spec.places import SpecError
from holdfast.release.spec.spec import spec_schema
from holdfast.release.storage.tables import read_parquet
from jobs import job, tree
from released import job as with_records

SIZES = "data: {source: a.csv, values: {size: [small, medium, large, huge]}}\nprivacy: {epsilon: 1}\n"
NONE_OR_TEN = "{either: [{equals: {sum: small}}, [{at_least: {sum: small, value: 10}}]]}"
ZONES = "{either: [{between: {high: 0, at: [N1]}}, {between: {low: 10, at: [N1]}}]}"


def sizes(*rules: str, method: str = "onto", table: str = "") -> str:
    return f"{SIZES}table: {{histogram: size{table}}}\nhold: [{', '.join(rules)}]\nmethod: {method}\n"


@pytest.mark.parametrize("method", ["given", "onto"])
def test_the_spec_says_what_the_library_says(tmp_path, method):
    made = job(tmp_path, sizes(NONE_OR_TEN, method=method)).tables[0]
    small = [[1, 0, 0, 0]]
    union = equals(small, [0]) | at_least(small, [10])
    noise = laplace(histogram(4), epsilon=1)
    same = (noise.given(union) if method == "given" else noise.onto(union)).calibrated(epsilon=1)
    assert made.mechanism.guarantee.epsilon == same.guarantee.epsilon
    assert made.mechanism.base.law.laws == same.base.law.laws
    values = made.mechanism.simulate([3 * 4, 1, 2, 3], 200)[:, 0]
    assert ((values == 0) | (values >= 10)).all()
    assert len(np.unique(values)) > 2


def test_sides_in_a_hierarchy_with_every_method(tmp_path):
    made = job(tmp_path, tree(rest=f"hold: [consistent, nonnegative, {ZONES}]"))
    chosen = plan(made).tables[0]
    assert [each.method for each in chosen.comparison] == ["given", "onto", "given-then-onto"]
    refused = {each.method: each.refused for each in chosen.comparison if each.refused}
    assert list(refused) == ["given"]
    assert "use onto" in refused["given"]
    values = made.tables[0].mechanism.simulate(made.tables[0].layout.query.answer([12, 1, 0, 3, 4]), 100)
    assert ((values[:, 3] == 0) | (values[:, 3] >= 10)).all()
    assert "one of 2 sides holds" in explain(made)["What holds in every table"][0]


def test_the_account_lists_the_rules_of_every_side(tmp_path):
    text = sizes("{either: [[nonnegative, {ordered: [small, huge]}], {between: {low: -5, high: -1, at: size}}]}")
    assert job(tmp_path, text).tables[0].holding.holds.model_dump()["either"] == [
        [
            {"nonnegative": True, "bounds": [], "orders": [[0, 3]], "linear": []},
            {
                "nonnegative": False,
                "bounds": [{"rows": [0, 1, 2, 3], "low": "-5", "high": "-1"}],
                "orders": [],
                "linear": [],
            },
        ]
    ]


def test_what_no_allowed_change_alters_is_listed_with_its_rows(tmp_path):
    rule = "{either: [{equals: {sum: medium}}, {equals: {sum: medium, value: 10}}]}"
    table = job(tmp_path, sizes(rule, method="given")).tables[0]
    rows = {each.level: each.rows for each in table.unprotected}
    assert rows == {"either": []}
    assert "either (which side holds)" in " ".join(plan(job(tmp_path, sizes(rule, method="given"))).unprotected)


def test_nobody_can_tell_errors_far_from_sides_that_are_equalities(tmp_path):
    total = "[small, medium, large, huge]"
    rule = f"{{either: [{{equals: {{sum: {total}, value: 10}}}}, {{equals: {{sum: {total}, value: 20}}}}]}}"
    assert "nobody can tell" in plan(job(tmp_path, sizes(rule))).tables[0].errors.basis
    assert "far from every bound" in plan(job(tmp_path, sizes(NONE_OR_TEN))).tables[0].errors.basis


WRONG = [
    ("{either: [{exact: [small]}, nonnegative]}", "hold[0].either[0].exact", None, "cannot hold on one side only"),
    ("{either: [nonnegative, [consistent]]}", "hold[0].either[1][0]", None, "write it in hold, outside either"),
    ("{either: [{either: [nonnegative]}, nonnegative]}", "hold[0].either[0].either", None, "all sides in one either"),
    ("{either: [nonnegative]}", "hold[0].either", None, "at least two sides"),
    ("{either: nonnegative}", "hold[0].either", None, "at least two sides"),
    ("{either: [nonnegative, []]}", "hold[0].either[1]", None, "this side has no rules"),
    ("{either: []}", "hold[0].either", None, "found nothing"),
    ("{either: [nonnegative, {orderd: size}]}", "hold[0].either[1].orderd", "{ordered: ...}", "no rule 'orderd'"),
    (
        "{either: [nonnegative, [{at_least: {sum: [{of: smal}]}}]]}",
        "hold[0].either[1][0].at_least.sum[0].size",
        "small",
        "'size' has no value 'smal'",
    ),
    ("{either: [{at_least: {sum: [smal]}}, nonnegative]}", "hold[0].either[0].at_least.sum[0].size", "small", "value"),
    (
        "{either: [{between: {low: 0, high: 4}}, {between: {low: 9}}, {between: {low: 4, high: 6}}]}",
        "hold[0].either[2]",
        None,
        "sides 1 and 3 can hold at the same time",
    ),
    (
        "{either: [[{between: {low: 5}}, {between: {high: 4}}], {between: {low: 9}}]}",
        "hold[0].either[0][1]",
        None,
        "cannot hold together",
    ),
    (f"{{exact: total}}, {NONE_OR_TEN}", "hold[1].either", None, "beside exact figures"),
]


@pytest.mark.parametrize(("rules", "key", "nearest", "words"), WRONG)
def test_what_is_wrong_is_named_with_its_line(tmp_path, rules, key, nearest, words):
    with pytest.raises(SpecError) as caught:
        job(tmp_path, sizes(rules))
    error = caught.value
    assert (error.line, error.key, error.nearest) == (6, key, nearest), str(error)
    assert words in str(error)
    assert "\n" not in str(error)


def test_gaussian_noise_given_sides_is_refused_in_words_of_the_spec(tmp_path):
    text = sizes(NONE_OR_TEN, method="given").replace("epsilon: 1", "rho: 1")
    with pytest.raises(SpecError, match="no privacy statement is known for Gaussian noise given a union") as caught:
        job(tmp_path, text)
    assert caught.value.key == "method"
    assert job(tmp_path, text.replace("given", "onto")).guarantee.rho == pytest.approx(1)


@pytest.mark.slow
def test_the_schema_knows_sides():
    held = {"type": "array", "items": spec_schema()["properties"]["hold"]["items"], "$defs": spec_schema()["$defs"]}
    good = {"either": ["nonnegative", [{"between": {"high": -1}}]]}
    jsonschema.validate([good], held)
    for bad in ({"either": ["nonnegative"]}, {"either": ["nonnegative", "consistent"]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate([bad], held)


@pytest.mark.parametrize("method", ["given", "onto"])
def test_releases_are_verified_from_their_files_alone(tmp_path, method):
    rule = "{either: [{equals: {sum: adult}}, [nonnegative, {between: {low: 2, high: 90, at: age}}]]}"
    rule = rule.replace("at: age", "at: cells").replace("high: 90", "high: 900")
    made = with_records(tmp_path, "histogram", more=f"hold: [{rule}]\nmethod: {method}")
    folder = release(made)
    verdict = verify(folder)
    assert verdict.ok, str(verdict)
    assert "table: either" in {check.name for check in verdict.checks}
    assert "one of 2 sides holds" in (folder / "report.html").read_text()
    values = np.asarray(read_parquet(folder / "table.parquet")["value"])
    path = folder / "certificate.json"
    found = json.loads(path.read_text())
    for side in found["tables"][0]["holds"]["either"][0]:
        for each in (*side["bounds"], *side["linear"]):
            each |= {"low": str(int(values.max()) + 1), "high": None}
    path.write_text(json.dumps(found | {"seal": seal_of(found)}))
    (broken,) = verify(folder).differences
    assert broken.name == "table: either"
    assert broken.sentence.startswith("no side of the union 1 holds (the weighted sum 1 is below")
    found["tables"][0]["holds"]["either"][0][1] |= {"nonnegative": False, "bounds": []}
    path.write_text(json.dumps(found | {"seal": seal_of(found)}))
    (broken,) = verify(folder).differences
    assert "a side has no rules" in broken.sentence  # which any table would satisfy


def test_records_on_no_side_are_refused_before_the_charge_without_saying_how(tmp_path):
    rule = "{either: [{equals: {sum: child}}, {at_least: {sum: child, value: 68}}]}"
    made = with_records(tmp_path, "histogram", more=f"hold: [{rule}]\nmethod: onto")
    with pytest.raises(ValueError, match="correct the bounds, orders and sums in hold") as caught:
        release(made)
    assert not Ledger(made.spec.ledger_file).entries()
    assert "67" not in str(caught.value)  # no figure of the data is told


def test_what_is_determined_is_determined_on_every_side_that_is_left(tmp_path):
    tables = (
        "tables:\n"
        f"  - {{name: few, histogram: size, hold: [{NONE_OR_TEN}], method: onto}}\n"
        "  - {name: all, histogram: size, hold: [{exact: total}], method: given}\n"
    )
    made = job(tmp_path, f"{SIZES}{tables}")
    few = given_away(made, [], [np.array([0, 4, 0, 5])] * 2)[0]
    assert few.rows.tolist() == [0]  # nine records cannot be ten
    many = given_away(made, [], [np.array([0, 4, 0, 6])] * 2)[0]
    assert many.rows.tolist() == []
    assert (many.ranges.low[0], many.ranges.high[0]) == (0, 10)
    assert not many.open.size


def test_between_and_its_union_agree_with_python(tmp_path):
    made = job(tmp_path, tree(rest=f"hold: [consistent, {ZONES}]\nmethod: onto")).tables[0]
    union = between(None, 0, at=[3]) | between(10, None, at=[3])
    values = np.array([[20, 12, 8, 12, 0, 1, 2, 5], [15, 7, 8, 7, 0, 1, 2, 5]])
    assert [made.holding.unequal.system(8).violation(row) is None for row in values] == [True, False]
    assert [union.system(8).violation(row) is None for row in values] == [True, False]


def test_sides_that_are_equalities_need_whole_numbers_when_real_noise_is_drawn(tmp_path):
    text = sizes("{either: [{equals: {sum: small}}, {at_least: {sum: small, value: 10}}]}", method="given")
    with pytest.raises(SpecError, match="under continuous noise: write numbers: whole in the table"):
        job(tmp_path, text.replace("histogram: size", "histogram: size, numbers: real"))
