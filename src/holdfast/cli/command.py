"""The command `holdfast` with all its verbs."""

from __future__ import annotations

import codecs
import io
import signal
import sys
import threading

from holdfast.cli import machine, others, verbs  # noqa: F401  (each makes its verbs)
from holdfast.cli.ending import Terminated, app

#: What is written for signs that an encoding lacks, such as that of a Western Windows; any other one becomes "?".
SPELLED = {"ε": "epsilon", "δ": "delta", "ρ": "rho", "μ": "mu", "σ": "sigma", "λ": "lambda", "≤": "<=", "≥": ">="} | {
    "−": "-", "→": "->", "✓": "ok", "✗": "wrong", "‖": "||", "√": "sqrt", "Σ": "sum", "≈": "about"
}  # fmt: skip


def spelled(error: UnicodeError) -> tuple[str, int]:
    """Write in letters what cannot be encoded."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(SPELLED.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


def _end(*_: object) -> None:
    raise Terminated


def main() -> None:
    """Run the command; asked to end by a scheduler, it says what was charged first."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _end)
    codecs.register_error("spelled", spelled)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="spelled")
    app()
