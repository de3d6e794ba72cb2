"""The verbs beside releases: mend, export, papers, keys and agents, schemas and a first spec."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.ending import Ending, Folder, Json, NewFile, Output, Printed, Quiet, SpecFile, verb
from holdfast.cli.verbs import job_of
from holdfast.progress import command

SCHEMAS = ("spec", "certificate")
FORMATS = ("sdmx", "croissant", "registry", "dpia", "r")
WITH = "Data were read from a folder of public files; each page says which."
WITHOUT = "No data were given: where an item needs data, it has made up some of the same shape, and says so."


@verb(
    "holdfast mend published.csv",
    "holdfast mend published.csv --domain region=regions.csv --errors rounding=5 --output mended",
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
    exact: Annotated[list[str] | None, typer.Option(metavar="COLUMN=LABEL", help="Figures that are known.")] = None,
    rules: Annotated[Path | None, typer.Option(help="Rows: rule, labels, factor, relation, value.")] = None,
    errors: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN|LAW=SIZE",
            help="A column of standard errors, weights=COLUMN, or rounding=5, random_rounding=3, uniform=2, "
            "cell_key=FILE, gaussian=10, laplace=4.",
        ),
    ] = None,
    value: Annotated[str | None, typer.Option(help="The column of figures.")] = None,
    norm: Annotated[str, typer.Option(help="What nearest means: l2 or l1.")] = "l2",
    marks: Annotated[
        str | None, typer.Option(help="Whose marks and separators: de, ch, fr, uk, eu (Eurostat).")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The folder to write; TABLE-mended.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make published figures add up: the nearest table in which everything holds; reads nothing confidential."""
    from holdfast.arguments import Refused
    from holdfast.cli import showing

    wanted: list[Any] = [word.strip() for word in hold.split(",") if word.strip()]
    wanted += [{"exact": dict([_pair("--exact", entry)])} for entry in exact or ()]
    wanted += [{"rules": rules}] if rules else []
    folder = output or table.with_name(f"{table.stem}-mended")
    if os.path.exists(folder):  # before any work is done for it
        raise Refused(f"{str(folder)!r} exists already: name another folder for the mended table")
    with command(quiet=quiet or json) as step:
        step("mending")
        from holdfast.mending import mend as mended

        result = mended(table, wanted, _errors(errors), domain=_domain(domain), value=value, norm=norm, marks=marks)
        step("writing")
        result.write(folder)
    lines = [*str(result).splitlines(), *(f"  {each}" for each in [*result.contradictions[:5], *result.broken[:5]])]
    words = "\n".join([*lines, f"written into {folder}; read {folder / 'report.html'}"])
    showing.told(json, quiet, lambda: {"folder": str(folder), **result.as_mapping()}, words)


