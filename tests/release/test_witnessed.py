"""Witnessed draws: committed to before the nonce, drawn once, drawn again by an auditor, and never told by a hash."""

import json
import os
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import holdfast as hf
import holdfast.release.witnessed as committing
import holdfast.release.witnessed as openings
import killing
import witnessing
from holdfast.arguments import Refused
from holdfast.cli.command import app
from holdfast.randomness import seeded
from holdfast.release.certificate.certificate import read_certificate
from holdfast.release.certificate.verify import verify
from holdfast.release.ledger.entries import COMMITTED
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.run import release
from holdfast.release.standalone_verifier.ed25519 import commitment_of
from holdfast.release.witnessed import commit, draw_committed, reexecuted
from jobs import cube, job, tree
from tampering import certificate_of, sealed

RECORDS = "borough,zone,sex,age,rider\nNorth,N1,F,old,a\nSouth,S2,M,child,a\nSouth,S2,M,adult,b\n"
NONCE, OTHER = "5f" * 32, "0123456789abcdef" * 2
BOOK = "\nledger: book.sqlite"
RECORDED = "output: {folder: out, records: true}"
JOBS = {
    "given": tree(rest=f"hold: [consistent, nonnegative]\nmethod: given{BOOK}"),
    "onto": tree(privacy="rho: 0.5", rest=f"hold: [consistent, nonnegative]\nmethod: onto{BOOK}"),
    "riders": tree(privacy="epsilon: 2, unit: {column: rider, max_records: 3}", rest=f"hold: [consistent]{BOOK}"),
    "exact": cube(
        privacy="epsilon: 1, neighbours: replace-one",
        rest=f"hold: [{{exact: [sex]}}]\nmethod: given\naccept_disclosure: true{BOOK}",
    ),
    "real": cube(privacy="rho: 0.5", table="numbers: real", rest=f"method: noise{BOOK}"),
}
#: Points along the lines of both steps at which a process is killed.
KILLS = 24


def made(folder, name="given", records=RECORDS, more=""):
    (folder / "trips.csv").write_text(records)
    return job(folder, JOBS[name].replace("trips.parquet", "trips.csv") + more)


def ledger_in(folder):
    return Ledger(folder / "book.sqlite")


@pytest.fixture
def both(tmp_path):
    """A witnessed release and its opening."""
    ready = made(tmp_path)
    committed = commit(ready)
    return draw_committed(ready, NONCE), committed.opening


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    return witnessing.Office(tmp_path_factory.mktemp("office"))


# --- two steps ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", JOBS)
def test_two_steps_make_a_release_that_is_drawn_again_byte_for_byte(tmp_path, name):
    ready = made(tmp_path, name)
    committed = commit(ready)
    assert not (tmp_path / "out").exists()
    (entry,) = ledger_in(tmp_path).entries()
    assert (entry.state, entry.nonce) == (COMMITTED, None)
    assert commit(ready) == committed  # and charges nothing more
    folder = draw_committed(ready, NONCE)
    verdict = verify(folder, ledger_in(tmp_path))
    assert verdict.ok, str(verdict)
    (entry,) = ledger_in(tmp_path).entries()
    assert (entry.state, entry.nonce[1]) == ("published", NONCE)
    assert commitment_of(read_certificate(folder).as_mapping()) == committed.commitment
    again = reexecuted(folder, committed.opening, tmp_path / "trips.csv")
    assert again.ok, again.sentence
    assert ledger_in(tmp_path).verify()


