"""The ledger: sums by the library's rules, budgets that hold for everybody at once, and a record nobody can change."""

import os
import sqlite3
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from at_once import charged_at_once
from holdfast.arguments import Refused
from holdfast.release.ledger import store as ledger_file
from holdfast.release.ledger.accounts import Account, Budget, Incomparable, Overspent, Unit, about_their_records
from holdfast.release.ledger.ledger import Ledger

QUERY = hf.histogram(4)
DATA = ("trips", "record")


def pure(epsilon, neighbours="add-remove"):
    return hf.laplace(QUERY, epsilon=epsilon, neighbours=neighbours).guarantees


def concentrated(rho):
    return hf.gaussian(QUERY, rho=rho).guarantees


def charge(ledger, *parts, release=None, budget=None, where=DATA):
    ledger.charge(
        *where,
        parts,
        release=release or os.urandom(16).hex(),
        title="Trips",
        spec_hash="sha256:0",
        when="2026-01-01T00:00:00+00:00",
        budget=budget,
    )


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite")


def test_a_ledger_that_was_never_written_is_empty_and_is_not_made_by_reading(ledger):
    assert ledger.entries() == []
    assert ledger.datasets() == []
    assert ledger.spent(*DATA) is None
    assert ledger.remaining(*DATA) is None
    assert not ledger.exists


def test_what_rounding_left_of_a_budget_is_told_as_nothing(ledger):
    ledger.set_budget(*DATA, epsilon=2)
    for _ in range(2):
        charge(ledger, pure(0.9999999999999))
    with pytest.raises(Overspent, match=r"ε = 0 is left"):
        charge(ledger, pure(1))


def test_ten_tenths_fit_into_one_and_the_eleventh_does_not(ledger):
    ledger.set_budget(*DATA, epsilon=1)
    for _ in range(10):
        charge(ledger, pure(0.1))
    assert ledger.remaining(*DATA) == {"epsilon": 0.0}
    with pytest.raises(Overspent, match=r"ε = 0 is left, but the release costs ε = 0\.1"):
        charge(ledger, pure(0.1))
    assert len(ledger.entries()) == 10
    assert ledger.spent(*DATA).epsilon >= 10 * Fraction(0.1)


def test_a_release_larger_than_what_is_left_is_refused_and_a_smaller_one_is_not(ledger):
    ledger.set_budget(*DATA, epsilon=1)
    charge(ledger, pure(0.75))
    with pytest.raises(Overspent, match=r"ε = 0\.25 is left.*raise the budget"):
        charge(ledger, pure(0.5))
    with pytest.raises(Overspent):
        charge(ledger, pure(0.25001))
    charge(ledger, pure(0.25))
    assert ledger.spent(*DATA).epsilon == 1.0


def test_datasets_and_units_have_accounts_of_their_own(ledger):
    ledger.set_budget("a", "column rider", epsilon=3)
    charge(ledger, pure(3), where=("a", "column rider, at most 1 record"))
    charge(ledger, pure(1), where=("a", "record"))
    charge(ledger, pure(5), where=("b", "record"))
    assert ledger.datasets() == [("a", "column rider"), ("a", "record"), ("b", "record")]
    # A record that goes may let another one of the same person be kept instead, so that two change.
    assert [ledger.spent(*where).epsilon for where in ledger.datasets()] == [3.0, 2 * 3.0 + 1.0, 5.0]
    assert [len(ledger.entries(*where)) for where in ledger.datasets()] == [1, 1, 1]
    assert ledger.budget("b", "record") is None


def per_person(epsilon, kept, persons=1, kind="add-remove"):
    relation = hf.Neighbours(kind, records=kept * persons)
    return hf.laplace(QUERY, epsilon=epsilon, neighbours=relation).guarantees


def rider(kept):
    return "trips", f"column rider, at most {kept} record{'s' if kept > 1 else ''}"


def test_a_person_has_one_account_whatever_number_of_records_each_release_keeps(ledger):
    ledger.set_budget("trips", "column rider", epsilon=2)
    charge(ledger, per_person(1, 5), where=rider(5))
    charge(ledger, per_person(0.5, 3), where=rider(3))
    assert ledger.datasets() == [("trips", "column rider")]
    for unit in ("column rider", "column rider, at most 5 records", "column rider, at most 99 records"):
        assert ledger.spent("trips", unit).epsilon == 1.5
        assert ledger.remaining("trips", unit) == {"epsilon": 0.5}
    # What is stated holds for as many records as every release keeps.
    assert ledger.spent(*rider(5)).records == 3
    assert "covers one person, of whom the releases keep at most 3 or 5 records" in ledger.spent(*rider(5)).because
    with pytest.raises(Overspent, match=r"per person \(column rider\) is ε = 2 and ε = 0\.5 is left"):
        charge(ledger, per_person(0.6, 1), where=rider(1))
    charge(ledger, per_person(0.5, 1), where=rider(1))
    assert ledger.remaining(*rider(2)) == {"epsilon": 0.0}


