"""What stands in the way of a release and is known from the spec at once, before methods are compared."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.arguments import Refused
from holdfast.release.ends import saying_nothing_happened
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.signing.keys import read_key
from holdfast.release.spec.spec import Spec
from holdfast.release.storage.reading import files_of


def refuse_early(
    spec: Spec, output: str | Path | None = None, ledger: str | Path | None = None, *, records: bool = True
) -> None:
    """Refuse a folder that exists, a key or a ledger that cannot be read, and `records` of the spec that are not there.

    Everything is looked at again when the release is made; here nothing is opened for writing. `output` and `ledger`
    replace those of the spec.
    """
    with saying_nothing_happened():
        folder = Path(spec.output if output is None else output).absolute()
        if os.path.lexists(folder):
            raise Refused(f"{folder} exists already: name another output folder, or move this one away")
        if spec.key_file is not None:
            read_key(spec.key_file)
        source = spec.data.source
        if records and isinstance(source, str) and "://" not in source and not files_of(spec.resolve(source)):
            raise spec.at["data"]["source"].refuse(f"there is no file {source!r}", found=source)
        book = Ledger(spec.ledger_file, spec.witness) if ledger is None else Ledger(ledger)
        if book.exists:
            book.rows()
