"""The verbs of the command and their options. What each verb does is loaded only when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.ending import Ending, ending
from holdfast.version import __version__

app = typer.Typer(
    name="holdfast",
    help="Differentially private tables in which everything that must hold, holds exactly.",
    epilog="Exit codes: 0 done; 1 a fault of holdfast; 2 wrong command line; 3 refused; 4 the ledger has too little "
    "left; 5 verify or explain found a difference; 6 audit refuted a statement; 130 interrupted.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
books = typer.Typer(help="What has been spent, per dataset and unit.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(books, name="ledger")

SpecFile = Annotated[Path, typer.Argument(metavar="SPEC", help="The spec, a YAML file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
LedgerFile = Annotated[
    str, typer.Option("--file", help="The ledger's file, or postgresql for the server in HOLDFAST_LEDGER.")
]
#: The ledger of a spec that names none.
USUAL = "holdfast-ledger.sqlite"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"holdfast {__version__}")
        raise typer.Exit


@app.callback()
def holdfast(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Differentially private tables in which everything that must hold, holds exactly."""


@app.command()
def plan(
    spec: SpecFile,
    epsilon: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Compare the errors at these budgets, such as 0.5,1,2,4.")
    ] = None,
    rho: Annotated[str | None, typer.Option(metavar="NUMBERS", help="The same for a spec that asks for rho.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what a release would promise and how wrong each figure will be; reads no confidential data."""
    with ending(json):
        from holdfast.cli import verbs

        verbs.plan(spec, epsilon, rho, json, quiet)


@app.command()
def release(
    spec: SpecFile,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Another folder than the spec's.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the spec, the ledger and the folder; read and charge nothing.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make the release; the ledger is charged before anything is drawn."""
    with ending(json):
        from holdfast.cli import verbs

        verbs.release(spec, output, dry_run, json, quiet)


@app.command()
def check(
    spec: SpecFile,
    even_to_a_file: Annotated[
        bool, typer.Option("--even-to-a-file", help="Print although nobody watches: what is printed is confidential.")
    ] = False,
    json: Json = False,
) -> None:
    """Show the curator, and nobody else, which records do not fit and why; charges and writes nothing."""
    with ending(json):
        from holdfast.cli import verbs

        verbs.check(spec, even_to_a_file, json)


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of a release.")],
    ledger: Annotated[
        str | None, typer.Option(metavar="FILE", help="Check too that it was charged and sealed in this ledger.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="Check too that one of the public keys in this file signed it.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check a release against its certificate: every constraint exactly, hashes, budget, signature."""
    with ending(json):
        from holdfast.cli import verbs

        if not verbs.verify(folder, ledger, key, json, quiet):
            raise Ending(5)


@app.command()
def explain(
    spec: Annotated[Path, typer.Argument(metavar="SPEC|FOLDER", help="The spec, or the folder of a release.")],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say in words what the release protects and what it gives away; reads no confidential data."""
    with ending(json):
        from holdfast.cli import verbs

        if not verbs.explain(spec, json, quiet):
            raise Ending(5)


@app.command()
def audit(
    spec: SpecFile,
    seconds: Annotated[float, typer.Option(help="How long to try, about; bounds the effort and nothing else.")] = 60.0,
    knows: Annotated[
        Path | None, typer.Option("--knows", help="Worlds that an adversary thinks possible: say what is learned.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try to refute what the release would promise, on made-up neighbouring data; reads no confidential data."""
    with ending(json):
        from holdfast.cli import verbs

        if not verbs.audit(spec, seconds, knows, json, quiet):
            raise Ending(6)


@app.command()
def mend(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="Published figures: a CSV, Parquet or τ-ARGUS (.tab) file.")
    ],
    domain: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[COLUMN=]FILE",
            help="Which labels add up: a CSV with one row per leaf and a column per level, or a .hrc file.",
        ),
    ] = None,
    hold: Annotated[str, typer.Option(help="What must hold: consistent, nonnegative.")] = "consistent,nonnegative",
    exact: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=LABEL", help="Figures that are known: left as they are.")
    ] = None,
    errors: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|LAW=SIZE",
            help="A column of standard errors, or rounding=5, random_rounding=3, uniform=2, cell_key=FILE, "
            "gaussian=10, laplace=4.",
        ),
    ] = None,
    value: Annotated[str | None, typer.Option(help="The column of figures.")] = None,
    norm: Annotated[str, typer.Option(help="What nearest means: l2 or l1.")] = "l2",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The folder to write; TABLE-mended.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make published figures add up: the nearest table in which everything holds; reads nothing confidential."""
    with ending(json):
        from holdfast.cli import mending

        mending.mend(table, domain, hold, exact, errors, value, norm, output, json, quiet)


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of a release.")],
    form: Annotated[
        str, typer.Option("--as", metavar="FORMAT", help="sdmx (CSV 2.0), croissant or registry (OpenDP).")
    ],
    table: Annotated[str | None, typer.Option(help="The table, where there are several (sdmx).")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; left out: printed.")] = None,
) -> None:
    """Write a release in a format of others, from its published files alone."""
    with ending(False):
        from holdfast.cli import exchange

        exchange.export(folder, form, table, output)


@app.command()
def papers(
    name: Annotated[str, typer.Argument(metavar="[list|all|NAME]", help="An item, or all of them.")] = "list",
    data: Annotated[Path | None, typer.Option("--data", help="Folder of public data; left out: made up.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write a small site into this folder.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce a table, figure or theorem of the papers: printed figures beside ours, and a verdict."""
    with ending(json):
        from holdfast.cli import papers as shown

        shown.papers(name, data, output, json, quiet)


@app.command()
def secret(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; only its owner can read it.")],
    quiet: Quiet = False,
) -> None:
    """Write a fresh secret for the agents of one release."""
    with ending(False):
        from holdfast.cli import agents

        agents.secret(file, quiet)


@app.command()
def key(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; only its owner can read it.")],
    passphrase: Annotated[
        bool, typer.Option("--passphrase", help="Ask for a passphrase; the variable HOLDFAST_PASSPHRASE sets one too.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Write a fresh key that signs releases (sign: FILE in the spec), and its public part into FILE.pub."""
    with ending(False):
        from holdfast.cli import agents

        agents.key(file, passphrase, quiet)


@app.command()
def agent(
    spec: SpecFile,
    name: Annotated[str, typer.Option("--name", help="The agent, as the spec names it.")],
    secret: Annotated[
        Path | None, typer.Option("--secret", help="File of the secret; the variable HOLDFAST_SECRET when left out.")
    ] = None,
    source: Annotated[Path | None, typer.Option("--source", help="The agent's records, instead of the spec's.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Another folder for the slice.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Publish one agent's slice of a release; run again, it publishes the same bytes."""
    with ending(json):
        from holdfast.cli import agents

        agents.agent(spec, name, secret, source, output, json, quiet)


@app.command()
def gather(
    spec: SpecFile,
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="[FOLDER]...", help="The agents' folders; left out: the usual ones.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Another folder than the spec's.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check the slices of all agents and join them into a release; needs no secret and no records."""
    with ending(json):
        from holdfast.cli import agents

        agents.gather(spec, folders, output, json, quiet)


@app.command()
def schema(
    what: Annotated[str, typer.Argument(metavar="[spec|certificate]", help="Which schema.")] = "spec",
) -> None:
    """Print the JSON Schema of the spec (or of the certificate)."""
    with ending(False):
        from holdfast.cli import verbs

        verbs.schema(what)


@app.command()
def init(
    domain: Annotated[Path, typer.Argument(metavar="DOMAIN", help="A public file: one row per place or cell.")],
    spec: Annotated[Path, typer.Option("--spec", help="The spec to write.")] = Path("spec.yaml"),
    source: Annotated[str, typer.Option("--source", help="The file of records to name in it.")] = "records.parquet",
    quiet: Quiet = False,
) -> None:
    """Write a commented spec to start from."""
    with ending(False):
        from holdfast.cli import verbs

        verbs.init(domain, spec, source, quiet)


@books.command("list")
def ledger_list(
    file: LedgerFile = USUAL,
    dataset: Annotated[str | None, typer.Option(help="Only this dataset.")] = None,
    json: Json = False,
) -> None:
    """List every charge, oldest first."""
    with ending(json):
        from holdfast.cli import verbs

        verbs.ledger_list(file, dataset, json)


@books.command("verify")
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


@books.command("remaining")
def ledger_remaining(
    file: LedgerFile = USUAL,
    dataset: Annotated[str | None, typer.Option(help="Only this dataset.")] = None,
    json: Json = False,
) -> None:
    """Say what was spent and what is left, per dataset and unit."""
    with ending(json):
        from holdfast.cli import verbs

        verbs.ledger_remaining(file, dataset, json)


@books.command("budget")
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


@books.command("events")
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


@books.command("charge-events")
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


def main() -> None:
    """Run the command."""
    app()
