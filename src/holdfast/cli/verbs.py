"""What the verbs do: call the job, and show what it says."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.arguments import Refused, one_of, positive
from holdfast.cli import showing
from holdfast.progress import command

if TYPE_CHECKING:
    from holdfast.release.job.job import Job
    from holdfast.release.ledger.ledger import Ledger
    from holdfast.release.spec.spec import Spec

SCHEMAS = ("spec", "certificate")


def job_of(spec: Path, quiet: bool, first: Callable[[Spec], None] = lambda _: None) -> Job:
    """Read a spec and make it ready; `first` may refuse it before that takes time."""
    with command(quiet=quiet) as step:
        step("reading the spec")
        from holdfast.release.spec.spec import read_spec

        found = read_spec(spec, folder_needed=False)
        first(found)
        step("comparing methods and calibrating them")
        from holdfast.release.job.job import Job

        return Job.from_spec(found)


def plan(spec: Path, epsilon: str | None, rho: str | None, json: bool, quiet: bool) -> None:
    """Show the plan of a spec, or the errors at several budgets beside each other."""
    if epsilon is not None or rho is not None:
        _what_if(spec, epsilon, rho, json, quiet)
        return
    job = job_of(spec, quiet or json)
    with command(quiet=quiet or json) as step:
        step("timing one table")
        from holdfast.release.plan import plan as planned

        found = planned(job)
    if json:
        showing.data(found.as_mapping())
    elif not quiet:
        showing.plan(found)


def _what_if(spec: Path, epsilon: str | None, rho: str | None, json: bool, quiet: bool) -> None:
    from holdfast.release.spec.spec import read_spec
    from holdfast.release.what_if import amounts, what_if

    if epsilon is not None and rho is not None:
        raise Refused("say which budgets to compare by one of --epsilon and --rho, found both")
    parameter, text = ("epsilon", epsilon) if epsilon is not None else ("rho", rho)
    numbers = amounts(parameter, text or "")
    with command(quiet=quiet or json) as step:
        step("comparing budgets")
        found = what_if(read_spec(spec, folder_needed=False), parameter, numbers)
    if json:
        showing.data(found.as_mapping())
    elif not quiet:
        showing.what_if(found)


def release(spec: Path, output: Path | None, dry_run: bool, json: bool, quiet: bool) -> None:
    """Make a release, or check that it could be made."""
    from holdfast.release.ends import refuse_early

    job = job_of(spec, quiet or json, lambda found: refuse_early(found, output, records=not dry_run))
    folder = Path(job.spec.output if output is None else output).absolute()
    if dry_run:
        with command(quiet=quiet or json) as step:
            step("checking the ledger and the folder")
            from holdfast.release.run import could_release

            could_release(job, folder)
        told: dict[str, Any] = {"dry_run": True, "folder": str(folder), "spec_hash": job.spec.hash}
        words = f"nothing stands in the way of {folder}; nothing was read, charged or drawn"
    else:
        asides: list[str] = []
        notes: list[str] = []
        try:
            with command(quiet=quiet or json) as step:
                from holdfast.release.run import release as released

                folder = released(job, output=output, step=step, aside=asides.append, note=notes.append)
        finally:
            if not quiet:
                showing.notes(notes)
                showing.aside(asides)
        told = {"dry_run": False, "folder": str(folder), "report": str(folder / "report.html"), "notes": notes}
        words = f"released into {folder}; read {folder / 'report.html'}"
    told["statement"] = job.guarantee.as_mapping()
    if json:
        showing.data(told)
    elif not quiet:
        showing.sentence(words)


def check(spec: Path, even_to_a_file: bool, json: bool) -> None:
    """Show how the records fit a spec, where somebody watches."""
    if not (sys.stdout.isatty() or even_to_a_file):
        raise Refused("check shows exact figures, for the curator's eyes: use a terminal, or write --even-to-a-file")
    with command(quiet=json) as step:
        step("reading the spec")
        from holdfast.release.records.check import check as checked
        from holdfast.release.spec.spec import read_spec
        from holdfast.release.table.laid import laid

        shapes, _ = laid(read_spec(spec, folder_needed=False))
        step("counting")
        found = checked(shapes)
    if json:
        showing.data(found.as_mapping())
    else:
        showing.sections(found.sections())


def verify(folder: Path, ledger: str | None, key: Path | None, json: bool, quiet: bool) -> bool:
    """Check a release, with its charge if a ledger is named; return whether everything is as certified."""
    with command(quiet=quiet or json) as step:
        step("verifying")
        from holdfast.release.certificate.verify import verify as verified

        verdict = verified(folder, None if ledger is None else ledger_of(ledger, "--ledger"), key)
    if json:
        showing.data(verdict.as_mapping())
    elif not quiet:
        showing.verdict(verdict)
    return verdict.ok


def explain(spec: Path, json: bool, quiet: bool) -> bool:
    """Show a spec, or the folder of a release, in words; return whether the folder is as it was released."""
    as_released = True
    with command(quiet=quiet or json) as step:
        if spec.is_dir():
            step("reading the release")
            from holdfast.release.explain_folder import CHANGED, explain_folder

            found = explain_folder(spec)
            as_released = CHANGED not in found
        else:
            job = job_of(spec, quiet or json)
            step("putting it in words")
            from holdfast.release.explain import explain as explained

            found = explained(job)
    if json:
        showing.data(found)
    elif not quiet:
        showing.sections(found)
    return as_released


def page(spec: Path, port: int, browser: bool) -> None:
    """Serve the planner of a spec until it is interrupted."""
    import webbrowser

    from holdfast.page.serving import opened

    with ExitStack() as door:
        with command(quiet=False) as step:
            step("reading the spec and its public files")
            address, serve = door.enter_context(opened(spec, port))
        showing.sentence(f"The planner is at {address}\nOnly this machine reaches it; Ctrl-C stops it.")
        sys.stdout.flush()
        if browser and sys.stdout.isatty():
            webbrowser.open(address)
        serve()
    showing.sentence("the planner has stopped")


def audit(spec: Path, seconds: float, knows: Path | None, json: bool, quiet: bool) -> bool:
    """Try to refute what a spec promises, and say what an adversary learns; return whether nothing was refuted."""
    positive("seconds", seconds)  # before a spec is calibrated, which can take long
    job = job_of(spec, quiet or json)
    with command(quiet=quiet or json) as step:
        from holdfast.release.audit import audit as audited

        gained = None
        if knows is not None:
            step("asking what an adversary learns")
            from holdfast.release.knows import gain

            gained = gain(job, knows)
        found = audited(job, seconds, step)
    if json:
        learned = {} if gained is None else {"learned": {"table": gained[0], **gained[1].as_mapping()}}
        showing.data(found.as_mapping() | learned)
    elif not quiet:
        showing.sentence(str(found))
        if gained is not None:
            showing.sentence(f"{gained[0]}: {gained[1]}")
    return not found.violated


def schema(what: str) -> None:
    """Print a JSON Schema."""
    one_of("schema", what, SCHEMAS)
    if what == "spec":
        from holdfast.release.spec.schema import spec_schema

        showing.data(spec_schema())
    else:
        from holdfast.release.certificate.certificate import schema as certificate_schema

        showing.data(certificate_schema())


def init(domain: Path | None, spec: Path, source: str, quiet: bool) -> None:
    """Write a spec to start from, with what is answered on a terminal; never over an existing file."""
    from holdfast.release.table.starting import Answers, starting_spec, suggested

    asking = not quiet and sys.stdin.isatty() and sys.stdout.isatty()
    if domain is None and not asking:
        raise Refused("name the public file of all places or values: holdfast init DOMAIN")
    domain = domain or Path(showing.asked("Which public file names all places or values (.csv or .parquet)?"))
    # Paths in a spec are relative to its folder.
    public = Path(os.path.relpath(domain, spec.absolute().parent)) if not domain.is_absolute() else domain
    refuse_existing(spec, "--spec")  # before anything is asked
    found = suggested(domain)
    answers = Answers(source, count=found.count)
    if asking:
        found, answers = showing.answers(found, source)
    text = starting_spec(found, answers, public, spec.name)
    write_new(spec, text, "--spec")
    if asking:
        showing.sentence(f"\n{text}")
    if not quiet:
        there = "://" in answers.source or (spec.parent / answers.source).exists()
        first = "" if there else f"say in it where the records are (source: {answers.source} is not there), then "
        showing.sentence(f"wrote {spec}; next: {first}holdfast plan {spec}, or move it: holdfast page {spec}")


def refuse_existing(path: Path | None, option: str) -> None:
    """Refuse a file that is there already, before work is done for it; `option` names another one."""
    if path is not None and os.path.lexists(path):
        raise Refused(f"{str(path)!r} exists already: name another file with {option}")


def write_new(path: Path, text: str, option: str) -> None:
    """Write a file that is not there yet; `option` names another one."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise Refused(f"{str(path)!r} exists already: name another file with {option}") from None
    except OSError as error:
        raise Refused(f"{str(path)!r} cannot be written: {error.strerror}") from None


