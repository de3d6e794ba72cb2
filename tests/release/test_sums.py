"""What the rows of a ledger add up to, and what a release needs of those before it."""

import sqlite3
from collections import Counter
from fractions import Fraction

import pytest

import holdfast as hf
from at_once import charged_at_once
from holdfast.release.ledger.accounts import Overspent
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.ledger.store import SCHEMA, TABLE, VERSION, VERSIONS, hash_of

DATA = ("trips", "record")
PERSON = ("riders", "column rider, at most 3 records")
STATEMENTS = hf.laplace(hf.histogram(4), epsilon=0.125).guarantees
OTHERS = hf.laplace(hf.histogram(4), epsilon=0.0625).guarantees
TINY = hf.laplace(hf.histogram(4), epsilon=0.03125).guarantees
OF_THREE = hf.laplace(hf.histogram(4), epsilon=0.5, neighbours=hf.Neighbours("add-remove", records=3)).guarantees


def charge(ledger, release, statements=STATEMENTS, unit=DATA, since=None):
    about = {"title": "Trips", "spec_hash": "sha256:0", "when": "2026-01-01T00:00:00+00:00"}
    ledger.charge(*unit, [statements], release=release, since=since, **about)


@pytest.fixture
def ledger(tmp_path):
    found = Ledger(tmp_path / "ledger.sqlite")
    found.set_budget(*DATA, epsilon=2.25)
    for number in range(14):
        charge(found, f"r{number}", STATEMENTS if number % 3 else OTHERS)
    for number in range(2):
        charge(found, f"p{number}", OF_THREE, PERSON)
    return found


def forced(path, *statements, rows=None):
    """Change a ledger as somebody would who can write the file and forgets how many rows it says it has."""
    with sqlite3.connect(path) as connection:
        for name, made in SCHEMA.items():
            if made.startswith("CREATE TRIGGER"):
                connection.execute(f"DROP TRIGGER {name}")
        for words in statements:
            connection.execute(*words) if isinstance(words, tuple) else connection.execute(words)
        for words in SCHEMA.values():
            if words.startswith("CREATE TRIGGER"):
                connection.execute(words)
        if rows is not None:
            connection.execute(f"PRAGMA user_version = {rows * VERSIONS + VERSION}")
    connection.close()


def test_sums_say_what_all_charges_say(ledger):
    for unit in (DATA, PERSON):
        account = ledger.account(*unit)
        parts = [entry.parts[0] for entry in ledger.entries(*unit)]
        assert Counter(dict(zip(account.parts, account.times, strict=True))) == Counter(parts)
    assert ledger.spent(*DATA).epsilon == 9 * 0.125 + 5 * 0.0625
    assert ledger.datasets() == [DATA, ("riders", "column rider")]


def test_the_budget_binds_to_the_last_charge(ledger):
    for number in range(6):  # 2.25 − 1.4375 = 6.5 times 0.125
        charge(ledger, f"more{number}")
    with pytest.raises(Overspent):
        charge(ledger, "last")
    ledger.verify()


def test_a_release_is_there_once(ledger):
    with pytest.raises(hf.Refused, match="append-only"):
        charge(ledger, "r0")
    ledger.mark("drawing", "r0", "2026-01-01")
    ledger.mark("drawing", "r0", "2026-01-01")
    assert ledger.became("r0").state == ledger.entry("r0").state == "drawn, not published"
    assert ledger.became("nobody") is None
    before, now, beside = ledger.around(ledger.became("r5"))
    assert (sum(before.times), sum(now.times)) == (5, 14)
    assert beside == ledger.beside(*DATA)


def test_whoever_lowers_a_charge_is_found_before_the_next(ledger):
    forced(ledger.path, f"UPDATE {TABLE} SET content = replace(content, '0.125', '0.001') WHERE number = 4")
    uses = (ledger.verify, ledger.entries, lambda: ledger.figures("trips"), lambda: ledger.account(*DATA))
    for use in (*uses, lambda: ledger.check(*DATA, [STATEMENTS], None), lambda: charge(ledger, "more")):
        with pytest.raises(hf.Refused, match=r"row 4 of the ledger .* does not follow"):
            use()


def test_processes_at_once_keep_to_the_budget(ledger):
    assert charged_at_once(4, 8, lambda name: charge(ledger, name, TINY)) == 26  # of 0.8125 by 0.03125
    assert [row.kind for row in ledger.verify()].count("charge") == 16 + 26


