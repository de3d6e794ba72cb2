"""Agents that make one release apart (SDP Algorithm 4): a shared secret, slices of one table, and their union.

Every agent counts its own records, makes its own slice of the noise from the shared secret and publishes the sum. No
agent sees another's records, and no message passes between them. The ledger is charged once, by the first agent; a
crashed agent runs again and makes the same bytes. `gather` needs no secret and no records.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

import numpy as np
from pydantic import Field, ValidationError

from holdfast.arguments import Refused
from holdfast.arrays import Ints
from holdfast.mechanism.release import Release
from holdfast.randomness import Keys, Stream
from holdfast.release.certificate.verify import verify
from holdfast.release.certifying import domain_hash
from holdfast.release.disclosure.disclosure import given_away
from holdfast.release.disclosure.public_words import published
from holdfast.release.ends import saying, saying_nothing_happened, told
from holdfast.release.facts import Model, Statement
from holdfast.release.job.job import Job
from holdfast.release.job.slices import Division, joined, shared_noise
from holdfast.release.job.table import Table
from holdfast.release.ledger.entries import content_of
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.records.tabulate import tabulate
from holdfast.release.run import Run, write_release
from holdfast.release.signing import read_private, write_private
from holdfast.release.spec.origin import Origin
from holdfast.release.storage.files import publish, read_plain, workplace, write_text
from holdfast.version import __version__

#: Where the command looks for the secret when no file is named.
VARIABLE = "HOLDFAST_SECRET"
#: Bytes of a secret, and of the check behind it: a phrase that somebody made up, or a slip of the pen, has none.
SIZE, CHECK = 32, 4


def write_secret(path: Path) -> None:
    """Write a fresh secret to a new file that only its owner can read."""
    write_private(path, f"{with_check(secrets.token_bytes(SIZE)).hex()}\n".encode(), 0o600)


def with_check(secret: bytes) -> bytes:
    """Return a secret with its check behind it, a one-way hash of it."""
    return secret + hashlib.blake2b(secret, digest_size=CHECK, person=b"holdfast.check").digest()


def read_secret(path: Path | None) -> Keys:
    """Return the keys of the secret in a private file, or in the environment where no file is named."""
    if path is not None:
        return _keys(read_private(path, "secret").decode("ascii", errors="replace"), f"the file {str(path)!r}")
    if VARIABLE not in os.environ:
        raise Refused(f"the agents' secret is missing: name its file with --secret, or set {VARIABLE}")
    return _keys(os.environ[VARIABLE], f"the variable {VARIABLE}")


def _keys(text: str, where: str) -> Keys:
    secret = _decoded(text)
    del text  # whatever is wrong, nothing of it is repeated, not even by what prints the variables of a traceback
    if secret is None:
        raise Refused(f"{where} holds no secret, or not all of it: holdfast secret FILE makes one")
    return Keys.of(secret)


def _decoded(text: str) -> bytes | None:
    """The secret, where its check is right."""
    try:
        content = bytes.fromhex(text.strip())
    except ValueError:
        return None
    return content[:SIZE] if content == with_check(content[:SIZE]) and len(content) == SIZE + CHECK else None


def identity(keys: Keys, *public: str) -> str:
    """Return the name of the release that a secret makes of a spec and its public files; it tells nothing about it."""
    return f"{keys.at('release', *public).bits(128):032x}"


def noise_keys(keys: Keys, release: str) -> Keys:
    return Keys.drawn_from(keys.at("noise", release))


def commitment(keys: Keys, release: str, agent: str, truth: Ints, noise: Ints) -> str:
    """Return a keyed hash of an agent's true values and noise: without the secret it tells nothing about them."""
    return _sealed(keys.at("commitment", release, agent), truth, noise)


def common_mark(keys: Keys, release: str, head: Ints) -> str:
    """Return a keyed hash of the noise that all agents have in common: equal where they made the same."""
    return _sealed(keys.at("common", release), head)


