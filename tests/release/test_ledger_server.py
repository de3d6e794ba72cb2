"""A ledger on a real PostgreSQL server: one writer at a time, append-only, and the same chain as in a file."""

import os

import psycopg
import pytest

import holdfast as hf
import postgres
import released
from at_once import charged_at_once
from holdfast.release.certificate.verify import verify
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.run import release

DATA = ("trips", "record")
STATEMENTS = hf.laplace(hf.histogram(4), epsilon=0.125).guarantees


@pytest.fixture(scope="module")
def address():
    try:
        with postgres.server() as found:
            yield found
    except postgres.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def ledger(address, monkeypatch):
    """A fresh database for every test; its address is in the environment."""
    name = f"book{os.urandom(4).hex()}"
    whole = f"postgresql://{postgres.USER}:{postgres.PASSWORD}@{address}"
    with psycopg.connect(whole, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    monkeypatch.setenv("PGUSER", postgres.USER)
    monkeypatch.setenv("PGPASSWORD", postgres.PASSWORD)
    monkeypatch.setenv("HOLDFAST_LEDGER", f"postgresql://{address.removesuffix('/postgres')}/{name}")
    return Ledger("postgresql")


def charge(ledger, name):
    about = {"title": "Trips", "spec_hash": "sha256:0", "when": "2026-01-01T00:00:00+00:00"}
    ledger.charge(*DATA, [STATEMENTS], release=name, **about)


def forced(*statements):
    """Change the table as its owner can: without its triggers."""
    with psycopg.connect(os.environ["HOLDFAST_LEDGER"]) as connection:
        connection.execute("ALTER TABLE holdfast_ledger DISABLE TRIGGER ALL")
        for words in statements:
            connection.execute(words)
        connection.execute("ALTER TABLE holdfast_ledger ENABLE TRIGGER ALL")


def test_a_release_is_charged_and_sealed_on_a_server_with_a_file_as_its_witness(ledger, tmp_path):
    job = released.job(tmp_path, more="ledger: {file: postgresql, witness: witness.sqlite}")
    folder = release(job)
    assert verify(folder, ledger).ok
    (entry,) = ledger.entries()
    assert entry.state == "published"
    assert Ledger(tmp_path / "witness.sqlite").rows() == ledger.verify()
    assert not (tmp_path / "holdfast-ledger.sqlite").exists()
    assert postgres.PASSWORD not in str(ledger.path)


def test_an_empty_server_is_an_empty_ledger_and_reading_makes_nothing(ledger):
    assert ledger.entries() == []
    assert not ledger.exists


def test_processes_at_once_never_overspend(ledger):
    ledger.set_budget(*DATA, epsilon=1)
    assert charged_at_once(4, 4, lambda name: charge(ledger, name)) == 8
    assert len(ledger.verify()) == 10


@pytest.mark.parametrize(
    "words", ["UPDATE holdfast_ledger SET content = '[]'", "DELETE FROM holdfast_ledger", "TRUNCATE holdfast_ledger"]
)
def test_the_record_cannot_be_changed(ledger, words):
    charge(ledger, "one")
    before = ledger.rows()
    with (
        psycopg.connect(os.environ["HOLDFAST_LEDGER"]) as connection,
        pytest.raises(psycopg.Error, match="append-only"),
    ):
        connection.execute(words)
    assert ledger.rows() == before
    with pytest.raises(hf.Refused, match="append-only"):
        charge(ledger, "one")


@pytest.mark.parametrize(
    "words",
    [
        "DELETE FROM holdfast_ledger WHERE number = 2",
        "UPDATE holdfast_ledger SET dataset = 'others' WHERE number = 3",
        "UPDATE holdfast_ledger SET content = replace(content, '0.125', '0.012') WHERE number = 3",
    ],
)
def test_whatever_its_owner_changes_is_found_and_nothing_is_charged_on_top(ledger, words):
    charge(ledger, "one")
    charge(ledger, "two")
    forced(words)
    for use in (ledger.verify, lambda: charge(ledger, "three"), ledger.entries):
        with pytest.raises(hf.Refused, match="does not follow from the rows before it"):
            use()
    with psycopg.connect(os.environ["HOLDFAST_LEDGER"]) as connection:
        connection.execute("ALTER TABLE holdfast_ledger DISABLE TRIGGER ALL")
    with pytest.raises(hf.Refused, match="lost what makes it append-only"):
        ledger.rows()


def test_triggers_that_are_there_and_do_nothing_are_refused(ledger):
    """An owner can make them harmless: other code, fewer events, a condition that never holds."""
    charge(ledger, "one")
    nothing = "CREATE OR REPLACE FUNCTION holdfast_ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS "
    made = "CREATE OR REPLACE TRIGGER holdfast_ledger_no_change BEFORE {} ON holdfast_ledger FOR EACH ROW {} "
    made += "EXECUTE FUNCTION holdfast_ledger_refuse()"
    for words in (
        nothing + "$$ BEGIN RETURN OLD; END $$",
        made.format("UPDATE", ""),
        made.format("UPDATE OR DELETE", "WHEN (false)"),
        "DROP TRIGGER holdfast_ledger_no_truncate ON holdfast_ledger",
    ):
        with psycopg.connect(os.environ["HOLDFAST_LEDGER"]) as connection:
            connection.execute(words)
            connection.commit()
        with pytest.raises(hf.Refused, match="lost what makes it append-only"):
            charge(ledger, "two")
        if "no_truncate" not in words:
            with psycopg.connect(os.environ["HOLDFAST_LEDGER"]) as connection:
                connection.execute(nothing + "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$")
                connection.execute(made.format("UPDATE OR DELETE", ""))
            ledger.verify()


def test_whoever_may_only_add_rows_can_change_none(ledger, address):
    """A role with SELECT and INSERT charges, and every way to change a row is refused; so is a session of a copy."""
    charge(ledger, "one")
    before = ledger.rows()
    with psycopg.connect(os.environ["HOLDFAST_LEDGER"]) as connection:
        role = f"adder{os.urandom(4).hex()}"
        connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'adds'")
        connection.execute(f"GRANT SELECT, INSERT ON holdfast_ledger TO {role}")
        connection.execute(f"GRANT SET ON PARAMETER session_replication_role TO {role}")
    place = os.environ["HOLDFAST_LEDGER"].removeprefix("postgresql://")
    adder = f"postgresql://{role}:adds@{place}"
    row = "SELECT 2, at, kind, dataset, unit, key, '{}', hash FROM holdfast_ledger WHERE number = 2"
    for words in (
        "UPDATE holdfast_ledger SET content = '{}'",
        "DELETE FROM holdfast_ledger",
        "TRUNCATE holdfast_ledger",
        f"INSERT INTO holdfast_ledger {row}",
        f"INSERT INTO holdfast_ledger {row} ON CONFLICT (number) DO UPDATE SET content = '{{}}'",
        f"MERGE INTO holdfast_ledger USING ({row}) s ON holdfast_ledger.number = 2 WHEN MATCHED THEN DELETE",
        "ALTER TABLE holdfast_ledger DISABLE TRIGGER ALL",
        "DROP TABLE holdfast_ledger",
        "CREATE RULE r AS ON INSERT TO holdfast_ledger DO INSTEAD NOTHING",
        "LOCK TABLE holdfast_ledger IN ACCESS EXCLUSIVE MODE",
        "CREATE OR REPLACE FUNCTION holdfast_ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN END$$",
    ):
        with psycopg.connect(adder) as connection, pytest.raises(psycopg.Error):
            connection.execute(words)
    charge(Ledger(adder), "two")
    assert ledger.verify()[: len(before)] == before
    with psycopg.connect(os.environ["HOLDFAST_LEDGER"]) as connection:  # as the owner, in a session of a copy
        connection.execute("SET session_replication_role = replica")
        with pytest.raises(psycopg.Error, match="append-only"):
            connection.execute("DELETE FROM holdfast_ledger")


def test_processes_at_once_keep_to_the_budget(ledger):
    ledger.set_budget(*DATA, epsilon=2)
    assert charged_at_once(3, 7, lambda name: charge(ledger, name)) == 16
    assert [row.kind for row in ledger.verify()].count("charge") == 16


def test_a_connection_that_is_killed_within_a_charge_leaves_nothing(ledger):
    charge(ledger, "one")

    def killed():
        with ledger.writing() as (_, add):
            add("charge", {}, key="half")
            with psycopg.connect(os.environ["HOLDFAST_LEDGER"], autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")

    with pytest.raises(hf.Refused, match="cannot be reached"):
        killed()
    assert [row.kind for row in ledger.verify()] == ["ledger", "charge"]
    charge(ledger, "two")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("PGPASSWORD", "wr0ng", "refuses this user or password"),
        ("PGPASSWORD", None, "asks for a password"),
        ("HOLDFAST_LEDGER", "nowhere", "has another name on its server"),
    ],
)
def test_whoever_is_kept_out_need_not_try_again(ledger, monkeypatch, name, value, words):
    assert ledger.entries() == []
    if name == "HOLDFAST_LEDGER":
        value = f"{os.environ[name].rpartition('/')[0]}/{value}"
    monkeypatch.delenv(name) if value is None else monkeypatch.setenv(name, value)
    with pytest.raises(hf.Refused, match=words) as caught:
        Ledger("postgresql").entries()
    assert not caught.value.retry
    assert "wr0ng" not in str(caught.value)


@pytest.mark.parametrize("address", ["", "mysql://x", "postgresql://127.0.0.1:1/nowhere"])
def test_an_address_that_is_none_and_a_server_that_is_away_are_refused(monkeypatch, address):
    monkeypatch.setenv("HOLDFAST_LEDGER", address)
    with pytest.raises(hf.Refused, match="HOLDFAST_LEDGER"):
        Ledger("postgresql").entries()
