"""The verbs about the ledger, and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.ending import ending
from holdfast.cli.options import USUAL, Json, LedgerFile, Quiet, examples

books = typer.Typer(help="What has been spent, per dataset and unit.", no_args_is_help=True, rich_markup_mode=None)


@books.command(
    "list", epilog=examples("holdfast ledger list", "holdfast ledger list --file book.sqlite --dataset trips")
)
def ledger_list(
    file: LedgerFile = USUAL,
    dataset: Annotated[str | None, typer.Option(help="Only this dataset.")] = None,
    json: Json = False,
) -> None:
    """List every charge, oldest first."""
    with ending(json):
        from holdfast.cli import verbs

        verbs.ledger_list(file, dataset, json)


@books.command("verify", epilog=examples("holdfast ledger verify --file book.sqlite --witness copy.sqlite"))
def ledger_verify(
    file: LedgerFile = USUAL,
    witness: Annotated[str | None, typer.Option("--witness", help="A second copy that must agree.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check that no row of the ledger was changed, removed, added or put elsewhere, row by row."""
    with ending(json):
        from holdfast.cli import verbs

        verbs.ledger_verify(file, witness, json, quiet)


@books.command("remaining", epilog=examples("holdfast ledger remaining --dataset trips"))
def ledger_remaining(
    file: LedgerFile = USUAL,
    dataset: Annotated[str | None, typer.Option(help="Only this dataset.")] = None,
    json: Json = False,
) -> None:
    """Say what was spent and what is left, per dataset and unit."""
    with ending(json):
        from holdfast.cli import verbs

        verbs.ledger_remaining(file, dataset, json)


@books.command("budget", epilog=examples("holdfast ledger budget --dataset trips --epsilon 10"))
def ledger_budget(
    dataset: Annotated[str, typer.Option(help="The dataset, as the ledger names it.")],
    unit: Annotated[str, typer.Option(help="Whom it protects: record, or 'column NAME'.")] = "record",
    epsilon: Annotated[str | None, typer.Option(help="Total epsilon.")] = None,
    delta: Annotated[str | None, typer.Option(help="Total delta, beside epsilon.")] = None,
    rho: Annotated[str | None, typer.Option(help="Total rho, instead of epsilon.")] = None,
    file: LedgerFile = USUAL,
    quiet: Quiet = False,
) -> None:
    """Set what may be spent in all on a dataset; the newest budget counts."""
    with ending(False):
        from holdfast.cli import verbs

        verbs.ledger_budget(file, dataset, unit, epsilon, delta, rho, quiet)


@books.command("events", epilog=examples("holdfast ledger events --dataset trips --output events.json"))
def ledger_events(
    dataset: Annotated[str, typer.Option(help="The dataset, as the ledger names it.")],
    unit: Annotated[str, typer.Option(help="Whom it protects: record, or 'column NAME'.")] = "record",
    file: LedgerFile = USUAL,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; left out: printed.")] = None,
) -> None:
    """Write the charges on a dataset as events of dp_accounting, in JSON."""
    with ending(False):
        from holdfast.cli import exchange

        exchange.events(file, dataset, unit, output)


@books.command(
    "charge-events", epilog=examples("holdfast ledger charge-events events.json --dataset trips --title 'Trips of May'")
)
def ledger_charge_events(
    events: Annotated[Path, typer.Argument(metavar="EVENTS", help="A file as 'ledger events' writes it.")],
    dataset: Annotated[str, typer.Option(help="The dataset, as the ledger names it.")],
    title: Annotated[str, typer.Option(help="What was released.")],
    unit: Annotated[str, typer.Option(help="Whom it protects: record, or 'column NAME'.")] = "record",
    file: LedgerFile = USUAL,
    quiet: Quiet = False,
) -> None:
    """Charge a dataset with events of dp_accounting: what another tool released."""
    with ending(False):
        from holdfast.cli import exchange

        exchange.charge_events(file, events, dataset, unit, title, quiet)