def _sealed(stream: Stream, *parts: Ints) -> str:
    content = b"".join(np.ascontiguousarray(part, dtype="<i8").tobytes() for part in parts)
    key = stream.words(8).astype("<u8").tobytes()
    return hashlib.blake2b(content, key=key, digest_size=32, person=b"holdfast.slice").hexdigest()


# --- What the ledger keeps of releases that agents make: which secret made which release, and what slices are made from
# Two releases with one noise differ by their exact truths. So a secret belongs to one release for ever, and a slice is
# made again only with the same true values and noise: of the secret a one-way fingerprint is kept, of these a keyed
# hash. Beside it stands the hash of what the agent published, so that nobody can join a slice that was changed.


def claim(ledger: Ledger, fingerprint: str, release: str) -> None:
    """Keep that a secret makes a release; refuse a secret that made another one. Durable when this returns."""
    if _first_kept(ledger, "secret", fingerprint, {"release": release}).get("release") != release:
        raise Refused(
            "this secret made another release, and two releases with one noise differ by their exact truths: make a "
            "new one with holdfast secret FILE for every release"
        )


def commit(ledger: Ledger, release: str, agent: str, commitment: str, published: str) -> None:
    """Keep what an agent's slice is made from, and the hash of what it publishes; refuse other values than before.

    Durable when this returns.
    """
    content = {"commitment": commitment, "published": published}
    if _first_kept(ledger, "slice", f"{release} {agent}", content).get("commitment") != commitment:
        raise Refused(
            f"agent {agent!r} made its slice of this release from other records before, or with other noise on another "
            "machine, and both slices together would show more than one: restore what was, or begin a new release with "
            "a new secret"
        )


def _first_kept(ledger: Ledger, kind: str, key: str, content: dict[str, str]) -> Any:
    with ledger.writing() as (mine, add):
        row = mine.find(kind, key)
        return content_of(add(kind, content, key=key) if row is None else row)


def published_slices(ledger: Ledger, release: str) -> dict[str, str]:
    slices = (row for row in ledger.rows() if row.kind == "slice" and row.key.startswith(f"{release} "))
    return {row.key.removeprefix(f"{release} "): content_of(row).get("published") for row in slices}


# --- slices and their union -------------------------------------------------------------------------------------------

#: Version of the JSON form of a slice, and its file.
SCHEMA: Final = "holdfast-slice-2"
FILE = "slice.json"
AGAIN = "the ledger was charged, and running the agent again costs nothing more"
Step = Callable[[str], None]


def _folders(job: Job) -> Path:
    return job.spec.output.with_name(f"{job.spec.output.name}.agents")


def agent(
    job: Job,
    name: str,
    keys: Keys,
    *,
    source: Any = None,
    output: str | Path | None = None,
    ledger: Ledger | None = None,
    step: Step = lambda _: None,
) -> Path:
    """Publish an agent's slice of a job into a folder and return it.

    `keys` are those of the secret that all agents of the release share; `source` are the agent's own records, a file or
    a data frame, instead of the spec's. Run again after a crash, it makes the same bytes. Refused: a secret that made
    another release, other records than before under the same secret, records that belong to another agent, and a
    budget with too little left.
    """
    table, division = _divided(job)
    # Another version may make other noise of the same secret, which would be another release.
    release = identity(keys, __version__, job.spec.hash, *sorted(job.public_files.values()))
    folder = Path(_folders(job) / f"agent-{quote(name, safe=' ')}" if output is None else output).absolute()
    with saying_nothing_happened():
        outputs = division.outputs(name)
        run = replace(Run.of(job, folder, ledger), identity=release)
        step("counting the records")
        with told("the records cannot be counted"):
            answer = table.layout.query.answer(tabulate(job, source, made=partial(_refuse_unsaid, job))[0])
        if answer[(division.owner >= 0) & (division.owner != division.number(name))].any():
            raise Refused(f"some record does not belong to agent {name!r}: give every agent its own records only")
        truth = answer[outputs]
        with told(f"{folder.parent} cannot be written"), saying(run.ledger, release):
            step("charging the ledger")
            claim(run.ledger, keys.fingerprint, release)
            _charge_once(run)
            step("drawing the noise")
            noise = shared_noise(table.mechanism, division)
            head = noise.head(noise_keys(keys, release))
            own = noise.slice(noise_keys(keys, release), division.number(name), head)
            about: dict[str, Any] = {"agent": name, "release": release, "common": common_mark(keys, release, head)}
            text = Slice(**about, **_of_all(job), values=(truth + own).tolist()).text
            made = hashlib.sha256(text.encode()).hexdigest()
            commit(run.ledger, release, name, commitment(keys, release, name, truth, own), made)
            step("writing the files")
            _publish(folder, text, run.midnight)
    return folder


