"""Releases in the formats of others, read back by their own schema or library where it is installed."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import holdfast as hf
from holdfast.arguments import Refused
from holdfast.exchange.events import as_dp_event, event_of, exported, guarantees_of, imported
from holdfast.exchange.formats import OPEN, assessment, croissant, of_mended, of_release, registry_entry
from holdfast.privacy import compose
from holdfast.queries import Neighbours
from holdfast.release.ledger.accounts import Overspent
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.run import release
from released import job
from scripts import program

ABOUT = "about: {curators: [City], intended_use: planning, region: here}"
GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("formats")
    return release(job(place, "hierarchy", more=ABOUT), output=place / "out")


def test_sdmx_has_an_observation_for_every_figure_with_its_state_and_ends(folder) -> None:
    rows = list(csv.DictReader(io.StringIO(of_release(folder))))
    table = hf.load(folder).table()
    assert [float(row["OBS_VALUE"]) for row in rows] == table.values.tolist()
    assert {row["STRUCTURE"] for row in rows} == {"dataflow"}
    city = [row for row in rows if row["LEVEL"] == "city"]
    assert {row["OBS_STATUS"] for row in city} == {"A"}  # exact
    assert {row["OBS_STATUS"] for row in rows} == {"A", "E"}
    keys = {tuple(row[name] for name in rows[0] if name not in ("OBS_VALUE",)) for row in rows}
    assert len(keys) == len(rows)
    assert {row["ZONE"] for row in city} == {"_T"}


@pytest.mark.slow
def test_mended_tables_say_what_was_moved_and_imputed() -> None:
    mended = hf.mend({"area": ["Total", "a", "b"], "value": [10, 4, None]}, "consistent", {"uniform": 1})
    rows = list(csv.DictReader(io.StringIO(of_mended(mended))))
    assert [row["OBS_STATUS"] for row in rows] == ["A", "A", "I"]
    assert [row["AREA"] for row in rows] == ["_T", "a", "b"]


def test_sdmx_is_read_by_pysdmx(folder) -> None:
    io_module = pytest.importorskip("pysdmx.io")
    found = io_module.get_datasets(of_release(folder))
    assert len(found[0].data) == hf.load(folder).table().values.size


def test_croissant_names_every_csv_file_with_its_hash_and_columns(folder) -> None:
    found = json.loads(croissant(folder))
    named = {each["@id"]: each["sha256"] for each in found["distribution"]}
    assert {path.name for path in folder.glob("*.csv")} == set(named)
    assert found["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    columns = (folder / "table.csv").read_text().splitlines()[0].split(",")
    first = next(each for each in found["recordSet"] if each["@id"] == "table")
    assert [field["source"]["extract"]["column"] for field in first["field"]] == columns


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_croissant_is_read_by_mlcroissant(folder) -> None:
    library = pytest.importorskip("mlcroissant")
    data = library.Dataset(jsonld=json.loads(croissant(folder)))
    assert not data.metadata.ctx.issues.errors


def test_the_registry_entry_obeys_the_registry_s_schema(folder) -> None:
    entry = json.loads(registry_entry(folder))
    schema = json.loads((GOLDEN / "opendp_registry.schema.json").read_text())
    checker = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    assert not [error.message for error in checker.iter_errors(entry)]
    assert entry["status"] == "Draft"


def test_the_data_package_obeys_data_package_2(folder) -> None:
    library = pytest.importorskip("frictionless")
    assert library.Package(str(folder / "datapackage.json")).to_descriptor()["resources"]


@pytest.mark.parametrize(
    ("mechanism", "kind"),
    [
        (lambda: hf.laplace(hf.histogram(3), epsilon=0.5), "EpsilonDeltaDpEvent"),
        (lambda: hf.gaussian(hf.histogram(3), rho=0.1), "ZCDpEvent"),
        (lambda: hf.gaussian(hf.histogram(3), rho=0.1, integer=False), "GaussianDpEvent"),
    ],
)
def test_an_event_never_promises_more_than_the_statement_nor_back(mechanism, kind: str) -> None:
    statements = mechanism().guarantees
    event = event_of(statements)
    assert event["type"] in (kind, "GaussianDpEvent")
    (back,) = guarantees_of(event, Neighbours("add-remove"))
    own = next(each for each in statements if event["type"] != "GaussianDpEvent" or each.mu is not None)
    for name in ("epsilon", "rho", "mu"):
        one, two = getattr(own, name), getattr(back, name)
        if two is not None and one is not None:
            assert one <= two <= one * (1 + 1e-12)
    assert back.status == "estimated"


def test_events_go_out_of_one_ledger_and_into_another(tmp_path) -> None:
    one, two = Ledger(tmp_path / "one.sqlite"), Ledger(tmp_path / "two.sqlite")
    statements = hf.laplace(hf.histogram(3), epsilon=0.5).guarantees
    for name in ("a", "b"):
        one.charge("trips", "record", [statements], release=name, title=name, spec_hash="sha256:0", when="2026-01-01")
    path = tmp_path / "events.json"
    path.write_text(exported(one, "trips"))
    claims = imported(path, two, "trips", "record", "another tool's tables")
    assert [claim.epsilon for claim in claims] == [0.5, 0.5]
    assert two.account("trips", "record").spent[0].epsilon == 1.0
    two.set_budget("trips", "record", epsilon=1.2)
    with pytest.raises(Overspent):
        imported(path, two, "trips", "record", "once more")


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"type": "PoissonSampledDpEvent", "sampling_probability": 0.1}, "cannot be charged"),
        ({"type": "NonPrivateDpEvent"}, "cannot be charged"),
        ({"type": "GaussianDpEvent", "noise_multiplier": 0}, "must be a number above 0"),
        ({"type": "LaplaceDpEvent", "noise_multiplier": math.inf}, "must be a number above 0"),
    ],
)
def test_events_that_say_nothing_are_refused(event, words: str) -> None:
    with pytest.raises(hf.Refused, match=words):
        guarantees_of(event, Neighbours("add-remove"))


def from_dp_event(event: Any) -> dict[str, Any]:
    """An object of dp_accounting as the mapping that files hold."""
    found: dict[str, Any] = {"type": type(event).__name__}
    for name in event.__attrs_attrs__:
        value = getattr(event, name.name)
        if name.name == "events":
            value = [from_dp_event(each) for each in value]
        elif name.name == "event":
            value = from_dp_event(value)
        found[name.name] = value
    return found


def cross_checked(event: dict, kind: str, delta: float) -> tuple[float, float]:
    """ε at a δ: what holdfast proves for the composed claims, and what dp_accounting's accountant says."""
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    ours = compose(guarantees_of(event, Neighbours(kind)), delta=delta).epsilon
    relation = getattr(NeighboringRelation, "ADD_OR_REMOVE_ONE" if kind == "add-remove" else "REPLACE_ONE")
    made = as_dp_event(event)
    accountant: Any = PLDAccountant(neighboring_relation=relation)
    if not accountant.supports(made):
        accountant = RdpAccountant(neighboring_relation=relation)
    theirs = accountant.compose(made).get_epsilon(delta)
    assert ours is not None
    return float(ours), float(theirs)