@pytest.mark.slow
@pytest.mark.every_table
def test_another_process_draws_the_same_from_the_opening_alone(both, tmp_path):
    folder, opening = both
    for name in ("trips.csv", "zones.csv", "spec.yaml"):
        (tmp_path / name).unlink()
    code = "import sys; from holdfast.cli.command import main; main()"
    command = [sys.executable, "-c", code, "verify", str(folder), "--opened", str(opening)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "opened: drawn again" in done.stdout


def test_the_draw_is_one_of_the_nonce_and_of_the_secret(tmp_path):
    """Other nonces, and other commitments to the same counts, make other words."""
    ready = made(tmp_path)
    opening, _ = openings.read_opening(commit(ready).opening)
    table = ready.tables[0]
    said = [
        opening.stream(commitment, nonce, table).words(4).tolist()
        for commitment in ("sha256:1", "sha256:2")
        for nonce in (NONCE, OTHER)
    ]
    said.append(witnessing.with_secret(opening).stream("sha256:1", NONCE, table).words(4).tolist())
    assert len(set(map(tuple, said))) == 5


def test_it_is_made_from_python_and_from_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made(tmp_path)

    def called(*words):
        return CliRunner().invoke(app, list(words))

    assert called("release", "spec.yaml", "--witnessed", "--nonce", NONCE).exit_code == 3
    assert called("release", "spec.yaml", "--dry-run", "--nonce", NONCE).exit_code == 3
    assert called("release", "spec.yaml", "--nonce", NONCE).exit_code == 3  # nothing was committed to
    first = called("release", "spec.yaml", "--witnessed", "--json", "--quiet")
    assert first.exit_code == 0, first.stderr
    commitment = json.loads(first.stdout)["commitment"]
    assert commitment in called("release", "spec.yaml", "--witnessed", "--quiet", "--json").stdout
    assert called("key", "officer.key", "--quiet").exit_code == 0
    assert called("nonce", "nonsense", "--key", "officer.key").exit_code == 3
    nonce = called("nonce", commitment, "--key", "officer.key").stdout.strip()
    assert hf.job("spec.yaml").release(nonce=nonce).certificate.commitment.nonce == nonce
    shown = ["--officer", "officer.key.pub", "--ledger", "book.sqlite", "--opened", "out.opening"]
    verdict = called("verify", "out", *shown, "--source", "trips.csv", "--json")
    assert verdict.exit_code == 0, verdict.stdout
    words = {check["name"]: check["sentence"] for check in json.loads(verdict.stdout)["checks"]}
    assert commitment in words["commitment"]
    assert "the only commitment" in words["ledger"]
    alone = [sys.executable, "out/verify.py", "out", "--officer", "officer.key.pub"]
    done = subprocess.run(alone, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert commitment in done.stdout
    assert called("key", "another.key", "--quiet").exit_code == 0
    assert called("verify", "out", "--officer", "another.key.pub").exit_code == 5
    alone[-1] = "another.key.pub"
    assert subprocess.run(alone, capture_output=True, check=False).returncode == 5
    assert called("verify", "out", "--source", "trips.csv").exit_code == 3


def test_a_key_that_signs_the_release_gives_no_nonce(tmp_path):
    openings_key = witnessing.write_key(tmp_path / "office.key")
    ready = made(tmp_path, more="sign: office.key\n")
    committed = commit(ready)
    own = openings_key.sign(witnessing.signed_words(committed.commitment)).hex()
    folder = draw_committed(ready, own)
    verdict = verify(folder, officer=tmp_path / "office.key.pub")
    (wrong,) = verdict.differences
    assert wrong.name == "commitment"
    assert "signed the release" in wrong.sentence


def test_a_plain_release_is_none_that_was_witnessed(tmp_path):
    folder = release(made(tmp_path))
    verdict = verify(folder, officer=witnessing.Office(tmp_path / "office").public)
    assert [check.name for check in verdict.differences] == ["commitment"]
    with pytest.raises(Refused, match="not witnessed"):
        reexecuted(folder, tmp_path / "office" / "first.opening")


def test_commitments_without_a_table_are_counted(tmp_path):
    """Whoever withholds a table that does not please shows it in the ledger."""
    ready = made(tmp_path)
    commit(ready, output=tmp_path / "withheld")
    commit(ready)
    verdict = verify(draw_committed(ready, NONCE), ledger_in(tmp_path))
    (said,) = [check.sentence for check in verdict.checks if check.name == "ledger"]
    assert "of 1 other commitments on these data 1 have no published table" in said


# --- attempts ------------------------------------------------------------------------------------------------------


def test_every_attempt_at_another_table_is_found(tmp_path):
    assert [wrong for _, wrong in witnessing.attempts(tmp_path, 3 * len(witnessing.ATTEMPTS), 0) if wrong] == []


@pytest.mark.slow
def test_many_attempts_are_found(tmp_path):
    assert [wrong for _, wrong in witnessing.attempts(tmp_path, 200, 1000) if wrong] == []


@pytest.mark.parametrize("weaker", ["commitment", "officer", "files", "statements"])
def test_a_weaker_check_would_be_noticed(tmp_path, monkeypatch, weaker):
    """The attempts find a hole in what finds them."""
    if weaker == "commitment":  # that does not speak of the opening
        monkeypatch.setattr(
            "holdfast.release.standalone_verifier.verify.nonce_words", lambda certificate, officers: "nothing is asked"
        )
    elif weaker == "officer":  # who looks at the nonce alone
        monkeypatch.setattr("holdfast.release.standalone_verifier.ed25519.is_signature", lambda *_: True)
    elif weaker == "files":
        monkeypatch.setattr(committing, "sha256_of", lambda path: "sha256:" + 64 * "0")
    else:
        monkeypatch.setattr(committing, "_differences", lambda *_: iter(()))
    found = []
    try:
        found = [wrong for _, wrong in witnessing.attempts(tmp_path, len(witnessing.ATTEMPTS), 0) if wrong]
    except AssertionError:  # an honest release is not believed
        return
    assert found


# --- another version -----------------------------------------------------------------------------------------------


def other_words(monkeypatch):
    monkeypatch.setattr(openings.Opening, "stream", lambda *_: seeded(1))


def test_a_version_that_draws_other_words_refuses_and_says_which_would(both, monkeypatch):
    folder, opening = both
    fixed = read_certificate(folder).commitment
    other_words(monkeypatch)
    assert not reexecuted(folder, opening).ok  # the same version: the table is not the one that it says
    monkeypatch.setattr(committing, "code_hash", lambda: "sha256:" + 64 * "1")
    with pytest.raises(Refused, match="cannot confirm") as refused:
        reexecuted(folder, opening)
    assert fixed.code in str(refused.value)
    assert hf.__version__ in str(refused.value)


def test_a_version_that_draws_the_same_words_confirms(both, monkeypatch):
    monkeypatch.setattr(committing, "code_hash", lambda: "sha256:" + 64 * "1")
    assert reexecuted(*both).ok


def test_another_version_does_not_draw_what_was_committed_to(tmp_path, monkeypatch):
    ready = made(tmp_path)
    commit(ready)
    monkeypatch.setattr(committing, "code_hash", lambda: "sha256:" + 64 * "1")
    with pytest.raises(Refused, match="another version"):
        draw_committed(ready, NONCE)
    assert ledger_in(tmp_path).entries()[0].nonce is None


def test_the_code_is_that_of_every_file(monkeypatch, tmp_path):
    openings.code_hash.cache_clear()
    before = openings.code_hash()
    monkeypatch.setattr(openings.resources, "files", lambda _: tmp_path)
    openings.code_hash.cache_clear()
    (tmp_path / "a.py").write_text("1")
    one = openings.code_hash()
    (tmp_path / "a.py").write_text("2")
    openings.code_hash.cache_clear()
    assert len({before, one, openings.code_hash()}) == 3
    openings.code_hash.cache_clear()


# --- nothing is told -----------------------------------------------------------------------------------------------


def test_a_commitment_tells_nothing_of_the_data(tmp_path):
    """The same data have another hash every time, no length depends on them, and nothing of an opening is published."""
    rows, hashes = [], set()
    for number, records in enumerate((RECORDS, RECORDS, RECORDS + RECORDS.partition("\n")[2] * 50)):
        folder = tmp_path / str(number)
        folder.mkdir()
        ready = made(folder, records=records)
        committed = commit(ready)
        opening, seal = openings.read_opening(committed.opening)
        hashes.add(seal)
        out = draw_committed(ready, NONCE)
        shown = "".join(path.read_text(errors="replace") for path in (out / "certificate.json", out / "report.html"))
        row = next(each for each in ledger_in(folder).rows() if each.kind == "charge")
        rows.append(len(row.content))
        for text in (shown, *(each.content for each in ledger_in(folder).rows())):
            assert opening.secret not in text
            assert '"answers"' not in text
    assert len(hashes) == 3
    assert len(set(rows)) == 1


def test_the_opening_is_its_owners_alone_and_its_secret_is_fresh(tmp_path):
    ready = made(tmp_path)
    path = commit(ready).opening
    assert path.stat().st_mode & 0o777 == 0o600
    other = commit(ready, output=tmp_path / "other").opening
    assert openings.read_opening(path)[0].secret != openings.read_opening(other)[0].secret


# --- bad input -----------------------------------------------------------------------------------------------------


def snapshot(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("nonce", ["", "5f" * 15, "5f" * 65, "5f" * 16 + "5", "5F" * 32, "zz" * 32, "5f" * 16 + "\n"])
def test_a_nonce_that_is_none_is_refused_and_nothing_is_written(tmp_path, nonce):
    ready = made(tmp_path)
    commit(ready)
    before = snapshot(tmp_path)
    with pytest.raises(Refused, match="32 to 128 hexadecimal digits"):
        draw_committed(ready, nonce)
    assert snapshot(tmp_path) == before


def test_a_nonce_is_used_once_and_a_commitment_has_one(tmp_path):
    ready = made(tmp_path)
    commit(ready)
    draw_committed(ready, NONCE)
    commit(ready, output=tmp_path / "more")
    charges = ledger_in(tmp_path).rows()
    with pytest.raises(Refused, match="drew another release"):
        draw_committed(ready, NONCE, output=tmp_path / "more")
    assert ledger_in(tmp_path).rows() == charges
    assert not (tmp_path / "more").exists()
    ledger_in(tmp_path).give_nonce(OTHER, ledger_in(tmp_path).entries()[1].release, "2026-01-01T00:00:00+00:00")
    with pytest.raises(Refused, match="nothing is drawn twice"):
        draw_committed(ready, "77" * 32, output=tmp_path / "more")
    with pytest.raises(Refused, match="has its nonce already"):
        commit(ready, output=tmp_path / "more")
    assert draw_committed(ready, OTHER, output=tmp_path / "more").is_dir()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace("opening-1", "opening-2"), "newer holdfast"),
        (lambda text: text[:-20], "no opening"),
        (lambda text: "{}", "no opening"),
        (lambda text: "[1]", "no opening"),
        (lambda text: text.replace('"answers":[[', '"answers":[["'), "no opening"),
        (lambda text: text.replace('"answers":[[', '"answers":[["1",'), "no opening"),
    ],
)
def test_a_file_that_is_no_opening_is_refused(both, change, words):
    folder, opening = both
    text = opening.read_text()
    opening.write_text(change(text))
    with pytest.raises(Refused, match=words) as refused:
        reexecuted(folder, opening)
    assert "\n" not in str(refused.value)
    secret = json.loads(text)["secret"]
    assert secret not in str(refused.value)


