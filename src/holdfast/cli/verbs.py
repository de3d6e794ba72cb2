"""The verbs about one release: plan, make, check, verify, explain and audit it; each loads what it needs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.ending import Ending, Folder, Json, Output, Quiet, SpecFile, nothing_yet, verb
from holdfast.cli.machine import ledger_of
from holdfast.progress import command

if TYPE_CHECKING:
    from holdfast.release.job.job import Job
    from holdfast.release.table.laid import Laid


def job_of(spec: Path, quiet: bool, first: Callable[[Laid], None] = lambda _: None, progress: bool = False) -> Job:
    """Read a spec and make it ready; `first` may refuse it before that takes time."""
    with command(quiet=quiet, as_json=progress) as step:
        step("reading the spec")
        from holdfast.release.spec.spec import read_spec
        from holdfast.release.table.laid import laid

        shapes, files = laid(read_spec(spec, folder_needed=False))
        first(shapes)
        step("comparing methods and calibrating them")
        from holdfast.release.job.job import Job

        return Job.of(shapes, files, keeps=True)


@verb(
    "holdfast plan spec.yaml",
    "holdfast plan spec.yaml --epsilon 0.5,1,2,4",
    "holdfast plan spec.yaml --json | jq .statements",
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
    from holdfast.cli import showing

    if epsilon is not None or rho is not None:
        compared = _what_if(spec, epsilon, rho, quiet or json)
        showing.told(json, quiet, compared.as_mapping, lambda: showing.what_if(compared))
        return
    job = job_of(spec, quiet or json)
    with command(quiet=quiet or json) as step:
        from holdfast.release.plan import plan as planned

        outlook = planned(job, step)
    showing.told(json, quiet, outlook.as_mapping, lambda: showing.plan(outlook))


def _what_if(spec: Path, epsilon: str | None, rho: str | None, quiet: bool) -> Any:
    from holdfast.arguments import Refused
    from holdfast.release.plan import read_amounts, what_if
    from holdfast.release.spec.spec import read_spec

    if epsilon is not None and rho is not None:
        raise Refused("say which budgets to compare by one of --epsilon and --rho, found both")
    parameter, text = ("epsilon", epsilon) if epsilon is not None else ("rho", rho)
    numbers = read_amounts(parameter, text or "")
    with command(quiet=quiet) as step:
        step("comparing budgets")
        return what_if(read_spec(spec, folder_needed=False), parameter, numbers)


@verb(
    "holdfast release spec.yaml --dry-run",
    "holdfast release spec.yaml --output out/2026-05",
    "holdfast release spec.yaml --output out/2026-05 --id trips-2026-05 --json",
)
def release(
    spec: SpecFile,
    output: Output = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Check the spec, the ledger, the folder, and that the source opens; count and charge nothing.",
        ),
    ] = False,
    at_least: Annotated[
        float, typer.Option(metavar="SECONDS", help="Publish nothing sooner: time may tell of the data.")
    ] = 0.0,
    witnessed: Annotated[
        bool, typer.Option("--witnessed", help="Charge and commit to one draw, which waits for a nonce; draw nothing.")
    ] = False,
    nonce: Annotated[
        str | None, typer.Option(metavar="HEX", help="Draw what was committed to, with the nonce that was given since.")
    ] = None,
    run_id: Annotated[
        str | None, typer.Option("--id", metavar="NAME", help="The name of this run: a second one makes nothing more.")
    ] = None,
    period: Annotated[
        str | None, typer.Option(metavar="NAME", help="The period of a series, such as 2026-11: all are charged once.")
    ] = None,
    progress: Annotated[
        bool, typer.Option("--progress", help="Say every step as a line of JSON on standard error.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make the release; the ledger is charged before anything is drawn."""
    from holdfast.arguments import Refused
    from holdfast.cli import showing

    if dry_run + witnessed + (nonce is not None) + (run_id is not None) + (period is not None) > 1:
        raise Refused("--dry-run, --witnessed, --nonce, --id and --period are ways of their own: give one of them")

    def first(shapes: Laid) -> None:
        if run_id is not None:
            _end_if_made(shapes, run_id, json, quiet)
        if period is None:  # that of a series is looked at with its ledger
            refuse_early(shapes, output, records=nonce is None)

    with nothing_yet():
        from holdfast.release.ends import refuse_early
        from holdfast.release.run import release as released
        from holdfast.release.series import release_period
        from holdfast.release.witnessed import commit, draw_committed

        job = job_of(spec, quiet or json, first, progress)
    folder = Path(job.spec.output if output is None else output).absolute()
    if dry_run:
        content, words = _tried(job, folder, quiet or json, progress)
    else:
        asides: list[str] = []
        notes: list[str] = []
        try:
            with command(quiet=quiet or json, as_json=progress) as step:
                told: dict[str, Any] = {"output": output, "step": step, "aside": asides.append}
                committed = commit(job, **told, note=notes.append) if witnessed else None
                if nonce is not None:
                    folder = draw_committed(job, nonce, at_least=at_least, **told)
                elif period is not None:
                    folder = release_period(job, period, at_least=at_least, note=notes.append, **told)
                elif committed is None:
                    folder = released(job, at_least=at_least, run_id=run_id, note=notes.append, **told)
        finally:
            showing.notes([] if quiet else notes)
            showing.aside([] if quiet else asides)
        content = {"dry_run": False, "folder": str(folder), "report": str(folder / "report.html"), "notes": notes}
        words = f"released into {folder}; read {folder / 'report.html'}"
        if committed is not None:
            content = {"commitment": committed.commitment, "row": committed.row, "opening": str(committed.opening)}
            words = (
                f"committed to one draw, in row {committed.row} of the ledger: {committed.commitment}\n"
                f"keep {committed.opening}, which is as confidential as the records; show the commitment to whoever "
                f"gives the nonce, then: holdfast release {spec} --nonce NONCE"
            )
    showing.told(json, quiet, lambda: {**content, "statement": job.guarantee.as_mapping()}, words)


