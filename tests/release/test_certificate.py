"""The certificate: its published schema, and the fields of the OpenDP deployments registry."""

import json
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest

import released
from holdfast.exchange.formats import deployment
from holdfast.release.certificate.certificate import Certificate, read_certificate, schema
from holdfast.release.certifying import TableFiles, certificate_of, table_certificate
from holdfast.release.facts import Interval
from holdfast.release.run import release

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
#: What the registry's records look like (opendp/deployments-registry-data), pinned.
REGISTRY = json.loads((Path(__file__).parents[1] / "golden" / "opendp_registry.schema.json").read_text())


def certified(folder):
    return json.loads((folder / "certificate.json").read_text())


def test_the_published_schema_is_the_one_in_use():
    assert json.loads((REFERENCE / "certificate.schema.json").read_text()) == schema()


def test_every_part_of_the_schema_is_described():
    for name, part in schema()["$defs"].items():
        assert part["description"], name
        assert part["additionalProperties"] is False, name


def test_the_page_about_the_certificate_names_every_key():
    page = (REFERENCE / "certificate.md").read_text()
    parts = {"Certificate": schema(), **schema()["$defs"]}
    statement = schema()["properties"]["statements"]["items"]
    for part, found in {**parts, "Guarantee": statement, "Neighbours": statement["properties"]["neighbours"]}.items():
        for name in found["properties"]:
            assert f"`{name}`" in page or f'"{name}"' in page, f"{part}.{name}"


def deployment_of(folder):
    return deployment(read_certificate(folder))


def refused_by_the_registry(found):
    record = {"url_slug": "trips", "status": "Draft", "tier": 3, "deployment": found}
    checker = jsonschema.Draft202012Validator(REGISTRY, format_checker=jsonschema.FormatChecker())
    return [error.message for error in checker.iter_errors(record)]


@pytest.mark.slow
def test_the_registry_accepts_the_deployment(tmp_path):
    job = released.job(tmp_path, "hierarchy", more="about: {curators: [City], intended_use: planning, region: here}")
    told = deployment_of(release(job))
    assert not refused_by_the_registry(told)
    assert refused_by_the_registry({**told, "product": {}})
    assert told["basic"]["name"] == "Trips"
    assert told["basic"]["data_curators"] == ["City"]
    assert told["basic"]["intended_use"] == "planning"
    assert told["basic"]["data_product_region"] == "here"
    assert told["deployment_model"]["model_name"] == "Central"
    assert told["dp_variant"]["variant_name"] == "Pure DP"
    assert "change-one distance" in told["privacy_loss"]["privacy_unit_details"]
    assert told["dp_variant"]["unprotected_quantities"] == (
        "published exactly: city (all 2 figures); follows from exact figures: city, total (city)"
    )
    assert told["privacy_loss"]["privacy_parameters"] == {"epsilon": job.guarantee.epsilon}
    assert told["privacy_loss"]["privacy_parameters_details"] == str(job.guarantee)


@pytest.mark.parametrize(
    ("budget", "name", "parameters"),
    [
        ("rho: 0.1", "Zero-concentrated DP", {"rho": 0.1}),
        ("epsilon: 1.0, delta: 1e-6, noise: gaussian", "Approximate DP", {"epsilon", "delta", "rho"}),
    ],
)
def test_other_kinds_of_privacy_are_named(tmp_path, budget, name, parameters):
    job = released.job(tmp_path, "histogram", ("epsilon: 1.0", budget))
    told = deployment_of(release(job))
    assert not refused_by_the_registry(told)
    assert told["dp_variant"]["variant_name"] == name
    found = told["privacy_loss"]["privacy_parameters"]
    if isinstance(parameters, dict):
        assert found == pytest.approx(parameters)
    else:
        assert set(found) == parameters


def test_a_person_is_the_unit_where_records_are_bounded_per_person(tmp_path):
    job = released.job(
        tmp_path, "histogram", ("unit: record, neighbours: replace-one", "unit: {column: zone, max_records: 2}")
    )
    folder = release(job)
    certificate, loss = certified(folder), deployment_of(folder)["privacy_loss"]
    assert certificate["unit"] == "column zone, at most 2 records"
    assert loss["privacy_unit"] == "Person-level"
    assert "at most 2" in loss["privacy_unit_details"]
    assert certificate["statements"][0]["neighbours"] == {"kind": "add-remove", "records": 2}


def test_public_files_are_named_without_their_folders(tmp_path):
    certificate = certified(release(released.job(tmp_path, "moved")))
    assert [file["name"] for file in certificate["public_files"]] == ["zones.csv"]
    assert str(tmp_path) not in json.dumps(certificate)


def test_a_certificate_cannot_be_changed_in_memory(tmp_path):
    certificate = Certificate.model_validate_json(json.dumps(certified(release(released.job(tmp_path)))))
    with pytest.raises(ValueError, match="frozen"):
        certificate.title = "another"


@pytest.mark.parametrize(("method", "moves"), [("given", False), ("given-then-onto", True), ("onto", True)])
def test_the_registry_is_told_whether_values_were_moved(tmp_path, method, moves):
    made = released.job(tmp_path, "moved", ("method: onto", f"method: {method}"))
    tables = [
        table_certificate(made.tables[0], "", Interval(confidence=0.95, basis=None, sentence=""), TableFiles("a", "b"))
    ]
    certificate = certificate_of(made, "0" * 32, "2026-01-01", tables, [])
    said = deployment(certificate)["accounting"]["post_processing"]
    assert said.startswith("none") != moves


def test_the_public_part_of_the_spec_names_no_place_and_no_key(tmp_path):
    job = released.job(
        tmp_path,
        "moved",
        ("unit: record, neighbours: replace-one", "unit: {column: zone, max_records: 2, key: hidden-key}"),
    )
    found = certified(release(job))["spec"]
    assert found["data"]["domain"] == "zones.csv"
    assert found["privacy"]["unit"] == {"column": "zone", "max_records": 2}
    assert found["tables"][0]["hold"][0]["rule"] == "consistent"
    text = json.dumps(found)
    assert not any(word in text for word in ("hidden-key", "trips.csv", "ledger", "output", str(tmp_path)))


def test_every_level_has_its_share_noise_and_expected_error(tmp_path):
    job = released.job(tmp_path, "moved", ("root: city}", "root: city, shares: {borough: 1, zone: 2}}"))
    certificate = certified(release(job))
    (table,) = certificate["tables"]
    city, borough, zone = table["noise_by_level"]
    assert [city["share"], borough["share"], zone["share"]] == ["0", "1", "2"]
    assert city["noise"][0]["law"] is None
    assert Fraction(borough["noise"][0]["parameter"]) == 2 * Fraction(zone["noise"][0]["parameter"])
    assert zone["noise"][0] | {"parameter": None} == {
        "law": "laplace", "whole": True, "scale": pytest.approx(float(Fraction(zone["noise"][0]["parameter"]))),
        "parameter": None, "figures": 5,
    }  # fmt: skip
    planned = job.tables[0].errors
    assert [each["expected_absolute_error"] for each in table["noise_by_level"]] == list(planned.absolute)
    assert table["errors_known"] == planned.basis
    assert [each["method"] for each in table["compared"]] == ["onto"]
    assert certificate["software"]["packages"]["numpy"]


@pytest.mark.slow
def test_tables_of_one_domain_have_one_hash(tmp_path):
    one, two, other = (
        certified(release(released.job(tmp_path / name, kind)))["tables"][0]["domain_hash"]
        for name, kind in (("a", "moved"), ("b", "moved"), ("c", "hierarchy"))
    )
    assert one == two != other
