"""Sealed and signed: whatever is changed after a release contradicts the ledger, the signature or both verifiers."""

import base64
import json
import os
import random
import shutil
import sqlite3

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from typer.testing import CliRunner

import holdfast as hf
import released
import tampering
from holdfast.cli.command import app
from holdfast.release import run
from holdfast.release.certificate import verify as verifying
from holdfast.release.certificate.certificate import read_certificate
from holdfast.release.certificate.verify import verify
from holdfast.release.ends import PUBLISHED
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.run import release
from holdfast.release.signing import read_key, read_trusted, write_key
from holdfast.release.standalone_verifier.ed25519 import is_signature, point_of, times
from holdfast.release.standalone_verifier.verify import main as check_alone
from holdfast.release.storage.tables import read_parquet
from holdfast.release.writing import one_file

KINDS = ("histogram", "hierarchy", "moved", "contingency", "several")


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    write_key(folder / "key")
    made = {}
    for kind in KINDS:
        job = released.job(folder / kind, kind, more=f"sign: {folder / 'key'}\n" if kind == "moved" else "")
        made[kind] = release(job)
    return made


@pytest.fixture
def copies(originals, tmp_path):
    return lambda kind: shutil.copytree(originals[kind], tmp_path / kind)


def ledger_of(originals, kind):
    return Ledger(originals[kind].parent / "holdfast-ledger.sqlite")


def wrong(verdict):
    return {check.name: check.sentence for check in verdict.differences}


def test_a_release_is_charged_sealed_and_published(originals):
    ledger = ledger_of(originals, "histogram")
    (entry,) = ledger.entries()
    assert [row.kind for row in ledger.verify()] == ["ledger", "charge", "drawing", "seal", "published"]
    assert entry.state == "published"
    found = read_certificate(originals["histogram"])
    assert (found.ledger.row, found.ledger.hash) == (entry.number, entry.hash)
    assert verify(originals["histogram"], ledger).ok
    assert originals["histogram"].stat().st_mode & 0o777 == 0o755 & ~_mask()


def _mask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("what", ["value", "caveats", "holds", "report", "title"])
def test_the_ledger_catches_every_change_of_a_release_whose_hashes_were_renewed(originals, copies, what):
    folder = copies("histogram")
    certificate = tampering.certificate_of(folder)
    if what == "value":
        tampering.forged(folder, lambda columns: columns["value"].__setitem__(0, 7))
    else:
        if what == "caveats":
            certificate["caveats"] = ["everything is fine"]
        elif what == "holds":
            certificate["tables"][0]["holds"]["bounds"] = []
            certificate["tables"][0]["holds"]["nonnegative"] = False
        elif what == "report":
            (folder / "report.html").write_text("<p>a better page</p>")
        else:
            certificate["title"] = "Another"
        tampering.sealed(folder, certificate)
    assert set(wrong(verify(folder))) <= {"table: rows", "facts"}
    found = wrong(verify(folder, ledger_of(originals, "histogram")))
    assert "is not the one that was sealed" in found["ledger"]


def test_a_ledger_that_was_rolled_back_contradicts_what_was_published(tmp_path):
    job = released.job(tmp_path)
    release(job, output=tmp_path / "first")
    old = job.spec.ledger_file.read_bytes()
    folder = release(job, output=tmp_path / "second")
    job.spec.ledger_file.write_bytes(old)
    assert wrong(verify(folder, Ledger(job.spec.ledger_file)))["ledger"] == "the release was not charged in this ledger"
    assert verify(tmp_path / "first", Ledger(job.spec.ledger_file)).ok
    # somebody makes the same charge and seal again in a chain of his own
    ledger, found = Ledger(job.spec.ledger_file), read_certificate(folder)
    parts = [tuple(table.statements) for table in found.tables]
    about = {"release": found.release, "when": "2026-01-01T00:00:00+00:00"}
    ledger.charge(job.dataset, job.unit, parts, title=found.title, spec_hash=found.spec_hash, **about)
    ledger.seal(job.dataset, job.unit, certificate=run.sha256_of(folder / "certificate.json"), folder=folder, **about)
    assert "an old copy was put back" in wrong(verify(folder, ledger))["ledger"]


