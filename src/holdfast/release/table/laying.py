"""Laying a table out by its kind: from the spec and its public files to keys, outputs and their names."""

from __future__ import annotations

from dataclasses import replace

from holdfast.release.spec.places import At
from holdfast.release.spec.spec import Spec
from holdfast.release.spec.table import TableSpec
from holdfast.release.table.kinds.areas import Areas
from holdfast.release.table.kinds.cube import Flat
from holdfast.release.table.kinds.hierarchy import Tree
from holdfast.release.table.kinds.linked import Linked
from holdfast.release.table.public import PublicFiles, labels_of
from holdfast.release.table.shape import BETWEEN, INSIDE, RESERVED, Kind, Layout

#: Every kind of table by its name.
KINDS: dict[str, Kind] = {kind.name: kind for kind in (Tree(), Flat("histogram"), Flat("cube"), Areas(), Linked())}
#: Memory of one figure with up to five names at the peak of a release, and of each further name, as measured
#: (docs/reference/command.md); of one figure whose table is written in parts; and of one cell of one place where cells
#: are shared out.
FIGURE_BYTES, NAME_BYTES, PART_BYTES, CELL_BYTES = 2000, 200, 95, 24


def layout(spec: Spec, asked: TableSpec, at: At, files: PublicFiles) -> Layout:
    """Read a table's public domain and lay its outputs out."""
    kind = KINDS[asked.kind]
    taken = dict.fromkeys(RESERVED, "which the released files use") | kind.reserved()
    for key in ("root", "hierarchy", "categories", "histogram", "cube", "recode"):
        listed = getattr(asked, key) or ()
        for column in (listed,) if isinstance(listed, str) else listed:
            reason = taken.get(column.lower())
            if reason is None and BETWEEN in column and asked.cube is not None:
                reason = f"since {BETWEEN.strip()} stands between the axes of a margin"
            if reason is None and INSIDE in column and kind.nested:
                reason = f"since {INSIDE.strip()} stands between a level and its margin"
            if reason is not None:
                what = "the root" if key == "root" else "a column"
                sentence = f"{what} must not be called {column!r}, {reason}: rename it"
                raise at[key].refuse(sentence, found=column)
            taken[column.lower()] = "which is taken already, in whatever case"
    laid = kind.lay_out(spec, asked, at, files)
    return replace(laid, labels=labels_of(spec, asked, files, laid.columns)) if spec.data.labels else laid


def figure_bytes(layout: Layout) -> int:
    """The memory of one figure at the peak of a release, with its names unless these are made part by part."""
    names = len(layout.columns)
    return PART_BYTES if layout.in_parts is not None else FIGURE_BYTES + NAME_BYTES * max(names - 5, 0)


def table_bytes(layout: Layout) -> int:
    """The memory of a table's figures with their names, and of the cells of all places that are shared out."""
    return figure_bytes(layout) * layout.query.n + CELL_BYTES * layout.kind.shared_out(layout)