def test_the_opening_of_another_release_is_refused(office):
    with pytest.raises(Refused, match="of another release"):
        reexecuted(office.out, office.committed[1].opening)
    with pytest.raises(Refused, match="cannot be read"):
        reexecuted(office.out, office.folder / "nowhere.opening")


@pytest.mark.parametrize("what", ["spec", "domain", "opening", "ledger", "records"])
def test_what_was_fixed_stays_fixed(tmp_path, what):
    ready = made(tmp_path)
    path = commit(ready).opening
    ledger = ledger_in(tmp_path)
    if what == "spec":
        ready = job(tmp_path, JOBS["given"].replace("trips.parquet", "trips.csv").replace("epsilon: 1", "epsilon: 9"))
    elif what == "domain":
        text = (tmp_path / "zones.csv").read_text() + "South,S4\n"
        ready = job(tmp_path, JOBS["given"].replace("trips.parquet", "trips.csv"), zones_csv=text)
    elif what == "opening":
        path.write_text(witnessing.with_secret(openings.read_opening(path)[0]).text)
    elif what == "ledger":
        ledger = Ledger(tmp_path / "other.sqlite")
    else:  # records may change: what was counted is drawn
        (tmp_path / "trips.csv").unlink()
        assert verify(draw_committed(ready, NONCE)).ok
        return
    with pytest.raises(Refused):
        draw_committed(ready, NONCE, ledger=ledger)
    assert not (tmp_path / "out").exists()
    assert ledger_in(tmp_path).entries()[0].nonce is None