def _tried(job: Job, folder: Path, quiet: bool, progress: bool) -> tuple[dict[str, Any], str]:
    from holdfast.release.run import could_release

    with command(quiet=quiet, as_json=progress) as step:
        could_release(job, folder, step=step)
    words = (
        f"nothing public stands in the way of {folder}, and the source opens and has the columns; no record was "
        "counted, and nothing was charged or drawn"
    )
    return {"dry_run": True, "folder": str(folder), "spec_hash": job.spec.hash}, words


def _end_if_made(shapes: Laid, run_id: str, json: bool, quiet: bool) -> None:
    """Say where a run of this id released already, and end well."""
    from holdfast.cli import showing
    from holdfast.release.ends import made_already

    folder = made_already(shapes.spec, run_id)
    if folder is not None:
        content = {"dry_run": False, "folder": str(folder), "report": str(folder / "report.html"), "notes": []}
        words = f"released already into {folder}; nothing was charged or drawn"
        showing.told(json, quiet, lambda: {**content, "already": True}, words)
        raise Ending(0)


@verb("holdfast check spec.yaml", "holdfast check spec.yaml --spelling spelling.csv")
def check(
    spec: SpecFile,
    even_to_a_file: Annotated[
        bool, typer.Option("--even-to-a-file", help="Print although nobody watches: what is printed is confidential.")
    ] = False,
    spelling: Annotated[
        Path | None,
        typer.Option("--spelling", metavar="FILE", help="Write values that may mean public names, for data.spelling."),
    ] = None,
    json: Json = False,
) -> None:
    """Show the curator, and nobody else, which records do not fit and why; charges and writes nothing."""
    from holdfast.arguments import Refused
    from holdfast.cli import showing

    if not (sys.stdout.isatty() or even_to_a_file):
        raise Refused("check shows exact figures, for the curator's eyes: use a terminal, or write --even-to-a-file")
    with command(quiet=json) as step:
        step("reading the spec")
        from holdfast.release.records.check import check as checked
        from holdfast.release.spec.spec import read_spec
        from holdfast.release.table.laid import laid

        shapes, _ = laid(read_spec(spec, folder_needed=False))
        step("counting")
        fit = checked(shapes)
        if spelling is not None:
            from holdfast.release.records.spelling import write

            write(spelling, fit.spellings)
    showing.told(json, False, fit.as_mapping, lambda: showing.sections(fit.sections()))


