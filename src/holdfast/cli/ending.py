"""The command as a whole, what its verbs share, and how it ends: one clear message and a documented exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from holdfast.version import __version__

FAULT, REFUSED, OVERSPENT, INCOMPARABLE, LATER, INTERRUPTED, TERMINATED = 1, 3, 4, 7, 8, 130, 143

Verb = TypeVar("Verb", bound=Callable[..., None])
SpecFile = Annotated[Path, typer.Argument(metavar="SPEC", help="The spec, a YAML file.")]
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of a release.")]
NewFile = Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; only its owner can read it.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Another folder than the spec's.")]
Printed = Annotated[Path | None, typer.Option("--output", "-o", help="A file; left out: printed.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]

app = typer.Typer(
    name="holdfast",
    help="Differentially private tables in which everything that must hold, holds exactly.",
    epilog="Exit codes: 0 done; 1 a fault of holdfast; 2 wrong command line; 3 refused; 4 the ledger has too little "
    "left; 5 verify, explain or prove found a difference; 6 audit refuted a statement; 7 the ledger cannot add the "
    "release to those before it; 8 refused for now: try again; 130 interrupted; 143 terminated.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


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


class Ending(Exception):
    """End with this exit code; everything was said already."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


#: What is true of a release until it is charged.
NOTHING = "nothing was charged, drawn or published"


@contextmanager
def nothing_yet() -> Iterator[None]:
    """Let an end from outside say that nothing happened."""
    try:
        yield
    except KeyboardInterrupt as error:
        error.add_note(NOTHING)
        raise


class Terminated(KeyboardInterrupt):
    """A scheduler asked the process to end (SIGTERM), which ends like an interrupted one."""


def verb(*examples: str, of: typer.Typer = app) -> Callable[[Verb], Verb]:
    """Make a function a verb of the name in its first example, with the examples below its help."""
    shown = "\n".join(["\b", "Examples:", *(f"  {line}" for line in examples)])

    words = examples[0].split()
    name = words[1] if of is app else words[2]

    def made(does: Verb) -> Verb:
        @wraps(does)
        def ended(**options: Any) -> None:
            with ending(bool(options.get("json"))):
                does(**options)

        of.command(name, epilog=shown)(ended)
        return does

    return made


@contextmanager
def ending(as_json: bool) -> Iterator[None]:
    """Turn what a verb raises into a message on standard error and an exit code."""
    try:
        yield
    except Ending as end:
        raise typer.Exit(end.code) from None
    except KeyboardInterrupt as error:
        ended = isinstance(error, Terminated)
        _say(as_json, "terminated" if ended else "interrupted", error, TERMINATED if ended else INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has stopped reading; nothing more can be said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(FAULT) from None
    except Exception as error:
        if isinstance(error, typer.Exit):
            raise
        code = _code(error)
        if code != FAULT:
            _say(as_json, str(error), error, code)
        from holdfast.arguments import Fault

        # Of what is no sentence of ours only the kind: its text could quote a record.
        text = str(error) if isinstance(error, Fault) else f"a fault of holdfast ({type(error).__name__})"
        if os.environ.get("HOLDFAST_TRACEBACK"):
            raise
        _say(as_json, f"{text}; set HOLDFAST_TRACEBACK=1 for details, which may show records", error, FAULT)


def _code(error: Exception) -> int:
    """Tell refusals from faults, and those of a budget from other refusals."""
    from holdfast.arguments import Refused
    from holdfast.release.ledger.accounts import Incomparable, Overspent

    if isinstance(error, (Overspent, Incomparable)):
        return OVERSPENT if isinstance(error, Overspent) else INCOMPARABLE
    if isinstance(error, Refused):
        return LATER if error.retry else REFUSED
    return FAULT


def _say(as_json: bool, message: str, error: BaseException, code: int) -> None:
    notes = [note for note in getattr(error, "__notes__", []) if note not in message]
    text = "; ".join([message, *notes])
    if as_json:
        parts: dict[str, Any] = error.as_mapping() if hasattr(error, "as_mapping") else {}
        parts["code"] = getattr(error, "code", "HF-INTERRUPTED" if code in (INTERRUPTED, TERMINATED) else "HF-FAULT")
        told = {**parts, "message": text, "exit_code": code, "retry": code == LATER}
        print(json.dumps({"error": told}, ensure_ascii=False), file=sys.stderr)
    else:
        print(f"holdfast: {text}", file=sys.stderr)
    raise typer.Exit(code)