# --- signatures ----------------------------------------------------------------------------------------------------


def test_a_signed_release_says_by_whom_and_an_unsigned_one_by_nobody(originals):
    signer = read_key(originals["moved"].parents[1] / "key")
    said = {check.name: check.sentence for check in verify(originals["moved"]).checks}
    assert said["signature"].startswith(f"signed by {signer.fingerprint}; name the public key")
    assert signer.fingerprint in (originals["moved"] / "report.html").read_text()
    assert "signed by nobody" in (originals["histogram"] / "report.html").read_text()
    nobody = {check.name: check.sentence for check in verify(originals["histogram"]).checks}
    assert nobody["signature"].startswith("signed by nobody")
    public = originals["moved"].parents[1] / "key.pub"
    assert verify(originals["moved"], key=public).ok
    assert "signed by nobody" in wrong(verify(originals["histogram"], key=public))["signature"]


def test_another_key_a_revoked_one_and_a_changed_certificate_are_refused(originals, copies, tmp_path):
    public = (originals["moved"].parents[1] / "key.pub").read_text()
    folder, other = copies("moved"), tmp_path / "other"
    fingerprint = write_key(other).fingerprint
    assert "that you do not trust" in wrong(verify(folder, key=tmp_path / "other.pub"))["signature"]
    both = tmp_path / "trusted"
    both.write_text(f"# ours\n{public}{(tmp_path / 'other.pub').read_text()}")  # a rotated key
    assert verify(folder, key=both).ok
    signer = read_certificate(folder).signed_by
    both.write_text(f"{both.read_text()}revoked {signer} lost\n")
    assert "was revoked" in wrong(verify(folder, key=both))["signature"]
    # changed with all hashes renewed, then signed by nobody, then by another key
    certificate = tampering.certificate_of(folder)
    certificate["caveats"] = ["none"]
    tampering.sealed(folder, certificate)
    assert "is not one of what it stands beside" in wrong(verify(folder))["signature"]
    (folder / "certificate.json.sig").unlink()
    assert "missing" in wrong(verify(folder))["signature"]
    certificate["signed_by"] = None
    tampering.sealed(folder, certificate)
    assert wrong(verify(folder, key=both))["signature"].startswith("it is signed by nobody")
    assert fingerprint in read_trusted(both)


def test_keys_are_private_and_have_a_passphrase_if_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_PASSPHRASE", "a long one")
    result = CliRunner().invoke(app, ["key", str(tmp_path / "key")])
    assert result.exit_code == 0
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert b"ENCRYPTED" in (tmp_path / "key").read_bytes()
    signer = read_key(tmp_path / "key")
    assert signer.fingerprint in result.stdout
    monkeypatch.setenv("HOLDFAST_PASSPHRASE", "another")
    with pytest.raises(hf.Refused, match="the passphrase is wrong"):
        read_key(tmp_path / "key")
    monkeypatch.delenv("HOLDFAST_PASSPHRASE")
    with pytest.raises(hf.Refused, match="set HOLDFAST_PASSPHRASE"):
        read_key(tmp_path / "key")
    with pytest.raises(hf.Refused, match="exists already"):
        write_key(tmp_path / "key")
    (tmp_path / "key").chmod(0o644)
    with pytest.raises(hf.Refused, match="others may read the key"):
        read_key(tmp_path / "key")


@pytest.mark.parametrize(
    "content", ["", "holdfast-key\n", "holdfast-key !!!\n", "revoked x\n", "\x00", "holdfast-key QQ==\n"]
)
def test_files_without_keys_are_refused(tmp_path, content):
    (tmp_path / "keys").write_text(content)
    with pytest.raises(hf.Refused):
        read_trusted(tmp_path / "keys")


def test_a_missing_key_costs_nothing(tmp_path):
    job = released.job(tmp_path, more="sign: nowhere.key")
    with pytest.raises(hf.Refused, match="cannot be read"):
        release(job)
    assert not Ledger(job.spec.ledger_file).exists


# --- the verifier by itself ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_verifier_by_itself_agrees(originals, kind):
    assert tampering.broken(originals[kind]) == ({}, {})


