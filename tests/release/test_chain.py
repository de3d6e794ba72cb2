"""The chain of the ledger: what is changed, removed, reordered, renamed or put back is found, and not charged on."""

import json
import random
import shutil
import sqlite3

import pytest

import holdfast as hf
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.ledger.store import BEGINNING, COLUMNS, SCHEMA, TABLE, Row, hash_of
from holdfast.release.storage import files

DATA = ("trips", "record")
STATEMENTS = hf.laplace(hf.histogram(4), epsilon=0.125).guarantees


def charge(ledger, release):
    about = {"title": "Trips", "spec_hash": "sha256:0", "when": "2026-01-01T00:00:00+00:00"}
    ledger.charge(*DATA, [STATEMENTS], release=release, **about)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "ledger.sqlite")
    ledger.set_budget(*DATA, epsilon=1)
    for release in ("one", "two", "three"):
        charge(ledger, release)
    return ledger.path


@pytest.fixture
def ledger(original, tmp_path):
    return Ledger(shutil.copy(original, tmp_path / "ledger.sqlite"))


def forced(path, *statements):
    """Change a ledger as somebody would who can write the file: without its triggers, which are put back."""
    with sqlite3.connect(path) as connection:
        triggers = [name for name, made in SCHEMA.items() if made.startswith("CREATE TRIGGER")]
        for name in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for words in statements:
            connection.execute(*words) if isinstance(words, tuple) else connection.execute(words)
        for name in triggers:
            connection.execute(SCHEMA[name])
    connection.close()


CHANGES = {
    "a row in between is removed": [f"DELETE FROM {TABLE} WHERE number = 3"],
    "and the rest moves up": [
        f"DELETE FROM {TABLE} WHERE number = 3",
        f"UPDATE {TABLE} SET number = number - 1 WHERE number > 3",
    ],
    "the first row is removed": [f"DELETE FROM {TABLE} WHERE number = 1"],
    "two rows are swapped": [
        f"UPDATE {TABLE} SET number = 99 WHERE number = 3",
        f"UPDATE {TABLE} SET number = 3 WHERE number = 4",
        f"UPDATE {TABLE} SET number = 4 WHERE number = 99",
    ],
    "a charge is lowered": [f"UPDATE {TABLE} SET content = replace(content, '0.125', '0.012') WHERE number = 5"],
    "a charge is renamed": [f"UPDATE {TABLE} SET dataset = 'others' WHERE number = 4"],
    "a budget is raised": [f'UPDATE {TABLE} SET content = \'{{"budget": {{"epsilon": "9"}}}}\' WHERE number = 2'],
    "no statements are left": [f"UPDATE {TABLE} SET content = '{{}}' WHERE number = 3"],
    "the last time is changed": [f"UPDATE {TABLE} SET at = '2020-01-01' WHERE number = 5"],
    "everything is removed": [f"DELETE FROM {TABLE}"],
    "the hash is no text": [f"UPDATE {TABLE} SET hash = x'00' WHERE number = 5"],
}


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_is_changed_is_found_and_nothing_is_charged_on_top(ledger, name):
    forced(ledger.path, *CHANGES[name])
    before = ledger.path.read_bytes()
    for use in (ledger.verify, lambda: charge(ledger, "four"), lambda: ledger.account(*DATA), ledger.entries):
        with pytest.raises(hf.Refused, match="restore"):
            use()
    assert ledger.path.read_bytes() == before


def test_a_chain_that_is_made_anew_without_statements_is_refused_too(ledger):
    rows = list(ledger.rows())
    content = json.loads(rows[2].content)
    rows[2] = rows[2]._replace(content=json.dumps({**content, "statements": []}))
    for number, row in enumerate(rows):
        rows[number] = row._replace(hash=hash_of(rows[number - 1].hash if number else BEGINNING, number + 1, row))
    insert = f"INSERT INTO {TABLE} VALUES ({', '.join('?' * len(COLUMNS))})"
    forced(ledger.path, f"DELETE FROM {TABLE}", *((insert, tuple(row)) for row in rows))
    assert len(ledger.rows()) == 5
    with pytest.raises(hf.Refused, match="row 3 of the ledger, a charge, cannot be read"):
        charge(ledger, "four")
    with pytest.raises(hf.Refused, match="row 3"):
        ledger.verify()


