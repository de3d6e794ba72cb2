"""The verbs about this machine: a first release of a made-up city, and whether everything is there."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
import tempfile
import webbrowser
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.ending import Ending, Json, Printed, Quiet, app, verb
from holdfast.progress import command

if TYPE_CHECKING:
    from holdfast.release.ledger.ledger import Ledger


books = typer.Typer(help="What has been spent, per dataset and unit.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(books, name="ledger")
#: The ledger of a spec that names none.
USUAL = "holdfast-ledger.sqlite"
LedgerFile = Annotated[
    str, typer.Option("--file", help="The ledger's file, or postgresql for the server in HOLDFAST_LEDGER.")
]
OneDataset = Annotated[str | None, typer.Option("--dataset", help="Only this dataset.")]
Dataset = Annotated[str, typer.Option("--dataset", help="The dataset, as the ledger names it.")]
Whom = Annotated[str, typer.Option("--unit", help="Whom it protects: record, or 'column NAME'.")]


@verb("holdfast ledger list", "holdfast ledger list --file book.sqlite --dataset trips", of=books)
def listed(file: LedgerFile = USUAL, dataset: OneDataset = None, json: Json = False) -> None:
    """List every charge, oldest first."""
    from holdfast.cli import showing

    entries = ledger_of(file).entries(dataset)
    showing.told(json, False, lambda: [entry.as_mapping() for entry in entries], lambda: showing.charges(entries))


@verb("holdfast ledger verify --file book.sqlite --witness copy.sqlite", of=books)
def verify(
    file: LedgerFile = USUAL,
    witness: Annotated[str | None, typer.Option("--witness", help="A second copy that must agree.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check that no row of the ledger was changed, removed, added or put elsewhere, row by row."""
    from holdfast.cli import showing
    from holdfast.release.ledger.ledger import Ledger

    ledger_of(file)
    rows = Ledger(file, witness).verify()
    words = f"the chain of {len(rows)} rows is unbroken; its head is {rows[-1].hash}"
    showing.told(json, quiet, lambda: {"rows": len(rows), "head": rows[-1].hash}, words)


@verb("holdfast ledger remaining --dataset trips", of=books)
def remaining(file: LedgerFile = USUAL, dataset: OneDataset = None, json: Json = False) -> None:
    """Say what was spent and what is left, per dataset and unit."""
    from holdfast.cli import showing

    ledger = ledger_of(file)
    rows = []
    for name, unit in ledger.datasets():
        if dataset in (None, name):
            account = ledger.account(name, unit)
            rows.append(
                {
                    "dataset": name,
                    "unit": unit,
                    "spent": account.spent[0].as_mapping() if account.spent else None,
                    "budget": account.allowed,
                    "remaining": account.left,
                    "trouble": account.trouble,
                    "beside": [*account.assumed, *ledger.beside(name, unit)],
                }
            )
    if dataset is not None and not rows:
        known = ", ".join(repr(name) for name, _ in ledger.datasets()) or "none"
        showing.notes([f"the ledger has nothing about {dataset!r}; the datasets that it knows: {known}"])
    showing.told(json, False, lambda: rows, lambda: showing.accounts(rows))


@verb("holdfast ledger budget --dataset trips --epsilon 10", of=books)
def budget(
    dataset: Dataset,
    unit: Whom = "record",
    epsilon: Annotated[str | None, typer.Option(help="Total epsilon.")] = None,
    delta: Annotated[str | None, typer.Option(help="Total delta, beside epsilon.")] = None,
    rho: Annotated[str | None, typer.Option(help="Total rho, instead of epsilon.")] = None,
    file: LedgerFile = USUAL,
    quiet: Quiet = False,
) -> None:
    """Set what may be spent in all on a dataset; the newest budget counts."""
    from decimal import Decimal, InvalidOperation

    from holdfast.arguments import Refused
    from holdfast.release.ledger.ledger import Ledger

    numbers = {}
    for name, text in (("epsilon", epsilon), ("delta", delta), ("rho", rho)):
        try:
            numbers[name] = None if text is None else Decimal(text)
        except InvalidOperation:
            raise Refused(f"{name} must be a number, found {text!r}") from None
    Ledger(file).set_budget(dataset, unit, **numbers)
    if not quiet:
        print(f"the budget of {dataset!r} per {unit} is set in {file}")


