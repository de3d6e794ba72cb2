"""Verifying a release: everything that is not as certified is found, also by a forger who renews hashes and seal."""

import json
import os
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
import released
from holdfast.release.certificate.certificate import read_certificate, schema, seal_of
from holdfast.release.certificate.load import load
from holdfast.release.certificate.verify import verify
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.run import release
from holdfast.release.standalone_verifier.reading import Broken
from holdfast.release.standalone_verifier.sums import unequal
from holdfast.release.storage.tables import read_parquet, write_table
from tampering import certificate_of, not_adding_up, sealed

KINDS = ("hierarchy", "moved", "margins", "contingency", "several")


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    return {kind: release(released.job(folder / kind, kind)) for kind in KINDS}


@pytest.fixture
def copies(originals, tmp_path):
    def copy(kind):
        return shutil.copytree(originals[kind], tmp_path / kind)

    return copy


def broken(folder):
    """The names of the checks that find something, and what they say."""
    return {check.name: check.sentence for check in verify(folder).differences}


def forged(folder, change, prefix=""):
    """Change the columns of a table and renew everything that only guards against accidents."""
    parquet, csv = folder / f"{prefix}table.parquet", folder / f"{prefix}table.csv"
    columns = {
        name: np.ma.filled(column.astype(float), np.nan) if column.dtype.kind == "f" else unmasked(column)
        for name, column in read_parquet(parquet).items()
    }
    change(columns)
    write_table(columns, parquet, csv)
    sealed(folder, certificate_of(folder))
    return broken(folder)


def unmasked(column):
    return np.array(np.ma.asarray(column).tolist(), dtype=object if column.dtype.kind == "O" else column.dtype)


@pytest.mark.parametrize("kind", KINDS)
def test_an_untouched_copy_is_as_certified(copies, kind):
    verdict = verify(copies(kind))
    assert verdict.ok
    assert verdict.differences == ()
    assert json.loads(json.dumps(verdict.as_mapping()))["ok"] is True
    assert "BROKEN" not in str(verdict)


def test_a_forger_who_changes_nothing_passes(copies):
    assert forged(copies("moved"), lambda columns: None) == {}


@pytest.mark.parametrize("name", ["table.parquet", "table.csv", "measurements.parquet", "report.html"])
def test_one_changed_byte_in_any_file_is_found(copies, name):
    folder = copies("moved")
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    assert broken(folder)["files"] == f"{name} is not the file that was certified"
    with pytest.raises(hf.Refused, match="is not as it was released"):
        load(folder)


