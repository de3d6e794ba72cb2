"""The verbs of the command and their options. What each verb does is loaded only when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.ending import Ending, ending
from holdfast.cli.ledger_verbs import books
from holdfast.cli.options import Json, Quiet, SpecFile, examples
from holdfast.version import __version__

app = typer.Typer(
    name="holdfast",
    help="Differentially private tables in which everything that must hold, holds exactly.",
    epilog="Exit codes: 0 done; 1 a fault of holdfast; 2 wrong command line; 3 refused; 4 the ledger has too little "
    "left; 5 verify or explain found a difference; 6 audit refuted a statement; 130 interrupted.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(books, name="ledger")


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


@app.command(
    epilog=examples(
        "holdfast plan spec.yaml",
        "holdfast plan spec.yaml --epsilon 0.5,1,2,4",
        "holdfast plan spec.yaml --json | jq .statements",
    )
)
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


@app.command(epilog=examples("holdfast release spec.yaml --dry-run", "holdfast release spec.yaml --output out/2026-05"))
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


@app.command(epilog=examples("holdfast check spec.yaml"))
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


@app.command(epilog=examples("holdfast verify out", "holdfast verify out --ledger book.sqlite"))
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


@app.command(epilog=examples("holdfast explain spec.yaml", "holdfast explain out"))
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


@app.command(epilog=examples("holdfast page spec.yaml", "holdfast page spec.yaml --no-open --port 8000"))
def page(
    spec: SpecFile,
    port: Annotated[int, typer.Option(help="The port to listen at; 0 takes a free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Whether to open a browser.")] = True,
) -> None:
    """Plan in a browser, on this machine only: move epsilon, shares and method, and see error and promise."""
    with ending(False):
        from holdfast.cli import verbs

        verbs.page(spec, port, browser)


@app.command(epilog=examples("holdfast audit spec.yaml --seconds 300"))
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


@app.command(
    epilog=examples(
        "holdfast mend published.csv",
        "holdfast mend published.csv --domain region=regions.csv --errors rounding=5 --output mended",
    )
)
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


@app.command(
    epilog=examples("holdfast export out --as croissant", "holdfast export out --as sdmx --output out.sdmx.csv")
)
def export(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of a release.")],
    form: Annotated[
        str, typer.Option("--as", metavar="FORMAT", help="sdmx (CSV 2.0), croissant, registry (OpenDP) or r (reader).")
    ],
    table: Annotated[str | None, typer.Option(help="The table, where there are several (sdmx).")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; left out: printed.")] = None,
) -> None:
    """Write a release in a format of others, from its published files alone."""
    with ending(False):
        from holdfast.cli import exchange

        exchange.export(folder, form, table, output)


@app.command(
    epilog=examples("holdfast papers", "holdfast papers two-views-table-1", "holdfast papers all --output papers")
)
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


@app.command(epilog=examples("holdfast secret agents.secret"))
def secret(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; only its owner can read it.")],
    quiet: Quiet = False,
) -> None:
    """Write a fresh secret for the agents of one release."""
    with ending(False):
        from holdfast.cli import agents

        agents.secret(file, quiet)


@app.command(epilog=examples("holdfast key office.key --passphrase", "holdfast verify out --key office.key.pub"))
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


@app.command(epilog=examples("holdfast agent spec.yaml --name north --secret agents.secret --source north.parquet"))
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


@app.command(epilog=examples("holdfast gather spec.yaml", "holdfast gather spec.yaml north south --output out"))
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


@app.command(epilog=examples("holdfast schema > spec.schema.json", "holdfast schema certificate"))
def schema(
    what: Annotated[str, typer.Argument(metavar="[spec|certificate]", help="Which schema.")] = "spec",
) -> None:
    """Print the JSON Schema of the spec (or of the certificate)."""
    with ending(False):
        from holdfast.cli import verbs

        verbs.schema(what)


@app.command(epilog=examples("holdfast init", "holdfast init zones.csv --spec trips.yaml --source trips.parquet"))
def init(
    domain: Annotated[
        Path | None, typer.Argument(metavar="[DOMAIN]", help="A public file: one row per place or cell; asked for.")
    ] = None,
    spec: Annotated[Path, typer.Option("--spec", help="The spec to write.")] = Path("spec.yaml"),
    source: Annotated[str, typer.Option("--source", help="The file of records to name in it.")] = "records.parquet",
    quiet: Quiet = False,
) -> None:
    """Write a commented spec to start from; on a terminal it asks for what it needs and shows the spec."""
    with ending(False):
        from holdfast.cli import verbs

        verbs.init(domain, spec, source, quiet)


def main() -> None:
    """Run the command."""
    app()
