"""Check a release from its files alone: by the rule book, and besides what needs packages.

The rule book (`standalone_verifier`) reads the certificate and CSV files, and shares nothing with the code that makes
releases. Here its findings are completed by the schema of the certificate, the sum of the statements, signatures, the
ledger, and whether Parquet files hold the same rows.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from holdfast.arguments import Refused
from holdfast.privacy import Guarantee
from holdfast.release.certificate.certificate import FILE, Certificate, read_certificate
from holdfast.release.facts import TableCertificate
from holdfast.release.ledger.accounts import Account, Budget
from holdfast.release.ledger.entries import STATES
from holdfast.release.signing import read_trusted
from holdfast.release.standalone_verifier import verify as standalone
from holdfast.release.standalone_verifier.reading import figure_columns, names_of
from holdfast.release.storage.engine import header_of, quoted_name, rows_of, session
from holdfast.release.storage.files import read_plain
from holdfast.release.storage.tables import MEASUREMENTS, ROW, label_column

if TYPE_CHECKING:
    from holdfast.release.ledger.entries import Entry
    from holdfast.release.ledger.ledger import Ledger

Findings = Iterator[str]


@dataclass(frozen=True)
class Check:
    """One thing that was checked."""

    name: str
    ok: bool
    sentence: str

    def __post_init__(self) -> None:
        """Show signs that a terminal would obey: whoever made a file has given it its name."""
        for field in ("name", "sentence"):
            object.__setattr__(self, field, standalone.shown(getattr(self, field)))

    @classmethod
    def of(cls, found: standalone.Check) -> Check:
        """What the rule book found: a name, what holds, and what is wrong where something is."""
        name, holds, wrong = found
        return cls(name, wrong is None, holds if wrong is None else wrong)

    @property
    def mark(self) -> str:
        """One word: whether it holds; none where there is nothing that could."""
        return "BROKEN" if not self.ok else "none" if self.sentence == standalone.NOBODY else "holds"


@dataclass(frozen=True)
class Verdict:
    """What was checked, and whether everything is as certified."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    @property
    def differences(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.ok)

    def as_mapping(self) -> dict[str, Any]:
        return {"ok": self.ok, "checks": [vars(check) for check in self.checks]}

    def __str__(self) -> str:
        return "\n".join(f"{check.mark:6}  {check.name}: {check.sentence}" for check in self.checks)


#: What is checked besides what the rule book does, which needs no package.
BESIDES = {
    "certificate": "follows its schema and is as it was sealed",
    "budget": "the tables together promise what is certified, as asked",
}
COPIES = "Parquet and CSV files hold the same rows"


def foretold(certificate: Certificate) -> list[tuple[str, str]]:
    """Return everything that a verification checks, by name, with what it says where it holds."""
    signed = standalone.NOBODY if certificate.signed_by is None else f"signed by the key {certificate.signed_by}"
    copies = [(f"{table.name}: copies", COPIES) for table in certificate.tables]
    fixed = [] if certificate.commitment is None else [("commitment", "what draws was fixed before the nonce")]
    return [*BESIDES.items(), ("signature", signed), *fixed, *standalone.foretold(certificate.as_mapping()), *copies]


def verify(
    folder: str | Path,
    ledger: Ledger | None = None,
    key: str | Path | None = None,
    apart: Collection[str] = (),
    officer: str | Path | None = None,
) -> Verdict:
    """Check a release against its certificate; a folder that holds no release is refused.

    With a ledger, also whether the release was charged there as certified, and whether its certificate is the one that
    was sealed. With a file of public keys, also whether one of them signed it; with one of an officer's, whether one of
    them gave the nonce of a witnessed draw. Of the tables named in `apart`, whose parts were checked where they were
    written, only the files are.
    """
    place = Path(folder)
    for file in (each for each in (key, officer) if each is not None):
        read_trusted(file)  # refused where it is no file of keys
    if not os.path.isdir(place):
        raise Refused(f"{place} is not a folder: name the folder of a release")
    if not os.path.lexists(place / FILE):
        raise Refused(f"{place} holds no {FILE}: name the folder of a release")
    text = _text(place)
    try:
        certificate = read_certificate(place, text)
    except Refused as refusal:
        return Verdict((Check("certificate", False, str(refusal)),))
    told = certificate.as_mapping()
    known, trusted = (None if file is None else str(file) for file in (key, officer))
    checks = [
        Check("certificate", True, BESIDES["certificate"]),
        _check("budget", BESIDES["budget"], budget_findings(certificate)),
        Check.of(standalone.signature_check(str(place), told, text, known)),
        *([] if ledger is None else [_charged(ledger, certificate, text)]),
        *map(Check.of, standalone.commitment_check(told, trusted)),
        *map(Check.of, standalone.rule_book(str(place), told, apart)),
    ]
    unread = {check.name.removesuffix(": rows") for check in checks if check.sentence.endswith("is not read")}
    both = [table for table in certificate.tables if table.name not in {*apart, *unread}]
    checks += [_check(f"{table.name}: copies", COPIES, other_copies(place, table)) for table in both]
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


def _charged(ledger: Ledger, certificate: Certificate, text: bytes) -> Check:
    entries = ledger.entries()
    entry = next((each for each in entries if each.release == certificate.release), None)
    findings = _charge(entry, certificate, f"sha256:{hashlib.sha256(text).hexdigest()}")
    words, drawn = "the release was charged and sealed as certified", _one_draw(entry, entries, certificate)
    others = [each for each in entries if each.commitment and entry and each.dataset == entry.dataset and each != entry]
    if certificate.commitment is not None:
        unseen = sum(each.state != STATES["published"] for each in others)
        among = f"of {len(others)} other commitments on these data {unseen} have no published table"
        words += f"; {among}" if others else "; it is the only commitment on these data"
    return _check("ledger", words, chain(findings, drawn))