def test_a_method_that_stands_for_several_and_a_column_of_any_name_are_verified(tmp_path):
    job = released.job(tmp_path, "contingency", ("method: onto", "method: extend"))
    assert tampering.broken(release(job)) == ({}, {})
    person = "unit: {column: 'state. Name', max_records: 1}, neighbours: add-remove"
    changes = ("unit: record, neighbours: replace-one", person), ("state: [X", "'state. Name': [X")
    job, records = released.job(tmp_path / "persons", "histogram", *changes), tmp_path / "persons" / "trips.csv"
    records.write_text(records.read_text().replace("state", "state. Name", 1))
    assert tampering.broken(release(job)) == ({}, {})


def test_the_file_in_a_release_runs_by_itself(originals, copies):
    code, said = tampering.run(originals["moved"])
    assert code == 0, said
    assert said.endswith("Everything is as certified.\n")
    assert tampering.run(originals["moved"], "--key", str(originals["moved"].parents[1] / "key.pub"))[0] == 0
    assert tampering.run(originals["histogram"], "--key", str(originals["moved"].parents[1] / "key.pub"))[0] == 5
    folder = copies("hierarchy")
    tampering.forged(folder, lambda columns: columns["value"].__setitem__(-1, columns["value"][-1] + 1))
    code, said = tampering.run(folder)
    assert code == 5
    assert "BROKEN" in said
    assert tampering.run(originals["moved"], str(folder.parent))[0] == 3
    assert "import holdfast" not in one_file()
    assert "from holdfast" not in one_file()


@pytest.mark.slow
def test_the_verifier_by_itself_and_the_library_agree_on_what_was_tampered_with(originals, tmp_path):
    """A share of the campaign's tampered releases; whatever the library misses, the ledger catches."""
    source, seen = random.Random(5), 0
    for number in range(60):
        kind = KINDS[number % len(KINDS)]
        folder = shutil.copytree(originals[kind], tmp_path / str(number), symlinks=True)
        what = tampering.at_random(folder, source)
        library, alone = tampering.broken(folder)
        assert tampering.disagree(library, alone) is None, what
        assert library or "ledger" in wrong(verify(folder, ledger_of(originals, kind))), what
        seen += bool(alone)
        shutil.rmtree(folder)
    assert seen > 30


@pytest.mark.parametrize(
    ("kind", "path", "value", "sentence"),
    [
        ("hierarchy", ("tables", 0, "unprotected"), [], "names nothing that is not protected"),
        ("hierarchy", ("tables", 0, "unprotected", 0, "rows"), [], "is not among what is not protected"),
        ("hierarchy", ("tables", 0, "unprotected", 0, "rows", 0, 1), 10**6, "speaks of rows that the table does not"),
        ("hierarchy", ("tables", 0, "unprotected", 1, "rows", 0, 0), 20, "speaks of rows that the table does not"),
        ("hierarchy", ("tables", 0, "noise_by_level", 0, "level"), "other", "noise at a level that the table does not"),
        ("histogram", ("tables", 0, "holds", "whole"), False, "are not real numbers"),
        ("hierarchy", ("protected",), "Everybody.", "another sentence on who is protected"),
        ("histogram", ("spec", "title"), "Other", "another title in the spec"),
        ("histogram", ("title",), "Other", "another title in the spec"),
        ("histogram", ("spec", "privacy", "neighbours"), "add-remove", "another kind of neighbours in the spec"),
        ("histogram", ("unit",), "person: rider", "another unit in the spec"),
        ("contingency", ("caveats",), [], "is not among the caveats"),
        ("moved", ("statements", 0, "assumes"), [], "leaves out, or assumes, something else"),
        ("hierarchy", ("tables", 0, "method"), "onto", "another method than was chosen or asked for"),
        ("moved", ("spec", "tables", 0, "method"), "given", "another method than was chosen or asked for"),
        ("several", ("spec", "tables", 0, "name"), "X", "the spec has no table sexes"),
    ],
)
def test_both_find_what_contradicts_itself(copies, kind, path, value, sentence):
    folder = copies(kind)
    certificate = tampering.certificate_of(folder)
    tampering.replaced(certificate, path, value)
    tampering.sealed(folder, certificate)
    for found in tampering.broken(folder):
        assert any(sentence in words for words in found.values()), found


