"""How the command ends: one clear message and a documented exit code, whatever happened."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

FAULT, REFUSED, OVERSPENT, INTERRUPTED = 1, 3, 4, 130


class Ending(Exception):
    """End with this exit code; everything was said already."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@contextmanager
def ending(as_json: bool) -> Iterator[None]:
    """Turn what a verb raises into a message on standard error and an exit code."""
    try:
        yield
    except Ending as end:
        raise typer.Exit(end.code) from None
    except KeyboardInterrupt as error:
        _say(as_json, "interrupted", error, INTERRUPTED)
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
    """Tell refusals from faults, and an exhausted budget from other refusals."""
    from holdfast.arguments import Refused
    from holdfast.release.ledger.ledger import Overspent

    if isinstance(error, Overspent):
        return OVERSPENT
    return REFUSED if isinstance(error, Refused) else FAULT


def _say(as_json: bool, message: str, error: BaseException, code: int) -> None:
    notes = [note for note in getattr(error, "__notes__", []) if note not in message]
    text = "; ".join([message, *notes])
    if as_json:
        parts: dict[str, Any] = error.as_mapping() if hasattr(error, "as_mapping") else {}
        print(json.dumps({"error": {**parts, "message": text, "exit_code": code}}, ensure_ascii=False), file=sys.stderr)
    else:
        print(f"holdfast: {text}", file=sys.stderr)
    raise typer.Exit(code)
