"""Specs are read with the line of every key; whatever is wrong is refused in one sentence that names it."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from holdfast.release.spec.places import SpecError
from holdfast.release.spec.spec import read_spec, spec_schema

GOOD = """\
title: Trips
data: {source: trips.parquet, domain: zones.csv, nulls: refuse}
privacy: {unit: record, neighbours: replace-one, epsilon: 1.0}
table: {hierarchy: [borough, zone], root: city}
hold: [consistent, nonnegative, {exact: [borough]}]
method: auto
output: out/
"""
EXAMPLES = sorted(Path(__file__).parents[2].glob("examples/*/spec.yaml"))

# What is replaced, by what, and: the line, the key, the nearest valid name, a part of the sentence.
WRONG = [
    ("nulls", "nuls", 2, "data.nuls", "nulls", "there is no key 'nuls'"),
    ("table: {", "tabel: {", 4, "tabel", "table", "there is no key"),
    ("epsilon: 1.0", "epsilon: -1", 3, "privacy.epsilon", None, "above 0, found -1"),
    ("epsilon: 1.0", "epsilon: much", 3, "privacy.epsilon", None, 'a number, found "much"'),
    ("epsilon: 1.0", "epsilon: .inf", 3, "privacy.epsilon", None, "finite"),
    ("epsilon: 1.0", "epsilon: true", 3, "privacy.epsilon", None, "a number"),
    ("epsilon: 1.0", "epsilon: 1, rho: 1", 3, "privacy", None, "found both"),
    (", epsilon: 1.0", "", 3, "privacy", None, "found neither"),
    ("epsilon: 1.0", "rho: 1, delta: 1e-6", 3, "privacy.delta", None, "delta goes with epsilon"),
    ("epsilon: 1.0", "epsilon: 1, delta: 2", 3, "privacy.delta", None, "strictly between 0 and 1"),
    ("epsilon: 1.0", "rho: 1, noise: laplace", 3, "privacy.noise", None, "gaussian"),
    ("epsilon: 1.0", "epsilon: 1, noise: gaussian", 3, "privacy.noise", None, "needs delta"),
    ("replace-one", "replace", 3, "privacy.neighbours", "replace-one", 'found "replace"'),
    ("unit: record", "unit: person", 3, "privacy.unit", None, "max_records"),
    ("unit: record", "unit: {column: rider, max_records: 0}", 3, "privacy.unit.max_records", None, "1 or more"),
    ("unit: record", "unit: {column: r, max_recrds: 2}", 3, "privacy.unit.max_recrds", "max_records", "no key"),
    ("unit: record", "unit: {column: r, max_records: 2}", 3, "privacy.neighbours", None, "use add-remove"),
    ("nonnegative", "nonegative", 5, "hold[1]", "nonnegative", "found"),
    ("exact: [borough]", "exakt: [borough]", 5, "hold[2].exakt", "{exact: ...}", "there is no rule"),
    ("exact: [borough]", "foo: [borough]", 5, "hold[2].foo", None, "there is no rule"),
    ("zones.csv", "{zone: zones.csv}", 2, "data.domain", None, "stand under data.values"),
    ("exact: [borough]", "exact: []", 5, "hold[2].exact", None, "found nothing"),
    ("exact: [borough]", "exact: [[a, 1.5]]", 5, "hold[2].exact[0][1]", None, "a name"),
    ("nonnegative", "{impossible: [{sex: 2.5}]}", 5, "hold[1].impossible[0].sex", None, "a name"),
    ("nonnegative", "{between: {low: 3, high: 1}}", 5, "hold[1].between.low", None, "must not exceed"),
    ("nonnegative", "{between: {at: zone}}", 5, "hold[1].between", None, "low, high or both"),
    ("hold: [consistent, nonnegative, {exact: [borough]}]", "hold: consistent", 5, "hold", None, "must be a list"),
    ("method: auto", "method: gven", 6, "method", "given", "found"),
    ("output: out/\n", "", 1, "output", None, "missing"),
    ("[borough, zone]", "[borough, [zone]]", 4, "table.hierarchy[1]", None, "a name"),
    ("[borough, zone]", "[zone, zone]", 4, "table.hierarchy[1]", None, "twice"),
    ("root: city", "categories: [zone]", 4, "table.categories", None, "already a level"),
    ("hierarchy: [borough, zone], root: city", "cube: [a], root: city", 4, "table.root", None, "goes with hierarchy"),
    ("root: city", "cube: [a]", 4, "table.cube", None, "needs measure"),
    ("root: city", "histogram: a", 4, "table", None, "found hierarchy and histogram"),
    ("root: city", "margins: [[a]]", 4, "table.margins", None, "go with cube"),
    ("root: city", "guess: -3", 4, "table.guess", None, "0 or more"),
    ("root: city", "shares: {zone: x}", 4, "table.shares.zone", None, "a number"),
    ("root: city", "name: A B", 4, "table.name", None, "lower-case"),
    ("root: city", "hold: [consistent]", 5, "hold", None, "written twice"),
    (
        "table: {hierarchy: [borough, zone], root: city}",
        "tables: [{histogram: a}, {histogram: b}]",
        5,
        "hold",
        None,
        "inside",
    ),
    ("nulls: refuse", "nulls: drop", 2, "data.nulls", None, "replace-one does not cover"),
    ("nulls: refuse", "outside: drop", 2, "data.outside", None, "replace-one does not cover"),
    ("nulls: refuse", "nulls: skip", 2, "data.nulls", None, "refuse, drop, {category: NAME}"),
    ("nulls: refuse", "nulls: {category: 3.5}", 2, "data.nulls.category", None, "a name"),
    ("domain: zones.csv", "values: {sex: [1.5]}", 2, "data.values.sex[0]", None, "a name"),
    ("title: Trips", "title: [Trips", 2, None, None, "a bracket or brace is not closed"),
    ("title: Trips", "\ttitle: Trips", 1, None, None, "indent with spaces, not tabs"),
    ("title: Trips", "title: Trips: all", 1, None, None, "a text with a colon in it needs quotes"),
    ("title: Trips", "title: Trips\ntitle: Rides", 2, None, None, "write every key once"),
    ("method: auto", "title: again", 6, None, None, "duplicate key"),
    ("title: Trips", "title: &x Trips\nmethod: *x", 2, "method", None, "aliases"),
    ("title: Trips", "title: !!python/object/apply:os.system [ls]", 1, None, None, ""),
    ("title: Trips", "title: ''", 1, "title", None, "a text"),
]


def written(folder: Path, text: str) -> Path:
    path = folder / "spec.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(("old", "new", "line", "key", "nearest", "words"), WRONG)
def test_what_is_wrong_is_named_with_its_line(tmp_path, old, new, line, key, nearest, words):
    assert GOOD.count(old) == 1 or old in ("nulls", "nonnegative"), old
    with pytest.raises(SpecError) as caught:
        read_spec(written(tmp_path, GOOD.replace(old, new, 1)))
    error = caught.value
    assert (error.line, error.key, error.nearest) == (line, key, nearest), str(error)
    assert words in str(error)
    assert error.code == re.sub(r"[^A-Z]+", "-", ".".join(["HF-SPEC", *(key or "").upper().split(".")[:2]])).rstrip("-")
    assert f"spec.yaml, line {line}: " in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "empty"), (b"- a\n", "mapping"), (b"\xff\xfe", "UTF-8"), (b"x" * 1_000_001, "data file"), (b"5", "mapping")],
)
def test_files_that_are_no_spec_are_refused(tmp_path, content, words):
    path = tmp_path / "spec.yaml"
    path.write_bytes(content)
    with pytest.raises(SpecError, match=words):
        read_spec(path)


def test_a_missing_spec_names_the_nearest_one(tmp_path):
    written(tmp_path, GOOD)
    with pytest.raises(SpecError, match=r"did you mean 'spec.yaml'"):
        read_spec(tmp_path / "spek.yaml")
    with pytest.raises(SpecError, match="folder"):
        read_spec(tmp_path)


def test_the_hash_sees_content_and_not_layout(tmp_path):
    first = read_spec(written(tmp_path, GOOD)).hash
    reordered = "# a comment\n" + "\n".join(reversed(GOOD.strip().split("\n")))
    assert read_spec(written(tmp_path, reordered.replace("epsilon: 1.0", "epsilon: 1"))).hash == first
    inside = GOOD.replace("root: city}", "root: city, method: auto}").replace("method: auto\n", "", 1)
    assert read_spec(written(tmp_path, inside)).hash == first
    for old, new in [("1.0", "1.1"), ("zones", "zone"), ("[borough]", "[zone]"), ("Trips", "trips"), ("out/", "o/")]:
        assert read_spec(written(tmp_path, GOOD.replace(old, new))).hash != first


def test_decimals_mean_what_they_say(tmp_path):
    spec = read_spec(written(tmp_path, GOOD.replace("epsilon: 1.0", "epsilon: 0.1, delta: 1e-6")))
    assert str(spec.privacy.epsilon) == "0.1"
    assert spec.privacy.delta == spec.privacy.delta.from_float(1e-6).quantize(spec.privacy.delta)


def test_paths_are_relative_to_the_spec(tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    spec = read_spec(written(tmp_path, GOOD))
    assert spec.output == tmp_path / "out"
    assert spec.ledger_file == tmp_path / "holdfast-ledger.sqlite"
    assert str(tmp_path) not in spec.canonical


def test_specs_are_frozen(tmp_path):
    spec = read_spec(written(tmp_path, GOOD))
    with pytest.raises(ValueError, match="frozen"):
        spec.title = "other"


# --- the published schema ------------------------------------------------------------------------------------------


def accepted(text: str) -> bool:
    content = YAML(typ="safe", pure=True).load(text)
    return jsonschema.Draft202012Validator(spec_schema()).is_valid(content)


@pytest.mark.slow
def test_the_schema_accepts_what_the_reader_accepts():
    jsonschema.Draft202012Validator.check_schema(spec_schema())
    assert len(EXAMPLES) == 10
    for path in EXAMPLES:
        read_spec(path)
        assert accepted(path.read_text()), path
    assert accepted(GOOD)


@pytest.mark.parametrize("key", ["data.nuls", "tabel", "privacy.epsilon", "hold[1]", "method", "output", "table.root"])
def test_the_schema_refuses_what_the_reader_refuses(key):
    cases = [row for row in WRONG if row[3] == key and row[5] != "goes with hierarchy"]
    for old, new, *_ in cases:
        if ".inf" not in new and "*" not in new:  # JSON has neither infinity nor aliases
            assert not accepted(GOOD.replace(old, new, 1)), new


def test_the_schema_is_json():
    assert json.loads(json.dumps(spec_schema(), allow_nan=False))["title"] == "holdfast spec"