@verb(
    "holdfast combine out/office-a out/office-b --output both",
    "holdfast combine out/2026 --by month --part January=out/01 --part February=out/02",
    "holdfast combine out/office-a out/office-b --verify both",
)
def combine(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER…", help="Folders of releases of one universe.")],
    by: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column whose labels --part gives.")] = None,
    part: Annotated[
        list[str] | None, typer.Option(metavar="LABEL=FOLDER", help="A folder with a part of all records.")
    ] = None,
    known: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Figures known without noise: names, and a column value.")
    ] = None,
    figure: Annotated[str | None, typer.Option(help="The column that is added up; counts.")] = None,
    key: Annotated[Path | None, typer.Option("--key", help="A file of public keys: one signed every folder.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The folder to write.")] = None,
    verify: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Check what was written from these.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Read several releases together: one best estimate with error bars, from what they publish alone."""
    from holdfast.arguments import Refused
    from holdfast.cli import showing

    if (by is None) == bool(part):
        raise Refused("parts of all records need both --by COLUMN and --part LABEL=FOLDER")
    if output is not None and os.path.exists(output):  # before any work is done for it
        raise Refused(f"{str(output)!r} exists already: name another folder for what is combined")
    labelled = {label: Path(folder) for label, folder in (_pair("--part", each) for each in part or ())}
    with command(quiet=quiet or json) as step:
        step("verifying and combining")
        from holdfast.together import combine as combined

        found = combined(*folders, parts={by: labelled} if by else None, known=known, figure=figure, key=key)
        verdict = None if verify is None else found.verify(verify)
        if output is not None:
            step("writing")
            found.write(output)
    if verdict is not None:
        showing.told(json, quiet, verdict.as_mapping, str(verdict))
        if not verdict.ok:
            raise Ending(5)
        return
    words = str(found) if output is None else f"{found}\nwritten into {output}"
    showing.told(json, quiet, found.as_mapping, words)


def _pair(option: str, text: str) -> tuple[str, str]:
    from holdfast.arguments import Refused

    name, between, rest = text.partition("=")
    if not between or not name.strip():
        raise Refused(f"{option} must be written COLUMN=LABEL, found {text!r}")
    return name.strip(), rest.strip()


def _domain(entries: list[str] | None) -> Any:
    """Files by column; one file without a column is for the one whose labels it shares."""
    from holdfast.arguments import Refused

    if not entries:
        return None
    alone = [entry for entry in entries if "=" not in entry]
    if len(alone) == len(entries) == 1:
        return Path(alone[0])
    if alone:
        raise Refused(f"several domains must each name their column, as in region={alone[0]}")
    found: dict[str, Any] = {}
    for entry in entries:
        column, file = _pair("--domain", entry)
        one = Path(file) if file else None
        found[column] = [*_several(found[column]), one] if column in found else one
    return found


def _several(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]


def _errors(text: str | None) -> Any:
    """A column of standard errors, one number for all, or a law with its size."""
    if text is None:
        return None
    name, between, size = text.partition("=")
    if between:
        number = _number(size)
        return {name.strip().replace("-", "_"): size.strip() if number is None else number}
    number = _number(text)
    return text if number is None else number


def _number(text: str) -> float | int | None:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


@verb("holdfast export out --as croissant", "holdfast export out --as sdmx --output out.sdmx.csv")
def export(
    folder: Folder,
    form: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="FORMAT",
            help="sdmx (CSV 2.0), croissant, registry (OpenDP), dpia (Markdown) or r (reader).",
        ),
    ],
    table: Annotated[str | None, typer.Option(help="The table, where there are several (sdmx).")] = None,
    output: Printed = None,
) -> None:
    """Write a release in a format of others, from its published files alone."""
    from holdfast.arguments import one_of
    from holdfast.cli import showing

    one_of("--as", form, FORMATS)
    showing.refuse_existing(output, "--output")
    with command(quiet=False) as step:
        step("reading the release")
        from holdfast.exchange import formats

        if form == "sdmx":
            text = formats.of_release(folder, table)
        elif form == "dpia":
            text = formats.assessment(folder)
        elif form == "r":
            text = resources.files("holdfast.exchange").joinpath("holdfast.R").read_text(encoding="utf-8")
        else:
            text = formats.croissant(folder) if form == "croissant" else formats.registry_entry(folder)
    showing.written(text, output)


@verb("holdfast site out/2026-05 out/2026-06 --output public")
def site(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER...", help="Folders of releases.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")] = Path("site"),
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a site of releases that verify: a page for each, and an index with what was spent; nothing else."""
    from holdfast.cli import showing

    with command(quiet=quiet or json) as step:
        step("verifying")
        from holdfast.release.report.page import site as made

        index = made(folders, output)
    showing.told(json, quiet, lambda: {"index": str(index), "releases": len(folders)}, f"wrote {index}")


