"""Release one period of a series: charged once for all, drawn from one secret, from one set of records each.

Every period is a release of its own, in a folder inside the output. The ledger has, before anything of a period is
drawn, a keyed hash of its counts: killed at any point it is made again, the same, from the same records; from others
it is refused. The secret key is the only state besides (docs/theory/over-time.md, section 5).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused, later
from holdfast.mechanism.correlated.over_time import AdditiveOverTime
from holdfast.mechanism.correlated.series import draw, noise_of
from holdfast.noise.over_time import Factor
from holdfast.randomness import Keys
from holdfast.release.certificate.certificate import FILE, Drawn, SeriesPart, read_certificate
from holdfast.release.ends import BEGUN, saying_nothing_happened, time_of, told
from holdfast.release.job.job import Job
from holdfast.release.ledger.entries import Entry
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.ledger.periods import Told, begin_period, keep_noise, periods_of
from holdfast.release.run import LOOKING, Run, counted, finish, looked_at
from holdfast.release.signing import write_private
from holdfast.release.storage.files import read_plain
from holdfast.system import sync_folder

#: Bytes of a secret key, in hexadecimal digits on its one line.
SECRET = 32
Step = Callable[[str], None]
LOST = (
    "the ledger has a series of this spec, and {key} is not its secret key: put it back. Where it is lost, nothing "
    "more can be drawn, and what was charged for the periods to come is lost with it; a new series needs another folder"
)


def release_period(
    job: Job,
    period: str,
    *,
    source: Any = None,
    output: str | Path | None = None,
    ledger: Ledger | None = None,
    at_least: float = 0.0,
    step: Step = lambda _: None,
    aside: Step = lambda _: None,
    note: Step = lambda _: None,
) -> Path:
    """Release the tables of one period into a folder of its name, and return it; see `run.release`.

    The first one of a series charges the ledger, once for all periods, and makes the secret key. Run again after it was
    killed, with the same records, a period is the same to the last byte of its tables.
    """
    end = time_of(at_least)
    with saying_nothing_happened():
        step("checking the ledger")
        time, spec = job.spec.time, job.spec
        if time is None:
            raise Refused("only a series has periods: write time: {column: month, periods: 60} in the spec")
        above = Run.of(job, output, ledger)
        place, key = above.folder, spec.resolve(time.key)
        keys, secret, entry = _known(above, key)
        names = _names(job, period, None if entry is None else entry.series)
        _refuse_made(place / period, period)
        run = replace(above, folder=place / period, identity=keys.fingerprint)
        fixed = _fixed(job, names) if entry is None or entry.series is None else entry.series
        if entry is not None:
            _refuse_changed(job, entry, fixed)
        run = _in_period(run, fixed, period, periods_of(run.ledger, run.identity))
        with run.workplace(step, charged=entry is not None) as work:
            run, _, answers = counted(run, source, step, aside)
            past = run.ledger.past(job.dataset, job.unit)
            step(LOOKING)
            disclosed = looked_at(run.job, past, answers, aside)
            if entry is None:
                step("charging the ledger, once for all periods")
                if secret is not None:
                    try:
                        write_private(key, f"{secret.hex()}\n".encode(), 0o400)
                    except Refused as refusal:
                        raise later(refusal) if os.path.lexists(key) else refusal from None
                    sync_folder(key.parent)
                run.charge(series=fixed)
            _refuse_other_statements(run, fixed)
            with _saying(period):
                # One key file may lie beside several specs: what one of them draws tells nothing of another's noise.
                own = Keys.drawn_from(keys.at("series", spec.hash, job.dataset))
                mark, position = _mark(own, period, answers), names.index(period)
                ordered = spec.privacy.unit is not None and fixed["several"] < len(names)
                marks = begin_period(run.ledger, run.identity, period, position, mark, run.when, ordered)
                run = _in_period(run, fixed, period, marks)
                step("drawing the tables")
                stream = _streams(own, names, marks)
                kept = _noise_marks(run.job, own, names[: position + 1], stream, marks)
                keep_noise(run.ledger, run.identity, kept, run.when)
                drawn = [
                    draw(each.mechanism, each.mechanism.checked(truth), stream(each.name), own.at("ties", period, mark))
                    for each, truth in zip(run.job.tables, answers, strict=True)
                ]
                finish(run, drawn, answers, past, disclosed, work, end, step, aside)
    for name in names[: names.index(period)]:
        if ("period", name) not in marks:
            note(f"{name} was left out: it can be released later, from records that were not chosen by what came after")
    return run.folder


def _known(run: Run, key: Path) -> tuple[Keys, bytes | None, Entry | None]:
    """The keys of a series, their secret where it is new, and the charge; refused where these are of different ones."""
    charges = [each for each in run.ledger.entries() if each.series is not None]
    secret = None
    try:
        keys = Keys.of(bytes.fromhex(read_plain(key).decode("ascii").strip()))
    except FileNotFoundError:
        secret = os.urandom(SECRET)
        keys = Keys.of(secret)
    except (OSError, ValueError):
        raise Refused(f"{key} is no secret key of a series, or cannot be read") from None
    entry = next((each for each in charges if each.release == keys.fingerprint), None)
    if entry is None and any(each.spec_hash == run.job.spec.hash for each in charges):
        raise Refused(LOST.format(key=key))
    for folder in sorted(run.folder.iterdir()) if run.folder.is_dir() else ():
        if not (folder / FILE).is_file():
            continue
        if read_certificate(folder).release != keys.fingerprint:
            raise Refused(f"{folder} is no period of the series of {key}: name another output, or put its own key back")
        if entry is None:
            raise Refused(
                f"the ledger {run.ledger.path} has no charge for the series in {run.folder}: an old copy was put back, "
                "or this is another one; find out which, and restore it"
            )
    return keys, secret, entry


def _names(job: Job, period: str, fixed: Mapping[str, Any] | None) -> list[str]:
    assert job.spec.time is not None
    if fixed is not None:
        names = list(fixed["periods"])
        if period in names:
            return names
    try:
        return job.spec.time.names(period, None if fixed is None else fixed["periods"][0])
    except ValueError as error:
        raise job.spec.at["time"].refuse(str(error)) from None


def _refuse_made(folder: Path, period: str) -> None:
    if os.path.lexists(folder):
        raise Refused(f"{period} was released already, into {folder}: nothing is drawn twice")


def _fixed(job: Job, names: Sequence[str]) -> dict[str, Any]:
    """What is fixed for all periods with the charge: their names, the factor, σ² of every law, and the public files."""
    bases = [table.mechanism.base for table in job.tables]
    factor = bases[0].factor if isinstance(bases[0], AdditiveOverTime) else None
    assert factor is not None
    squares = [
        [None if each is None else str(each) for each in base.squares]
        for base in bases
        if isinstance(base, AdditiveOverTime)
    ]
    return {
        "periods": list(names),
        "rows": [list(row) for row in factor.rows],
        "weights": list(factor.weights),
        "squares": squares,
        "files": sorted(job.public_files.values()),
        "several": bases[0].several if isinstance(bases[0], AdditiveOverTime) else 1,
    }


def _refuse_changed(job: Job, entry: Entry, fixed: Mapping[str, Any]) -> None:
    """Refuse another spec or domain than the series began with."""
    if entry.spec_hash != job.spec.hash or sorted(job.public_files.values()) != list(fixed["files"]):
        raise Refused(
            "the spec or a public file is not the one that the series began with: put it back, or begin a new series, "
            "with another folder and another key, which is charged anew"
        )


def _refuse_other_statements(run: Run, fixed: Mapping[str, Any]) -> None:
    """Refuse to publish under other statements than those charged, or with noise that another process has fixed."""
    entry = run.charge_row
    if entry is None or entry.series != fixed or entry.parts != run.parts:
        raise Refused(
            "the series was charged with other statements: another process began it just now, so run this again; or "
            "another version of holdfast, or records from another kind of source, began it: go on with these"
        )


def _factor(fixed: Mapping[str, Any]) -> Factor:
    return Factor(tuple(tuple(row) for row in fixed["rows"]), tuple(fixed["weights"]))


def _in_period(run: Run, fixed: Mapping[str, Any], period: str, told_: Told) -> Run:
    """The run for one period, with what its certificate says of the series."""
    assert run.job.spec.time is not None
    names = list(fixed["periods"])
    drawn = [Drawn(period=name, certificate=told_["seal", name]) for name in names if ("seal", name) in told_]
    part = SeriesPart(
        column=run.job.spec.time.column,
        periods=names,
        period=period,
        several=fixed["several"],
        rows=fixed["rows"],
        weights=fixed["weights"],
        drawn=[each for each in drawn if each.period != period],
        late=bool(told_.get(("period", period), {}).get("late")),
    )
    job = run.job.at_period(names.index(period), fixed["squares"], _factor(fixed))
    return replace(run, job=job, series=part, parts=tuple(table.statements for table in job.tables))


def _mark(keys: Keys, period: str, answers: Sequence[npt.NDArray[Any]]) -> str:
    """A keyed hash of the counts of a period: it tells two sets of records apart, and nothing else."""
    return _hashed(keys, "data", period, *answers)


def _hashed(keys: Keys, *told_: Any) -> str:
    texts = [
        each if isinstance(each, str) else hashlib.sha256(np.asarray(each).astype("<i8").tobytes()).hexdigest()
        for each in told_
    ]
    return f"{keys.at('mark', *texts).bits(256):064x}"


def _streams(keys: Keys, names: Sequence[str], marks: Told) -> Callable[[str], Callable[[int], Any]]:
    """The words of every period of a table: those that follow from its records, or from none where it was left out."""

    def of(name: str) -> str:
        mark = marks.get(("period", name))
        return "" if mark is None or mark["late"] else str(mark["data"])

    return lambda table: lambda t: keys.at("period", table, names[t], of(names[t]))


def _noise_marks(job: Job, keys: Keys, names: Sequence[str], stream: Any, marks: Told) -> dict[str, str]:
    """Keyed hashes of the noise of the periods that were drawn so far, this one included."""
    noise = [noise_of(table.mechanism, stream(table.name)) for table in job.tables]
    return {
        name: _hashed(keys, "noise", *(each[t] for each in noise))
        for t, name in enumerate(names)
        if ("period", name) in marks
    }


@contextmanager
def _saying(period: str) -> Iterator[None]:
    """Say, of whatever goes wrong from the mark on, that the period is begun and can be made again."""
    try:
        with told(f"the tables of {period} cannot be written"):
            yield
    except BaseException as error:
        if not isinstance(error, Refused) or "nothing is drawn" not in str(error):
            error.add_note(f"the ledger keeps the charge of the series, and {period} is begun: {BEGUN}")
        raise
