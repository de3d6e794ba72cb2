"""What the verbs for the formats of others do: export a release, and take charges to and from dp_accounting."""

from __future__ import annotations

import sys
from importlib import resources
from pathlib import Path

from holdfast.arguments import one_of
from holdfast.cli import showing
from holdfast.cli.verbs import ledger_of, refuse_existing, write_new
from holdfast.progress import command

FORMATS = ("sdmx", "croissant", "registry", "r")


def export(folder: Path, form: str, table: str | None, output: Path | None) -> None:
    """Write a release folder in another format, to a file or to standard output."""
    one_of("--as", form, FORMATS)
    refuse_existing(output, "--output")
    with command(quiet=False) as step:
        step("reading the release")
        if form == "sdmx":
            from holdfast.exchange.sdmx import of_release

            text = of_release(folder, table)
        elif form == "croissant":
            from holdfast.exchange.croissant import croissant

            text = croissant(folder)
        elif form == "r":
            text = resources.files("holdfast.exchange").joinpath("holdfast.R").read_text(encoding="utf-8")
        else:
            from holdfast.exchange.registry import registry_entry

            text = registry_entry(folder)
    _written(text, output)


def events(file: str, dataset: str, unit: str, output: Path | None) -> None:
    """Write the charges on a dataset as events of dp_accounting."""
    refuse_existing(output, "--output")
    from holdfast.exchange.events import exported

    _written(exported(ledger_of(file), dataset, unit), output)


def charge_events(file: str, events_file: Path, dataset: str, unit: str, title: str, quiet: bool) -> None:
    """Charge a ledger with events."""
    from holdfast.exchange.events import imported
    from holdfast.release.ledger.ledger import Ledger

    found = imported(events_file, Ledger(file), dataset, unit, title)
    if not quiet:
        showing.sentence(
            f"charged {len(found)} events to {dataset!r} per {unit} in {file}; nobody checked their claims"
        )


def _written(text: str, output: Path | None) -> None:
    if output is None:
        print(text, end="")
    else:
        write_new(output, text, "--output")
        print(f"holdfast: wrote {output}", file=sys.stderr)