def an_entry_twice(folder, certificate):
    table, columns = certificate["tables"][0], read_parquet(folder / "table.parquet")
    tampering.forged(folder, lambda found: found.update({name: np.append(c, c[-1:]) for name, c in columns.items()}))
    table["rows"], table["outputs"] = table["rows"] + 1, table["outputs"] + 1
    for each in (table["noise_by_level"][0], table["noise_by_level"][0]["noise"][0]):
        each["figures"] += 1


def another_level(folder, certificate):
    tampering.forged(folder, lambda columns: columns["level"].__setitem__(slice(1, 3), "zone"))


def levels_turned_round(folder, certificate):
    certificate["tables"][0]["levels"].reverse()


def an_epsilon_beside_another(folder, certificate):
    certificate["tables"][0]["statements"][0]["epsilon"] /= 2


def nothing_unprotected_in_words(folder, certificate):
    certificate["unprotected"] = []


def nothing_unprotected_in_a_table(folder, certificate):
    certificate["tables"][0]["unprotected"] = certificate["tables"][0]["unprotected"][:1]


def nothing_unprotected_in_a_statement(folder, certificate):
    certificate["statements"][0]["unprotected"] = []


def other_neighbours(folder, certificate):
    certificate["statements"][0]["neighbours"]["records"] += 1


def another_reason(folder, certificate):
    certificate["statements"][0]["because"] = "It is so."


def an_estimate_called_proved(folder, certificate):
    certificate["tables"][0]["statements"][0]["status"] = "estimated"


def another_scale(folder, certificate):
    certificate["tables"][0]["noise_by_level"][0]["noise"][0]["scale"] *= 2


def no_width(folder, certificate):
    prefix = certificate["tables"][0]["csv"].removesuffix("table.csv")
    tampering.forged(folder, lambda c: c.update(low=c["value"].astype(float), high=c["value"].astype(float)), prefix)


def a_file_twice(folder, certificate):
    certificate["files"].append(certificate["files"][0])


def a_rule_less(folder, certificate):
    certificate["tables"][0]["holds"]["consistent"] = False


@pytest.mark.parametrize(
    ("kind", "forge", "check", "sentence"),
    [
        ("histogram", an_entry_twice, "table: rows", "two rows with the same names"),
        ("hierarchy", another_level, "table: rows", "call themselves zone and have the names of another level"),
        ("hierarchy", levels_turned_round, "table: rows", "call themselves city and have the names of another level"),
        (
            "contingency",
            levels_turned_round,
            "table: rows",
            "call themselves sex × age and have the names of another level",
        ),
        ("several", an_epsilon_beside_another, "facts", "the epsilon of the tables is not that of the certificate"),
        ("hierarchy", an_epsilon_beside_another, "facts", "the epsilon of the tables is not that of the certificate"),
        ("hierarchy", nothing_unprotected_in_words, "facts", "lists figures that are not"),
        ("hierarchy", nothing_unprotected_in_a_table, "facts", "another number of figures that are follows from exact"),
        ("hierarchy", nothing_unprotected_in_a_statement, "facts", "a statement about some changes alone"),
        ("hierarchy", other_neighbours, "facts", "speaks of other changes of the data than its tables"),
        ("several", another_reason, "facts", "the reason of the first statement is not that of the tables"),
        ("hierarchy", another_reason, "facts", "the reason of the first statement is not that of the tables"),
        ("several", an_estimate_called_proved, "facts", "calls proved what is estimated"),
        ("histogram", another_scale, "facts", "the scale of the noise of age is not its parameter"),
        ("several", no_width, "sexes: intervals", "intervals of its figures have no width"),
        ("contingency", no_width, "table: intervals", "intervals of its figures have no width"),
        ("histogram", a_file_twice, "facts", "a file is listed twice"),
        ("moved", a_rule_less, "facts", "the spec asks the table table to be consistent"),
    ],
)
def test_both_find_a_forger_who_renews_everything(originals, tmp_path, kind, forge, check, sentence):
    """Hashes, seal and the hash of the domain are as they should be."""
    folder = shutil.copytree(originals[kind], tmp_path / kind)
    certificate = tampering.certificate_of(folder)
    forge(folder, certificate)
    for table in certificate["tables"]:
        columns = tampering.columns_of(folder / table["csv"])
        table["domain_hash"] = tampering.domain_hash(table, columns)
    certificate["signed_by"] = None
    (folder / "certificate.json.sig").unlink(missing_ok=True)
    tampering.sealed(folder, certificate)
    for found in tampering.broken(folder):
        assert sentence in found[check], found