@verb("holdfast ledger events --dataset trips --output events.json", of=books)
def events(dataset: Dataset, unit: Whom = "record", file: LedgerFile = USUAL, output: Printed = None) -> None:
    """Write the charges on a dataset as events of dp_accounting, in JSON."""
    from holdfast.cli import showing

    showing.refuse_existing(output, "--output")
    from holdfast.exchange.events import exported

    showing.written(exported(ledger_of(file), dataset, unit), output)


@verb("holdfast ledger charge-events events.json --dataset trips --title 'Trips of May'", of=books)
def charge_events(
    events: Annotated[Path, typer.Argument(metavar="EVENTS", help="A file as 'ledger events' writes it.")],
    dataset: Dataset,
    title: Annotated[str, typer.Option(help="What was released.")],
    unit: Whom = "record",
    file: LedgerFile = USUAL,
    quiet: Quiet = False,
) -> None:
    """Charge a dataset with events of dp_accounting: what another tool released."""
    from holdfast.exchange.events import imported
    from holdfast.release.ledger.ledger import Ledger

    charged = imported(events, Ledger(file), dataset, unit, title)
    if not quiet:
        print(f"charged {len(charged)} events to {dataset!r} per {unit} in {file}; nobody checked their claims")


def ledger_of(file: str, option: str = "--file") -> Ledger:
    """The ledger at a place where there is one."""
    from holdfast.arguments import Refused
    from holdfast.release.ledger.ledger import Ledger

    ledger = Ledger(file)
    if not ledger.exists:
        raise Refused(f"there is no ledger {file!r}: name one with {option}; the first release makes it")
    return ledger


#: How many zones each borough of the made-up city has, and how many riders made how many trips there.
BOROUGHS = {"Northbank": 43, "Harbour": 61, "Airport": 1, "Midtown": 69, "Eastfield": 69, "Islands": 20}
TRIPS, RIDERS = 300_000, 80_000
SPEC = """\
# Trips of a made-up city: 6 boroughs, 263 zones. A rider counts with at most 5 trips.
title: Trips per zone of a made-up city
data:
  source: trips.parquet      # confidential: one row per trip; made up by holdfast demo
  name: city trips           # its name in the ledger
  domain: zones.csv          # public: one row per zone
privacy:
  unit: {column: rider, max_records: 5}
  epsilon: 2.0
table:
  hierarchy: [borough, zone]
  root: city
  shares: {city: 0.2, borough: 0.3, zone: 0.5}
  guess: 1000                # public guess of a typical count of a zone
hold: [consistent, nonnegative]
output: release
ledger: {file: ledger.sqlite, budget: {epsilon: 10}}
"""
#: What each extra brings: the package to look for, and the words for it.
EXTRAS = {
    "polars": ("polars", "frames of polars"),
    "pandas": ("pandas", "frames of pandas"),
    "pyarrow": ("pyarrow", "Arrow tables"),
    "excel": ("openpyxl", "tables in .xlsx"),
    "postgres": ("psycopg", "PostgreSQL, as a source or a ledger"),
    "spark": ("pyspark", "releases on a cluster"),
    "page": ("uvicorn", "the planner (holdfast page)"),
}
#: A day before this version was made.
MADE = "2026-11-01"
#: Bytes that a release of usual size needs while it is made.
ROOM = 1 << 30
#: File systems of networks: locks on them may hold on one machine alone.
NETWORK = ("nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p")