@verb("holdfast verify out", "holdfast verify out --ledger book.sqlite")
def verify(
    folder: Folder,
    ledger: Annotated[
        str | None, typer.Option(metavar="FILE", help="Check too that it was charged and sealed in this ledger.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="Check too that one of the public keys in this file signed it.")
    ] = None,
    officer: Annotated[
        Path | None,
        typer.Option("--officer", help="Check too that a public key in this file made the nonce."),
    ] = None,
    opened: Annotated[
        Path | None, typer.Option("--opened", help="Draw a witnessed release again from its opening, and compare.")
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="FILE", help="With --opened: count these records again too, and compare.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check a release against its certificate: every constraint exactly, hashes, budget, signature."""
    from holdfast.arguments import Refused
    from holdfast.cli import showing

    if source is not None and opened is None:
        raise Refused("records are counted again for a draw that is opened: name its opening with --opened too")

    with command(quiet=quiet or json) as step:
        step("verifying")
        from holdfast.release.certificate.series_folder import verify as verified

        verdict = verified(
            folder, ledger=None if ledger is None else ledger_of(ledger, "--ledger"), key=key, officer=officer
        )
        if opened is not None:
            from holdfast.release.witnessed import reexecuted

            verdict = replace(verdict, checks=(*verdict.checks, reexecuted(folder, opened, source, step)))
    showing.told(json, quiet, verdict.as_mapping, lambda: showing.verdict(verdict))
    if not verdict.ok:
        raise Ending(5)


@verb("holdfast prove out", "holdfast prove out --output certificate.v")
def prove(
    folder: Folder,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what the kernel was asked to prove into this file.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Have the certificate's number proved by Coq's kernel, from theorems that share no code with holdfast."""
    from holdfast.arguments import Refused
    from holdfast.cli import showing

    if output is not None and os.path.exists(output):  # before any work is done for it
        raise Refused(f"{str(output)!r} exists already: name another file for what the kernel is asked")
    with command(quiet=quiet or json) as step:
        step("proving")
        from holdfast.proving import prove as proved

        verdict = proved(folder)
        if output is not None:
            output.write_text(verdict.text, encoding="utf-8")
    showing.told(json, quiet, verdict.as_mapping, verdict.sentence)
    if not verdict.proved:
        raise Ending(5)


@verb("holdfast explain spec.yaml", "holdfast explain out")
def explain(
    spec: Annotated[Path, typer.Argument(metavar="SPEC|FOLDER", help="The spec, or the folder of a release.")],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say in words what the release protects and what it gives away; reads no confidential data."""
    from holdfast.cli import showing

    as_released = True
    with command(quiet=quiet or json) as step:
        if os.path.isdir(spec):
            step("reading the release")
            from holdfast.release.report.label import CHANGED, explain_folder

            sections = explain_folder(spec)
            as_released = CHANGED not in sections
        else:
            job = job_of(spec, quiet or json)
            step("computing what exact figures give away")
            from holdfast.release.explain import explain as explained

            sections = explained(job)
    showing.told(json, quiet, lambda: sections, lambda: showing.sections(sections))
    if not as_released:
        raise Ending(5)


@verb("holdfast page spec.yaml", "holdfast page spec.yaml --no-open --port 8000")
def page(
    spec: SpecFile,
    port: Annotated[int, typer.Option(help="The port to listen at; 0 takes a free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Whether to open a browser.")] = True,
) -> None:
    """Plan in a browser, on this machine only: move epsilon, shares and method, and see error and promise."""
    import webbrowser
    from contextlib import ExitStack

    from holdfast.arguments import Refused

    try:
        from holdfast.page.server import opened
    except ImportError:
        raise Refused("the page needs Starlette and uvicorn: pip install 'holdfast[page]'") from None
    with ExitStack() as door:
        with command(quiet=False) as step:
            step("reading the spec and its public files")
            address, serve = door.enter_context(opened(spec, port))
        print(f"The planner is at {address}\nOnly this machine reaches it; Ctrl-C stops it.", flush=True)
        if browser and sys.stdout.isatty():
            webbrowser.open(address)
        serve()
    print("the planner has stopped")


@verb("holdfast audit spec.yaml --seconds 300", "holdfast audit spec.yaml --source")
def audit(
    spec: SpecFile,
    seconds: Annotated[float, typer.Option(help="How long to try, about; bounds the effort and nothing else.")] = 60.0,
    knows: Annotated[
        Path | None, typer.Option("--knows", help="Worlds that an adversary thinks possible: say what is learned.")
    ] = None,
    source: Annotated[
        bool, typer.Option("--source", help="Run the source's query or view too, on made-up neighbours of its tables.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try to refute what the release would promise, on made-up neighbouring data; reads no confidential data."""
    from holdfast.arguments import positive
    from holdfast.cli import showing

    positive("seconds", seconds)  # before a spec is calibrated, which can take long
    job = job_of(spec, quiet or json)
    with command(quiet=quiet or json) as step:
        from holdfast.release.audit import audit as audited
        from holdfast.release.audit import gain

        learned: dict[str, Any] = {}
        words = ""
        if knows is not None:
            step("asking what an adversary learns")
            table, gained = gain(job, knows)
            learned, words = {"learned": {"table": table, **gained.as_mapping()}}, f"\n{table}: {gained}"
        report = audited(job, seconds, step, source=source)
    showing.told(json, quiet, lambda: report.as_mapping() | learned, f"{report}{words}")
    if report.violated:
        raise Ending(6)
