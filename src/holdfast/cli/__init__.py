"""The command `holdfast`."""

from holdfast.cli.command import main

__all__ = ["main"]
