"""A curator who wants another table than the one that was drawn, and everything that he can change; who finds it.

He writes certificates, files, openings and ledgers as he likes and renews every hash in them. He has neither the
officer's key nor the officer's word for another commitment.
"""

import hashlib
import random
import secrets
import shutil

from holdfast.arguments import Refused
from holdfast.release.certificate.verify import verify
from holdfast.release.job.job import Job
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.signing import write_key
from holdfast.release.spec.spec import read_spec
from holdfast.release.standalone_verifier.ed25519 import commitment_of, signed_words
from holdfast.release.storage.files import sha256_of
from holdfast.release.witnessed import commit, draw_committed, read_opening, reexecuted
from holdfast.release.writing import write_table_files
from tampering import certificate_of, forged, sealed

SPEC = """
title: Ages
data: {source: people.csv, name: people, values: {age: [young, old, oldest]}}
privacy: {epsilon: 0.5}
table: {histogram: age}
hold: [nonnegative]
method: onto
ledger: book.sqlite
output: OUT
"""
RECORDS = "age\n" + "young\n" * 40 + "old\n" * 25 + "oldest\n" * 3


def hash_of(opening):
    return f"sha256:{hashlib.sha256(opening.text.encode()).hexdigest()}"


class Office:
    """Two witnessed releases, a commitment that waits, an officer's key and the ledger of them all."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        (folder / "people.csv").write_text(RECORDS)
        self.officer = write_key(folder / "officer.key")
        self.public = folder / "officer.key.pub"
        self.ledger = Ledger(folder / "book.sqlite")
        self.jobs = [self.job(name) for name in ("first", "second", "third")]
        self.committed = [commit(job) for job in self.jobs]
        self.nonces = [self.nonce(each.commitment) for each in self.committed]
        pairs = zip(self.jobs[:2], self.nonces[:2], strict=True)
        self.out, self.other = [draw_committed(job, nonce) for job, nonce in pairs]
        self.opening = read_opening(self.committed[0].opening)[0]

    def job(self, name, spec=SPEC):
        path = self.folder / f"{name}.yaml"
        path.write_text(spec.replace("OUT", name))
        return Job.from_spec(read_spec(path))

    def nonce(self, commitment):
        return self.officer.sign(signed_words(commitment)).hex()


def published(office, place, opening=None, *, nonce=None, head=None, spec_hash=None, job=None):
    """What a curator publishes who drew with another opening, nonce or job, and says so everywhere in the release."""
    certificate = certificate_of(place)
    job = job or office.jobs[0]
    fixed, table = certificate["commitment"], job.tables[0]
    fixed["opening"] = fixed["opening"] if opening is None else hash_of(opening)
    fixed["nonce"] = nonce or fixed["nonce"]
    certificate["ledger"] = head or certificate["ledger"]
    certificate["spec_hash"] = spec_hash or certificate["spec_hash"]
    opening = opening or office.opening
    drawn = table.mechanism.release(
        opening.truths[0], opening.stream(commitment_of(certificate), fixed["nonce"], table)
    )
    told = certificate["tables"][0]
    for name in (told["parquet"], told["csv"], told["measurements"], told["measurements_csv"]):
        if name is not None:
            (place / name).unlink()
    write_table_files([(table, drawn)], place, "", {})
    told["ties"] = None if drawn.ties is None else f"{drawn.ties:016x}"
    sealed(place, certificate)
    return drawn.values


def changed(opening, source):
    """The same opening with one count that is another."""
    truth = opening.truths[0].copy()
    truth[source.randrange(truth.size)] += source.choice((-3, -2, -1, 1, 2, 3))
    return opening.model_copy(update={"answers": [truth.tolist()]})


def with_secret(opening):
    return opening.model_copy(update={"secret": secrets.token_hex(32)})


# --- attempts: each returns who must object, and what they were shown ------------------------------------------------

#: Forgeries that are perfect for those who look at other things; so it is the commitment that gives them away.
CONVINCED = {
    "ground_nonce": {"opened", "source"},
    "ground_secret": {"opened", "source"},
    "swapped_data": {"opened"},
    "written_again": {"opened", "ledger"},
}


def ground_nonce(office, place, source):
    """He draws with nonces of his own until the table pleases."""
    del source
    published(office, place, nonce=secrets.token_hex(64))
    return {"officer", "ledger"}, {}


def ground_secret(office, place, source):
    """He knows the nonce, and looks for a secret with a table that pleases."""
    del source
    opening = with_secret(office.opening)
    published(office, place, opening)
    return {"officer", "ledger"}, {"opening": opening}


def swapped_data(office, place, source):
    """He draws from other counts, with the old words."""
    opening = changed(office.opening, source)
    published(office, place, opening)
    return {"officer", "ledger", "source"}, {"opening": opening}


def swapped_spec(office, place, source):
    """He draws with less noise than he said, or with more."""
    epsilon = source.choice((0.25, 1, 4))
    job = office.job("swapped", SPEC.replace("epsilon: 0.5", f"epsilon: {epsilon}").replace("OUT", "first"))
    published(office, place, spec_hash=job.spec.hash, job=job)
    return {"officer", "ledger", "opened"}, {}


def other_table(office, place, source):
    """He publishes another value than was drawn."""

    def more(columns):
        columns["value"] = columns["value"].copy()
        columns["value"][source.randrange(3)] += source.choice((1, 2, 10))

    forged(place, more)
    return {"ledger", "opened"}, {}


def other_bars(office, place, source):
    """He publishes narrower error bars."""

    def narrower(columns):
        columns["high"] = columns["high"] - source.choice((0.25, 0.5))

    forged(place, narrower)
    return {"ledger", "opened"}, {}


def opened_otherwise(office, place, source):
    """He shows the auditor another opening of what he published."""
    opening = source.choice((changed(office.opening, source), with_secret(office.opening)))
    return {"opened"}, {"opening": opening}


def opened_by_another(office, place, source):
    """He shows the auditor the opening of another release."""
    return {"opened"}, {"file": office.committed[source.choice((1, 2))].opening}


def reused_commitment(office, place, source):
    """He gives a second release the commitment, the nonce and the words of the first."""
    shutil.rmtree(place)
    shutil.copytree(office.other, place)
    certificate, first = certificate_of(place), certificate_of(office.out)
    keys = ("commitment", "ledger") if source.random() < 0.5 else ("commitment", "ledger", "spec_hash")
    certificate.update({key: first[key] for key in keys})
    sealed(place, certificate)
    return {"officer", "ledger", "opened"}, {}


def reused_nonce(office, place, source):
    """He draws what waits with the nonce of another release, or with a second one after its own."""
    if source.random() < 0.5:
        used = source.choice(office.nonces[:2])
        return {"tool"}, {"draw": (office.jobs[2], used)}
    book = office.folder / f"{place.name}.sqlite"
    shutil.copy(office.ledger.path, book)
    release = office.ledger.entries()[2].release
    Ledger(book).give_nonce(office.nonces[2], release, "2026-01-01T00:00:00+00:00")
    return {"tool"}, {"draw": (office.jobs[2], secrets.token_hex(32)), "ledger": book}


def written_again(office, place, source):
    """He writes a whole new ledger around a commitment that he made when he knew the nonce."""
    opening = source.choice((with_secret, lambda each: changed(each, source)))(office.opening)
    book, job, certificate = Ledger(office.folder / f"{place.name}.sqlite"), office.jobs[0], certificate_of(place)
    fixed = {"opening": hash_of(opening), "code": certificate["commitment"]["code"]}
    when = "2026-01-01T00:00:00+00:00"
    about = {"release": opening.release, "title": job.title, "spec_hash": job.spec.hash, "when": when}
    book.charge(job.dataset, job.unit, [job.tables[0].statements], **about, commitment=fixed)
    book.give_nonce(certificate["commitment"]["nonce"], opening.release, when)
    entry = book.entry(opening.release)
    published(office, place, opening, head={"row": entry.number, "hash": entry.hash})
    seal = sha256_of(place / "certificate.json")
    book.seal(job.dataset, job.unit, release=opening.release, certificate=seal, folder=place, when=when)
    return {"officer"}, {"opening": opening, "ledger": book.path}


def other_words(office, place, source):
    """He says less of what holds, or more of how near the figures are, than is true."""
    del office
    certificate = certificate_of(place)
    table = certificate["tables"][0]
    if source.random() < 0.5:
        table["holds"]["nonnegative"] = False
    else:
        table["noise_by_level"][0]["in_words"] = "almost no noise"
    sealed(place, certificate)
    return {"ledger", "opened"}, {}


def dropped(office, place, source):
    """He says nothing of the commitment, and publishes what he likes."""
    other_table(office, place, source)
    certificate = certificate_of(place)
    certificate["commitment"] = None
    sealed(place, certificate)
    return {"officer", "ledger", "opened"}, {}


def other_code(office, place, source):
    """He draws with a program of his own, and names it."""
    other_table(office, place, source)
    certificate = certificate_of(place)
    certificate["commitment"]["code"] = f"sha256:{secrets.token_hex(32)}"
    sealed(place, certificate)
    return {"officer", "ledger", "opened"}, {}


ATTEMPTS = (
    *(ground_nonce, ground_secret, swapped_data, swapped_spec, other_table, other_bars, other_words, opened_otherwise),
    *(opened_by_another, reused_commitment, reused_nonce, written_again, dropped, other_code),
)


def objects(who, office, place, shown):
    """Whether somebody objects: the officer's key alone, the ledger alone, an auditor, or the tool that would draw."""
    try:
        if who == "officer":
            return not verify(place, officer=office.public).ok
        if who == "ledger":
            return not verify(place, Ledger(shown.get("ledger", office.ledger.path))).ok
        if who == "tool":
            job, nonce = shown["draw"]
            draw_committed(job, nonce, ledger=Ledger(shown["ledger"]) if "ledger" in shown else None)
            return False
        file = shown.get("file", office.committed[0].opening)
        if "opening" in shown:
            file = place.with_name(f"{place.name}.opening")
            file.write_text(shown["opening"].text)
        return not reexecuted(place, file, office.folder / "people.csv" if who == "source" else None).ok
    except Refused:
        return True


def attempts(folder, count, seed):
    """Yield what was attempted, and who did not object though they should."""
    office = Office(folder / "office")
    for who in ("officer", "ledger", "opened", "source"):
        assert not objects(who, office, office.out, {}), who
    for number in range(seed, seed + count):
        source, attempt = random.Random(number), ATTEMPTS[number % len(ATTEMPTS)]
        place = folder / f"attempt{number}"
        shutil.copytree(office.out, place)
        whom, shown = attempt(office, place, source)
        silent = [who for who in sorted(whom) if not objects(who, office, place, shown)]
        silent += [f"not {who}" for who in CONVINCED.get(attempt.__name__, ()) if objects(who, office, place, shown)]
        yield attempt.__name__, f"{attempt.__name__} {number}: {silent} did not object" if silent else None
        shutil.rmtree(place, ignore_errors=True)
