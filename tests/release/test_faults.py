"""What used to end in a fault, or in no end at all, is refused in a sentence."""

import contextlib
import os
import random
import tempfile
from decimal import Decimal

import pandas as pd
import pytest
from typer.testing import CliRunner

import calling
import holdfast as hf
import released
from holdfast.cli.command import app
from holdfast.release.run import release
from holdfast.release.storage import engine as scratch

SPEC = {
    "title": "T",
    "data": {"values": {"a": ["b", "c"]}},
    "privacy": {"epsilon": 1},
    "table": {"histogram": "a"},
    "output": "o",
}
HALF = "\ud800"


@pytest.mark.parametrize(
    ("kind", "change", "sentence"),
    [
        ("moved", ("at: [zone]", "at: []"), "at least one place is needed"),
        ("hierarchy", ("{exact: [city]}", "{exact: [[]]}"), "a path needs at least one name"),
        ("hierarchy", ("domain: zones.csv", "domain: ~nouser/x.csv"), "home of a user who is not here"),
        ("histogram", ("epsilon: 1.0", "epsilon: 1e-99999999"), "privacy.epsilon"),
        ("histogram", ("values: {sex: [F", "values: {sex: [{[a]: 1}"), "must be a name"),
        ("histogram", ("values: {sex:", "values: {[a: [b]], sex:"), "a value cannot be read"),
        ("histogram", ("epsilon: 1.0", f"epsilon: 1{'0' * 5000}"), "spec.yaml"),
    ],
)
def test_specs(tmp_path, kind, change, sentence):
    with pytest.raises(hf.Refused, match=sentence):
        released.job(tmp_path, kind, change)


def test_homes_of_nobody(tmp_path):
    job = released.job(tmp_path, "histogram", ("source: trips.csv", "source: ~nouser/x.csv"))
    with pytest.raises(hf.Refused, match="home of a user who is not here"):
        release(job)
    with pytest.raises(hf.Refused, match="home of a user who is not here"):
        release(job, source="~nouser/x.csv")


@pytest.mark.parametrize(
    "spec",
    [
        {**SPEC, "title": HALF},
        {**SPEC, "data": {"values": {"a": [HALF, "b"]}}},
        {**SPEC, HALF: 1},
        HALF,
        "a\x00b",
        f"title: {HALF}\n",
    ],
)
def test_half_characters_and_names_that_no_file_can_have(spec):
    with pytest.raises(hf.Refused):
        hf.job(spec)


def test_a_half_character_written_in_yaml(tmp_path):
    (tmp_path / "spec.yaml").write_text('title: "\\ud800"\noutput: o\n')
    with pytest.raises(hf.Refused):
        hf.job(tmp_path / "spec.yaml")


def test_endless_files_are_not_read(tmp_path):
    with pytest.raises(hf.Refused, match="no plain file"):
        hf.job("/dev/zero")
    path = released.written(tmp_path, "hierarchy")
    (tmp_path / "zones.csv").unlink()
    (tmp_path / "zones.csv").symlink_to("/dev/zero")
    with pytest.raises(hf.Refused, match="no plain file"):
        hf.job(path)
    job = released.job(tmp_path / "source")
    (tmp_path / "source" / "trips.csv").unlink()
    (tmp_path / "source" / "trips.csv").symlink_to("/dev/zero")
    with pytest.raises(hf.Refused, match="no plain file"):
        release(job)


def test_damaged_parquet(tmp_path):
    job = released.job(tmp_path, "histogram", ("source: trips.csv", "source: trips.parquet"))
    path = tmp_path / "trips.parquet"
    pd.DataFrame({"age": ["child"] * 1000}).to_parquet(path)
    whole = path.read_bytes()
    for seed in range(12):
        source, content = random.Random(seed), bytearray(whole)
        for _ in range(20):
            content[source.randrange(4, len(content))] ^= 1 << source.randrange(8)
        path.write_bytes(content[: source.randrange(8, len(content))] if seed % 3 == 0 else content)
        with contextlib.suppress(hf.Refused):  # some bytes do not matter
            release(job, output=tmp_path / str(seed))


def test_columns_of_one_name(tmp_path):
    frame = pd.DataFrame([["child", "old"]] * 5, columns=["age", "age"])
    with pytest.raises(hf.Refused, match="the same name"):
        release(released.job(tmp_path), source=frame)


@pytest.mark.parametrize(
    "call",
    [
        lambda: hf.load(0),
        lambda: hf.Keys(0),
        lambda: hf.nonnegative(at=2**31),
        lambda: hf.laplace(hf.histogram(4), epsilon=Decimal("1e-99999999")),
        lambda: hf.laplace(hf.histogram(4), epsilon=10**5000),
        lambda: hf.between(Decimal("1e-99999999"), 1),
        lambda: hf.Neighbours.of(10**5000),
        lambda: hf.Cube((2, 2)).coordinates([9]),
        lambda: hf.Stream(b"short"),
        lambda: hf.nonnegative().system(2**31),
        lambda: hf.between(0, [[1], [2, 3]]),
        lambda: hf.histogram(4).mask([[1], [2, 3]]),
        lambda: hf.Cube((2, 2)).margins(10**5000),
        lambda: hf.Hierarchy.from_parents([-1, 0, 0]).find([10**5000]),
        lambda: hf.laplace(hf.histogram(4), epsilon=1).then(len, 10**5000),
    ],
)
def test_calls(call):
    with pytest.raises(hf.Refused):
        call()


def test_very_many_records_are_answered_at_once():
    assert hf.gaussian(hf.histogram(4), rho=0.5).about(2**31).records == 2**31
    assert hf.Cube((2, 2)).margin_index([0], [[0, 1], [2, 3]]).tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize("number", ["1e-99999999", "1e99999999", "1" * 5000, "nan", "-1e-9999"])
def test_enormous_numbers_are_refused_by_their_length(tmp_path, number):
    words = ["ledger", "budget", "--dataset", "d", f"--epsilon={number}", "--file", str(tmp_path / "book.sqlite")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 3
    assert not (tmp_path / "book.sqlite").exists()


@pytest.mark.filterwarnings("ignore")
def test_public_names_refuse_or_name_the_type():
    """A share of the campaign's calls."""
    found = calling.things()
    named = calling.targets(found)
    wrong = [said for said in (calling.one_call(number, found, named) for number in range(1500)) if said[1] is not None]
    assert wrong == []


def test_scratch_folders_that_are_taken_for_abandoned_are_made_again(monkeypatch, tmp_path):
    make, taken = tempfile.mkdtemp, []

    def stolen(**words):
        folder = make(**words)
        if not taken:
            taken.append(folder)
            os.rmdir(folder)
        return folder

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(scratch.tempfile, "mkdtemp", stolen)
    assert scratch.scratch_folder().parent == tmp_path


def test_a_temporary_folder_that_cannot_be_used_is_not_replaced_by_another(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    with pytest.raises(hf.Refused, match="set TMPDIR"):
        scratch.scratch_folder()


def test_the_dictionary_says_that_names_are_no_formulas(tmp_path):
    job = released.job(tmp_path, "histogram", ("[child, adult, old]", "['=HYPERLINK(1)', adult, old]"), records={})
    folder = release(job)
    assert "=HYPERLINK(1)" in (folder / "table.csv").read_text()
    assert "never as a formula" in (folder / "datapackage.json").read_text()
