"""The two steps of a witnessed release: commit to everything that decides the draw, then draw with a nonce.

Killed at any point, either step is run again: the first charges once and finds its commitment, the second draws the
same table, since the ledger has one nonce for it. The opening is on the disk before the charge, and the nonce in the
ledger before the draw.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import re
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import Base64Bytes, Field, ValidationError

from holdfast.arguments import Refused
from holdfast.arrays import Array
from holdfast.randomness import Keys, Stream
from holdfast.release.certificate.certificate import Certificate, Commitment, read_certificate
from holdfast.release.certificate.verify import Check
from holdfast.release.ends import saying, saying_nothing_happened, time_of, told
from holdfast.release.explain import unfinished
from holdfast.release.facts import Model, Software, TableCertificate
from holdfast.release.job.job import Job
from holdfast.release.job.table import Table
from holdfast.release.ledger.entries import Entry
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.records.tabulate import tabulate
from holdfast.release.run import LOOKING, Run, counted, finish, looked_at
from holdfast.release.spec.origin import Origin
from holdfast.release.spec.places import Places
from holdfast.release.spec.spec import checked
from holdfast.release.standalone_verifier.ed25519 import NONCE, commitment_of
from holdfast.release.standalone_verifier.reading import hash_of, json_of
from holdfast.release.storage.files import read_plain, sha256_of
from holdfast.release.table.public import ENDS
from holdfast.release.writing import write_table_files
from holdfast.system import BYTES, sync_folder

#: Version of the JSON form of an opening, the end of its name, and the bytes of its secret.
SCHEMA: Final = "holdfast-opening-1"
SUFFIX, SECRET = ".opening", 32


class Opening(Model):
    """What was fixed: the release, its spec and public files, how records become rows, the true answers, a secret.

    Answers stand table by table, in the order of its rows.
    """

    form: Literal["holdfast-opening-1"] = Field(default=SCHEMA, alias="schema")
    release: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    spec: dict[str, Any]
    files: dict[str, Base64Bytes]
    assumes: list[str]
    told: list[str]
    answers: list[list[Annotated[int, Field(ge=-(2**63), lt=2**63)]] | list[float]]
    secret: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

    @classmethod
    def of(cls, run: Run, answers: list[Array]) -> Opening:
        """The opening of an attempt, with a fresh secret."""
        spec, origin = run.job.spec, run.job.origin
        made = cls(
            release=run.identity,
            spec=json.loads(json.dumps(spec.plain_values, default=str)),
            files={name: base64.b64encode(read_plain(spec.resolve(name).resolve())) for name in run.job.public_files},
            assumes=list(origin.assumes),
            told=list(origin.told),
            answers=[each.tolist() for each in answers],
            secret=secrets.token_bytes(SECRET).hex(),
        )
        if made.public_files != run.job.public_files:
            raise Refused("a public file was changed while it was read: try again")
        if checked(made.spec, Places(spec.path)).hash != spec.hash:
            raise Refused("the spec holds values that a file cannot keep: write it in YAML, with texts and numbers")
        return made

    @property
    def text(self) -> str:
        return self.model_dump_json(by_alias=True) + "\n"

    @property
    def public_files(self) -> dict[str, str]:
        return {name: hashlib.sha256(content).hexdigest() for name, content in self.files.items()}

    @property
    def origin(self) -> Origin:
        return Origin(tuple(self.assumes), tuple(self.told))

    @property
    def truths(self) -> list[Array]:
        return [np.array(each) for each in self.answers]

    def stream(self, commitment: str, nonce: str, table: Table) -> Stream:
        """The words of the draw of a table: nobody can know them before the nonce, or choose them with it."""
        return Keys.of(bytes.fromhex(self.secret)).at("witnessed", commitment, nonce, table.name)

    @contextmanager
    def job(self) -> Iterator[Job]:
        """Build the job again, from what is in the opening alone."""
        with tempfile.TemporaryDirectory() as folder:
            files = {}
            for number, (name, content) in enumerate(self.files.items()):
                files[name] = Path(folder, f"{number}{next((end for end in ENDS if name.endswith(end)), '')}")
                files[name].write_bytes(content)
            spec = checked(self.spec, Unpacked(Path(folder, "spec.yaml"), {}, files))
            yield Job.from_spec(spec).reading(self.origin)


@dataclass(frozen=True)
class Unpacked(Places):
    """The places of a spec whose public files were unpacked; it names no other file of the machine."""

    files: Mapping[str, Path] = field(default_factory=dict)

    def resolve(self, text: str) -> Path:
        return self.files.get(text, self.file.with_name("absent"))


def opening_of(folder: Path) -> Path:
    """Where the opening of a release lies: beside its folder."""
    return folder.with_name(f"{folder.name}{SUFFIX}")


def read_opening(path: Path) -> tuple[Opening, str]:
    """Read an opening and its hash; refused with one sentence, which shows nothing of it, where it is none."""
    try:
        content = read_plain(path)
        found = json_of(content)
    except OSError as error:
        raise Refused(f"the opening {str(path)!r} cannot be read: {error.strerror or 'it is a link'}") from None
    except (ValueError, RecursionError):
        raise Refused(f"{str(path)!r} is no opening of a release: it is damaged, or another file") from None
    form = found.get("schema") if isinstance(found, dict) else None
    if isinstance(form, str) and form != SCHEMA and re.fullmatch(r"holdfast-opening-[0-9]+", form):
        raise Refused(f"{str(path)!r} was written by a newer holdfast (its form is {form}): update holdfast")
    try:
        return Opening.model_validate_json(content), hash_of(content)
    except ValidationError:
        raise Refused(f"{str(path)!r} is no opening of a release: it is damaged, or another file") from None


def write_opening(opening: Opening, place: Path, path: Path) -> str:
    """Write an opening for its owner alone, whole or not at all, durably; return its hash."""
    content, partial = opening.text.encode(), place / "opening"
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BYTES, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
    return hash_of(content)


@cache
def code_hash() -> str:
    """The hash of whatever decides which table a draw is: the files of holdfast, its packages, and the processor."""
    folder = Path(str(resources.files("holdfast")))
    files = {path.relative_to(folder).as_posix(): hash_of(path.read_bytes()) for path in sorted(folder.rglob("*.py"))}
    simd = np.show_config(mode="dicts")["SIMD Extensions"]
    around = [files, Software().model_dump(), platform.machine(), simd]
    return hash_of(json.dumps(around, sort_keys=True).encode())


Step = Callable[[str], None]


@dataclass(frozen=True)
class Committed:
    """A draw that was committed to: the hash that an officer is shown, the row of the ledger, and the opening."""

    commitment: str
    row: int
    opening: Path


def commit(
    job: Job,
    *,
    source: Any = None,
    output: str | Path | None = None,
    ledger: Ledger | None = None,
    step: Step = lambda _: None,
    aside: Step = lambda _: None,
    note: Step = lambda _: None,
) -> Committed:
    """Count the records and charge the ledger for one draw of them, which a nonce will decide; draw nothing.

    Run again, it returns the same commitment. Refused is what a release would refuse before its charge.
    """
    with saying_nothing_happened():
        step("checking the ledger")
        run = Run.of(job, output, ledger)
        if job.spec.engine != "local":
            raise Refused("a witnessed draw is made in this process, where it can be made again: write engine: local")
        path = opening_of(run.folder)
        if (known := _committed(run, path)) is not None:
            return known
        past = run.ledger.past(job.dataset, job.unit)
        for words in unfinished(past):
            note(words)
        with run.workplace(step) as place:
            if _committed(run, path) is not None:
                raise Refused(f"another process committed to {path} just now: run this again to see it")
            path.unlink(missing_ok=True)  # of a process that was killed before its charge
            run, _, answers = counted(run, source, step, aside)
            past = run.ledger.past(job.dataset, job.unit, since=past)
            step(LOOKING)
            looked_at(run.job, past, answers, aside)
            step("charging the ledger")
            with saying(run.ledger, run.identity):
                try:
                    with told(f"{path} cannot be written"):
                        fixed = {"opening": write_opening(Opening.of(run, answers), place, path), "code": code_hash()}
                        sync_folder(path.parent)
                    while not run.charge(past, commitment=fixed):
                        looked_at(run.job, past, answers, aside)
                except BaseException:
                    if not run.charged:
                        path.unlink(missing_ok=True)
                    raise
        made = _committed(run, path)
        assert made is not None
        return made


def draw_committed(
    job: Job,
    nonce: str,
    *,
    output: str | Path | None = None,
    ledger: Ledger | None = None,
    at_least: float = 0.0,
    step: Step = lambda _: None,
    aside: Step = lambda _: None,
) -> Path:
    """Draw the tables that were committed to, with a nonce that was given since, and release them; return the folder.

    Run again with the same nonce, it draws the same tables; with another one it is refused.
    """
    end = time_of(at_least)
    if not re.fullmatch(NONCE, nonce):
        raise Refused(f"a nonce has 16 to 64 bytes, in 32 to 128 hexadecimal digits, found {len(nonce)} characters")
    with saying_nothing_happened():
        step("reading the commitment")
        run = Run.of(job, output, ledger)
        path = opening_of(run.folder)
        if not path.exists():
            raise Refused(f"there is no {path}: commit to the draw first, by holdfast release SPEC --witnessed")
        opening, seal = read_opening(path)
        entry = run.ledger.entry(opening.release)
        if entry is None or (entry.commitment or {}).get("opening") != seal:
            raise Refused(f"the ledger has no commitment to {path}: it was changed, or the charge was never made")
        with saying(run.ledger, opening.release):
            run = _continued(run, opening, entry, nonce)
            past, answers = run.ledger.past(job.dataset, job.unit), opening.truths
            with run.workplace(step, charged=True) as place:
                step(LOOKING)
                disclosed = looked_at(run.job, past, answers, aside)
                run.ledger.give_nonce(nonce, run.identity, run.when)
                step("drawing the tables")
                streams = [opening.stream(_commitment_of(entry), nonce, table) for table in run.job.tables]
                each = zip(run.job.tables, answers, streams, strict=True)
                drawn = [table.mechanism.release(truth, stream) for table, truth, stream in each]
                finish(run, drawn, answers, past, disclosed, place, end, step, aside)
    return run.folder


def _commitment_of(charge: Entry) -> str:
    ledger = {"row": charge.number, "hash": charge.hash}
    about = {"release": charge.release, "spec_hash": charge.spec_hash, "ledger": ledger}
    return commitment_of({**about, "commitment": charge.commitment})


def _committed(run: Run, path: Path) -> Committed | None:
    """What was committed to before, if anything was charged for it."""
    if not os.path.exists(path):
        return None
    opening, seal = read_opening(path)
    entry = run.ledger.entry(opening.release)
    if entry is None:
        return None
    if entry.spec_hash != run.job.spec.hash or (entry.commitment or {}).get("opening") != seal:
        raise Refused(f"{path} is the opening of another release: move it away, its charge stays")
    if entry.nonce is not None:
        raise Refused(f"this release has its nonce already: draw with it, or move {path} away and commit anew")
    return Committed(_commitment_of(entry), entry.number, path)


def _continued(run: Run, opening: Opening, entry: Entry, nonce: str) -> Run:
    """The run that was committed to; refused where anything that was fixed is another thing now."""
    assert entry.commitment is not None
    if entry.spec_hash != run.job.spec.hash or opening.public_files != run.job.public_files:
        raise Refused("the spec or a public file is not the one that was committed to: restore it")
    if entry.commitment.get("code") != code_hash():
        raise Refused("another version of holdfast or its packages, or another processor, was committed to: draw there")
    if entry.nonce is not None and entry.nonce[1] != nonce:
        raise Refused("this release has its nonce already, and nothing is drawn twice: give the same one again")
    fixed = Commitment(**entry.commitment, nonce=nonce)
    run = replace(run.reading(opening.origin), identity=opening.release, commitment=fixed)
    if entry.parts != run.parts:
        raise Refused("the ledger was charged with other statements than this spec makes")
    return run


OPENED = "drawn again from what was committed to and the nonce, every file of figures is the same, byte for byte"


def reexecuted(
    folder: str | Path, file: str | Path, source: Any = None, step: Callable[[str], None] = lambda _: None
) -> Check:
    """Draw a witnessed release again from its opening; with a source, count its records again too.

    Refused: an opening of another release, and a table that another version of holdfast drew and this one does not.
    """
    certificate = read_certificate(Path(folder))
    fixed = certificate.commitment
    if fixed is None or certificate.ledger is None:
        raise Refused("this release is not witnessed: nothing was fixed before its draw, so none can be confirmed")
    opening, seal = read_opening(Path(file))
    if opening.release != certificate.release:
        raise Refused(f"{str(file)!r} is the opening of another release")
    if seal != fixed.opening:
        return Check("opened", False, "the opening is not the one that was committed to")
    step("drawing again")
    same = fixed.code == code_hash()
    try:
        with opening.job() as job:
            wrong = next(_differences(job, opening, certificate, Path(folder), source), None)
    except Refused:
        if same:
            raise
        wrong = "it cannot be drawn"
    if wrong is not None and not same:
        made = certificate.software
        packages = ", ".join(f"{name} {version}" for name, version in made.packages.items())
        raise Refused(
            f"this version cannot confirm the draw ({wrong}); holdfast {made.version} of the code {fixed.code}, "
            f"Python {made.python}, {packages}, made it on a processor of its kind; this is the code {code_hash()}"
        )
    return Check("opened", wrong is None, OPENED if wrong is None else wrong)


def _differences(job: Job, opening: Opening, certificate: Certificate, folder: Path, source: Any) -> Iterator[str]:
    """Say what is another thing in the release than what was committed to."""
    if job.spec.hash != certificate.spec_hash:
        yield "the certificate is that of another spec"
    if sorted(f"sha256:{each}" for each in job.public_files.values()) != sorted(
        each.sha256 for each in certificate.public_files
    ):
        yield "the certificate is that of other public files"
    if tuple(certificate.statements) != job.guarantees:
        yield "the certificate has other statements than the spec makes"
    truths = opening.truths
    if source is not None:
        cells = tabulate(job, source)
        answers = [table.answer(each) for table, each in zip(job.tables, cells, strict=True)]
        if not all(map(np.array_equal, answers, truths)):
            yield "the records are not those that were committed to"
    hashes = {file.name: file.sha256 for file in certificate.files}
    commitment, nonce = commitment_of(certificate.as_mapping()), certificate.commitment.nonce  # type: ignore[union-attr]
    with tempfile.TemporaryDirectory() as place:
        drawn = [
            (table, table.mechanism.release(truth, opening.stream(commitment, nonce, table)))
            for table, truth in zip(job.tables, truths, strict=True)
        ]
        again = [
            each
            for csv, group in groupby(zip(drawn, certificate.tables, strict=True), lambda one: one[1].csv)
            for each in write_table_files([one for one, _ in group], Path(place), csv.removesuffix("table.csv"), {})
        ]
        for (written, _), told in zip(again, certificate.tables, strict=True):
            # What is not protected speaks of other releases too.
            if _said(written) != _said(told):
                yield f"the certificate says something else of {told.name} than the draw does"
            for name in written.files:
                drawn_again = sha256_of(Path(place, name))
                if name.endswith(".csv") and not drawn_again == hashes[name] == sha256_of(folder / name):
                    yield f"{name} is not what was drawn"


def _said(table: TableCertificate) -> str:
    return table.model_dump_json(exclude={"unprotected"})