@pytest.mark.parametrize("name", ["table.parquet", "table.csv", "measurements.parquet"])
@pytest.mark.parametrize("damage", ["cut", "empty", "garbage", "gone"])
def test_files_that_cannot_be_read_are_a_finding_and_no_failure(copies, name, damage):
    folder = copies("moved")
    path = folder / name
    if damage == "gone":
        path.unlink()
    else:
        content = path.read_bytes()
        path.write_bytes({"cut": content[: len(content) // 2], "empty": b"", "garbage": os.urandom(500)}[damage])
    found = broken(folder)
    assert "files" in found
    assert len(found) >= 2


def test_files_that_do_not_belong_are_found(copies):
    folder = copies("moved")
    (folder / "notes.txt").write_text("confidential counts")
    assert broken(folder) == {"files": "notes.txt does not belong to the release"}


def test_hidden_files_do_not_belong_either(copies):
    folder = copies("moved")
    (folder / ".counts").write_text("confidential counts")
    assert broken(folder) == {"files": "the hidden file .counts does not belong to the release"}


def test_a_link_is_not_a_file_of_the_release(copies, tmp_path):
    folder = copies("moved")
    (folder / "report.html").rename(tmp_path / "report.html")
    (folder / "report.html").symlink_to(tmp_path / "report.html")
    assert broken(folder) == {"files": "report.html is missing"}


def test_folders_that_hold_no_release_are_refused(tmp_path):
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(hf.Refused, match="name the folder of a release"):
            verify(place)


# --- what must hold, against a forger --------------------------------------------------------------------------


def add(row, amount):
    def change(columns):
        columns["value"][row] += amount

    return change


@pytest.mark.parametrize("row", range(8))
def test_one_more_anywhere_in_a_hierarchy_does_not_add_up(copies, row):
    assert "table: sums" in forged(copies("moved"), add(row, 1))


@pytest.mark.parametrize("row", [0, 5, 6, 11, 12])
def test_a_little_more_anywhere_in_margins_does_not_add_up(copies, row):
    assert "table: sums" in forged(copies("margins"), add(row, 1e-3))


def test_rows_from_the_names_are_checked_even_if_the_certificate_lists_no_sums(copies):
    folder = copies("moved")
    certificate = certificate_of(folder)
    certificate["tables"][0]["holds"]["sums"] = []
    sealed(folder, certificate)
    assert broken(folder) == {}
    assert "table: sums" in forged(folder, add(3, 1))


def test_names_that_change_places_are_found(copies):
    def exchange(columns):
        columns["borough"][[1, 2]] = columns["borough"][[2, 1]]

    assert "table: rows" in forged(copies("moved"), exchange)  # no names of the certified domain


def shift(rows, amounts):
    def change(columns):
        columns["value"][rows] += np.array(amounts)

    return change


def test_negative_values_are_found(copies):
    folder = copies("moved")
    zone = int(load(folder).values[3])
    # Zone N1 below zero, N2 makes up for it: everything adds up still.
    assert forged(folder, shift([3, 4], [-zone - 1, zone + 1])) == {"table: signs": "row 3 is below 0"}


def test_values_beyond_their_bounds_are_found(copies):
    found = forged(copies("moved"), shift([0, 1, 3], [200_000] * 3))
    assert set(found) == {"table: bounds"}
    assert found["table: bounds"] == "row 3 is above 100000"


def test_values_in_impossible_cells_are_found(copies):
    folder = copies("hierarchy")
    columns = read_parquet(folder / "table.parquet")
    rows = [
        np.flatnonzero((columns["zone"] == zone).filled(False) & (columns["sex"] == "F"))[0] for zone in ("S1", "S2")
    ]
    found = forged(folder, shift(rows, [1, -1]))
    assert {"table: impossible"} <= set(found)
    assert set(found) <= {"table: impossible", "table: signs", "table: intervals", "table: further rows"}
    assert "table: impossible" in found


def test_exact_figures_that_are_no_counts_are_found(copies):
    def change(columns):
        for name in ("value", "low", "high"):
            columns[name][0] += 0.5

    found = forged(copies("contingency"), change)
    assert found.pop("table: exact figures") == "the exact figure sex is not a count"
    assert found == {"table: further rows": "row 6 is not the sum that its names say"}


def test_intervals_that_end_before_they_begin_are_found(copies):
    def turned(columns):
        columns["high"][0] = columns["low"][0] - 1

    assert set(forged(copies("margins"), turned)) == {"table: intervals"}


def test_limits_that_leave_their_value_out_are_found(copies):
    def narrow(columns):
        columns["high"][2] = columns["value"][2] - 1

    assert set(forged(copies("hierarchy"), narrow)) == {"table: intervals"}


def test_an_interval_around_an_exact_figure_is_found(copies):
    def wide(columns):
        columns["high"][0] += 1

    assert forged(copies("hierarchy"), wide) == {
        "table: intervals": "the interval of an exact figure is not the figure"
    }


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda columns: columns.update(value=columns["value"].astype(float)), "are not whole numbers"),
        (lambda columns: columns.pop("zone"), "does not have the certified columns"),
        (lambda columns: columns.update(extra=columns["value"]), "does not have the certified columns"),
        (lambda columns: columns.update({n: c[:-1] for n, c in columns.items()}), "has 7 rows and not 8"),
        (lambda columns: columns["level"].__setitem__(0, "planet"), "a level that is not certified"),
    ],
)
def test_tables_of_another_shape_are_found(copies, change, sentence):
    assert sentence in forged(copies("moved"), change)["table: rows"]


@pytest.mark.parametrize(
    ("old", "new"), [(",North,", ",Nord,"), (",N1,", ",,"), ("zone,value", "place,value"), ("\ncity", "\ncity\ncity")]
)
def test_a_copy_in_csv_that_differs_is_found(copies, old, new):
    folder = copies("moved")
    path = folder / "table.csv"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    sealed(folder, certificate_of(folder))
    assert set(broken(folder)) == {"table: rows", "table: copies"}


