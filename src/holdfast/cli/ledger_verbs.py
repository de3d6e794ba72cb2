"""The verbs about the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.ending import Json, Printed, Quiet, app, verb

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
