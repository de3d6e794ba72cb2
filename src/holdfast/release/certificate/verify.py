"""Check a release from its files alone, as a stranger would: nothing here is shared with the code that made it.

What must hold is tested exactly for whole numbers, and within 1e-9 of the size of the figures for real ones. The sums
are found twice: from the row numbers in the certificate, and from the names in the table.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from holdfast.arguments import Refused
from holdfast.privacy import Guarantee
from holdfast.release.certificate.bars import (
    Findings,
    accepted_findings,
    derived_findings,
    interval_findings,
    label_findings,
    measurement_findings,
    record_findings,
    value_findings,
)
from holdfast.release.certificate.certificate import (
    FILE,
    Certificate,
    Holds,
    Side,
    TableCertificate,
    read_certificate,
)
from holdfast.release.certificate.checks import ACCEPTED, OF_ALL, Check, Verdict, asks_for_errors, of_table
from holdfast.release.certificate.rules import by_rows, exact_findings
from holdfast.release.certificate.sums import Values, first_unequal, named_sums, totals
from holdfast.release.ledger.accounts import Account, Budget
from holdfast.release.signing.keys import Trusted, read_trusted
from holdfast.release.signing.signatures import SUFFIX, judged, signer_of
from holdfast.release.storage.files import read_plain, sha256_of
from holdfast.release.storage.parts import read_table
from holdfast.release.storage.tables import FIGURES, Columns, label_column, missing, other_entries, texts

if TYPE_CHECKING:
    from holdfast.release.ledger.entries import Entry
    from holdfast.release.ledger.ledger import Ledger


def verify(
    folder: str | Path, ledger: Ledger | None = None, key: str | Path | None = None, apart: Collection[str] = ()
) -> Verdict:
    """Check a release against its certificate; a folder that holds no release is refused.

    With a ledger, also whether the release was charged there as certified, and whether its certificate is the one that
    was sealed. With a file of public keys, also whether one of them signed it. Of the tables named in `apart`, whose
    parts were checked where they were written, only the files are.
    """
    trusted, place = None if key is None else read_trusted(key), Path(folder)
    if not place.is_dir():
        raise Refused(f"{place} is not a folder: name the folder of a release")
    if not os.path.lexists(place / FILE):
        raise Refused(f"{place} holds no {FILE}: name the folder of a release")
    text = _text(place)
    try:
        certificate = read_certificate(place, text)
    except Refused as refusal:
        return Verdict((Check("certificate", False, str(refusal)),))
    checks = [
        Check("certificate", True, OF_ALL["certificate"]),
        _check("files", OF_ALL["files"], _files(place, certificate)),
        _check("budget", OF_ALL["budget"], budget_findings(certificate)),
        _signature(place, certificate, text, trusted),
    ]
    if asks_for_errors(certificate):
        checks.append(_check("accepted errors", ACCEPTED, accepted_findings(certificate.tables, certificate.spec)))
    if ledger is not None:
        checks.append(_charged(ledger, certificate, text))
    for table in certificate.tables:
        if table.name not in apart:
            checks += _unread(place, certificate, table) or _table(place, table)
    return Verdict(tuple(checks))


def _text(folder: Path) -> bytes:
    """The certificate, read once: what is hashed is what is checked, whatever stands there later."""
    try:
        return read_plain(folder / FILE)
    except OSError:
        return b""  # which is refused with the reason


def _check(name: str, holds: str, findings: Findings) -> Check:
    try:
        wrong = next(findings, None)
    except (duckdb.Error, OSError) as error:
        wrong = f"a file cannot be read ({type(error).__name__})"
    return Check(name, wrong is None, holds if wrong is None else wrong)


def _files(folder: Path, certificate: Certificate) -> Findings:
    listed = {FILE} if certificate.signed_by is None else {FILE, f"{FILE}{SUFFIX}"}
    for file in certificate.files:
        path = folder / file.name
        listed.add(file.name)
        if path.is_symlink() or not path.is_file():
            yield f"{file.name} is missing"
        elif path.stat().st_size != file.bytes or sha256_of(path) != file.sha256:
            yield f"{file.name} is not the file that was certified"
    for table in certificate.tables:
        for name in table.files:
            if name not in listed:
                yield f"{name} belongs to the table {table.name} but is not among the certified files"
    for name in sorted(_entries(folder, {name.partition("/")[0] for name in listed if "/" in name}) - listed):
        hidden = "the hidden file " if name.startswith(".") else ""
        yield f"{hidden}{name} does not belong to the release"


def _entries(folder: Path, folders: Collection[str]) -> set[str]:
    """What lies in a release: files, and what lies in its folders of parts; links are not followed."""
    found = set()
    for path in folder.iterdir():
        parts = path.name in folders and path.is_dir() and not path.is_symlink()
        found.update({f"{path.name}/{each.name}" for each in path.iterdir()} if parts else {path.name})
    return found


def budget_findings(certificate: Certificate) -> Findings:
    """Say what is wrong with the sum of the tables' statements; a release asks before it charges."""
    best = certificate.statements[0]
    if best.void:
        yield "the certificate promises nothing"
        return
    parts = tuple(tuple(table.statements) for table in certificate.tables)
    asked = Budget.from_mapping(certificate.asked)
    account = Account(certificate.title, certificate.unit, asked, parts)
    if not account.spent:
        yield f"the statements of the tables cannot be added up: {account.trouble}"
    elif not asked.admits(account.spent[0]):
        yield f"the tables together promise less than what was asked, {asked}"
    plain = Account(certificate.title, certificate.unit, None, parts)
    if not any(_covers(best, total) for total in (*plain.spent[:1], *account.spent[:1])):
        yield "the certificate promises more than its tables do together"
    found = certificate.deployment.privacy_loss.privacy_parameters
    stated = {"epsilon": best.epsilon, "delta": best.delta or None, "rho": best.rho}
    if dict(found) != {name: value for name, value in stated.items() if value is not None}:
        yield "the parameters for the registry are not those of the first statement"


