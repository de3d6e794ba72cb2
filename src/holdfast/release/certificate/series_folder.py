"""The folder of a series: its periods, each a release of its own, and whether they belong together."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.release.certificate.certificate import FILE, Certificate, SeriesPart, read_certificate
from holdfast.release.certificate.verify import Check, Verdict
from holdfast.release.certificate.verify import verify as verify_one
from holdfast.release.standalone_verifier.reading import hash_of
from holdfast.release.storage.files import read_plain


def periods_in(folder: Path) -> dict[str, Certificate]:
    """The certificates of a series in a folder, by its folders in the order of periods; none where it is no series."""
    if not os.path.isdir(folder) or os.path.lexists(folder / FILE):  # neither minds a name that is too long
        return {}
    found = [(each.name, read_certificate(each)) for each in sorted(folder.iterdir()) if (each / FILE).is_file()]
    of_series = [(name, each) for name, each in found if each.series is not None]
    return dict(sorted(of_series, key=lambda one: part(one[1]).periods.index(part(one[1]).period)))


def part(certificate: Certificate) -> SeriesPart:
    assert certificate.series is not None
    return certificate.series


def verify(folder: str | Path, **words: Any) -> Verdict:
    """Check a release, or every period of a series and that they are periods of one; arguments as `verify.verify`."""
    place = Path(folder)
    found = periods_in(place)
    if not found:
        return verify_one(place, **words)
    checks = []
    for name in found:
        checks += [replace(each, name=f"{name}: {each.name}") for each in verify_one(place / name, **words).checks]
    wrong = next(_apart(place, found), None)
    holds = f"{len(found)} periods of one series, none of which was changed when others were published"
    return Verdict((*checks, Check("series", wrong is None, wrong or holds)))


def _apart(place: Path, found: Mapping[str, Certificate]) -> Iterator[str]:
    """Say why periods are not of one series."""
    first = next(iter(found.values()))
    for name, each in found.items():
        one, other = part(first), part(each)
        fixed = [(it.periods, it.rows, it.weights, it.several, it.column) for it in (one, other)]
        domains = [[table.domain_hash for table in it.tables] for it in (first, each)]
        if fixed[0] != fixed[1] or (first.release, first.spec_hash) != (each.release, each.spec_hash):
            yield f"{name} is a period of another series"
        if domains[0] != domains[1]:
            yield f"{name} has another domain"
        if other.period != name:
            yield f"the folder {name} holds the period {other.period}"
        for before in other.drawn:
            path = place / before.period / FILE
            if path.is_file() and hash_of(read_plain(path)) != before.certificate:
                yield f"{before.period} is not the one that was there when {name} was published"