@verb("holdfast demo", "holdfast demo --output city")
def demo(
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A new folder; a temporary one.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make up a city's records, release them and open the report: needs no file and no network."""
    from holdfast.arguments import Refused
    from holdfast.cli import showing

    if output is not None and os.path.lexists(output):
        raise Refused(f"{str(output)!r} exists already: name a new folder for the demo")
    with command(quiet=quiet or json) as step:
        step("making up records")
        place = Path(tempfile.mkdtemp(prefix="holdfast-demo-")) if output is None else output.absolute()
        place.mkdir(parents=True, exist_ok=True)
        _made_up(place)
        from holdfast.release.certificate.verify import verify
        from holdfast.release.job.job import Job
        from holdfast.release.run import release
        from holdfast.release.spec.spec import read_spec

        step("comparing methods and calibrating them")
        job = Job.from_spec(read_spec(place / "spec.yaml"))
        folder = release(job, step=step)
        step("verifying")
        verdict = verify(folder)
    report = folder / "report.html"
    if sys.stdout.isatty() and not json and not quiet:
        webbrowser.open(report.as_uri())
    content = {"spec": str(place / "spec.yaml"), "folder": str(folder), "report": str(report), "verified": verdict.ok}
    words = (
        f"made up {TRIPS:,} trips and released them by {place / 'spec.yaml'}, which is yours to change\n"
        f"verified: {'every check holds' if verdict.ok else 'NO: see holdfast verify'}\nread {report}"
    )
    showing.told(json, quiet, lambda: content, words)
    if not verdict.ok:
        raise Ending(5)


def _made_up(place: Path) -> None:
    """Write spec, zones and records; the same in every demo."""
    import numpy as np

    from holdfast.release.storage.engine import quoted_text, session

    generator = np.random.default_rng(20260101)
    boroughs = [name for name, zones in BOROUGHS.items() for _ in range(zones)]
    zones = [f"{name} {number}" for name, size in BOROUGHS.items() for number in range(1, size + 1)]
    rows = "".join(f"{borough},{zone}\n" for borough, zone in zip(boroughs, zones, strict=True))
    (place / "zones.csv").write_text(f"borough,zone\n{rows}", encoding="utf-8")
    (place / "spec.yaml").write_text(SPEC, encoding="utf-8")
    popularity = generator.lognormal(0.0, 1.8, size=len(zones))
    where = generator.choice(len(zones), TRIPS, p=popularity / popularity.sum())
    trips = {"zone": np.array(zones, dtype=object)[where], "rider": generator.integers(RIDERS, size=TRIPS)}
    engine = session()
    engine.register("trips", trips)
    file = quoted_text(str(place / "trips.parquet"))
    engine.execute(f"COPY (FROM trips) TO '{file}' (FORMAT parquet)")


@verb("holdfast doctor", "holdfast doctor --file ledger.sqlite --folder out --key office.key")
def doctor(
    file: LedgerFile = USUAL,
    folder: Annotated[Path, typer.Option("--folder", help="Where releases are written.")] = Path(),
    key: Annotated[Path | None, typer.Option("--key", help="The key that signs releases, or its public part.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say whether everything is there: versions, extras, locks, disk, clock, ledger, key; shows no figure."""
    from holdfast.cli import showing

    lines = [*_packages(), _locks(folder), _disk(folder), _network(folder), _clock(file), _ledger(file), *_key(key)]
    marks = {True: "✓", False: "✗", None: "–"}
    wide = max(len(what) for what, _, _ in lines)
    told = [f"{marks[ok]} {what:<{wide}}  {says}" for what, ok, says in lines]
    wrong = sum(ok is False for _, ok, _ in lines)
    told.append("everything that holdfast needs is there" if not wrong else f"{wrong} to mend")
    checks = [{"what": what, "ok": ok, "says": says} for what, ok, says in lines]
    showing.told(json, quiet, lambda: {"ok": not wrong, "checks": checks}, "\n".join(told))
    if wrong:
        raise Ending(5)


#: What is looked at, whether it is as it should be (None: it is not needed), and a sentence.
Line = tuple[str, bool | None, str]


def _packages() -> list[Line]:
    lines: list[Line] = [
        ("holdfast", True, f"{version('holdfast')} on Python {platform.python_version()}, {platform.system()}")
    ]
    missing = []
    for needed in requires("holdfast") or ():
        if "extra ==" not in needed:
            name = needed.split(";")[0].strip().split(">")[0].split("<")[0].split("=")[0].strip()
            try:
                version(name)
            except PackageNotFoundError:
                missing.append(name)
    says = f"missing: {', '.join(missing)}; install holdfast again" if missing else "all are installed"
    lines.append(("packages", not missing, says))
    for extra, (package, words) in EXTRAS.items():
        there = importlib.util.find_spec(package) is not None
        lines.append((extra, there or None, words if there else f"{words}: pip install 'holdfast[{extra}]'"))
    there = shutil.which("coqc") is not None
    lines.append(("coq", there or None, "holdfast prove" if there else "holdfast prove: apt-get install coq"))
    return lines


def _locks(folder: Path) -> Line:
    """Whether a folder that is open and locked cannot be locked again."""
    from holdfast.system import close_folder, lock, open_folder

    try:
        with tempfile.TemporaryDirectory(prefix="holdfast-doctor-", dir=folder) as name:
            path = Path(name)
            first, second = open_folder(path), open_folder(path)
            try:
                lock(first)
                try:
                    lock(second)
                except BlockingIOError:
                    return "locks", True, f"{folder.absolute()} can be written and locked"
                return "locks", False, f"two processes could write into {folder.absolute()}: use a local folder"
            finally:
                close_folder(second, path)
                close_folder(first, path)
    except OSError as error:
        return "locks", False, f"{folder.absolute()}: {error.strerror}"


def _disk(folder: Path) -> Line:
    places = {str(folder.absolute()): folder, "TMPDIR": Path(os.environ.get("TMPDIR") or tempfile.gettempdir())}
    try:
        free = {name: shutil.disk_usage(place).free for name, place in places.items()}
    except OSError as error:
        return "disk", False, f"{error.filename}: {error.strerror}"
    says = ", ".join(f"{size / 2**30:,.1f} GiB free in {name}" for name, size in free.items())
    return "disk", min(free.values()) >= ROOM, says


def _network(folder: Path) -> Line:
    """Whether a folder lies on a file system of a network, as far as the system says."""
    try:
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return "folder", None, "whether it lies on a network cannot be seen here: keep ledgers on a local disk"
    path = folder.resolve()
    kinds = {Path(words[1]): words[2] for words in mounts if path.is_relative_to(words[1])}
    kind = kinds[max(kinds, key=lambda each: len(each.parts))] if kinds else ""
    if kind in NETWORK:
        return "folder", False, f"{path} lies on a network ({kind}): keep the ledger on a local disk or in PostgreSQL"
    return "folder", True, "lies on a disk of this machine"


def _clock(file: str) -> Line:
    """Whether the clock runs after the last row of the ledger."""
    from holdfast.release.ledger.ledger import now

    last = ""
    if Path(file).exists():
        try:
            last = max((row.at for row in ledger_of(file).rows()), default="")
        except Exception:  # said by the line about the ledger
            last = ""
    if now() < max(last, MADE):
        return "clock", False, f"it says {now()}, which is over already: set it"
    return "clock", True, now()


def _ledger(file: str) -> Line:
    from holdfast.arguments import Refused

    if "://" not in file and file != "postgresql" and not Path(file).exists():
        return "ledger", None, f"there is no {file} yet; the first release makes it"
    try:
        rows = ledger_of(file).verify()
    except Refused as error:
        return "ledger", False, str(error)
    return "ledger", True, f"the chain of {len(rows)} rows is unbroken"


def _key(key: Path | None) -> list[Line]:
    from holdfast.arguments import Refused
    from holdfast.release.signing import SUFFIX, read_key, read_trusted

    if key is None:
        return []
    try:
        if key.suffix == SUFFIX:
            read_trusted(key)
            return [("key", True, "public keys that verify can use")]
        return [("key", True, f"its fingerprint is {read_key(key).fingerprint}")]
    except (Refused, OSError) as error:
        return [("key", False, str(error))]
