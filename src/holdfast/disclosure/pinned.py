"""What exact figures give away by themselves: the range that they leave for every output (THEORY §8)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from holdfast.arguments import LARGEST, Number, Refused, positive
from holdfast.arrays import Bools, Ints
from holdfast.constraints import Constraint
from holdfast.disclosure import closed_forms
from holdfast.disclosure import interval_programs as pinned_programs
from holdfast.disclosure.figures import CellRows, Known, carried, cell_rows, read_known
from holdfast.domains import Hierarchy
from holdfast.exact.rationals import tidy
from holdfast.queries import Query

#: How many outputs a sentence names.
LISTED = 6


@dataclass(frozen=True, eq=False)
class Disclosure:
    """The least and the largest value of every output that all exact figures allow together. Made by `pinned`.

    Args:
        low: the least value of each output; −2**62 stands for no limit.
        high: the largest value, inclusive; 2**62 stands for no limit.
        attained: tables were found that have all figures and attain both ends (or there is only one value); where it is
            False the range may be narrower.
        varies: two tables were found with different values.
        published: outputs that are exact figures themselves or sums of them, or known without any figure.
        query: what was asked.

    Example:
        >>> import holdfast as hf
        >>> found = hf.pinned(hf.histogram(2), hf.invariant([[1, 1]]), figures=[0])
        >>> found.low.tolist(), found.high.tolist()
        ([0, 0], [0, 0])
    """

    low: Ints
    high: Ints
    attained: Bools
    varies: Bools
    published: Bools
    query: Any

    @property
    def width(self) -> Ints:
        """How far each output can vary; 2**62 where there is no limit."""
        limited = (self.high < LARGEST) & (self.low > -LARGEST)
        return np.where(limited, self.high - np.where(limited, self.low, 0), LARGEST)

    @property
    def pinned(self) -> Ints:
        """The outputs that the figures determine although they are not published: disclosed, whatever ε says."""
        return np.flatnonzero((self.width == 0) & ~self.published)

    @property
    def undecided(self) -> Ints:
        """The outputs of which the effort that was allowed did not show whether they are pinned."""
        return np.flatnonzero((self.width > 0) & ~self.varies & ~self.published)

    @property
    def order(self) -> Ints:
        """The outputs that are not published, pinned ones first, then narrow ones."""
        kept = np.flatnonzero(~self.published)
        return kept[np.argsort(self.width[kept], kind="stable")]

    def narrow(self, width: int) -> Ints:
        """Return the outputs that are not published and vary by at most `width`, narrowest first."""
        found = self.order
        return found[self.width[found] <= width]

    def __str__(self) -> str:
        found = self.pinned
        if found.size == 0:
            return "no output is pinned by the exact figures"
        labels = self.query.labels
        shown = "; ".join(f"{labels[i]} is {self.low[i]}" for i in found[:LISTED].tolist())
        more = f"; and {found.size - LISTED} more" if found.size > LISTED else ""
        verb = "output is" if found.size == 1 else "outputs are"
        return f"{found.size} {verb} pinned by the exact figures: {shown}{more}"


def pinned(
    query: Query | Hierarchy,
    invariants: Constraint | Sequence[Constraint] | None,
    figures: Constraint | Sequence[Constraint] | None = None,
    *,
    truth: npt.ArrayLike | None = None,
    earlier: Iterable[Sequence[object]] = (),
    of: Query | None = None,
    seconds: Number = 60,
) -> Disclosure:
    """Return the range that exact figures leave for every output of a query about counts.

    Hierarchies and cubes with one or two families of margins have closed forms. Elsewhere linear programs bound the
    ranges, with proofs in whole numbers, and branch and bound decides what they leave open.

    Args:
        query: what is asked.
        invariants: what is published exactly, with anything that holds for every dataset (& nonnegative() is always
            understood: cells hold counts).
        figures: the published values, one for each row of the invariants in order.
        truth: instead of figures, the true answers, of which only these figures are read.
        earlier: other releases of the same records as (query, invariants, figures), whose cells are the same; what is
            harmless alone can pin together.
        of: another query of the same cells whose outputs are wanted.
        seconds: how much programs may try where there is no closed form, counted in steps that take about so long on an
            ordinary machine, so that the answer is the same on every machine.

    Example:
        >>> import holdfast as hf
        >>> totals = hf.exact_margins((2, 3), [(0,), (1,)])
        >>> print(hf.pinned(hf.margins((2, 3)), totals, truth=[0, 2, 1, 0, 0, 5]))
        2 outputs are pinned by the exact figures: axis 0=0, axis 1=0 is 0; axis 0=1, axis 1=0 is 0
    """
    known = [read_known(query, invariants, figures, truth)]
    for number, release in enumerate(earlier):
        if not isinstance(release, (tuple, list)) or len(release) != 3:
            raise Refused(f"earlier must list releases as (query, invariants, figures), unlike entry {number}")
        known.append(read_known(*release))
    wanted: Any = query if of is None else of
    if getattr(wanted, "cells", None) is None or not wanted.integer or wanted.grid is not None:
        raise Refused("of must be a query that counts records in known cells")
    if any(each.query.cells != wanted.cells for each in known):
        raise Refused(f"earlier releases must be about the same {wanted.cells} cells")
    return disclosure(known, wanted, float(positive("seconds", seconds)))


def disclosure(known: list[Known], wanted: Any, effort: float, own: list[Known] | None = None) -> Disclosure:
    """Return the ranges of a query's outputs given everything known about the same cells.

    `effort` is what programs may take. `own`: those whose figures count as published; None: all of them. What others
    publish is then pinned.
    """
    told = known if own is None else own
    if closed_forms.accepts(known, wanted):
        return _on_tree(known, wanted, told)
    rows = cell_rows(known)
    figures = cell_rows(told) if told else replace(rows, A=rows.A[:0], b=rows.b[:0])
    targets = tidy(sparse.csr_array(wanted.columns))
    published = _published(targets, figures) | _settled(targets, carried(cell_rows(known, figures=False)))
    closed = None
    if wanted.identity:
        closed = closed_forms.cell_ranges(rows, (wanted.n,) if wanted.cube is None else wanted.cube.shape)
    if closed is not None:
        return _closed(*closed, published, wanted)
    found = pinned_programs.ranges(carried(rows), targets, effort)
    single = np.flatnonzero((found.low == found.high) & ~published & (np.diff(targets.indptr) > 1))
    published[_sums_of_figures(targets, figures, single)] = True
    return Disclosure(found.low, found.high, found.attained, found.varies, published, wanted)


def _closed(low: Ints, high: Ints, published: Bools, wanted: Any) -> Disclosure:
    return Disclosure(low, high, np.ones(low.size, dtype=bool), low < high, published, wanted)


def _on_tree(known: list[Known], wanted: Any, told: list[Known]) -> Disclosure:
    before = closed_forms.ranges(known, wanted, figures=False)
    published = before[0] == before[1]
    for each in told:
        published[each.system.invariants.A.indices] = True
    tree = wanted.tree
    shown = published.reshape(tree.n, -1)
    for depth in range(len(tree.levels) - 1, 0, -1):  # a node is a sum of figures if all its children are
        nodes = tree.order[tree.level_start[depth] : tree.level_start[depth + 1]]
        hidden = np.zeros(shown.shape, dtype=np.int64)
        np.add.at(hidden, tree.parents[nodes], ~shown[nodes])
        above = np.unique(tree.parents[nodes])
        shown[above] |= hidden[above] == 0
    return _closed(*closed_forms.ranges(known, wanted), published, wanted)


def _settled(targets: sparse.csr_array, rows: CellRows) -> Bools:
    moving = (rows.low < rows.high).astype(np.int64)
    return np.asarray(abs(targets) @ moving == 0).ravel()


def _published(targets: sparse.csr_array, rows: CellRows) -> Bools:
    """Tell which targets are rows of the figures themselves."""
    A = rows.A
    exact = {_key(A, i) for i in range(A.shape[0])}
    sizes = np.diff(targets.indptr)
    same_size = np.flatnonzero(np.isin(sizes, np.unique(np.diff(A.indptr))))
    result = np.zeros(targets.shape[0], dtype=bool)
    result[[i for i in same_size.tolist() if _key(targets, i) in exact]] = True
    return result


def _sums_of_figures(targets: sparse.csr_array, rows: CellRows, asked: Ints) -> Ints:
    """Return those of the asked targets that are sums of figures without a cell in common.

    The largest figures inside a target are taken first, as long as they fit in what is left. Margins and hierarchies
    need no more; elsewhere a sum may be missed, which only makes the list of what is given away longer.
    """
    if rows.A.shape[0] == 0:
        return asked[:0]
    plain = np.logical_and.reduceat(rows.A.data == 1, rows.A.indptr[:-1])
    figures = sparse.csr_array(rows.A[np.flatnonzero(plain)])
    sizes = np.diff(figures.indptr)
    found = []
    for i in asked.tolist():
        left = targets[[i]].toarray().ravel()
        inside = np.flatnonzero(figures @ (left == 1) == sizes)
        for k in inside[np.argsort(-sizes[inside], kind="stable")].tolist():
            cells = figures.indices[figures.indptr[k] : figures.indptr[k + 1]]
            if (left[cells] == 1).all():
                left[cells] = 0
        if not left.any():
            found.append(i)
    return np.array(found, dtype=np.int64)


def _key(rows: sparse.csr_array, i: int) -> tuple[bytes, bytes]:
    at = slice(rows.indptr[i], rows.indptr[i + 1])
    return rows.indices[at].astype(np.int64).tobytes(), rows.data[at].tobytes()
