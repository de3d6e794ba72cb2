"""What a plan simulated, kept for the release of the same spec: public numbers in a folder of the user alone."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import astuple
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.release.job.errors import Errors, LevelErrors
from holdfast.system import users_folder

#: Fewer errors are simulated again in no time; so many of the others are kept.
FEW, MOST_KEPT = 100_000, 200


def kept(public: str, measure: Callable[[], Errors]) -> Errors:
    """The errors that `measure` simulates from what `public` says and nothing else, or did before with this code."""
    folder = users_folder()
    if folder is None:
        return measure()
    path = folder / "plans" / f"{hashlib.sha256(f'{code()} {public}'.encode()).hexdigest()}.json"
    with suppress(OSError, ValueError, TypeError, LookupError):  # nothing there, or a file that something damaged
        return _read(json.loads(path.read_text(encoding="utf-8")))
    measured = measure()
    if measured.tables * sum(level.figures for level in measured.levels) >= FEW:
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, exist_ok=True)
            written = path.with_suffix(f".{os.getpid()}")
            written.write_text(json.dumps(astuple(measured), default=np.ndarray.tolist), encoding="utf-8")
            os.replace(written, path)
            for old in sorted(path.parent.iterdir(), key=lambda each: -each.stat().st_mtime)[MOST_KEPT:]:
                old.unlink()
    return measured


def _read(content: Any) -> Errors:
    levels, basis, tables, more = content
    return Errors(_levels(levels), basis, tables, _levels(more))


def _levels(content: Any) -> tuple[LevelErrors, ...]:
    return tuple(
        LevelErrors(name, figures, absolute, width, uncertain, np.array(magnitudes), np.array(bars), reach)
        for name, figures, absolute, width, uncertain, magnitudes, bars, reach in content
    )


@cache
def code() -> str:
    """A digest of what simulates: the files of the package as they are, and the library of numbers."""
    digest = hashlib.sha256(np.__version__.encode())
    package = find_spec(__name__.partition(".")[0])
    for place in () if package is None else package.submodule_search_locations or ():
        for file in sorted(Path(place).rglob("*.py")):
            about = file.stat()
            digest.update(f"{file} {about.st_size} {about.st_mtime_ns}".encode())
    return digest.hexdigest()
