"""Recoded axes in a spec: from records to what an analyst computes, and what is refused."""

import csv

import numpy as np
import pytest

import holdfast as hf
from holdfast.release.certificate.verify import verify
from holdfast.release.spec.places import SpecError
from holdfast.release.storage.tables import texts
from tampering import not_adding_up

LIVES = ["couple", "parent", "alone", "home", "shared"]
GROUPS = "{family: [couple, parent], alone: [alone], other: [shared, home]}"
AREAS = f"""\
title: Households
data:
  source: persons.csv
  domain: blocks.csv
  values: {{sex: [F, M], lives: [{", ".join(LIVES)}]}}
privacy: {{rho: 2}}
table:
  hierarchy: [quarter, block]
  root: town
  cube: [sex, lives]
  recode: {{kind: {{of: lives, groups: {GROUPS}}}}}
  measure: {{town: all, quarter: [[sex, kind], total], block: [kind, all]}}
hold: [consistent, nonnegative]
output: {{folder: out, records: true}}
"""
CUBE = AREAS.replace("  hierarchy: [quarter, block]\n  root: town\n", "").replace(
    "measure: {town: all, quarter: [[sex, kind], total], block: [kind, all]}",
    "margins: [[sex, kind], [lives]]",
)


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("town"), np.random.default_rng(3)
    blocks = [("Q0", "B00"), ("Q0", "B01"), ("Q1", "B10")]
    with (folder / "blocks.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("quarter", "block"), *blocks])
    rows = [(blocks[rng.integers(3)][1], str(rng.choice(["F", "M"])), str(rng.choice(LIVES))) for _ in range(200)]
    with (folder / "persons.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("block", "sex", "lives"), *rows])
    return folder


def job(folder, text, *changes):
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    (folder / "spec.yaml").write_text(text)
    return hf.job(folder / "spec.yaml")


@pytest.mark.slow
@pytest.mark.parametrize("text", [AREAS, CUBE], ids=["areas", "cube"])
def test_a_release_with_a_recoded_axis(town, text):
    made = job(
        town, text, ("{folder: out, records: true}", "{folder: areas, records: true}" if text == AREAS else "cube")
    )
    assert "kind" in str(made.plan())
    table = made.release().table()
    assert verify(town / ("areas" if text == AREAS else "cube")).ok
    assert [(each.name, each.axis, each.groups) for each in table.certificate.recoded] == [
        ("kind", "lives", [0, 0, 1, 2, 2])
    ]
    level = table.names["level"].astype(str)
    kinds, lives = table.names["kind"], table.names["lives"]
    assert ((kinds[lives == "parent"]) == "family").all()
    names = {name: texts(column).tolist() for name, column in table.names.items()}
    assert not_adding_up(names, table.values.tolist(), table.certificate.places) is None
    for row in np.flatnonzero(np.char.find(level, "kind") >= 0)[:2]:  # every changed figure is seen
        wrong = table.values.copy()
        wrong[row] += 1
        assert not_adding_up(names, wrong.tolist(), table.certificate.places)
    rebuilt, law = table.mechanism.query, made.made.tables[0].mechanism.query
    assert (rebuilt.columns != law.columns).nnz == 0
    found = table.estimate(where={"sex": "F", "kind": "family"})
    here = (table.names["sex"] == "F") & (kinds == "family") & (level == level[0])
    assert found.value == table.values[here].sum()
    if text == AREAS:
        assert set(table.records("polars").columns) == {"town", "quarter", "block", "sex", "lives"}


@pytest.mark.parametrize(
    ("old", "new", "where", "sentence"),
    [
        ("of: lives", "of: live", "table.recode.kind.of", "there is no axis 'live'"),
        ("alone: [alone]", "alone: [alone, parent]", "table.recode.kind.groups.alone", "in two groups"),
        ("[shared, home]", "[shared]", "table.recode.kind.groups", "'home' of 'lives' is in no group"),
        ("[shared, home]", "[shared, home, tent]", "table.recode.kind.groups", "has no value 'tent'"),
        ("kind: {of", "sex: {of", "table.recode", "taken already"),
        ("kind: {of", "total: {of", "table.recode", "means a sum"),
        ("[[sex, kind], total]", "[[lives, kind], total]", "table.measure.quarter", "are one column"),
        ("[[sex, kind], total]", "[[sex, kinds], total]", "table.measure.quarter", "there is no axis 'kinds'"),
        ("nonnegative]", "nonnegative, {exact: [{quarter: [sex, kind]}]}]", "hold[2].exact", "columns of the records"),
        (GROUPS, "{all: [couple, parent, alone, home, shared]}", "table.recode.kind.groups", "two groups"),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(town, old, new, where, sentence):
    with pytest.raises(SpecError, match=sentence) as found:
        job(town, AREAS, (old, new)).made  # noqa: B018
    assert found.value.key.startswith(where)
