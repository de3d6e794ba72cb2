"""What a verification checks, in words: known from the certificate alone, so that a report can list it."""

from __future__ import annotations

from holdfast.release.certificate.certificate import Certificate, TableCertificate
from holdfast.release.signing.signatures import NOBODY

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
