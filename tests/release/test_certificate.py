"""The certificate: its published schema, and the fields of the OpenDP deployments registry."""

import json
from pathlib import Path

import pytest

import released
from holdfast.release.certificate.certificate import Certificate, Interval, schema
from holdfast.release.certifying import certificate_of, table_certificate
from holdfast.release.run import release

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
#: Fields of the registry's records (opendp/deployments-registry-data) that a release can fill in.
REGISTRY = {
    "product": {"name", "description", "data_product_type", "publication_date"},
    "dp_flavor": {
        "name",
        "input_metric",
        "bound_on_input_distance",
        "output_measure",
        "bound_on_output_distance",
        "data_domain",
        "unprotected_quantities",
    },
    "privacy_loss": {
        "privacy_unit",
        "privacy_unit_description",
        "privacy_parameters",
        "privacy_parameters_description",
    },
    "model": {"model_name", "release_type", "data_source_type", "access_type"},
    "accounting": {"post_processing", "composition"},
    "implementation": {"pre_processing_eda_hyperparameter_tuning", "mechanisms"},
}


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


@pytest.mark.slow
def test_the_fields_of_the_registry_are_filled_in(tmp_path):
    job = released.job(tmp_path, "hierarchy")
    deployment = certified(release(job))["deployment"]
    assert {name: set(part) for name, part in deployment.items()} == REGISTRY
    assert deployment["model"]["model_name"] == "Central"
    assert deployment["product"]["name"] == "Trips"
    assert deployment["dp_flavor"]["name"] == "Pure DP"
    assert deployment["dp_flavor"]["input_metric"] == "change-one distance"
    assert deployment["dp_flavor"]["unprotected_quantities"] == "table: published exactly: city (all 2 figures)"
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": job.guarantee.epsilon}
    assert deployment["privacy_loss"]["privacy_parameters_description"] == str(job.guarantee)


@pytest.mark.parametrize(
    ("budget", "name", "parameters"),
    [
        ("rho: 0.1", "Zero-concentrated DP", {"rho": 0.1}),
        ("epsilon: 1.0, delta: 1e-6, noise: gaussian", "Approximate DP", {"epsilon", "delta", "rho"}),
    ],
)
def test_other_kinds_of_privacy_are_named(tmp_path, budget, name, parameters):
    job = released.job(tmp_path, "histogram", ("epsilon: 1.0", budget))
    deployment = certified(release(job))["deployment"]
    assert deployment["dp_flavor"]["name"] == name
    found = deployment["privacy_loss"]["privacy_parameters"]
    if isinstance(parameters, dict):
        assert found == pytest.approx(parameters)
    else:
        assert set(found) == parameters


def test_a_person_is_the_unit_where_records_are_bounded_per_person(tmp_path):
    job = released.job(
        tmp_path, "histogram", ("unit: record, neighbours: replace-one", "unit: {column: zone, max_records: 2}")
    )
    certificate = certified(release(job))
    assert certificate["unit"] == "column zone, at most 2 records"
    assert certificate["deployment"]["privacy_loss"]["privacy_unit"] == "Person-level"
    assert certificate["deployment"]["dp_flavor"]["bound_on_input_distance"] == 2
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
        table_certificate(made.tables[0], "", Interval(confidence=0.95, basis=None, sentence=""), ("a", "b", None))
    ]
    said = certificate_of(made, "0" * 32, "2026-01-01", tables, []).deployment.accounting.post_processing
    assert said.startswith("none") != moves