def test_persons_who_change_two_at_a_time_are_not_taken_for_one(ledger):
    # Two persons with three records each: not one person with six.
    charge(ledger, per_person(1, 3, persons=2), where=rider(3))
    charge(ledger, per_person(0.25, 6), where=rider(6))
    assert ledger.spent(*rider(3)).epsilon == 1 + 2 * 0.25
    assert ledger.spent(*rider(3)).records == 2 * 3


def test_replaced_persons_count_as_one_who_leaves_and_one_who_comes(ledger):
    charge(ledger, per_person(0.5, 4), where=rider(4))
    charge(ledger, per_person(0.25, 1, kind="replace-one"), where=rider(1))
    assert ledger.spent(*rider(1)).epsilon == 2 * 0.5 + 0.25


def test_a_statement_about_fewer_records_than_a_person_has_is_not_added_up(ledger):
    charge(ledger, pure(1), where=rider(2))
    with pytest.raises(hf.Refused, match="a statement about 1 records does not cover a person with 2"):
        ledger.spent(*rider(2))


def test_a_ledger_with_budgets_per_number_of_records_is_read_as_one_account(ledger):
    ledger.set_budget(*rider(5), epsilon=3)
    charge(ledger, per_person(1, 2), where=rider(2))
    assert ledger.remaining("trips", "column rider") == {"epsilon": 2.0}
    ledger.set_budget("trips", "column rider", epsilon=1)
    assert ledger.remaining(*rider(5)) == {"epsilon": 0.0}


def test_charges_of_other_accounts_on_the_same_dataset_are_told(ledger):
    charge(ledger, pure(1))
    charge(ledger, pure(1))
    charge(ledger, per_person(1, 5), where=rider(5))
    charge(ledger, pure(1), where=("others", "record"))
    (of_records,) = ledger.beside("trips", "record")
    (of_persons,) = ledger.beside("trips", "column rider")
    assert of_records.startswith("1 charge per person (column rider) is in the sum per record too: ")
    assert of_persons.startswith("2 charges per record are not in the sum per person (column rider): ")
    assert of_persons.endswith("nothing for somebody with many")
    assert ledger.beside("others", "record") == ()


def test_the_budget_of_the_records_binds_releases_that_protect_persons(ledger):
    ledger.set_budget(*DATA, epsilon=3)
    charge(ledger, pure(1))
    charge(ledger, pure(1.5))
    with pytest.raises(Overspent, match=r"per record is ε = 3 and ε = 0\.5 is left, but the release costs ε = 1"):
        charge(ledger, per_person(1, 4), where=rider(4))
    with pytest.raises(Overspent, match="per record"):
        ledger.check(*rider(4), [per_person(1, 4)], None)
    charge(ledger, per_person(0.5, 4), where=rider(4))
    assert ledger.spent(*DATA).epsilon == 3
    assert ledger.spent(*rider(4)).epsilon == 0.5
    with pytest.raises(Overspent, match="per record"):
        charge(ledger, pure(0.1))
    # Nothing about records follows from persons who are replaced: one may have others besides.
    with pytest.raises(Incomparable, match="per record cannot be checked"):
        charge(ledger, per_person(0.1, 1, kind="replace-one"), where=rider(1))


def test_what_persons_are_promised_bounds_each_record(ledger):
    """All small sets of two persons' records, one record more or less: at most two of the kept ones change."""
    marks = {record: number for number, record in enumerate([(p, c) for c in (1, 2, 0, 3) for p in "ab"])}

    def cells(records, kept):
        counts = [0, 0, 0, 0]
        for person in "ab":
            own = sorted((record for record in records if record[0] == person), key=marks.__getitem__)
            for _, cell in own[:kept]:
                counts[cell] += 1
        return counts

    everybody = list(marks)
    for kept in (1, 2, 3):
        statement = hf.laplace(QUERY, scale=1, neighbours=hf.Neighbours("add-remove", kept)).guarantees[0]
        worst = 0
        for chosen in range(1 << len(everybody)):
            records = [record for i, record in enumerate(everybody) if chosen >> i & 1]
            for gone in records:
                before, after = cells(records, kept), cells([each for each in records if each != gone], kept)
                worst = max(worst, sum(abs(x - y) for x, y in zip(before, after, strict=True)))
        assert worst == 2
        about = about_their_records(statement)[0]
        assert about.records == 1
        assert about.epsilon == max(worst, kept)


