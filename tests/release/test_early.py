"""What is known at once is refused at once: before methods are compared, which can take long."""

from contextlib import suppress

import pytest
from typer.testing import CliRunner

import holdfast as hf
import released
from holdfast.cli.command import app
from holdfast.mechanism.mechanism import Mechanism
from holdfast.release import run
from holdfast.release.certificate.certificate import SCHEMA
from holdfast.release.certificate.verify import verify
from holdfast.release.job.job import Job
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.run import could_release, release
from holdfast.release.storage.files import refuse_inside


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files of a spec, and nothing that compares methods."""
    released.written(tmp_path, more="sign: key.pem\nledger: {file: book.sqlite, budget: {epsilon: 3}}")
    monkeypatch.chdir(tmp_path)

    def never(_):
        raise AssertionError("methods are compared")

    monkeypatch.setattr(Job, "from_spec", never)
    return tmp_path


def called(*words):
    return CliRunner().invoke(app, list(words))


#: How a certificate begins.
SOME = f'{{"schema": "{SCHEMA}", '


def make_key(folder):
    assert called("key", str(folder / "key.pem")).exit_code == 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda folder: (folder / "out").mkdir(), "exists already: name another output folder"),
        (lambda folder: (folder / "certificate.json").write_text(SOME), "is a release, and stays as it is"),
        (lambda folder: (folder / "key.pem").unlink(), "the key in"),
        (lambda folder: (folder / "book.sqlite").write_text("nothing of that kind"), "book.sqlite"),
        (lambda folder: (folder / "trips.csv").unlink(), "there is no file 'trips.csv'"),
    ],
)
def test_refusals_come_before_methods_are_compared(folder, wrong, words):
    make_key(folder)
    wrong(folder)
    told = called("release", "spec.yaml")
    assert told.exit_code == 3
    assert words in told.stderr
    assert "nothing was charged" in told.stderr
    with pytest.raises(hf.Refused, match=words):
        hf.job("spec.yaml").release()


def test_a_file_of_the_same_name_is_no_release(tmp_path):
    (tmp_path / "certificate.json").write_text('{"schema": "of another kind"}')
    refuse_inside(tmp_path / "out" / "june")


def test_other_records_folders_and_ledgers_take_the_place_of_the_specs(folder):
    make_key(folder)
    for name in ("out", "trips.csv"):
        (folder / name).mkdir() if name == "out" else (folder / name).unlink()
    with pytest.raises(AssertionError, match="methods are compared"):
        hf.job("spec.yaml").release({"zone": ["N1"]}, output="elsewhere", ledger="other.sqlite")


def test_a_dry_run_misses_records_as_soon_as_a_release_would(folder):
    make_key(folder)
    (folder / "trips.csv").unlink()
    told = called("release", "spec.yaml", "--dry-run")
    assert (told.exit_code, "no file" in told.stderr) == (3, True)


def test_an_existing_file_is_refused_before_anything_is_written_for_it(folder):
    (folder / "there.csv").touch()
    told = called("export", "nowhere", "--as", "sdmx", "--output", "there.csv")
    assert (told.exit_code, "'there.csv' exists already: name another file with --output" in told.stderr) == (3, True)
    (folder / "trips-mended").mkdir()
    told = called("mend", "trips.csv", "--hold", "no such rule")
    assert "'trips-mended' exists already" in told.stderr


# --- rehearsed: nothing public is found out after the charge ---------------------------------------------------------


WIDE = (("epsilon: 1.0", "epsilon: 0.002"), ("method: onto", "method: given"))


def test_noise_that_is_too_wide_to_be_drawn_costs_nothing(tmp_path):
    """Whether it can be drawn is the draw's to say; if not, nobody is charged."""
    job = released.job(tmp_path, "moved", *WIDE)
    with suppress(hf.Refused):
        release(job)
    assert job.spec.output.exists() == Ledger(job.spec.ledger_file).exists


@pytest.mark.parametrize("what", ["draw", "report", "data_package", "one_file", "verify"])
def test_whatever_public_fails_is_found_before_the_charge(tmp_path, monkeypatch, what):
    job = released.job(tmp_path, "moved")

    def fail(*_, **__):
        raise hf.Refused("no way")

    if what == "draw":
        monkeypatch.setattr(Mechanism, "release", fail)
    else:
        monkeypatch.setattr(run, what, fail)
    with pytest.raises(hf.Refused, match="no way") as refused:
        release(job)
    assert "nothing was charged" in str(refused.value.__notes__)
    assert not Ledger(job.spec.ledger_file).exists
    with pytest.raises(hf.Refused, match="no way"):
        could_release(job)


def test_the_name_of_a_table_fits_into_those_of_its_files(tmp_path):
    for letters in (100, 300):
        change = ("name: sexes", f"name: {'a' * letters}")
        if letters == 100:
            assert verify(release(released.job(tmp_path / "fits", "several", change))).ok
        else:
            with pytest.raises(hf.Refused, match="at most 100 lower-case letters"):
                released.job(tmp_path / "long", "several", change)


def test_nothing_of_the_rehearsal_is_left(tmp_path):
    folder = release(released.job(tmp_path, "several"))
    assert not (folder / "rehearsal").exists()
    assert verify(folder).ok