def test_without_its_triggers_a_ledger_is_refused(ledger):
    with sqlite3.connect(ledger.path) as connection:
        connection.execute(f"DROP TRIGGER {TABLE}_no_delete")
    connection.close()
    with pytest.raises(hf.Refused, match="lost what makes it append-only"):
        charge(ledger, "four")


def test_a_charge_of_nothing_is_refused(ledger):
    for parts in ([], [[]], [STATEMENTS, []]):
        with pytest.raises(hf.Refused, match="needs a statement of every table"):
            ledger.charge(*DATA, parts, release="x", title="x", spec_hash="x", when="x")


@pytest.mark.slow
def test_flipped_bits_are_refused_or_change_nothing(original, tmp_path):
    """120 of the campaign's flips: whatever can be read is what was written, and everything else is refused."""
    whole, content = Ledger(original).rows(), original.read_bytes()
    source, refused, said = random.Random(7), 0, []
    for number in range(120):
        place, bit = source.randrange(len(content)), source.randrange(8)
        changed = bytearray(content)
        changed[place] ^= 1 << bit
        path = tmp_path / f"{number}.sqlite"
        path.write_bytes(changed)
        ledger = Ledger(path)
        try:
            assert ledger.verify() == whole, (place, bit)
            charge(ledger, "four")
            assert ledger.rows()[: len(whole)] == whole
        except hf.Refused as refusal:
            refused += 1
            said.append(str(refusal))
            assert b"four" not in path.read_bytes()
        path.unlink()
    assert refused > 12
    assert all(any(words in each for words in ("restore", "use a newer one", "check its folder")) for each in said)


def test_a_witness_follows_and_an_old_copy_is_found(ledger, tmp_path):
    witness = tmp_path / "elsewhere.sqlite"
    both = Ledger(ledger.path, witness)
    old = ledger.path.read_bytes()
    charge(both, "four")
    assert Ledger(witness).rows() == both.rows()
    ledger.path.write_bytes(old)
    for use in (both.verify, lambda: charge(both, "five")):
        with pytest.raises(hf.Refused, match="contradicts its witness"):
            use()
    assert len(ledger.rows()) == 5


def test_a_witness_that_is_behind_follows_later(ledger, tmp_path):
    both = Ledger(ledger.path, tmp_path / "elsewhere.sqlite")
    charge(both, "four")
    charge(ledger, "five")  # as if killed between the two
    charge(both, "six")
    assert Ledger(tmp_path / "elsewhere.sqlite").rows() == ledger.rows()


def test_a_witness_is_another_place(ledger):
    with pytest.raises(hf.Refused, match="is the ledger itself"):
        Ledger(ledger.path, ledger.path)


def test_only_its_owner_can_read_a_new_ledger(original):
    assert original.stat().st_mode & 0o777 == 0o600


def test_a_ledger_on_a_network_is_refused(tmp_path, monkeypatch):
    from holdfast.release.ledger import store as ledger_file

    monkeypatch.setattr(ledger_file, "network_of", lambda _: "nfs4")
    with pytest.raises(hf.Refused, match=r"on a network \(nfs4\).*ledger: postgresql"):
        charge(Ledger(tmp_path / "ledger.sqlite"), "one")


def test_the_kind_of_a_file_system_is_read_from_the_mounts(tmp_path, monkeypatch):
    mounts = tmp_path / "mounts"
    mounts.write_text("disk / ext4 rw 0 0\nserver:/x /mnt/some\\040where nfs4 rw 0 0\n")
    monkeypatch.setattr(files, "MOUNTS", mounts)
    assert files.network_of(files.Path("/mnt/some where/deep")) == "nfs4"
    assert files.network_of(files.Path("/mnt")) is None


def test_a_ledger_of_another_version_is_refused(ledger):
    with sqlite3.connect(ledger.path) as connection:
        counted = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.execute(f"PRAGMA user_version = {counted + 1}")
    connection.close()
    with pytest.raises(hf.Refused, match="has version 2, and this holdfast reads 1"):
        ledger.entries()


def test_rows_are_those_of_the_table():
    assert Row._fields == COLUMNS