SAME = ["Trips", "trips ", " trips", "trips", "TRIPS", "ｔｒｉｐｓ", "tr\u0456ps", "tri\u0440s", "t\u200brips", "tr1ps"]
SAME += ["t\u0433ips", "\u1d1brips", "\u13a2rips", "trips\u0301", "tri\u2ca3s", "trip\ua731"]  # in no list of letters


@pytest.mark.parametrize("name", SAME)
def test_a_name_that_is_easily_taken_for_a_known_one_is_refused(ledger, name):
    ledger.set_budget(*DATA, epsilon=1)
    charge(ledger, pure(1))
    if name == "trips":
        return
    for attempt in (
        lambda: charge(ledger, pure(1), where=(name, "record")),
        lambda: ledger.check(name, "record", [pure(1)], None),
        lambda: ledger.set_budget(name, "record", epsilon=9),
        lambda: ledger.account(name, "record"),
    ):
        with pytest.raises(Refused, match="the ledger has the dataset 'trips', for which"):
            attempt()
    assert len(ledger.entries()) == 1


def test_names_of_columns_are_looked_at_too_and_other_names_are_other_accounts(ledger):
    ledger.set_budget("trips", "column rider", epsilon=1)
    with pytest.raises(Refused, match="the ledger has the unit 'column rider', for which 'column Rider'"):
        charge(ledger, per_person(1, 2), where=("trips", "column Rider, at most 2 records"))
    for name in ("trips 2", "trip", "Reise", "поездки", "trips-2", "триps", "ｔrops"):
        charge(ledger, pure(1), where=(name, "record"))
    with pytest.raises(Refused, match="the ledger has the dataset"):
        charge(ledger, pure(1), where=("ПОЕЗДКИ", "record"))
    with pytest.raises(Refused, match="the ledger has the dataset 'trips-2'"):
        charge(ledger, pure(1), where=("trips\u20132", "record"))


def test_statements_about_more_records_add_up_with_releases_that_count_more(ledger):
    one = replace(pure(1, "replace-one")[0], scope="invariant-sharing")
    two = replace(one, epsilon=1.75, neighbours=hf.Neighbours("replace-one", 2))
    ledger.set_budget(*DATA, epsilon=4)
    charge(ledger, [one, two])
    assert ledger.spent(*DATA).epsilon == 1
    charge(ledger, [two])
    assert ledger.spent(*DATA).epsilon == 3.5
    assert ledger.spent(*DATA).records == 2
    with pytest.raises(Overspent, match=r"the release costs ε = 1: ask for less"):
        charge(ledger, [one, two])
    with pytest.raises(Incomparable, match=r"privacy: \{neighbours: replace-one, records: 2\}"):
        charge(ledger, [replace(one, epsilon=0.1)])
    assert len(ledger.entries()) == 2


@pytest.mark.parametrize("column", ["rider", "a, at most 3 records", "at most", "1", "record", "x\ny"])
@pytest.mark.parametrize("kept", [None, 1, 12])
def test_units_are_read_as_they_are_written(column, kept):
    unit = Unit(column, kept)
    if kept is not None or ", at most" not in column:
        assert Unit.read(str(unit)) == unit
    assert Unit(column, 7).who == f"column {column}"


@pytest.mark.parametrize("unit", ["rider", "", "column", "column ", "records", None, 3, "column  "])
def test_other_units_are_refused(ledger, unit):
    with pytest.raises(hf.Refused, match="unit must be 'record' or 'column NAME'"):
        ledger.set_budget("trips", unit, epsilon=1)
    assert not ledger.exists


def test_a_charge_per_person_says_how_many_records_are_kept(ledger):
    with pytest.raises(hf.Refused, match="says how many records are kept"):
        charge(ledger, pure(1), where=("trips", "column rider"))
    assert not ledger.exists


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(1e-9, 50), min_size=1, max_size=20))
def test_what_is_spent_is_never_less_than_the_exact_sum(epsilons):
    statements = [hf.Guarantee(epsilon=epsilon, neighbours="add-remove", because="a test") for epsilon in epsilons]
    account = Account(*DATA, Budget.of(epsilon=1), tuple((statement,) for statement in statements))
    exact = sum(map(Fraction, epsilons), Fraction(0))
    spent = Fraction(account.spent[0].epsilon)
    assert exact <= spent <= exact * (1 + Fraction(1, 2**52))
    assert Fraction(account.remaining) <= max(Fraction(0), 1 - exact)


