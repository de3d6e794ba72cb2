"""Read a release back from its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused
from holdfast.domains.frame import frame_of
from holdfast.privacy import Guarantee
from holdfast.release.certificate.certificate import Certificate, TableCertificate, read_certificate
from holdfast.release.certificate.verify import verify
from holdfast.release.storage.tables import FIGURES, Columns, missing, read_parquet


@dataclass(frozen=True, eq=False)
class LoadedTable:
    """One table of a release: its names, values, intervals and statements."""

    certificate: TableCertificate
    columns: Columns = field(repr=False)

    @property
    def values(self) -> npt.NDArray[Any]:
        """The released values in the order of the file."""
        return np.asarray(self.columns["value"])

    @property
    def names(self) -> Mapping[str, npt.NDArray[Any]]:
        """The columns that name every row."""
        return {name: self.columns[name] for name in self.certificate.columns}

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """Every statement that holds for this table alone, the one that the budget counts first."""
        return tuple(self.certificate.statements)

    @property
    def guarantee(self) -> Guarantee:
        """The statement about this table alone that the budget counts."""
        return self.guarantees[0]

    def interval(self, confidence: float = 0.95) -> npt.NDArray[np.float64]:
        """Return the certified lower and upper ends, shape (n, 2); only their own confidence is on file."""
        if confidence != self.certificate.interval.confidence:
            raise Refused(
                f"confidence must be {self.certificate.interval.confidence}, as certified, found {confidence!r}"
            )
        if self.certificate.interval.basis is None:
            raise Refused(f"no interval is on file: {self.certificate.interval.sentence}")
        return np.column_stack([np.asarray(self.columns[end], dtype=np.float64) for end in FIGURES[1:]])

    def to_frame(self, backend: str | None = None) -> Any:
        """Return a data frame with the columns of the file; `backend` as in `Release.to_frame`."""
        plain = {name: _plain(column) for name, column in self.columns.items()}
        return frame_of(plain, backend)


@dataclass(frozen=True, eq=False)
class LoadedRelease:
    """A release as it was published: the certificate and the tables by name."""

    folder: Path
    certificate: Certificate = field(repr=False)
    tables: Mapping[str, LoadedTable]

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """What all tables promise together, the statement that the budget counts first."""
        return tuple(self.certificate.statements)

    @property
    def guarantee(self) -> Guarantee:
        """The statement about all tables together that the budget counts."""
        return self.guarantees[0]

    @property
    def table(self) -> LoadedTable:
        """The only table; refused where there are several."""
        if len(self.tables) > 1:
            raise Refused(f"the release has several tables: take one of .tables, {', '.join(map(repr, self.tables))}")
        return next(iter(self.tables.values()))

    @property
    def values(self) -> npt.NDArray[Any]:
        """The values of the only table."""
        return self.table.values

    def interval(self, confidence: float = 0.95) -> npt.NDArray[np.float64]:
        """Return the intervals of the only table."""
        return self.table.interval(confidence)

    def to_frame(self, backend: str | None = None) -> Any:
        """Return the only table as a data frame."""
        return self.table.to_frame(backend)


def load(folder: str | Path) -> LoadedRelease:
    """Read a release from its folder; refused if anything in it is not as certified."""
    place = Path(folder)
    wrong = verify(place).differences
    if wrong:
        raise Refused(f"{place} is not as it was released: {wrong[0].sentence}")
    certificate = read_certificate(place)
    tables = {table.name: LoadedTable(table, read_parquet(place / table.parquet)) for table in certificate.tables}
    return LoadedRelease(place, certificate, tables)


def _plain(column: npt.NDArray[Any]) -> Any:
    empty = missing(column)
    if not empty.any():
        return np.asarray(column) if column.dtype.kind != "O" else column.tolist()
    return [None if gone else value for gone, value in zip(empty.tolist(), np.asarray(column).tolist(), strict=True)]
