"""The command `holdfast` with all its verbs."""

from __future__ import annotations

from holdfast.cli import ledger, others, verbs  # noqa: F401  (each makes its verbs)
from holdfast.cli.ending import app


def main() -> None:
    """Run the command."""
    app()