def test_signatures_of_rfc_8032():
    key = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
    signature = bytes.fromhex(
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aee"
        "b00d291612bb0c00"
    )
    assert is_signature(key, signature, b"\x72")
    assert not is_signature(key, signature, b"\x73")
    assert not is_signature(key, signature[:-1] + b"\x10", b"\x72")
    assert not is_signature(b"\xff" * 32, signature, b"\x72")


def test_keys_whose_signatures_anybody_can_make_are_refused(tmp_path):
    nothing = (1).to_bytes(32, "little")  # the point that adds nothing, and as a signature of every text
    assert Ed25519PublicKey.from_public_bytes(nothing).verify(nothing + bytes(32), b"any") is None
    assert not is_signature(nothing, nothing + bytes(32), b"any")
    eighth = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc"
    for text in ("00" * 32, "00" * 31 + "80", nothing.hex(), "ec" + "ff" * 30 + "7f", f"{eighth}05", f"{eighth}85"):
        key = bytes.fromhex(text)
        assert times(8, point_of(key))[0] == 0
        (tmp_path / "keys").write_text(f"holdfast-key {base64.b64encode(key).decode()}\n")
        with pytest.raises(hf.Refused, match="is no key"):
            read_trusted(tmp_path / "keys")


# --- links and other traps ------------------------------------------------------------------------------------------


def test_a_planted_link_is_not_followed(tmp_path):
    job = released.job(tmp_path)
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("mine")
    (tmp_path / ".out.partial").symlink_to(precious)
    with pytest.raises(hf.Refused, match="is a link or a file, and stands in the way"):
        release(job)
    assert (precious / "file").read_text() == "mine"
    assert not Ledger(job.spec.ledger_file).exists


def test_links_inside_what_a_dead_release_left_are_removed_and_not_followed(tmp_path):
    job = released.job(tmp_path)
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("mine")
    partial = tmp_path / ".out.partial"
    partial.mkdir()
    (partial / "folder").symlink_to(precious)
    (partial / "deep").mkdir()
    (partial / "deep" / "table.csv").symlink_to(precious / "file")
    (partial / "certificate.json").symlink_to(precious / "file")
    assert verify(release(job)).ok
    assert (precious / "file").read_text() == "mine"


def test_a_folder_that_is_swapped_for_a_link_while_it_is_written_is_not_published(tmp_path):
    job = released.job(tmp_path)
    precious, partial = tmp_path / "precious", tmp_path / ".out.partial"
    precious.mkdir()

    def swap(words):
        if words == "writing the files":
            partial.rename(tmp_path / "taken")
            partial.symlink_to(precious)

    with pytest.raises(hf.Refused, match="somebody put another folder in its place"):
        release(job, step=swap)
    assert list(precious.iterdir()) == []
    assert not (tmp_path / "out").exists()
    (entry,) = Ledger(job.spec.ledger_file).entries()
    assert entry.state == "drawn, not published"


def test_while_it_is_written_nobody_else_can_read_it(tmp_path):
    modes = []
    job = released.job(tmp_path)
    release(job, step=lambda _: modes.extend(path.stat().st_mode & 0o777 for path in tmp_path.glob(".out.partial")))
    assert set(modes) == {0o700}


@pytest.mark.parametrize("what", ["link", "twice", "unknown"])
def test_a_linked_certificate_a_key_that_occurs_twice_and_unknown_files_are_refused(copies, what):
    folder = copies("histogram")
    path = folder / "certificate.json"
    if what == "link":
        path.rename(folder.parent / "elsewhere.json")
        path.symlink_to(folder.parent / "elsewhere.json")
    elif what == "twice":
        path.write_text(path.read_text().replace('"title"', '"title": "Other", "title"', 1))
    else:
        (folder / "more.txt").write_text("more")
    library, alone = tampering.broken(folder)
    assert set(library) == set(alone) == {"files" if what == "unknown" else "certificate"}