def test_gaussian_charges_add_in_rho_and_are_measured_at_the_delta_of_the_budget(ledger):
    ledger.set_budget(*DATA, epsilon=2, delta=1e-6)
    for _ in range(4):
        charge(ledger, concentrated(0.01))
    spent = ledger.spent(*DATA)
    together = hf.compose([concentrated(0.01)[0]] * 4, delta=1e-6)
    assert spent.epsilon == together.epsilon
    assert spent.epsilon < 4 * hf.compose([concentrated(0.01)[0]], delta=1e-6).epsilon
    assert ledger.remaining(*DATA) == {"epsilon": pytest.approx(2 - together.epsilon), "delta": 1e-6}


@pytest.mark.parametrize(
    "statements", [concentrated(0.05), pure(0.3), hf.gaussian(QUERY, epsilon=0.5, delta=1e-8).guarantees]
)
def test_the_quick_sum_admits_nothing_that_the_best_sum_refuses(statements):
    budget = Budget.of(epsilon=2, delta=1e-6)
    for count in range(1, 8, 2):
        before = Account(*DATA, budget, (statements,) * count)
        after = replace(before, parts=(statements,) * (count + 1))
        best = budget.admits(after.spent[0])
        assert best or not after._surely_admitted()
        assert (before.refusal([statements]) is None) == best


def test_a_budget_in_rho_counts_pure_releases_too(ledger):
    ledger.set_budget(*DATA, rho=0.1)
    charge(ledger, pure(0.1), concentrated(0.05))
    assert 0.05 < ledger.spent(*DATA).rho <= 0.05 + 0.1**2 / 2 + 1e-12
    with pytest.raises(Overspent, match="ρ"):
        charge(ledger, concentrated(0.05))


def test_a_pure_budget_refuses_a_release_that_states_a_delta(ledger):
    ledger.set_budget(*DATA, epsilon=1)
    with pytest.raises(Incomparable, match="set the budget with delta"):
        charge(ledger, concentrated(0.001))
    assert ledger.entries() == []


def test_the_tables_of_one_release_are_charged_together_or_not_at_all(ledger):
    ledger.set_budget(*DATA, epsilon=1)
    with pytest.raises(Overspent, match=r"the release costs ε = 1\.2"):
        charge(ledger, pure(0.6), pure(0.6))
    charge(ledger, pure(0.5), pure(0.25))
    (entry,) = ledger.entries()
    assert entry.statements[0].epsilon == 0.75
    assert len(entry.as_mapping()["parts"]) == 2


def test_records_replaced_count_as_one_removed_and_one_added(ledger):
    charge(ledger, pure(0.5))
    charge(ledger, pure(0.25, "replace-one"))
    spent = ledger.spent(*DATA)
    assert spent.neighbours.kind == "replace-one"
    assert spent.epsilon == 2 * 0.5 + 0.25


@pytest.mark.parametrize("make", [hf.laplace, hf.gaussian])
@pytest.mark.parametrize("query", [hf.histogram(4), hf.counts(hf.Hierarchy.from_parents([-1, 0, 0, 1, 1]))])
def test_counting_a_replaced_record_twice_covers_what_the_same_noise_promises_for_it(make, query):
    coming, replaced = (make(query, scale=3, neighbours=kind).guarantees for kind in ("add-remove", "replace-one"))
    nothing = [hf.Guarantee(epsilon=0, rho=0, neighbours="replace-one", because="a constant")]
    counted = Account(*DATA, None, (coming, tuple(nothing))).spent[0]
    assert counted.neighbours == replaced[0].neighbours
    name = "epsilon" if make is hf.laplace else "rho"
    assert getattr(counted, name) >= getattr(replaced[0], name)