def _signature(folder: Path, certificate: Certificate, text: bytes, trusted: Trusted | None) -> Check:
    signer, wrong = certificate.signed_by, None
    if signer is not None:
        try:
            found = signer_of(folder / f"{FILE}{SUFFIX}", text)
            wrong = None if found == signer else "it is signed by another key than the certificate says"
        except (Refused, OSError) as refusal:
            wrong = str(refusal)
    distrusted, words = judged(signer, trusted)
    wrong = wrong or distrusted
    return Check("signature", wrong is None, words if wrong is None else wrong)


def _charged(ledger: Ledger, certificate: Certificate, text: bytes) -> Check:
    found = ledger.entry(certificate.release)
    holds = "the release was charged and sealed as certified"
    if found is not None and not found.marked:
        holds = "the release was charged as certified; it is older than seals, so a changed table would not be seen"
    return _check("ledger", holds, _charge(found, certificate, f"sha256:{hashlib.sha256(text).hexdigest()}"))


def _charge(found: Entry | None, certificate: Certificate, sealed: str) -> Findings:
    if found is None:
        yield "the release was not charged in this ledger"
    elif found.parts != tuple(tuple(table.statements) for table in certificate.tables):
        yield "the ledger was charged with other statements"
    elif (found.unit, found.spec_hash) != (certificate.unit, certificate.spec_hash):
        yield "the ledger was charged for another unit or spec"
    elif found.marked and sealed not in found.sealed:
        yield "the certificate is not the one that was sealed in this ledger: something in the release was changed"
    elif found.marked and (
        certificate.ledger is None or (found.number, found.hash) != (certificate.ledger.row, certificate.ledger.hash)
    ):
        yield "the ledger is not the one that was charged: an old copy was put back, or its rows were changed"


def _covers(claim: Guarantee, total: Guarantee) -> bool:
    """Say whether a claim promises no more than a sum of statements: same neighbours and scope, no smaller number."""
    if (claim.neighbours, claim.scope) != (total.neighbours, total.scope):
        return False
    if claim.status == "proved" and total.status != "proved":
        return False
    numbers = ((claim.epsilon, total.epsilon), (claim.rho, total.rho), (claim.mu, total.mu))
    stated = all(mine is None or (theirs is not None and mine >= theirs) for mine, theirs in numbers)
    return stated and (claim.epsilon is None or claim.delta >= total.delta)


def _unread(folder: Path, certificate: Certificate, table: TableCertificate) -> list[Check]:
    """What is not to be read: no plain file, or more than was certified, which might never end."""
    sizes = {file.name: file.bytes for file in certificate.files}
    for name in table.files:
        path = folder / name
        plain = path.is_file() and not path.is_symlink()
        if os.path.lexists(path) and not (plain and path.stat().st_size <= sizes.get(name, 0)):
            return [Check(f"{table.name}: rows", False, f"{name} is not the file that was certified, and is not read")]
    return []


