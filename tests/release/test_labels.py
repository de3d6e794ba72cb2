"""Names for people beside codes: in the spec, beside the figures, on the page, and by name when a folder is loaded."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

import holdfast as hf
import jobs
import released
from holdfast.release.certificate.naming import rows_where
from holdfast.release.certificate.verify import verify
from holdfast.release.spec.places import SpecError
from holdfast.release.storage.tables import read_parquet, texts, write_table
from tampering import certificate_of, sealed

PLACES = (
    "borough,zone,called\nNorth,N1,<Mill> & Quay\nNorth,N2,Airport\nSouth,S1,Airport\nSouth,S2,\nSouth,S3,=SUM(1)\n"
)
LABELS = "labels: {zone: called, sex: {F: women}}"


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    place = tmp_path_factory.mktemp("labelled")
    spec = released.written(place, "hierarchy").read_text()
    (place / "zones.csv").write_text(PLACES)
    (place / "spec.yaml").write_text(
        spec.replace("name: trips", f"name: trips, {LABELS}").replace("method: given", "method: onto")
    )
    return hf.job(place / "spec.yaml").release()


def test_labels_stand_behind_the_figures_and_everything_verifies(labelled):
    head, *rows = (labelled.folder / "table.csv").read_text(encoding="utf-8").splitlines()
    assert head == "level,city,borough,zone,sex,value,low,high,zone_label,sex_label"
    assert any(row.endswith("<Mill> & Quay,women") for row in rows)
    assert any(row.startswith("zone,city,South,S2") and row.endswith(",S2,M") for row in rows)  # no label: the code
    assert verify(labelled.folder).ok
    told = subprocess.run([sys.executable, labelled.folder / "verify.py"], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout
    package = json.loads((labelled.folder / "datapackage.json").read_text(encoding="utf-8"))
    fields = {field["name"]: field["type"] for field in package["resources"][0]["schema"]["fields"]}
    assert list(fields) == head.split(",")
    assert fields["zone_label"] == "string"
    assert labelled.certificate.spec["data"]["labels"] == {"zone": "called", "sex": {"F": "women"}}


def test_an_analyst_may_name_rows_by_their_labels(labelled):
    table = labelled.table()
    both = table.estimate(where={"zone_label": "Airport", "sex": "F"})
    codes = table.estimate(where={"zone": ["N2", "S1"], "sex": "F"})
    assert both == codes
    found = rows_where(table.certificate, table.columns, {"zone_label": "Airport", "sex_label": "women"})
    assert (
        np.flatnonzero(found).tolist()
        == np.flatnonzero(rows_where(table.certificate, table.columns, {"zone": ["N2", "S1"], "sex": "F"})).tolist()
    )
    with pytest.raises(hf.Refused, match="did you mean 'Airport'"):
        table.estimate(where={"zone_label": "Airprot"})
    assert "women" in str(table.plot(level="zone"))


def test_the_page_shows_labels_and_their_codes_escaped(labelled):
    page = (labelled.folder / "report.html").read_text(encoding="utf-8")
    assert "&lt;Mill&gt; &amp; Quay <small>N1</small>" in page
    assert "<Mill>" not in page


def test_a_code_with_two_labels_is_a_difference(labelled, tmp_path):
    place = tmp_path / "out"
    shutil.copytree(labelled.folder, place)
    columns = {
        name: texts(column) if column.dtype == object else column
        for name, column in read_parquet(place / "table.parquet").items()
    }
    columns["zone_label"][int(np.flatnonzero(columns["zone_label"] == "Airport")[0])] = "Elsewhere"
    write_table(columns, place / "table.parquet", place / "table.csv")
    sealed(place, certificate_of(place))
    assert "table: labels" in [check.name for check in verify(place).differences]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("labels: {zon: called}", "no table has a column 'zon'.*did you mean 'zone'"),
        ("labels: {zone: caled}", "has no column 'caled'.*did you mean 'called'"),
        ("labels: {zone: {N9: Nowhere}}", "'zone' has no value 'N9'"),
        ("labels: {borough: called}", "'North' has two labels in 'zones.csv', '<Mill> & Quay' and 'Airport'"),
        ("labels: {zone: {N1: ''}}", "must be a text"),
    ],
)
def test_wrong_labels_are_refused_with_the_remedy(tmp_path, said, words):
    with pytest.raises(SpecError, match=words) as caught:
        jobs.job(tmp_path, jobs.tree(data=said), zones_csv=PLACES)
    assert caught.value.key.startswith("data.labels")


def test_a_column_that_is_called_as_the_labels_would_be_is_refused(tmp_path):
    places = "borough,zone,zone_label\nNorth,N1,N1a\nSouth,S1,S1a\n"
    asked = jobs.tree(data="labels: {zone: zone_label}").replace("[borough, zone]", "[borough, zone, zone_label]")
    with pytest.raises(SpecError, match="rename it"):
        jobs.job(tmp_path, asked, zones_csv=places)


def test_values_that_the_spec_lists_have_their_labels_there_too(tmp_path):
    with pytest.raises(SpecError, match="write their labels there too"):
        jobs.job(tmp_path, jobs.cube(data="labels: {sex: called}"))
    table = jobs.job(tmp_path, jobs.cube(data="labels: {sex: {F: women, M: men}}")).tables[0]
    assert table.layout.labels == {"sex": {"F": "women", "M": "men"}}
