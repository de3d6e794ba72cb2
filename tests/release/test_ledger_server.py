"""A ledger on a real PostgreSQL server: one writer at a time, append-only, and the same chain as in a file."""

import os
import sys

import psycopg
import pytest

import holdfast as hf
import postgres
import released
from holdfast.release.certificate.verify import verify
from holdfast.release.ledger.ledger import Ledger, Overspent
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
    children = []
    for process in range(4):
        child = os.fork()
        if child == 0:
            done = 0
            for number in range(4):
                try:
                    charge(ledger, f"{process}-{number}")
                    done += 1
                except Overspent:
                    pass
                except BaseException as error:
                    print(process, number, error, file=sys.stderr, flush=True)
                    os._exit(99)
            os._exit(done)
        children.append(child)
    assert sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children) == 8
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


@pytest.mark.parametrize("address", ["", "mysql://x", "postgresql://127.0.0.1:1/nowhere"])
def test_an_address_that_is_none_and_a_server_that_is_away_are_refused(monkeypatch, address):
    monkeypatch.setenv("HOLDFAST_LEDGER", address)
    with pytest.raises(hf.Refused, match="HOLDFAST_LEDGER"):
        Ledger("postgresql").entries()