def _table(folder: Path, table: TableCertificate) -> list[Check]:
    said = of_table(table)
    if table.runs:
        return _runs(folder, table, said)
    try:
        columns = read_table(folder, table.parquet, table.parts, table.rows)
        wrong = next(_shape(columns, table), None)
    except (duckdb.Error, OSError) as error:
        wrong = f"{table.parquet} cannot be read ({type(error).__name__})"
    if wrong is not None:
        return [Check(f"{table.name}: rows", False, wrong)]
    values: Values = np.asarray(columns["value"])
    findings: dict[str, Callable[[], Findings]] = {
        "rows": lambda: iter(()),
        "copies": lambda: _copy(folder, columns, table),
        "labels": lambda: label_findings(columns, table),
        "sums": lambda: _sums(values, columns, table),
        **by_rows(values, table),
        "exact figures": lambda: exact_findings(values, columns, table),
        "further rows": lambda: derived_findings(values, columns, table),
        "intervals": lambda: interval_findings(values, columns, table),
        "measurements": lambda: measurement_findings(folder, columns, table),
        "records": lambda: record_findings(folder, values, columns, table),
    }
    return [_check(f"{table.name}: {name}", words, findings[name]()) for name, words in said.items()]


def _runs(folder: Path, table: TableCertificate, said: Mapping[str, str]) -> list[Check]:
    """Check a table in runs: its parts one after the other, and with all of its values what speaks of row numbers."""
    from holdfast.release.certificate.runs.checking import Runs  # whoever checks other tables needs none of it

    runs = Runs(folder, table)
    wrong = runs.checked()
    unread = wrong.get("rows") or next(_beyond(table), None)
    if unread is not None:
        return [Check(f"{table.name}: rows", False, unread)]
    findings = by_rows(runs.values, table)
    findings["exact figures"] = lambda: exact_findings(runs.values, {}, table)
    own = (iter([wrong[name]] if name in wrong else findings[name]() if name in findings else ()) for name in said)
    return [_check(f"{table.name}: {name}", words, each) for (name, words), each in zip(said.items(), own, strict=True)]


def _shape(columns: Columns, table: TableCertificate) -> Findings:
    if list(columns) != [*table.columns, *FIGURES, *map(label_column, table.labels)]:
        yield f"{table.parquet} does not have the certified columns"
        return
    value = columns["value"]
    if len(value) != table.rows:
        yield f"{table.parquet} has {len(value)} rows and not {table.rows}"
    yield from value_findings(value, table)
    levels = columns[table.columns[0]]
    if missing(levels).any() or not set(np.unique(levels.astype(str)).tolist()) <= set(table.levels):
        yield f"{table.parquet} has rows of a level that is not certified"
    found = hashlib.sha256()
    for name in table.columns:
        names = texts(columns[name][: table.outputs]).tolist()
        found.update(json.dumps([name, names], ensure_ascii=False, separators=(",", ":")).encode())
    if f"sha256:{found.hexdigest()}" != table.domain_hash:
        yield "the names of the rows are not those of the certified domain"
    yield from _beyond(table)


def _beyond(table: TableCertificate) -> Findings:
    """Say whether the certificate speaks of levels or rows that the table does not have."""
    places = {(each.level, axis) for each in table.residuals for axis in each.axes or [table.columns[-1]]}
    known = all(level in (None, *table.places) and axis in table.columns for level, axis in places)
    if not known or not {each.level for each in table.measured} <= set(table.levels):
        yield "the certificate speaks of noise at a level that the table does not have"
    reached = [row for figure in table.holds.exact for rows in figure.rows for row in rows]
    parts: list[Holds | Side] = [table.holds, *(side for sides in table.holds.either for side in sides)]
    for part in parts:
        listed = [*(each.rows for each in part.bounds), *(each.rows for each in part.linear), *part.orders]
        reached += [row for rows in listed for row in rows]
    runs = [run for open_ones in table.unprotected for run in open_ones.rows]
    reached += [row for run in runs for row in run]
    backward = any(first > last for first, last in runs)
    if backward or max([*reached, *table.holds.impossible], default=0) >= table.rows:
        yield "the certificate speaks of rows that the table does not have"


def _copy(folder: Path, columns: Columns, table: TableCertificate) -> Findings:
    yield from other_entries(columns, read_table(folder, table.csv, table.parts, table.rows), table.csv)


def _sums(values: Values, columns: Columns, table: TableCertificate) -> Findings:
    if isinstance(table.holds.sums, list) and table.holds.sums:
        whole = np.array([row for row, _ in table.holds.sums])
        parts = np.concatenate([np.array(rows, dtype=np.int64) for _, rows in table.holds.sums])
        group = np.repeat(np.arange(len(whole)), [len(rows) for _, rows in table.holds.sums])
        if max(whole.max(), parts.max(initial=0)) >= table.rows:
            yield "the certificate speaks of rows that the table does not have"
            return
        wrong = first_unequal(values[whole], *totals(values[parts], group, len(whole)))
        if wrong is not None:
            yield f"row {whole[wrong]} is not the sum of its parts"
    yield from named_sums(values, {name: columns[name] for name in table.columns[1:]}, table.kind, table.levels)