def _refuse_unsaid(job: Job, origin: Origin) -> None:
    """Refuse what the release of all agents would have to assume and does not say."""
    if set(origin.assumes) - set(job.origin.assumes):
        sentence = (
            "how these records are made cannot be read: write rows_depend_on_other_rows: false, which all agents say"
        )
        raise job.spec.at["data"].refuse(sentence)


def _publish(folder: Path, text: str, midnight: float) -> None:
    """Publish a slice, unless it stands there already, byte for byte; refused where something else does."""
    try:
        if os.path.lexists(folder):
            if not folder.is_dir() or {each.name: each.read_bytes() for each in folder.iterdir()} != {
                FILE: text.encode()
            }:
                raise Refused(f"{folder} exists already and holds something else: move it away, or name another folder")
            return
        with workplace(folder) as place:
            write_text(place / FILE, text)
            for path in (place / FILE, place):  # when it was written would tell how long the draw took
                os.utime(path, (midnight, midnight))
            publish(place, folder)
    except OSError as error:
        error.add_note(AGAIN)
        raise


def gather(
    job: Job,
    folders: Sequence[str | Path] | None = None,
    *,
    output: str | Path | None = None,
    ledger: Ledger | None = None,
    step: Step = lambda _: None,
) -> Path:
    """Check the slices of all agents, join them, and publish the whole release into a new folder; return it.

    `folders` are those of the agents, in any order; None looks where agents publish by themselves. The release has the
    form of any other one, and is verified in the same way.
    """
    table, division = _divided(job)
    step("reading the slices")
    slices = _read_all(job, division, folders)
    found = [np.array(slices[name].values, dtype=np.int64) for name in division.names]
    values = joined(table.layout.query, division, found)
    run = replace(Run.of(job, output, ledger), identity=next(iter(slices.values())).release)
    _refuse_uncharged(run, slices.values())
    exact = bool(table.holding.exact)
    past = run.ledger.past(job.dataset, job.unit)
    step("computing what exact figures give away")
    disclosed = given_away(job, past.figures, [values] if exact else None)
    mechanism = table.mechanism
    drawn = Release(values, table.guarantees, table.layout.query, mechanism.method, mechanism.error_bars)
    with (
        told(f"{run.folder.parent} cannot be written"),
        saying(run.ledger, run.identity),
        workplace(run.folder) as place,
    ):
        step("writing the files")
        write_release(run, [drawn], place, disclosed)
        step("verifying what was written")
        wrong = verify(place).differences
        if wrong:
            raise Refused(f"the slices do not make a table in which everything holds ({wrong[0].sentence}): ask again")
        step("publishing")
        if not run.seal(place, published(job, [values]) if exact else (), past):
            raise Refused("another release of this dataset kept exact figures meanwhile: gather the slices again")
        run.publish(place)
    return run.folder


