"""A witnessed draw made again by an auditor who may see the data, and compared with what was published."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.release.certificate.certificate import Certificate, read_certificate
from holdfast.release.certificate.verify import Check
from holdfast.release.facts.table import TableCertificate
from holdfast.release.job.job import Job
from holdfast.release.records.tabulate import tabulate
from holdfast.release.standalone_verifier.commitment import commitment_of
from holdfast.release.storage.files import sha256_of
from holdfast.release.witnessed.opening import Opening, code_hash, read_opening
from holdfast.release.writing import write_table_files

OPENED = "drawn again from what was committed to and the nonce, every file of figures is the same, byte for byte"


def reexecuted(
    folder: str | Path, file: str | Path, source: Any = None, step: Callable[[str], None] = lambda _: None
) -> Check:
    """Draw a witnessed release again from its opening; with a source, count its records again too.

    Refused: an opening of another release, and a table that another version of holdfast drew and this one does not.
    """
    certificate = read_certificate(Path(folder))
    fixed = certificate.commitment
    if fixed is None or certificate.ledger is None:
        raise Refused("this release is not witnessed: nothing was fixed before its draw, so none can be confirmed")
    opening, seal = read_opening(Path(file))
    if opening.release != certificate.release:
        raise Refused(f"{str(file)!r} is the opening of another release")
    if seal != fixed.opening:
        return Check("opened", False, "the opening is not the one that was committed to")
    step("drawing again")
    same = fixed.code == code_hash()
    try:
        with opening.job() as job:
            wrong = next(_differences(job, opening, certificate, Path(folder), source), None)
    except Refused:
        if same:
            raise
        wrong = "it cannot be drawn"
    if wrong is not None and not same:
        made = certificate.software
        packages = ", ".join(f"{name} {version}" for name, version in made.packages.items())
        raise Refused(
            f"this version cannot confirm the draw ({wrong}); holdfast {made.version} of the code {fixed.code}, "
            f"Python {made.python}, {packages}, made it on a processor of its kind; this is the code {code_hash()}"
        )
    return Check("opened", wrong is None, OPENED if wrong is None else wrong)


def _differences(job: Job, opening: Opening, certificate: Certificate, folder: Path, source: Any) -> Iterator[str]:
    """Say what is another thing in the release than what was committed to."""
    if job.spec.hash != certificate.spec_hash:
        yield "the certificate is that of another spec"
    if sorted(f"sha256:{each}" for each in job.public_files.values()) != sorted(
        each.sha256 for each in certificate.public_files
    ):
        yield "the certificate is that of other public files"
    if tuple(certificate.statements) != job.guarantees:
        yield "the certificate has other statements than the spec makes"
    truths = opening.truths
    if source is not None:
        cells = tabulate(job, source)
        answers = [table.layout.query.answer(each) for table, each in zip(job.tables, cells, strict=True)]
        if not all(map(np.array_equal, answers, truths)):
            yield "the records are not those that were committed to"
    hashes = {file.name: file.sha256 for file in certificate.files}
    commitment, nonce = commitment_of(certificate.as_mapping()), certificate.commitment.nonce  # type: ignore[union-attr]
    with tempfile.TemporaryDirectory() as place:
        for table, told, truth in zip(job.tables, certificate.tables, truths, strict=True):
            drawn = table.mechanism.release(truth, opening.stream(commitment, nonce, table))
            written, _ = write_table_files(table, drawn, Path(place), told.csv.removesuffix("table.csv"), ())
            # What is not protected speaks of other releases too.
            if _said(written) != _said(told):
                yield f"the certificate says something else of {told.name} than the draw does"
            for name in written.files:
                drawn_again = sha256_of(Path(place, name))
                if name.endswith(".csv") and not drawn_again == hashes[name] == sha256_of(folder / name):
                    yield f"{name} is not what was drawn"


def _said(table: TableCertificate) -> str:
    return table.model_dump_json(exclude={"unprotected"})