def test_an_exact_total_is_counted_by_the_first_statement_and_summed_in_the_other_scopes_too(ledger):
    exact = hf.laplace(QUERY, epsilon=1, integer=False).given(hf.invariant([[1, 1, 1, 1]])).guarantees
    best = {statement.scope: statement for statement in exact if not statement.void}
    assert set(best) == {"subspace", "invariant-sharing"}
    charge(ledger, pure(0.5))
    charge(ledger, [best["invariant-sharing"], best["subspace"]])
    spent = ledger.account(*DATA).spent
    assert [statement.scope for statement in spent] == ["invariant-sharing", "subspace"]
    # Two records change together there, so the first release counts twice.
    assert spent[0].epsilon == pytest.approx(2 * 0.5 + best["invariant-sharing"].epsilon)
    assert spent[0].records == 2
    assert spent[1].epsilon == pytest.approx(0.5 + best["subspace"].epsilon)


def test_what_cannot_be_added_up_is_not_admitted_by_a_budget(ledger):
    sharing = replace(pure(1)[0], scope="invariant-sharing")
    charge(ledger, [sharing])
    ledger.set_budget(*DATA, epsilon=100)
    with pytest.raises(Incomparable, match=r"cannot be checked.*privacy: \{neighbours: add-remove, records: 1\}"):
        charge(ledger, pure(0.1, "replace-one"))
    assert len(ledger.entries()) == 1


def test_the_newest_budget_counts_and_a_spec_may_only_be_stricter(ledger):
    charge(ledger, pure(1), budget=Budget.of(epsilon=2))
    assert ledger.budget(*DATA) == {"epsilon": 2.0}
    with pytest.raises(Overspent):
        charge(ledger, pure(0.5), budget=Budget.of(epsilon=Fraction(5, 4)))
    with pytest.raises(Overspent):
        charge(ledger, pure(1.5), budget=Budget.of(epsilon=100))
    ledger.set_budget(*DATA, epsilon=3)
    charge(ledger, pure(1.5), budget=Budget.of(epsilon=100))
    assert ledger.budget(*DATA) == {"epsilon": 3.0}


def test_a_refused_first_release_does_not_leave_its_budget_behind(ledger):
    with pytest.raises(Overspent):
        charge(ledger, pure(3), budget=Budget.of(epsilon=2))
    assert ledger.budget(*DATA) is None


def test_check_refuses_what_charge_would_refuse_and_writes_nothing(ledger):
    ledger.check(*DATA, [pure(1)], Budget.of(epsilon=1))
    assert not ledger.exists
    with pytest.raises(Overspent):
        ledger.check(*DATA, [pure(1.1)], Budget.of(epsilon=1))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE holdfast_ledger SET content = '[]'",
        "DELETE FROM holdfast_ledger",
        "INSERT OR REPLACE INTO holdfast_ledger SELECT number, at, kind, dataset, unit, 'x', '[]', hash "
        "FROM holdfast_ledger",
    ],
)
def test_the_record_cannot_be_changed(ledger, statement):
    charge(ledger, pure(1), budget=Budget.of(epsilon=2))
    before = ledger.entries(), ledger.budget(*DATA)
    with sqlite3.connect(ledger.path) as connection, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()
    assert (ledger.entries(), ledger.budget(*DATA)) == before


def test_one_release_is_charged_once(ledger):
    charge(ledger, pure(1), release="same")
    with pytest.raises(hf.Refused, match="append-only"):
        charge(ledger, pure(1), release="same")
    assert len(ledger.entries()) == 1


def test_statements_come_back_to_the_last_bit(ledger):
    statements = hf.gaussian(QUERY, epsilon=0.3, delta=1e-7).guarantees
    charge(ledger, statements)
    assert ledger.entries()[0].parts == (statements,)


def test_processes_at_once_never_overspend(ledger):
    ledger.set_budget(*DATA, epsilon=1)
    assert charged_at_once(6, 4, lambda _: charge(ledger, pure(0.1))) == 10
    assert len(ledger.entries()) == 10


def test_a_writer_waits_for_another_and_then_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(ledger_file, "PATIENCE", 0.05)
    ledger = Ledger(tmp_path / "ledger.sqlite")
    charge(ledger, pure(1))
    other = sqlite3.connect(ledger.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(hf.Refused, match="being written by another release"):
        charge(ledger, pure(1))
    other.execute("ROLLBACK")
    other.close()
    charge(ledger, pure(1))


def test_other_files_are_not_taken_for_a_ledger(tmp_path):
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"no database at all, but long enough to have a header " * 10)
    with pytest.raises(hf.Refused, match="not a ledger of holdfast, or is damaged"):
        charge(Ledger(garbage), pure(1))
    foreign = tmp_path / "foreign"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE people (name TEXT)")
    connection.close()
    for use in (lambda ledger: charge(ledger, pure(1)), lambda ledger: ledger.entries()):
        with pytest.raises(hf.Refused, match="is not a ledger of holdfast"):
            use(Ledger(foreign))
    newer = Ledger(tmp_path / "newer")
    charge(newer, pure(1))
    with sqlite3.connect(newer.path) as connection:
        connection.execute("PRAGMA user_version = 3")
    connection.close()
    with pytest.raises(hf.Refused, match="has version 3"):
        newer.entries()


