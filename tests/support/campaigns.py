"""The campaigns of `script/harden`: each yields what it counted and what it found wrong, case by case and bounded."""

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from scipy import stats

import calling
import enumerated
import example_jobs
import holdfast as hf
import killing
import power_loss
import proofs_of_certificates
import released
import tampering
import witnessing
from holdfast.release.certificate.verify import verify
from holdfast.release.job.job import Job
from holdfast.release.ledger.accounts import Overspent
from holdfast.release.ledger.entries import charge_content
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.ledger.store import Entered, LedgerFile, behind
from holdfast.release.run import release
from holdfast.release.spec.spec import read_spec

#: Seconds and bytes that one case may take.
SECONDS, MEMORY = 20, 6 << 30
STATEMENTS = hf.laplace(hf.histogram(4), epsilon=0.001).guarantees
DATA = ("trips", "record")
SUPPORT = Path(__file__).parent
WHEN = "2026-01-01T00:00:00+00:00"


class Slow(BaseException):
    """A case took too long."""


@contextlib.contextmanager
def bounded(seconds=SECONDS):
    """Bound the time of one case."""

    def ring(*_):
        raise Slow

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def calls(folder, count, seed):
    """Calls of public names."""
    del folder
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    found = calling.things()
    named = calling.targets(found)
    for number in range(count):
        try:
            with bounded():
                name, wrong = calling.one_call(seed + number, found, named)
        except Slow:
            name, wrong = "?", f"call {seed + number} takes too long"
        yield name, wrong


def specs(folder, count, seed):
    """Specs with one thing changed: a character, a line, a value."""
    odd = (
        "[]",
        "{}",
        "null",
        "-1",
        "1e400",
        "'\\u0000'",
        "~",
        "[[]]",
        "{a: 1}",
        "!!binary x",
        "*x",
        "0x1G",
        "2**9",
        '"',
        "given",
    )
    texts = {kind: released.written(folder / kind, kind).read_text() for kind in released.SPECS}
    for number in range(count):
        source = random.Random(seed + number)
        kind = source.choice(sorted(texts))
        text = texts[kind]
        for _ in range(source.randrange(1, 4)):
            place = source.randrange(len(text))
            if source.random() < 0.4:
                text = (
                    text[:place]
                    + chr(source.choice((0, 9, 10, 32, 45, 58, 91, 93, 123, 125, 0xD800, 0x1F600)))
                    + text[place + 1 :]
                )
            elif source.random() < 0.5:
                words = text.replace("\n", " \n ").split(" ")
                words[source.randrange(len(words))] = source.choice(odd)
                text = " ".join(words).replace(" \n ", "\n")
            else:
                lines = text.splitlines()
                lines.insert(source.randrange(len(lines)), lines.pop(source.randrange(len(lines))))
                text = "\n".join(lines) + "\n"
        yield "spec", _refused(lambda text=text: read_spec(text), number)


def sources(folder, count, seed):
    """Files of records with some bytes changed, as CSV and Parquet."""
    job = released.job(folder, "histogram")
    csv = (folder / "trips.csv").read_bytes()
    for number in range(count):
        source, content = random.Random(seed + number), bytearray(csv)
        for _ in range(source.randrange(1, 6)):
            content[source.randrange(len(content))] = source.choice((0, 10, 13, 34, 44, 255, source.randrange(256)))
        (folder / "trips.csv").write_bytes(content[: source.randrange(len(content))] if number % 5 == 0 else content)
        from holdfast.release.records.tabulate import tabulate

        yield "source", _refused(lambda: tabulate(job), number)


def _refused(work, number):
    """What a case raised besides refusing; None where it ended as it should."""
    try:
        with bounded():
            work()
    except hf.Refused:
        return None
    except Slow:
        return f"case {number} takes too long"
    except Exception as error:
        return f"case {number}: {type(error).__name__}: {str(error)[:100]}"
    return None


