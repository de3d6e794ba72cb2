"""Names for people beside codes: what the spec's `labels` mean, from public files alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from holdfast.release.spec.places import At
from holdfast.release.spec.spec import Spec
from holdfast.release.spec.table import TableSpec
from holdfast.release.storage.tables import label_column
from holdfast.release.table.public import PublicFiles, Texts

#: The name for people of every code of a column.
Labels = dict[str, dict[str, str]]


def labels_of(spec: Spec, asked: TableSpec, files: PublicFiles, columns: Mapping[str, Texts]) -> Labels:
    """Return what the codes of a table's columns are called, for those columns that have labels."""
    found: Labels = {}
    for column, said in spec.data.labels.items():
        if column not in asked.columns:
            continue
        at = spec.at["data"]["labels"][column]
        beside = label_column(column)
        if beside in columns:
            raise at.refuse(f"the labels of {column!r} would be called {beside!r}, as a column is already: rename it")
        codes = dict.fromkeys(text for text in columns[column].tolist() if text is not None)
        named = _listed(said, codes, column, at) if isinstance(said, dict) else _read(spec, column, said, files, at)
        found[column] = {code: named.get(code, code) for code in codes}
    return found


def written(labels: Labels, names: Mapping[str, Texts]) -> dict[str, Texts]:
    """Return the columns of labels for some rows, empty where a row is a sum over the codes."""
    return {
        label_column(column): np.array([None if code is None else of[code] for code in names[column]], dtype=object)
        for column, of in labels.items()
    }


def refuse_unused(spec: Spec) -> None:
    """Refuse labels of a column that no table has: most likely it is misspelt."""
    used = dict.fromkeys(column for asked in spec.tables for column in asked.columns)
    for column in spec.data.labels:
        if column not in used:
            raise spec.at["data"]["labels"].refuse(f"no table has a column {column!r}", column, list(used))


def _listed(said: Mapping[str, str], codes: Mapping[str, None], column: str, at: At) -> Mapping[str, str]:
    for code in said:
        if code not in codes:
            raise at.refuse(f"{column!r} has no value {code!r}", code, list(codes))
    return said


def _read(spec: Spec, column: str, beside: str, files: PublicFiles, at: At) -> dict[str, str]:
    """Read labels that stand in a column of the public file beside the codes."""
    listed = spec.data.values.get(column)
    file = listed if isinstance(listed, str) else spec.data.domain if listed is None else None
    if file is None:
        raise at.refuse(f"the values of {column!r} stand in the spec: write their labels there too, {{code: label}}")
    named: dict[str, str] = {}
    for code, label in zip(
        files.column(file, column, at).tolist(), files.column(file, beside, at).tolist(), strict=True
    ):
        if code is None or label is None:
            continue
        if named.setdefault(code, label) != label:
            sentence = f"{code!r} has two labels in {file!r}, {named[code]!r} and {label!r}: leave one of them"
            raise at.refuse(sentence, found=beside)
    return named