def test_measurements_of_rows_that_do_not_exist_are_found(copies):
    folder = copies("moved")
    columns = {
        name: np.asarray(column).copy() for name, column in read_parquet(folder / "measurements.parquet").items()
    }
    columns["zone"][3] = "elsewhere"
    write_table(columns, folder / "measurements.parquet")
    sealed(folder, certificate_of(folder))
    assert broken(folder) == {"table: copies": "measurements.csv has other entries in the column zone"}


# --- the certificate -------------------------------------------------------------------------------------------


def test_a_changed_certificate_is_found_by_its_seal(copies):
    folder = copies("moved")
    path = folder / "certificate.json"
    path.write_text(path.read_text().replace('"title": "Trips"', '"title": "Tricks"', 1))
    assert list(broken(folder)) == ["certificate"]
    assert "was changed after it was sealed" in broken(folder)["certificate"]


def test_the_layout_of_the_certificate_does_not_matter(copies):
    folder = copies("moved")
    certificate = certificate_of(folder)
    (folder / "certificate.json").write_text(json.dumps(dict(reversed(certificate.items())), indent=3))
    assert verify(folder).ok


def better(certificate, *path, value):
    for step in path[:-1]:
        certificate = certificate[step]
    certificate[path[-1]] = value


STATEMENT = ("statements", 0)


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ((*STATEMENT, "epsilon"), 0.5, "promises more than its tables do"),
        ((*STATEMENT, "neighbours"), {"kind": "replace-one", "records": 9}, "promises more than its tables do"),
        ((*STATEMENT, "rho"), 0.001, "promises more than its tables do"),
        ((*STATEMENT, "mu"), 0.1, "promises more than its tables do"),
        (("asked",), {"epsilon": "1/2"}, "promise less than what was asked"),
        (("tables", 0, "statements", 0, "epsilon"), 1.5, "promise less than what was asked"),
    ],
)
def test_a_certificate_that_promises_too_much_is_found(copies, path, value, sentence):
    folder = copies("several")
    certificate = certificate_of(folder)
    better(certificate, *path, value=value)
    sealed(folder, certificate)
    assert any(sentence in words for words in broken(folder).values())


def test_a_release_is_compared_with_its_charge(copies, originals):
    folder, ledger = copies("moved"), Ledger(originals["moved"].parent / "holdfast-ledger.sqlite")
    assert verify(folder, ledger).ok
    others = Ledger(originals["several"].parent / "holdfast-ledger.sqlite")
    assert [check.sentence for check in verify(folder, others).differences] == [
        "the release was not charged in this ledger"
    ]
    certificate = certificate_of(folder)
    for statement in (certificate["statements"][0], certificate["tables"][0]["statements"][0]):
        statement["epsilon"] = 0.5
    sealed(folder, certificate)
    assert verify(folder).ok  # a forger can do this much
    assert [check.sentence for check in verify(folder, ledger).differences] == [
        "the ledger was charged with other statements"
    ]


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (("surprise",), 1, "surprise"),
        (("tables",), [], "tables"),
        (("statements",), [], "statements"),
        ((*STATEMENT, "epsilon"), "much", "epsilon"),
        ((*STATEMENT, "because"), "", "because"),
        (("tables", 0, "csv"), "../../table.csv", "csv"),
        (("tables", 0, "rows"), "8", "rows"),
        (("tables", 0, "holds", "impossible"), [-1], "impossible"),
        (("files", 0, "sha256"), "md5:0", "sha256"),
        (("software", "name"), "other", "software"),
    ],
)
def test_a_certificate_of_another_form_is_found(copies, path, value, sentence):
    folder = copies("moved")
    certificate = certificate_of(folder)
    better(certificate, *path, value=value)
    certificate["seal"] = seal_of(certificate)
    (folder / "certificate.json").write_text(json.dumps(certificate))
    found = broken(folder)
    assert list(found) == ["certificate"]
    assert sentence in found["certificate"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"schema": "x"}', b"\xff\xfe", b"[" * 10**5, b"NaN"])
def test_what_is_no_certificate_is_a_finding(copies, content):
    folder = copies("moved")
    (folder / "certificate.json").write_bytes(content)
    assert list(broken(folder)) == ["certificate"]


@pytest.mark.parametrize("place", ["impossible", "sums", "exact"])
def test_a_certificate_that_speaks_of_missing_rows_is_found(copies, place):
    folder = copies("hierarchy")
    certificate = certificate_of(folder)
    holds = certificate["tables"][0]["holds"]
    holds[place] = {
        "impossible": [999],
        "sums": [[999, [0]]],
        "exact": [{"figure": "x", "axes": None, "rows": [[999]]}],
    }[place]
    sealed(folder, certificate)
    assert any("rows that the table does not have" in sentence for sentence in broken(folder).values())


