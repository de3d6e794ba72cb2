"""What a verification checks, in words, known from the certificate alone; and what it found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.release.certificate.certificate import Certificate, TableCertificate
from holdfast.release.signing.signatures import NOBODY


@dataclass(frozen=True)
class Check:
    """One thing that was checked."""

    name: str
    ok: bool
    sentence: str

    def __post_init__(self) -> None:
        """Show signs that a terminal would obey: whoever made a file has given it its name."""
        for field in ("name", "sentence"):
            text: str = getattr(self, field)
            shown = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)
            object.__setattr__(self, field, shown)


@dataclass(frozen=True)
class Verdict:
    """What was checked, and whether everything is as certified."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing was found wrong."""
        return all(check.ok for check in self.checks)

    @property
    def differences(self) -> tuple[Check, ...]:
        """What was found wrong."""
        return tuple(check for check in self.checks if not check.ok)

    def as_mapping(self) -> dict[str, Any]:
        """Return the verdict as plain values that JSON can hold."""
        return {"ok": self.ok, "checks": [vars(check) for check in self.checks]}

    def __str__(self) -> str:
        words = {True: "holds ", False: "BROKEN"}
        return "\n".join(f"{words[check.ok]}  {check.name}: {check.sentence}" for check in self.checks)


#: What is checked of the folder as a whole.
OF_ALL = {
    "certificate": "follows its schema and is as it was sealed",
    "files": "every file is as certified, and there is no other",
    "budget": "the tables together promise what is certified, as asked",
}
#: What is said of errors where the spec accepts some at most.
ACCEPTED = "no error that the plan foresaw is larger than the spec accepts"


def asks_for_errors(certificate: Certificate) -> bool:
    """Whether the spec accepts errors up to a limit, or the certificate says that it does."""
    tables = certificate.spec.get("tables")
    listed = tables if isinstance(tables, list) else []
    asked = any(isinstance(each, dict) and each.get("accept") for each in listed)
    return asked or any(table.accepted for table in certificate.tables)


def of_table(table: TableCertificate) -> dict[str, str]:
    """Return what is checked of a table, each with the sentence that is said where it holds."""
    holds, kind = table.holds, "whole numbers" if table.holds.whole else "numbers"
    asked = {
        "rows": (f"{table.rows} rows of {kind} with the certified columns", True),
        "copies": (f"{table.csv} holds the same rows", True),
        "labels": ("every code has one label", table.labels),
        "sums": ("everything adds up", holds.consistent),
        "signs": ("no value is negative", holds.nonnegative),
        "bounds": ("every bounded value is within its bounds", holds.bounds),
        "orders": ("ordered values never fall", holds.orders),
        "linear rules": ("every weighted sum is within its limits", holds.linear),
        "either": ("one side of every union holds", holds.either),
        "impossible": ("every impossible cell is 0", holds.impossible),
        "exact figures": ("they are counts that agree with each other", holds.exact),
        "further rows": ("every one is a sum of others", table.rows > table.outputs),
        "intervals": (table.interval.sentence, True),
        "measurements": ("every measurement belongs to a row", table.measurements and table.measurements_csv),
        "records": ("they count to the table", table.records and table.records_csv),
    }
    return {name: sentence for name, (sentence, wanted) in asked.items() if wanted}


def foretold(certificate: Certificate) -> list[tuple[str, str]]:
    """Return everything that a verification checks, by name, with what it says where it holds."""
    tables = [
        (f"{table.name}: {name}", words) for table in certificate.tables for name, words in of_table(table).items()
    ]
    signed = NOBODY if certificate.signed_by is None else f"signed by the key {certificate.signed_by}"
    wanted = [("accepted errors", ACCEPTED)] if asks_for_errors(certificate) else []
    return [*OF_ALL.items(), ("signature", signed), *wanted, *tables]
