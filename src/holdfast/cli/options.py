"""Options that several verbs share, and how examples stand below their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SpecFile = Annotated[Path, typer.Argument(metavar="SPEC", help="The spec, a YAML file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
LedgerFile = Annotated[
    str, typer.Option("--file", help="The ledger's file, or postgresql for the server in HOLDFAST_LEDGER.")
]
#: The ledger of a spec that names none.
USUAL = "holdfast-ledger.sqlite"


def examples(*lines: str) -> str:
    """Write commands as lines of their own below a help page."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])