def _refuse_uncharged(run: Run, slices: Iterable[Slice]) -> None:
    """Refuse slices that the ledger was not charged for, or that are not what their agents published."""
    charge = run.charge_row
    if charge is None or charge.parts != run.parts:
        raise Refused(
            f"the ledger {run.ledger.path} was not charged for these slices: name the one that the agents used"
        )
    kept = published_slices(run.ledger, run.identity)
    for part in slices:
        if kept.get(part.agent) != hashlib.sha256(part.text.encode()).hexdigest():
            raise Refused(
                f"the slice of agent {part.agent!r} is not the one that it published, says the ledger: ask for it again"
            )


def _divided(job: Job) -> tuple[Table, Division]:
    table = job.tables[0]
    if table.division is None:
        raise Refused("this spec names no agents: write distributed: {by: LEVEL}, or use holdfast release")
    return table, table.division


def _charge_once(run: Run) -> None:
    """Charge the ledger for the whole release, unless another agent did, or does at this moment."""
    if run.charged:
        return
    try:
        run.charge()
    except Refused:
        if not run.charged:
            raise


# --- slices as files ------------------------------------------------------------------------------------------------


class Slice(Model):
    """What one agent publishes: its values, in the order of its rows, and what all slices of a release say of it."""

    form: Literal["holdfast-slice-2"] = Field(default=SCHEMA, alias="schema")
    agent: str
    release: str
    common: str
    title: str
    spec_hash: str
    public_files: list[str]
    domain_hash: str
    statements: list[Statement]
    caveats: list[str]
    values: list[Annotated[int, Field(gt=-(2**62), lt=2**62)]]

    @property
    def text(self) -> str:
        """The same slice has the same text, whenever it is made."""
        return self.model_dump_json(by_alias=True, indent=1) + "\n"


def _of_all(job: Job) -> dict[str, Any]:
    """What all slices of a release say of it."""
    return {
        "title": job.title,
        "spec_hash": job.spec.hash,
        "public_files": sorted(job.public_files.values()),
        "domain_hash": domain_hash(job.tables[0].layout),
        "statements": list(job.guarantees),
        "caveats": list(job.caveats),
    }


def _read_all(job: Job, division: Division, folders: Sequence[str | Path] | None) -> dict[str, Slice]:
    """Read one slice of every agent, all of one release."""
    places = sorted(_folders(job).glob("agent-*")) if folders is None else [Path(folder) for folder in folders]
    found: dict[str, Slice] = {}
    for place in places:
        part = _read(_of_all(job), division, place)
        if part.agent in found:
            raise Refused(f"agent {part.agent!r} is there twice: name one folder of every agent")
        found[part.agent] = part
    missing = [name for name in division.names if name not in found]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise Refused(
            f"the slice of agent {missing[0]!r}{more} is missing: run holdfast agent there, then gather again"
        )
    if len({part.release for part in found.values()}) > 1:
        raise Refused("the slices were not made with one secret and version: run all agents with the same ones")
    if len({part.common for part in found.values()}) > 1:
        raise Refused(
            "the agents did not make the same common noise, so nothing would hold: run them with the same versions of "
            "everything on machines of one kind, with a new secret"
        )
    return found


def _read(wanted: dict[str, Any], division: Division, place: Path) -> Slice:
    """Read a slice and check that it is one of this job; that nobody changed it says the ledger."""
    try:
        found = Slice.model_validate_json(read_plain(place / FILE))
    except (OSError, ValidationError):
        raise Refused(f"{place} holds no slice that can be read: ask its agent for it again") from None
    if any(getattr(found, name) != value for name, value in wanted.items()):
        raise Refused(f"the slice in {place} was made from another spec or other public files: ask for it again")
    if found.agent not in division.names:
        raise Refused(f"the slice in {place} is of an agent that the spec does not name: leave it out")
    if len(found.values) != division.outputs(found.agent).size:
        raise Refused(f"the slice in {place} has not the rows of agent {found.agent!r}: ask for it again")
    return found