def ledger_verify(file: str, witness: str | None, json: bool, quiet: bool) -> None:
    """Check the chain of a ledger."""
    from holdfast.release.ledger.ledger import Ledger

    ledger_of(file)
    rows = Ledger(file, witness).verify()
    if json:
        showing.data({"rows": len(rows), "head": rows[-1].hash})
    elif not quiet:
        showing.sentence(f"the chain of {len(rows)} rows is unbroken; its head is {rows[-1].hash}")


def ledger_list(file: str, dataset: str | None, json: bool) -> None:
    """List the charges of a ledger."""
    entries = ledger_of(file).entries(dataset)
    if json:
        showing.data([entry.as_mapping() for entry in entries])
    else:
        showing.charges(entries)


def ledger_remaining(file: str, dataset: str | None, json: bool) -> None:
    """Show what is left in a ledger."""
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
    if json:
        showing.data(rows)
    else:
        showing.accounts(rows)


def ledger_budget(
    file: str, dataset: str, unit: str, epsilon: str | None, delta: str | None, rho: str | None, quiet: bool
) -> None:
    """Set a budget."""
    from decimal import Decimal, InvalidOperation

    from holdfast.release.ledger.ledger import Ledger

    numbers = {}
    for name, text in (("epsilon", epsilon), ("delta", delta), ("rho", rho)):
        try:
            numbers[name] = None if text is None else Decimal(text)
        except InvalidOperation:
            raise Refused(f"{name} must be a number, found {text!r}") from None
    Ledger(file).set_budget(dataset, unit, **numbers)
    if not quiet:
        showing.sentence(f"the budget of {dataset!r} per {unit} is set in {file}")


def ledger_of(file: str, option: str = "--file") -> Ledger:
    """The ledger at a place where there is one."""
    from holdfast.release.ledger.ledger import Ledger

    ledger = Ledger(file)
    if not ledger.exists:
        raise Refused(f"there is no ledger {file!r}: name one with {option}; the first release makes it")
    return ledger