def tampered(folder, count, seed):
    """Releases that were tampered with: both verifiers agree, and the ledger catches what neither can.

    Every fifth case is a ledger instead, whose rows were changed by somebody who can write its file.
    """
    kinds = ("histogram", "hierarchy", "moved", "contingency", "several")
    originals = {kind: release(released.job(folder / kind, kind)) for kind in kinds}
    whole = filled(folder / "whole.sqlite", 20, marks=("drawing", "published"))
    charge(whole, "last")
    for number in range(count):
        if number % 5 == 4:
            wrong = tampering.unnoticed(whole, folder / "changed.sqlite", random.Random(seed + number))
            yield "ledger", None if wrong is None else f"{number}: {wrong}"
            continue
        kind = kinds[number // 5 % len(kinds)]
        copy = shutil.copytree(originals[kind], folder / "copy", symlinks=True)
        what = tampering.at_random(copy, random.Random(seed + number))
        library, alone = tampering.broken(copy)
        wrong = tampering.disagree(library, alone)
        if not library and verify(copy, Ledger(originals[kind].parent / "holdfast-ledger.sqlite")).ok:
            wrong = "nobody finds it"
        yield "release", None if wrong is None else f"{number}: {what}: {wrong}"
        shutil.rmtree(copy)
        for left in folder.glob("copy-*"):
            left.unlink()


def flips(folder, count, seed):
    """Ledgers with one bit flipped: refused, or every row is what it was."""
    ledger = filled(folder / "ledger.sqlite", 8)
    whole, content = ledger.rows(), ledger.path.read_bytes()
    for number in range(count):
        source, changed = random.Random(seed + number), bytearray(content)
        place = source.randrange(len(changed))
        changed[place] ^= 1 << source.randrange(8)
        path = folder / "flipped.sqlite"
        path.write_bytes(changed)
        wrong = None
        try:
            found = Ledger(path)
            if found.verify() != whole:
                wrong = f"byte {place}: other rows are read"
            charge(found, "more")
            if found.rows()[: len(whole)] != whole:
                wrong = f"byte {place}: other rows are left"
        except hf.Refused:
            if b'"more"' in path.read_bytes():
                wrong = f"byte {place}: charged although refused"
        except Exception as error:
            wrong = f"byte {place}: {type(error).__name__}"
        yield "ledger", wrong
        for left in folder.glob("flipped.sqlite*"):
            left.unlink()


def races(folder, count, seed):
    """Five processes at once on one ledger with room for three: never more than three are charged."""
    del seed
    statements = hf.laplace(hf.histogram(4), epsilon=0.25).guarantees
    for number in range(count):
        ledger = filled(folder / f"{number}.sqlite", 250 * (number % 3 == 2), data=("others", "record"))
        if number % 2:
            ledger.set_budget(*DATA, epsilon=0.75)
        children = [
            _forked(lambda k=k, ledger=ledger: charge(ledger, str(k), statements, budget=_budget())) for k in range(5)
        ]
        codes = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
        charged = len(ledger.entries(*DATA))
        ledger.verify()
        ledger.path.unlink()
        yield (
            "race",
            None if (codes, charged) == ([0, 0, 0, 4, 4], 3) else f"race {number}: {codes}, {charged} charges",
        )


def _budget():
    from holdfast.release.ledger.accounts import Budget

    return Budget.of(epsilon=0.75)


def _forked(work):
    child = os.fork()
    if child:
        return child
    try:
        work()
    except Overspent:
        os._exit(4)
    except BaseException:
        os._exit(1)
    os._exit(0)


def charge(ledger, name, statements=STATEMENTS, budget=None):
    about = {"title": "Trips", "spec_hash": "sha256:0", "when": WHEN}
    ledger.charge(*DATA, [statements], release=name, budget=budget, **about)


def filled(path: Path, count, parts=(STATEMENTS,), data=DATA, marks=()):
    """A ledger with so many charges, made at once; with marks each has the rows of a whole release."""
    content = json.dumps(charge_content(parts, "Trips", "sha256:0"))
    with LedgerFile(path).writing() as table:
        rows = list(table.all())
        for number in range(count):
            entered = [Entered(WHEN, "charge", content, *data, f"old{number}")]
            entered += [Entered(WHEN, kind, "{}", key=f"old{number}") for kind in marks]
            for each in entered:
                rows.append(behind(rows[-1], each))
        if count:
            table.insert(rows[1:])
    return Ledger(path)


def load(folder, count, seed):
    """Charges beside 100 to 100,000 others; releases of the city in turn, and eight at once, beside 10,000."""
    del seed
    for charges in (100, 1_000, 10_000, 100_000):
        ledger = filled(folder / f"{charges}.sqlite", charges)
        charge(ledger, "first")
        begin, processor = time.monotonic(), time.process_time()
        for number in range(5):
            charge(ledger, f"new{number}")
        spent = [(time.monotonic() - begin) / 5, (time.process_time() - processor) / 5]
        yield f"one charge beside {charges}: {spent[0]:.3f} s, of the processor {spent[1]:.4f} s", None
        begin = time.process_time()
        ledger.verify()
        yield f"all of them read and verified: {time.process_time() - begin:.2f} s of the processor", None
        ledger.path.unlink()
    spec = next(path for path in example_jobs.specs_of_examples(folder) if path.parent.name == "city")
    spec.write_text(spec.read_text().replace("epsilon: 10}", "epsilon: 100000}"))
    job = Job.from_spec(read_spec(spec))
    parts = [table.statements for table in job.tables]
    marks = ("drawing", "published")
    ledger = filled(folder / "city.sqlite", 10_000, parts, (job.dataset, str(job.unit)), marks)
    size = ledger.path.stat().st_size
    for words in in_turn(spec, ledger.path, folder / "one", count):
        yield words, None
    grown = (ledger.path.stat().st_size - size) / max(1, count)
    yield f"the ledger grows by {grown / 1000:.1f} kB a release", None
    begin = time.monotonic()
    work = "import sys, campaigns as c; [print(w) for w in c.in_turn(*map(c.Path, sys.argv[1:4]), int(sys.argv[4]))]"
    command = [sys.executable, "-c", work, spec, ledger.path]
    eight = [subprocess.Popen([*command, folder / f"eight{k}", str(count // 8)], cwd=SUPPORT) for k in range(8)]
    codes = [each.wait() for each in eight]
    ledger.verify()
    each = (time.monotonic() - begin) / max(1, count // 8 * 8)
    yield f"the same, eight at once: {each:.2f} s each", None if not any(codes) else f"a process ended with {codes}"


def in_turn(spec, path, folder, count):
    """Release a spec so many times; tell how long the first and the last took, and the memory."""
    job, ledger, took = Job.from_spec(read_spec(spec)), Ledger(path), []
    for number in range(count):
        begin = time.process_time()
        release(job, output=folder / str(number), ledger=ledger)
        took.append(time.process_time() - begin)
    tenth = max(1, count // 10)
    first, last = sum(took[1 : tenth + 1]) / tenth, sum(took[-tenth:]) / tenth
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    yield f"{count} releases in turn: {first:.2f} s of the processor at first, {last:.2f} s at last, {peak} MB"


def kills(folder, count, seed):
    """Processes that make an example, each killed at another line or moment: nothing is lost, nothing half is seen."""
    os.environ["TMPDIR"] = str(folder)  # a killed process leaves what is its own there
    source, specs = random.Random(seed), example_jobs.specs_of_examples(folder, few=True)
    for number, spec in enumerate(specs):
        job, place, kept = example_jobs.job_of(spec), spec.parent, set(os.listdir(spec.parent))
        lines, met, seconds = killing.warm(job, place, kept)
        share = (number + 1) * count // len(specs) - number * count // len(specs)
        points = [*killing.spread(lines, met, seconds, share // 4, share // 4)]
        points += [(line, None) for line in source.sample(met, min(len(met), share - len(points)))]
        for again, (line, after) in enumerate(points):
            found = killing.point(job, place, kept, line, after, signal.SIGKILL, again % killing.AGAIN == 0)
            wrong = killing.lost(found, agents=job.spec.distributed is not None)
            ended = {-signal.SIGKILL: "killed"}.get(found["status"], "done before")
            yield f"{place.name} {ended}", None if wrong is None else f"{place.name}: {wrong}: {found}"


def power(folder, count, seed):
    """Kills, torn writes and lost power at the file calls of every example: no charge is lost, nothing half is seen.

    What is found the same twice is looked at once.
    """
    source, specs = random.Random(seed), example_jobs.specs_of_examples(folder, few=True)
    for spec in specs:
        known = {}
        cases = power_loss.states(spec, folder, source, min(1.0, count / (len(specs) * len(power_loss.WAYS) * 150)))
        for what, way, place, drawn in cases:
            found = power_loss.digest(place), drawn
            if found not in known:
                known[found] = power_loss.wrong_with(place, spec, drawn)
            wrong = known[found]
            yield f"{spec.parent.name} {way}", None if wrong is None else f"{spec.parent.name}, {what}, {way}: {wrong}"


def page(folder, count, seed):
    """Scrambled requests to the planner."""
    from planner import opened_with_a_guess, scrambled_requests  # what the planner needs is asked of nobody else

    client, site = opened_with_a_guess(folder)
    yield from scrambled_requests(client, site, count, seed)


def laws(folder, count, seed):
    """Draws of random mechanisms against every output listed: none off its law, and nearly all wrong scales seen."""
    del folder
    p_values, seen = [], 0
    for what, p, of_wrong, wrong in enumerated.laws(count, seed):
        p_values.append(p)
        seen += of_wrong < enumerated.ALARM / count
        yield what, wrong
    even = stats.kstest(p_values, "uniform").pvalue
    words = f"least p {min(p_values):.2g}, even p {even:.2g}, {enumerated.WRONG} of the scale seen {seen} times"
    yield words, None if even > enumerated.ALARM and seen > count / 2 else words


def statements(folder, count, seed):
    """Statements of random orders, mixtures and noise made for exact figures against the largest loss, listed."""
    del folder
    for what, _, wrong in enumerated.statements(count, seed):
        yield what, wrong


CAMPAIGNS = {
    "calls": (calls, 100_000),
    "specs": (specs, 100_000),
    "sources": (sources, 20_000),
    "tampered": (tampered, 5_000),
    "flips": (flips, 1_500),
    "races": (races, 1_000),
    "laws": (laws, 200),
    "statements": (statements, 600),
    "draws": (witnessing.attempts, 1_000),
    "proofs": (proofs_of_certificates.proofs, 100),
    "power": (power, 10_000),
    "load": (load, 200),
    "page": (page, 1_000),
    "kills": (kills, 1_000),
}
