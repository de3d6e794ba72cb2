"""Orders and weighted sums are asked for by name, hold in every release, and are checked from its files alone."""

import json

import numpy as np
import pytest

from holdfast.release.certificate.certificate import seal_of
from holdfast.release.certificate.verify import verify
from holdfast.release.explain import explain
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.run import release
from holdfast.release.spec.places import SpecError
from holdfast.release.spec.rules import RULES
from holdfast.release.spec.spec import spec_schema
from holdfast.release.storage.tables import read_parquet
from jobs import cube, job, tree
from released import job as with_records

MEN = "{of: {sex: M, age: [child, old]}, times: -1}"
SIZES = "data: {source: a.csv, values: {size: [small, medium, large, huge]}}\nprivacy: {epsilon: 1}\n"


def sizes(*rules: str, method: str = "onto", table: str = "") -> str:
    return f"{SIZES}table: {{histogram: size{table}}}\nhold: [{', '.join(rules)}]\nmethod: {method}\n"


@pytest.mark.parametrize(
    ("text", "orders"),
    [
        (sizes("{ordered: [large, small, medium]}"), [[2, 0, 1]]),
        (sizes("{ordered: size}"), [[0, 1, 2, 3]]),
        (sizes("{ordered: [{size: huge}, large]}"), [[3, 2]]),
        (tree(rest="hold: [{ordered: [S1, [North, N2]]}]\nmethod: onto"), [[5, 4]]),
        (tree(rest="hold: [{ordered: [{zone: S1}, {borough: South}]}]\nmethod: onto"), [[5, 2]]),
        (cube(rest="hold: [{ordered: [{sex: M}, {sex: F}]}]\nmethod: onto"), [[3, 0], [4, 1], [5, 2]]),
        (cube(rest="hold: [{ordered: age}]\nmethod: onto"), [[0, 1, 2], [3, 4, 5]]),
        (cube(rest="hold: [{ordered: [{sex: F, age: old}, {sex: M, age: child}]}]\nmethod: onto"), [[2, 3]]),
        (
            cube(table="margins: [[sex], [age], []]", rest="hold: [{ordered: [{age: old}, total]}]\nmethod: onto"),
            [[4, 5]],
        ),
    ],
)
def test_orders_by_name(tmp_path, text, orders):
    made = job(tmp_path, text)
    assert made.tables[0].holding.holds.model_dump()["orders"] == orders
    values = made.tables[0].mechanism.simulate(_ordered_truth(made.tables[0].layout.query.n, orders), 40)
    for chain in orders:
        assert (np.diff(values[:, chain], axis=1) >= 0).all()
    words = "ordered row of figures never falls" if len(orders) == 1 else "ordered rows never fall"
    assert f"{len(orders)} {words}" in explain(made)["What holds in every table"][0]


def _ordered_truth(n: int, orders: list[list[int]]) -> np.ndarray:
    truth = np.zeros(n, dtype=np.int64)
    for chain in orders:
        truth[chain] = np.arange(len(chain))
    return truth


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            sizes("{at_least: {sum: [small, {of: huge, times: -0.5}], value: 2}}"),
            {"rows": [0, 3], "weights": ["1", "-1/2"], "low": "2", "high": None},
        ),
        (
            sizes("{equals: {sum: [small, small, {of: large, times: -1}]}}", method="given"),
            {"rows": [0, 2], "weights": ["2", "-1"], "low": "0", "high": "0"},
        ),
        (
            tree(rest="hold: [{at_least: {sum: {of: zone, times: 2}, value: -7}}]\nmethod: onto"),
            {"rows": [3, 4, 5, 6, 7], "weights": ["2"] * 5, "low": "-7", "high": None},
        ),
        (
            cube(
                rest="hold: [{at_least: {sum: [{sex: F}, {of: {sex: M, age: [child, old]}, times: -1}]}}]\nmethod: onto"
            ),
            {"rows": [0, 1, 2, 3, 5], "weights": ["1"] * 3 + ["-1"] * 2, "low": "0", "high": None},
        ),
    ],
)
def test_weighted_sums_by_name(tmp_path, text, expected):
    made = job(tmp_path, text)
    assert made.tables[0].holding.holds.model_dump()["linear"] == [expected]
    assert "1 weighted sum" in explain(made)["What holds in every table"][0]
    system = made.tables[0].holding.all.system(made.tables[0].layout.query.n)
    row = system.equalities if expected["high"] is not None else system.inequalities
    assert row.count == 1