def _one_draw(entry: Entry | None, entries: Sequence[Entry], certificate: Certificate) -> Findings:
    """Say what is wrong with the one draw for a commitment; nothing where neither side knows of one."""
    fixed, charged = certificate.commitment, None if entry is None else entry.commitment
    if entry is None or (fixed is None and charged is None):
        return
    if fixed is None or charged != {"opening": fixed.opening, "code": fixed.code}:
        yield "the ledger has another commitment for this release than its certificate"
    elif entry.nonce is None or entry.nonce[1] != fixed.nonce or entry.nonce[0] <= entry.number:
        yield "the ledger does not have this nonce behind the commitment"
    elif any(
        (each.commitment or {}).get("opening") == fixed.opening or (each.nonce and each.nonce[1] == fixed.nonce)
        for each in entries
        if each != entry
    ):
        yield "the ledger has two draws of one commitment or nonce"


def _charge(entry: Entry | None, certificate: Certificate, sealed: str) -> Findings:
    if entry is None:
        yield "the release was not charged in this ledger"
    elif entry.parts != tuple(tuple(table.statements) for table in certificate.tables):
        yield "the ledger was charged with other statements"
    elif (entry.unit, entry.spec_hash) != (certificate.unit, certificate.spec_hash):
        yield "the ledger was charged for another unit or spec"
    elif sealed not in entry.sealed:
        yield "the certificate is not the one that was sealed in this ledger: something in the release was changed"
    elif certificate.ledger is None or (
        (entry.number, entry.hash) != (certificate.ledger.row, certificate.ledger.hash)
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


#: How CSV says that nothing stands there.
EMPTY = ", nullstr = '', allow_quoted_nulls = false"
#: What the engine calls texts, whole numbers and real ones.
TEXT, WHOLE, REAL = "VARCHAR", "BIGINT", "DOUBLE"


def other_copies(folder: Path, table: TableCertificate) -> Iterator[str]:
    """Say where Parquet and CSV differ: in the table, its noisy answers or its synthetic records."""
    row = {ROW: WHOLE} if table.parts else {}
    names = row | dict.fromkeys(table.columns, TEXT)
    units = {each: table.unit if each == table.figure else None for each in table.figures}
    figures = {
        column: kind
        for figure, unit in units.items()
        for column, kind in zip(figure_columns(figure), (_kind(table, unit), REAL, REAL), strict=True)
    }
    labels = dict.fromkeys(map(label_column, table.labels), TEXT)
    noisy = (row if table.runs else names) | {MEASUREMENTS[1]: "" if table.sum_of else REAL, "count": ""}
    for parquet, csv, columns in (
        (table.parquet, table.csv, names | figures | labels),
        (table.measurements, table.measurements_csv, noisy),
        (table.records, table.records_csv, dict.fromkeys(table.record_columns, TEXT)),
    ):
        if (parquet is None) != (csv is None):
            yield f"{parquet or csv} has no copy"
        elif parquet is not None and csv is not None:
            for one, two in zip(names_of(parquet, table.parts), names_of(csv, table.parts), strict=True):
                yield from _other_entries(folder, one, two, columns)


def _kind(table: TableCertificate, unit: Fraction | None) -> str:
    """Of which kind the values of a figure are; either where another table of the same files says it."""
    return "" if unit is None else WHOLE if table.holds.whole and unit.denominator == 1 else REAL


def _other_entries(folder: Path, parquet: str, csv: str, columns: dict[str, str]) -> Iterator[str]:
    """Compare two files with these columns, each of a kind; the counts of noisy answers are values in Parquet."""
    one, two = folder / parquet, folder / csv
    called = {name: MEASUREMENTS[0] if name == "count" else name for name in columns}
    with session() as engine:
        try:
            kinds = {each[0]: str(each[1]) for each in engine.execute(f"DESCRIBE FROM {rows_of([one])}").fetchall()}
        except (duckdb.Error, OSError) as error:
            yield f"{parquet} cannot be read ({type(error).__name__})"
            return
        if sorted(kinds) != sorted(called.values()) or ("count" not in columns and list(kinds) != list(columns)):
            yield f"{parquet} does not have the certified columns"
            return
        for name, kind in columns.items():
            if kinds[called[name]] not in ((kind,) if kind else (WHOLE, REAL)):
                expected = {TEXT: "texts", WHOLE: "whole numbers", REAL: "real numbers"}.get(kind, "numbers")
                yield f"the entries of {name} in {parquet} are not {expected}"
                return
        if header_of(two, ",")[1] != list(columns):
            yield f"{csv} has other columns"
            return
        differs = ", ".join(
            f"count_if(TRY_CAST(c.{quoted_name(name)} AS {kinds[own]}) IS DISTINCT FROM p.{quoted_name(own)})"
            for name, own in called.items()
        )
        both = f"{rows_of([one])} p POSITIONAL JOIN {rows_of([two], ',', EMPTY)} c"
        wrong = engine.execute(f"SELECT {differs} FROM {both}").fetchone() or ()
    for name, count in zip(columns, wrong, strict=True):
        if count:
            yield f"{csv} has other entries in the column {name}"