def test_what_is_composed_agrees_with_dp_accounting() -> None:
    library = pytest.importorskip("dp_accounting")
    made = library.ComposedDpEvent(
        [library.GaussianDpEvent(3.0), library.SelfComposedDpEvent(library.GaussianDpEvent(5), 4)]
    )
    event = from_dp_event(made)
    for kind in ("add-remove", "replace-one"):
        ours, theirs = cross_checked(event, kind, 1e-6)
        assert theirs * (1 - 1e-3) <= ours <= theirs * (1 + 1e-3)
    pure = {"type": "ComposedDpEvent", "events": [{"type": "EpsilonDeltaDpEvent", "epsilon": 0.5, "delta": 0.0}] * 2}
    ours, theirs = cross_checked(pure, "replace-one", 1e-12)
    assert ours == pytest.approx(theirs, rel=1e-3)


def test_the_bill_of_materials_lists_every_wheel_once_with_its_hash(tmp_path) -> None:
    for name, version in (("holdfast", "1.0"), ("other_thing", "2.1")):
        with zipfile.ZipFile(tmp_path / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
            about = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\nLicense-Expression: MIT\n"
            wheel.writestr(f"{name}-{version}.dist-info/METADATA", about)
    bill = program("script/bill.py").bill(tmp_path)
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["name"] == "holdfast"
    (part,) = bill["components"]
    assert part["purl"] == "pkg:pypi/other-thing@2.1"
    assert part["licenses"] == [{"expression": "MIT"}]
    assert bill["dependencies"] == [{"ref": "pkg:pypi/holdfast@1.0", "dependsOn": [part["bom-ref"]]}]


def test_an_assessment_says_what_the_folder_tells_and_leaves_the_rest_open(folder) -> None:
    text = assessment(folder)
    certificate = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    assert certificate["protected"] in text
    assert "- Purpose: planning\n" in text
    assert text.count(OPEN) == 5
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert len(headings) == len(set(headings)) > 12


def test_no_assessment_of_a_folder_that_was_changed(folder, tmp_path) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(folder, changed)
    (changed / "table.csv").write_text("borough,zone\n")
    with pytest.raises(Refused, match="not as it was released"):
        assessment(changed)


def test_exports_have_the_unit_of_a_sum_and_its_mean(tmp_path) -> None:
    (tmp_path / "domain.csv").write_text("region,place\nA,A1\nA,A2\nB,B1\n")
    rows = [f"{place},{number / 4}" for place in ("A1", "A2", "B1") for number in range(40)]
    (tmp_path / "records.csv").write_text("\n".join(["place,fare", *rows]))
    (tmp_path / "spec.yaml").write_text(
        "title: Fares\ndata: {source: records.csv, domain: domain.csv, rows_are_records: true}\nprivacy: {epsilon: 4}\n"
        "table: {hierarchy: [region, place], root: all, figures: [count, {mean: fare}, {sum: fare, between: [0, 10], "
        "step: 0.5}]}\nhold: [consistent, nonnegative]\nmethod: onto\noutput: out\n"
    )
    place = hf.job(tmp_path / "spec.yaml").release().folder
    told, table = json.loads((place / "datapackage.json").read_text()), hf.load(place).table("fare")
    first, noisy = (
        {each["name"]: each["description"] for each in resource["schema"]["fields"]}
        for resource in told["resources"]
        if resource["name"] in ("table", "fare-measurements")
    )
    assert ",".join(first) == (place / "table.csv").read_text().splitlines()[0]
    assert first["fare"] == "the released sum of fare, in the unit of the column fare, in steps of 0.5"
    assert first["fare_mean"].startswith("the released sum of fare divided by the released count")
    assert noisy["count"].endswith("in steps of 0.5")
    assert "in steps" not in first["value"]
    croissant(place)  # it names the same columns
    sums, counts = (list(csv.DictReader(io.StringIO(of_release(place, name)))) for name in ("fare", None))
    assert {row["UNIT_MEASURE"] for row in sums} == {"fare"}
    assert [float(row["OBS_VALUE"]) for row in sums] == table.values.tolist()
    assert "UNIT_MEASURE" not in counts[0]