# What is asked, and: the key, the nearest valid name, a part of the sentence.
WRONG = [
    ("{ordered: [smal, large]}", "hold[0].ordered[0].size", "small", "'size' has no value 'smal'"),
    ("{ordered: [small]}", "hold[0].ordered", None, "at least two figures, or one column"),
    ("{ordered: []}", "hold[0].ordered", None, "found nothing"),
    ("{orderd: [small, large]}", "hold[0].orderd", "{ordered: ...}", "there is no rule 'orderd'"),
    ("{ordered: [small, 1.5]}", "hold[0].ordered[1]", None, "a name"),
    ("{ordered: [{size: [small, large]}, huge]}", "hold[0].ordered[1]", None, "name as many in each"),
    ("{ordered: [small, large, small]}", "hold[0]", None, "twice"),
    ("{ordered: [{shape: round}, huge]}", "hold[0].ordered[0].shape", None, "the table has no column 'shape'"),
    ("{at_least: {sum: [small], valu: 1}}", "hold[0].at_least.valu", "value", "there is no key 'valu'"),
    ("{at_least: {value: 1}}", "hold[0].at_least.sum", None, "this key is missing"),
    ("{at_least: [small]}", "hold[0].at_least", None, "a mapping with keys"),
    ("{at_least: {sum: [{of: small, tims: 2}]}}", "hold[0].at_least.sum[0].tims", "times", "there is no key 'tims'"),
    ("{at_least: {sum: [small], value: x}}", "hold[0].at_least.value", None, "must be a number"),
    ("{equals: {sum: [smal]}}", "hold[0].equals.sum[0].size", "small", "'size' has no value 'smal'"),
    ("{equals: {sum: [small, {of: small, times: -1}]}}", "hold[0].equals.sum", None, "add up to 0"),
]


@pytest.mark.parametrize(("rule", "key", "nearest", "words"), WRONG)
def test_what_is_wrong_is_named_with_its_line(tmp_path, rule, key, nearest, words):
    with pytest.raises(SpecError) as caught:
        job(tmp_path, sizes(rule))
    error = caught.value
    assert (error.line, error.key, error.nearest) == (6, key, nearest), str(error)
    assert words in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (cube(rest="hold: [{ordered: [F, M]}]"), "figures of a cube are named by their columns"),
        (
            cube(table="margins: [[sex, age], [sex]]", rest="hold: [{ordered: [{age: old}, {sex: F}]}]"),
            "means 1 figures and the first entry 2",
        ),
        (tree(rest="hold: [{ordered: [{borough: North, zone: S1}, {zone: S2}]}]"), "no figure has these values"),
    ],
)
def test_what_other_tables_lack_is_refused(tmp_path, text, words):
    with pytest.raises(SpecError, match=words):
        job(tmp_path, text)


def test_the_schema_knows_every_rule():
    text = json.dumps(spec_schema())
    assert all(f'"{rule}"' in text for rule in RULES)


def test_releases_are_verified_from_their_files_alone(tmp_path):
    rules = "hold: [nonnegative, {ordered: [adult, child, old]}, {at_least: {sum: [old, {of: child, times: -2}]}}]"
    made = with_records(tmp_path, "histogram", more=f"{rules}\nmethod: onto")
    folder = release(made)
    values = np.asarray(read_parquet(folder / "table.parquet")["value"])
    assert values[1] <= values[0] <= values[2]
    assert values[2] >= 2 * values[0]
    verdict = verify(folder)
    assert verdict.ok
    assert {"table: orders", "table: linear rules"} <= {check.name for check in verdict.checks}
    path = folder / "certificate.json"
    found = json.loads(path.read_text())
    holds = found["tables"][0]["holds"]
    holds["orders"][0].reverse()
    holds["linear"][0] |= {"low": "100000"}
    path.write_text(json.dumps(found | {"seal": seal_of(found)}))
    broken = {check.name: check.sentence for check in verify(folder).differences}
    assert broken == {
        "table: orders": "row 0 is below row 2",
        "table: linear rules": "the weighted sum 1 is below 100000",
    }


@pytest.mark.parametrize(
    "rule",
    ["{ordered: [child, adult]}", "{equals: {sum: [child], value: 66}}", "{at_least: {sum: [child], value: 68}}"],
)
def test_records_that_break_a_rule_are_refused_before_the_charge_without_saying_how(tmp_path, rule):
    made = with_records(tmp_path, "histogram", more=f"hold: [{rule}]\nmethod: onto")
    with pytest.raises(ValueError, match="correct the bounds, orders and sums in hold") as caught:
        release(made)
    assert not Ledger(made.spec.ledger_file).entries()
    assert "67" not in str(caught.value)  # no figure of the data is told
