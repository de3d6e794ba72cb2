"""The command `holdfast` with all its verbs."""

from __future__ import annotations

import codecs
import io
import sys

from holdfast.cli import machine, others, verbs  # noqa: F401  (each makes its verbs)
from holdfast.cli.ending import app

#: What is written for signs that an encoding lacks, such as that of a Western Windows; any other one becomes "?".
SPELLED = {"ε": "epsilon", "δ": "delta", "ρ": "rho", "μ": "mu", "σ": "sigma", "λ": "lambda", "≤": "<=", "≥": ">="} | {
    "−": "-", "→": "->", "✓": "ok", "✗": "wrong", "‖": "||", "√": "sqrt", "Σ": "sum", "≈": "about"
}  # fmt: skip


def spelled(error: UnicodeError) -> tuple[str, int]:
    """Write in letters what cannot be encoded."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(SPELLED.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


def main() -> None:
    """Run the command."""
    codecs.register_error("spelled", spelled)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="spelled")
    app()