def test_what_cannot_be_drawn_again_is_not_committed_to(tmp_path):
    with pytest.raises(Refused, match="engine: local"):
        commit(made(tmp_path, more="engine: spark\n"))
    assert not opening_files(tmp_path)


def test_a_charge_that_is_refused_leaves_no_opening(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise Refused("too much")

    monkeypatch.setattr(Ledger, "charge", refuse)
    with pytest.raises(Refused, match="too much"):
        commit(made(tmp_path))
    assert not opening_files(tmp_path)


def opening_files(folder):
    return list(folder.glob("*.opening"))


def test_a_certificate_that_names_two_commitments_or_none_of_the_ledger_is_found(both):
    folder, _ = both
    certificate = certificate_of(folder)
    certificate["ledger"] = None
    sealed(folder, certificate)
    assert [check.name for check in verify(folder).differences] == ["commitment"]


# --- kills ---------------------------------------------------------------------------------------------------------


def both_steps(ready):
    commit(ready)
    draw_committed(ready, NONCE)


def ended(ready, line, report=None):
    """Both steps in a child that is killed at a line of the room, or tells how many lines it met."""

    def work():
        met = killing.ended_at(line, signal.SIGKILL)
        both_steps(ready)
        sys.settrace(None)
        if report is not None:
            report.write_text(str(met()[0]))

    return os.waitstatus_to_exitcode(os.waitpid(killing.forked(work), 0)[1])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_at_any_point_nothing_is_drawn_twice_or_lost(tmp_path):
    def ready(name):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "people.csv").write_text(witnessing.RECORDS)
        (folder / "spec.yaml").write_text(witnessing.SPEC.replace("OUT", "out"))
        return folder, witnessing.Job.from_spec(witnessing.read_spec(folder / "spec.yaml"))

    folder, warm = ready("warm")
    both_steps(warm)
    folder, whole = ready("whole")
    assert ended(whole, 0, folder / "lines") == 0
    lines, phases = int((folder / "lines").read_text()), set()
    for number in range(KILLS):
        folder, again = ready(str(number))
        assert ended(again, 1 + number * (lines - 1) // (KILLS - 1)) in (-9, 0)
        entries = ledger_in(folder).entries()
        phases.add(entries[0].state if entries else "nothing")
        if not (folder / "out").exists():
            if not entries or entries[0].nonce is None:
                committed = commit(again)
                assert len(ledger_in(folder).entries()) == 1
                assert not entries or openings.read_opening(committed.opening)[0].release == entries[0].release
            else:
                with pytest.raises(Refused, match="nothing is drawn twice"):
                    draw_committed(again, OTHER)
            draw_committed(again, NONCE)
        (entry,) = ledger_in(folder).entries()
        assert entry.state == "published"
        assert verify(folder / "out", ledger_in(folder)).ok
        assert reexecuted(folder / "out", folder / "out.opening").ok
        assert ledger_in(folder).verify()
    assert {"nothing", COMMITTED, "drawn, not published", "published"} <= phases