def test_an_emptied_ledger_is_not_taken_for_a_new_one(ledger):
    charge(ledger, pure(1))
    ledger.path.write_bytes(b"")
    for use in (lambda: charge(ledger, pure(1)), lambda: ledger.entries(), lambda: ledger.set_budget(*DATA, epsilon=1)):
        with pytest.raises(hf.Refused, match="is empty, and holdfast never makes an empty one: restore it from a copy"):
            use()
    assert ledger.path.read_bytes() == b""


def test_what_a_killed_maker_left_does_not_stand_in_the_way(ledger):
    draft = ledger.path.with_name(".ledger.sqlite.partial")
    draft.write_bytes(b"half a ledger")
    draft.with_name(".ledger.sqlite.partial-journal").write_bytes(b"half a journal")
    charge(ledger, pure(1))
    assert len(ledger.entries()) == 1
    assert [path.name for path in ledger.path.parent.iterdir()] == ["ledger.sqlite"]


def test_a_link_that_leads_nowhere_is_not_replaced_by_a_new_ledger(tmp_path):
    link = tmp_path / "ledger.sqlite"
    link.symlink_to(tmp_path / "not mounted" / "ledger.sqlite")
    with pytest.raises(hf.Refused, match="a link that leads nowhere"):
        charge(Ledger(link), pure(1))
    assert link.is_symlink()


def test_a_ledger_in_no_folder_cannot_be_written(tmp_path):
    with pytest.raises(hf.Refused, match="cannot be written: check its folder"):
        charge(Ledger(tmp_path / "nowhere" / "ledger.sqlite"), pure(1))


def test_a_damaged_ledger_is_refused(ledger):
    for _ in range(8):
        charge(ledger, pure(1))
    content = bytearray(ledger.path.read_bytes())
    content[4096:] = bytes(len(content) - 4096)
    ledger.path.write_bytes(content)
    with pytest.raises(hf.Refused, match="damaged"):
        ledger.entries()


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        ({}, "exactly one of epsilon and rho"),
        ({"epsilon": 1, "rho": 1}, "exactly one of epsilon and rho"),
        ({"rho": 1, "delta": 0.1}, "delta goes with epsilon"),
        ({"epsilon": 0}, "epsilon must be above 0"),
        ({"epsilon": 1, "delta": 1}, "strictly between 0 and 1"),
    ],
)
def test_budgets_are_checked(ledger, numbers, sentence):
    with pytest.raises(hf.Refused, match=sentence):
        ledger.set_budget(*DATA, **numbers)
    assert not ledger.exists


def test_a_folder_is_no_ledger(tmp_path):
    with pytest.raises(Refused, match="is a folder: name a file"):
        Ledger(tmp_path)


def test_a_budget_at_a_delta_says_what_its_sum_takes_for_granted(ledger):
    for _ in range(2):
        charge(ledger, concentrated(0.01), budget=Budget.of(epsilon=4, delta=1e-6))
    (assumed,) = ledger.account(*DATA).assumed
    assert "fixed before results of others were seen" in assumed
    assert assumed[1:] in ledger.account(*DATA).words


def test_a_budget_of_sums_takes_nothing_for_granted(ledger):
    for _ in range(2):
        charge(ledger, concentrated(0.01), budget=Budget.of(rho=1))
    assert ledger.account(*DATA).assumed == ()


@pytest.mark.parametrize("text", ["1e9999999", "1/1e9999999", "1e-9999999", "1/0", "1/2/3", "nan", "", "one", 3])
def test_a_budget_that_no_reader_could_add_up_is_refused_at_once(text):
    with pytest.raises(hf.Refused, match="epsilon must be"):
        Budget.from_mapping({"epsilon": text})


def test_budgets_are_read_as_they_were_written():
    for budget in (Budget.of(epsilon=0.1), Budget.of(epsilon=Fraction(1, 3), delta=1e-9), Budget.of(rho=2)):
        assert Budget.from_mapping(budget.as_mapping()) == budget
    assert Budget.from_mapping({"epsilon": "0.1"}).epsilon == Fraction(1, 10)