# --- what is said ---------------------------------------------------------------------------------------------------


def test_a_release_whose_folder_has_its_name_is_not_refused(tmp_path, monkeypatch):
    job, told = released.job(tmp_path), []
    publish = run.publish

    def careless(place, folder):
        publish(place, folder)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(run, "publish", careless)
    folder = release(job, aside=told.append)
    assert verify(folder, Ledger(job.spec.ledger_file)).ok
    assert "is published" in told[-1]
    (entry,) = Ledger(job.spec.ledger_file).entries()
    assert entry.state == "published"


def pipe(path):
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("name", ["table.csv", "table.parquet", "certificate.json"])
@pytest.mark.parametrize("change", [pipe, lambda path: os.truncate(path, 1 << 40)])
def test_what_would_never_end_is_not_read(copies, name, change):
    folder = copies("histogram")
    change(folder / name)
    library, alone = tampering.broken(folder)
    assert library
    assert alone


def test_names_of_files_do_not_speak_to_the_terminal(copies, capsys):
    folder = copies("histogram")
    (folder / "x\r\x1b[2Kholds").touch()
    (folder / os.fsdecode(b"\xff")).touch()
    assert check_alone([str(folder)]) == 5
    told = capsys.readouterr().out + str(verify(folder)) + CliRunner().invoke(app, ["verify", str(folder)]).stdout
    assert told.count("x\\r\\x1b[2Kholds does not belong to the release") == 3
    assert "\x1b" not in told
    assert "\r" not in told


def test_a_certificate_is_read_once(originals, copies, monkeypatch):
    """Whoever puts the sealed one back while another is being checked gains nothing."""
    folder = copies("histogram")
    tampering.forged(folder, lambda columns: columns["value"].__setitem__(0, 999))
    put_back = verifying.read_certificate

    def read(place, *given):
        found = put_back(place, *given)
        shutil.copy(originals["histogram"] / "certificate.json", place)
        return found

    monkeypatch.setattr(verifying, "read_certificate", read)
    verdict = verify(folder, ledger_of(originals, "histogram"))
    assert "is not the one that was sealed" in wrong(verdict)["ledger"]


def test_interrupted_after_the_folder_has_its_name_it_says_so(tmp_path, monkeypatch):
    job, publish = released.job(tmp_path), run.publish

    def interrupted(place, folder):
        publish(place, folder)
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "publish", interrupted)
    with pytest.raises(KeyboardInterrupt) as stopped:
        release(job)
    assert stopped.value.__notes__ == [PUBLISHED]


def test_the_text_of_a_foreign_error_is_not_shown(tmp_path, monkeypatch):
    path = released.written(tmp_path)

    rehearsal = iter([run.write_release])

    def fail(*given):
        for write in rehearsal:
            return write(*given)
        raise RuntimeError("record 7 is Jane Doe")

    monkeypatch.setattr(run, "write_release", fail)
    result = CliRunner().invoke(app, ["release", str(path)])
    assert result.exit_code == 1
    assert "Jane" not in result.stderr
    assert "nothing was published" in result.stderr
    listed = CliRunner().invoke(app, ["ledger", "list", "--file", str(tmp_path / "holdfast-ledger.sqlite"), "--json"])
    assert json.loads(listed.stdout)[0]["state"] == "drawn, not published"


def test_the_chain_is_checked_by_the_command(originals, tmp_path):
    path = shutil.copy(originals["histogram"].parent / "holdfast-ledger.sqlite", tmp_path / "book.sqlite")
    result = CliRunner().invoke(app, ["ledger", "verify", "--file", str(path), "--json"])
    assert json.loads(result.stdout) == {"rows": 5, "head": Ledger(path).rows()[-1].hash}
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER holdfast_ledger_no_update")
    connection.close()
    assert CliRunner().invoke(app, ["ledger", "verify", "--file", str(path)]).exit_code == 3