def test_the_files_of_a_table_must_be_certified(copies):
    folder = copies("moved")
    certificate = certificate_of(folder)
    certificate["files"] = [file for file in certificate["files"] if file["name"] != "table.csv"]
    sealed(folder, certificate)
    assert "table.csv belongs to the table" in broken(folder)["files"]


def test_the_published_schema_names_every_key_of_a_certificate(originals):
    published = schema()
    certificate = certificate_of(originals["several"])
    assert set(certificate) == set(published["properties"])
    table = published["$defs"]["TableCertificate"]
    assert set(certificate["tables"][0]) == set(table["properties"])
    assert set(table["properties"]) == set(table["required"])
    statement = table["properties"]["statements"]["items"]
    assert set(certificate["statements"][0]) == set(statement["properties"]) - {"losses", "unit"}  # where there are any


def test_a_certificate_comes_back_as_it_was(originals):
    for folder in originals.values():
        certificate = read_certificate(folder)
        assert certificate.to_json() == (folder / "certificate.json").read_text()


# --- names and sums --------------------------------------------------------------------------------------------


@st.composite
def forests(draw):
    """A hierarchy with names, categories and whole values that add up; some values are very large."""
    leaf = st.one_of(st.integers(0, 5), st.integers(2**60, 2**61))
    tops, places = [], []
    for top in range(draw(st.integers(1, 3))):
        # Equal names below different parents are different nodes.
        below = [{sex: draw(leaf) for sex in "FM"} for _ in range(draw(st.integers(1, 3)))]
        tops += [("region", f"t{top}", None, sex, sum(each[sex] for each in below)) for sex in "FM"]
        places += [("place", f"t{top}", f"p{i}", sex, each[sex]) for i, each in enumerate(below) for sex in "FM"]
    return [*tops, *places]


def wrong_with(rows, names, places=()):
    *columns, values = map(list, zip(*rows, strict=True))
    return not_adding_up(dict(zip(names, columns, strict=True)), values, places)


def changed(rows, place, change):
    return [(*row[:-1], row[-1] + change * (i == place)) for i, row in enumerate(rows)]


@settings(max_examples=60, deadline=None)
@given(forests(), st.data())
def test_every_hierarchy_adds_up_until_one_value_changes(rows, data):
    names, places = ("level", "region", "place", "sex"), ("region", "place")
    assert wrong_with(rows, names, places) is None
    place, change = data.draw(st.integers(0, len(rows) - 1)), data.draw(st.sampled_from([-1, 1]))
    assert "is not the sum of the areas below it" in wrong_with(changed(rows, place, change), names, places)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=12, max_size=12), st.integers(0, 16), st.sampled_from([-1, 1]))
def test_margins_agree_until_one_value_changes(cells, place, change):
    cube = np.array(cells).reshape(2, 3, 2)
    rows = [("a × b", str(a), str(b), None, int(cube[a, b].sum())) for a in range(2) for b in range(3)]
    rows += [("b × c", None, str(b), str(c), int(cube[:, b, c].sum())) for b in range(3) for c in range(2)]
    rows += [("a", str(a), None, None, int(cube[a].sum())) for a in range(2)]
    rows += [("c", None, None, str(c), int(cube[..., c].sum())) for c in range(2)]
    rows += [("total", None, None, None, int(cube.sum()))]
    names = ("level", "a", "b", "c")
    assert wrong_with(rows, names) is None
    assert "different sums over what they share" in wrong_with(changed(rows, place, change), names)


def test_an_area_without_one_above_it_is_found():
    rows = [("region", "t", None, 1), ("place", "t", "p", 1), ("place", "u", "p", 1)]
    with pytest.raises(Broken, match="has no row above it"):
        wrong_with(rows, ("level", "region", "place"), ("region", "place"))


def test_sums_beyond_64_bits_are_exact():
    assert not unequal([2**64], [2**62] * 4)
    assert unequal([0], [2**62] * 4)  # what 64 bits would wrap round to


def test_real_sums_are_compared_by_the_size_of_their_parts():
    assert not unequal([0.6], [1e9, -1e9, 0.5])
    assert unequal([10.0], [1e9, -1e9, 0.5])
    assert unequal([float("nan")], [1.0])