def test_what_a_release_needs_is_read_once_and_goes_on_from_there(ledger, monkeypatch):
    past = ledger.past(*DATA)
    assert past.account == ledger.account(*DATA)
    charge(ledger, "later")
    read = []
    monkeypatch.setattr("holdfast.release.ledger.store.hash_of", lambda *given: read.append(1) or hash_of(*given))
    assert ledger.past(*DATA, since=past) is past
    assert len(read) < 6
    assert [entry.release for entry in past.unfinished][-1] == "later"
    assert past.account == ledger.account(*DATA)


@pytest.mark.parametrize("gone", [True, False])
def test_an_old_copy_that_is_put_back_while_records_are_counted_is_found(ledger, gone):
    old, past = ledger.path.read_bytes(), None
    charge(ledger, "later")
    past = ledger.past(*DATA)
    ledger.path.unlink() if gone else ledger.path.write_bytes(old)
    with pytest.raises(hf.Refused, match="is not the one that was read when this began"):
        ledger.past(*DATA, since=past)


@pytest.mark.parametrize("gone", [True, False])
def test_an_old_copy_that_is_put_back_before_the_charge_is_found(ledger, gone):
    old = ledger.path.read_bytes()
    charge(ledger, "later")
    past = ledger.past(*DATA)
    charge(ledger, "of another release", since=past)
    ledger.path.unlink() if gone else ledger.path.write_bytes(old)
    with pytest.raises(hf.Refused, match="is not the one that was read when this began"):
        charge(ledger, "more", since=past)
    assert ledger.path.exists() is not gone


def test_an_old_copy_that_is_put_back_just_before_the_lock_is_found(ledger, monkeypatch):
    old, read = ledger.path.read_bytes(), Ledger.past
    charge(ledger, "later")

    def then_put_back(self, *given):
        found = read(self, *given)
        self.path.write_bytes(old)
        return found

    past = ledger.past(*DATA)
    monkeypatch.setattr(Ledger, "past", then_put_back)
    with pytest.raises(hf.Refused, match="is not the one that was read when this began"):
        charge(ledger, "more", since=past)


def test_rows_cut_off_at_the_end_are_missed(ledger):
    last = len(ledger.rows())
    forced(ledger.path, f"DELETE FROM {TABLE} WHERE number = {last}")
    for use in (ledger.verify, ledger.entries, lambda: charge(ledger, "more")):
        with pytest.raises(hf.Refused, match="cut off at its end; restore"):
            use()
    forced(ledger.path, rows=last - 1)  # the second edit: only witnesses and certificates know of it then
    ledger.verify()


def test_a_witness_that_is_gone_is_missed_and_a_new_place_begins_one(ledger, tmp_path):
    both = Ledger(ledger.path, tmp_path / "witness.sqlite")
    charge(both, "with")
    (tmp_path / "witness.sqlite").unlink()
    for use in (both.verify, both.entries, lambda: charge(both, "more")):
        with pytest.raises(hf.Refused, match=r"is gone.*restore it from a copy, or name a new place"):
            use()
    assert not (tmp_path / "witness.sqlite").exists()
    new = Ledger(ledger.path, tmp_path / "other.sqlite")
    charge(new, "more")
    assert Ledger(tmp_path / "other.sqlite").verify() == new.verify()


def test_a_statement_counts_as_often_as_it_is_made():
    one, same, other = (hf.laplace(hf.histogram(4), epsilon=epsilon).guarantee for epsilon in (0.1, 0.1, 0.3))
    from holdfast.privacy import compose

    listed = compose([one, same, other] * 50)
    assert listed == compose(Counter({one: 100, other: 50}))
    exact = 100 * Fraction(0.1) + 50 * Fraction(0.3)
    assert exact <= Fraction(listed.epsilon) <= exact * (1 + Fraction(1, 2**50))
    assert listed.because.startswith("150 statements composed")
    gaussian = hf.gaussian(hf.histogram(4), rho=0.5).guarantee
    assert compose([gaussian] * 3).losses[0][0][2] == 3 * gaussian.losses[0][0][2]
    with pytest.raises(hf.Refused, match="at least 1"):
        compose(Counter({one: 0}))