@verb("holdfast papers", "holdfast papers two-views-table-1", "holdfast papers all --output papers")
def papers(
    name: Annotated[str, typer.Argument(metavar="[list|all|NAME]", help="An item, or all of them.")] = "list",
    data: Annotated[Path | None, typer.Option("--data", help="Folder of public data; left out: made up.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write a small site into this folder.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce a table, figure or theorem of the papers: printed figures beside ours, and a verdict."""
    from holdfast.arguments import Refused
    from holdfast.cli import showing
    from holdfast.papers import ITEMS, Study, find, run
    from holdfast.papers.reproduction import columns

    if data is not None and not os.path.isdir(data):
        raise Refused(f"--data must be a folder of public data, and {str(data)!r} is none")
    if name == "list":
        keys = ("name", "paper", "title")
        rows = [(item.name, item.paper.name, item.title) for item in ITEMS]
        listed = "\n".join(columns(["name", "paper", "item"], rows))
        showing.told(json, quiet, lambda: [dict(zip(keys, row, strict=True)) for row in rows], listed)
        return
    if name == "all" and output is None:
        raise Refused("all items make a site: say where with --output FOLDER, or name one of holdfast papers list")
    chosen = list(ITEMS) if name == "all" else [find(name)]
    study, done = Study(data), []
    with command(quiet=quiet or json) as step:
        for item in chosen:
            step(f"computing {item.name}")
            done.append(run(item, study))
    lines = done[0].lines()
    if name == "all":
        verdicts = [(each.name, each.verdict, f"{each.seconds:.1f}") for each in done]
        lines = columns(["item", "verdict", "seconds"], verdicts)
    if output is not None:
        from holdfast.papers.catalogue import write

        lines = [*lines, f"read {write(output, done, WITH if data is not None else WITHOUT)}"]
    showing.told(json, quiet, lambda: [each.as_mapping() for each in done], "\n".join(lines))


@verb("holdfast secret agents.secret")
def secret(file: NewFile, quiet: Quiet = False) -> None:
    """Write a fresh secret for the agents of one release."""
    from holdfast.release.agents import write_secret

    write_secret(file)
    if not quiet:
        print(f"wrote {file}; give it to the agents of one release, over a channel that keeps secrets")


@verb("holdfast key office.key --passphrase", "holdfast verify out --key office.key.pub")
def key(
    file: NewFile,
    passphrase: Annotated[
        bool, typer.Option("--passphrase", help="Ask for a passphrase; the variable HOLDFAST_PASSPHRASE sets one too.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Write a fresh key that signs releases (sign: FILE in the spec), and its public part into FILE.pub."""
    from holdfast.release.signing import SUFFIX, write_key

    phrase = typer.prompt("passphrase", hide_input=True, confirmation_prompt=True, err=True) if passphrase else None
    signer = write_key(file, phrase)
    if not quiet:
        print(f"wrote {file}, and {file}{SUFFIX} for your readers; its fingerprint is {signer.fingerprint}")


@verb("holdfast nonce sha256:5f0c…e1 --key officer.key")
def nonce(
    commitment: Annotated[str, typer.Argument(metavar="COMMITMENT", help="What holdfast release --witnessed printed.")],
    file: Annotated[Path, typer.Option("--key", help="The officer's key; not the one that signs the release.")],
) -> None:
    """Give the nonce for a commitment: a signature, which nobody can know before and everybody can check after."""
    from holdfast.arguments import Refused
    from holdfast.release.signing import read_key
    from holdfast.release.standalone_verifier.ed25519 import signed_words

    if not re.fullmatch(r"sha256:[0-9a-f]{64}", commitment):
        raise Refused("a commitment is sha256: and 64 hexadecimal digits, as holdfast release --witnessed prints it")
    print(read_key(file).sign(signed_words(commitment)).hex())


@verb("holdfast agent spec.yaml --name north --secret agents.secret --source north.parquet")
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
    from holdfast.cli import showing
    from holdfast.release import agents

    keys = agents.read_secret(secret)
    job = job_of(spec, quiet or json)
    with command(quiet=quiet or json) as step:
        folder = agents.agent(job, name, keys, source=source, output=output, step=step)
    content = {"agent": name, "folder": str(folder), "statement": job.guarantee.as_mapping()}
    showing.told(json, quiet, lambda: content, f"agent {name} published its slice into {folder}")


@verb("holdfast gather spec.yaml", "holdfast gather spec.yaml north south --output out")
def gather(
    spec: SpecFile,
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="[FOLDER]...", help="The agents' folders; left out: the usual ones.")
    ] = None,
    output: Output = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check the slices of all agents and join them into a release; needs no secret and no records."""
    from holdfast.cli import showing
    from holdfast.release import agents

    job = job_of(spec, quiet or json)
    with command(quiet=quiet or json) as step:
        folder = agents.gather(job, folders or None, output=output, step=step)
    report = folder / "report.html"
    content = {"folder": str(folder), "report": str(report)}
    showing.told(json, quiet, lambda: content, f"joined all slices into {folder}; read {report}")


@verb("holdfast schema > spec.schema.json", "holdfast schema certificate")
def schema(
    what: Annotated[str, typer.Argument(metavar="[spec|certificate]", help="Which schema.")] = "spec",
    json: Json = True,
) -> None:
    """Print the JSON Schema of the spec (or of the certificate), with --json and without."""
    del json
    from holdfast.arguments import one_of
    from holdfast.cli import showing

    one_of("schema", what, SCHEMAS)
    if what == "spec":
        from holdfast.release.spec.spec import spec_schema as made
    else:
        from holdfast.release.certificate.certificate import schema as made
    showing.data(made())


@verb(
    "holdfast init zones.csv",
    "holdfast init zones.csv --spec trips.yaml --source trips.parquet",
    "holdfast init zones.csv --source postgresql://office@db/registers --table residents",
)
def init(
    domain: Annotated[Path | None, typer.Argument(metavar="DOMAIN", help="A public file, a row per place.")] = None,
    spec: Annotated[Path, typer.Option("--spec", help="The spec to write.")] = Path("spec.yaml"),
    source: Annotated[
        str, typer.Option("--source", "--from", help="The records to name in it: a file, or the address of a database.")
    ] = "records.parquet",
    table: Annotated[str | None, typer.Option("--table", help="The table or view in a database.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a commented spec to start from, from a public file and the names of the records' columns."""
    from holdfast.arguments import Refused
    from holdfast.cli import showing
    from holdfast.release.records.tabulate import suggested_columns
    from holdfast.release.spec.spec import read_spec
    from holdfast.release.table.laid import laid
    from holdfast.release.table.starting import starting_spec, suggested

    if domain is None:
        raise Refused(
            "name a public file with a row for every lowest place or value, since names are never read from records: "
            f"holdfast init blocks.csv --from {source}"
        )
    # Paths in a spec are relative to its folder.
    public = Path(os.path.relpath(domain, spec.absolute().parent)) if not domain.is_absolute() else domain
    found, there = suggested(domain), "://" in source or os.path.exists(spec.parent / source)
    showing.write_new(spec, starting_spec(found, source, public, spec.name, table), "--spec")
    if there:
        try:
            renamed, count, further = suggested_columns(laid(read_spec(spec))[0])
        except Refused:
            spec.unlink()  # which was made just now
            raise
        found = replace(found, renamed=renamed, count=count, further=further)
        spec.write_text(starting_spec(found, source, public, spec.name, table), "utf-8")
    first = "" if there else f"say in it where the records are (source: {source} is not there), then "
    words = f"wrote {spec}; next: {first}holdfast plan {spec}, or move it: holdfast page {spec}"
    showing.told(json, quiet, lambda: {"spec": str(spec), "source": source, "source_found": there}, words)
