"""What every query offers: the truth from cell counts, and how far a change of records can move it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from holdfast.arguments import LARGEST, Frame, Refused, array, one_of, reals, whole_numbers
from holdfast.arrays import Array, Bools, Ints
from holdfast.domains import Cube, Hierarchy
from holdfast.queries.columns import (
    Columns,
    difference_set,
    distinct_only,
    largest_column,
    largest_pair,
    one_of_each_sign,
    pair_blocks,
    widest_row,
)
from holdfast.queries.counting import count_cells
from holdfast.queries.exact_weights import Bound, Weights, float_up, groups_of, sqrt_up
from holdfast.queries.kinds import Kind, kinds_of_columns, maximal, refuse_many
from holdfast.queries.neighbours import Neighbours, Relation

# Values this close to a step of the grid, in steps, are meant to be on it.
_OFF_GRID = 1e-6
#: Weights that outputs may have.
Values = Sequence[Any]
#: One entry for each output or cell; None: all are alike.
Listed = npt.ArrayLike | None
#: What a notebook or an editor lists of a query.
SHOWN = [
    *("answer", "by", "cells", "columns", "consistency", "count", "cube", "differences", "domain", "grid", "groups"),
    *("hierarchy", "integer", "labels", "level_of", "levels", "n", "named", "sensitivity", "table", "tree"),
]


@dataclass(frozen=True, eq=False, repr=False)
class Query(ABC):
    """A linear query q(x) = W·hist(x) with n outputs over the cells of a public domain.

    Everything about privacy is a statement about the difference set 𝒟 of q under a relation of neighbours
    (THEORY §0): add-remove {±w_j}, replace-one {w_j − w_k}, several records: their sumsets. Its largest norms are
    exactly `records` times those of one record (docs/theory/difference-sets.md, Proposition 1).

    Example:
        >>> import holdfast as hf
        >>> query = hf.counts(hf.Hierarchy.from_parents([-1, 0, 0]))
        >>> query.answer([4, 6]).tolist(), query.sensitivity(1)
        ([10, 4, 6], 2.0)
    """

    n: int

    @property
    @abstractmethod
    def cells(self) -> int | None:
        """The number of cells of the domain; None where the query is known by its sensitivities only."""

    @cached_property
    @abstractmethod
    def columns(self) -> Columns:
        """W, shape (n, cells): column j is what one record in cell j adds to the answer."""

    @cached_property
    @abstractmethod
    def labels(self) -> npt.NDArray[np.object_]:
        """A name for each output."""

    @abstractmethod
    def consistency(self) -> csr_array[Any]:
        """Return independent whole rows A with A·W = 0 that span all equalities the answers obey."""

    @abstractmethod
    def _answer(self, cells: Ints) -> Array:
        """Return W·cells for checked cells."""

    def named(self, labels: npt.NDArray[np.object_]) -> Query:
        """Return the same query with these names for its outputs."""
        result = copy(self)
        result.__dict__["labels"] = labels  # where the computed names would be kept
        return result

    @property
    def integer(self) -> bool:
        """Whether the answers are whole numbers (in steps of `grid`, where there is one)."""
        return True

    @property
    def grid(self) -> Fraction | None:
        """The step in which `columns`, `bound`, `largest` and `kinds` count; None: 1.

        `answer`, `differences` and `sensitivity` speak in the user's units.
        """
        return None

    def in_units(self, steps: Array) -> Array:
        """Turn numbers of steps into the user's units, rounded once."""
        return steps if self.grid is None else steps * self.grid.numerator / self.grid.denominator

    def in_steps(self, name: str, values: npt.ArrayLike, shape: tuple[int, ...] | None, *, whole: bool) -> Array:
        """Read values in the user's units as steps of the grid, whole ones where asked; a refusal names a position."""
        step = 1.0 if self.grid is None else float(self.grid)
        if not whole:
            return reals(name, values, shape) / step
        if self.grid is None:
            return whole_numbers(name, values, shape)
        steps = reals(name, values, shape) / step
        near = np.rint(steps)
        far = np.flatnonzero((np.abs(steps - near) > _OFF_GRID).ravel() | (np.abs(near).ravel() >= LARGEST))
        if far.size:
            raise Refused(f"{name} must lie on the query's grid, but the entry at position {far[0]} does not")
        return near.astype(np.int64)

    @property
    def identity(self) -> bool:
        return False

    @property
    def tree(self) -> Hierarchy | None:
        """The hierarchy that it counts, if it counts one."""
        return None

    @property
    def cube(self) -> Cube | None:
        """The cube whose cells or margins it counts, if it counts one."""
        return None

    @property
    def domain(self) -> tuple[Hierarchy | None, Cube | None]:
        """What addresses a cell: a leaf of a hierarchy, a cell of a cube, or both, the leaf first."""
        return self.tree, self.cube

    @property
    def record(self) -> str | None:
        """Who a record is, in words, where it is more than one row of the data."""
        return None

    @property
    def levels(self) -> Mapping[str, int] | None:
        """The names of the levels (or margins) of the outputs with their numbers."""
        return None

    @property
    def level_of(self) -> Ints | None:
        """The depth (or margin number) of each output."""
        return None

    def level_number(self, name: str, key: object) -> int:
        """Return the number of a level, by its name or number; `name` says for what it was given."""
        if self.levels is None:
            raise Refused(f"{name} per level needs a query with levels (counts of a hierarchy, or margins)")
        if isinstance(key, str):
            return self.levels[one_of(f"a level of {name}", key, list(self.levels))]
        return one_of(f"a level of {name}", int(key) if isinstance(key, np.integer) else key, range(len(self.levels)))

    def answer(self, cells: npt.ArrayLike) -> Array:
        """Return the truth from `cells`, counts ≥ 0: int64 if answers are whole, else float64."""
        counts = array("cells", cells)
        if counts.shape not in self._cell_shapes():
            expected = " or ".join(str(shape) for shape in self._cell_shapes())
            raise Refused(f"cells must have shape {expected}, found shape {counts.shape}")
        whole = whole_numbers("cells", counts).ravel()
        if whole.size and whole.min() < 0:
            raise Refused(f"cells must be 0 or more, but the entry at position {int(np.argmin(whole >= 0))} is not")
        return self.in_units(self._answer(whole))

    def count(self, frame: Frame, count: str | None = None, outside: str = "refuse") -> Array:
        """Return the truth from records, one row each, in any data frame that narwhals reads.

        Records name their place by the columns of a hierarchy's levels (the lowest ones that tell places apart), on a
        cube by a number per axis, in columns called like the axes; where categories or cells have no axes, by a number
        in `category` or `cell`.

        Args:
            frame: the records.
            count: a column that says how many records a row stands for; None: one.
            outside: records that name no cell are refused ("refuse"), or left out ("drop").
        """
        return self.in_units(self._answer(count_cells(self.cells, *self.domain, frame, count, outside)))

    def sensitivity(self, p: float, neighbours: Relation = "add-remove") -> float:
        """Return the largest ‖d‖_p over the difference set of `neighbours`, p = 1, 2 or inf, rounded up to a double."""
        given: object = p
        known = isinstance(given, (int, float)) and not isinstance(given, bool) and given in (1, 2, np.inf)
        norm = one_of("p", float(p) if known else p, [1.0, 2.0, np.inf])
        relation = Neighbours.of(neighbours)
        step = Fraction(1) if self.grid is None else self.grid
        if norm == np.inf:
            return float_up(step * relation.records * self._widest(relation))
        bound = self.bound([1], None, int(norm), relation)
        return float_up(step * bound.value) if norm == 1 else sqrt_up(step**2 * bound.value)

    def differences(self, neighbours: Relation = "add-remove") -> Array:
        """Return the difference set of `neighbours`: distinct non-zero rows, both signs; refused when too many."""
        return self.in_units(difference_set(self.columns, Neighbours.of(neighbours)))

    def bound(self, values: Values, which: Listed, p: int, neighbours: Relation, allowed: Listed = None) -> Bound:
        """Return max over differences d of Σ_i values[which[i]]·|d_i|^p with whether it is attained.

        allowed: which cells can hold records at all (None: every one).
        """
        one_of("p", p, [1, 2])
        relation = Neighbours.of(neighbours)
        weights = Weights.of(values, which, self.n)
        mask = self.mask(allowed)
        one = self.single(weights, p, mask) if relation.adds else self.pair(weights, p, as_classes(mask))
        return Bound(one.value * relation.records**p, one.exact)

    def largest(self, values: Values, which: Listed, p: int, neighbours: Relation, allowed: Listed = None) -> Fraction:
        """Return max over differences d of Σ_i values[which[i]]·|d_i|^p; never too small, see `is_exact`."""
        return self.bound(values, which, p, neighbours, allowed).value

    def is_exact(self, neighbours: Relation = "add-remove", which: Listed = None, allowed: Listed = None) -> bool:
        """Return whether `largest` (with equal values) is attained and not only a bound."""
        groups = groups_of(which, self.n)
        values = [1] if groups is None else [1] * (int(groups.max(initial=0)) + 1)
        return all(self.bound(values, groups, p, neighbours, allowed).exact for p in (1, 2))

    def kinds(self, which: Listed, neighbours: Relation, allowed: Listed = None) -> list[Kind]:
        """Return the maximal multisets of (|d_i|, which[i]) over the differences; refused when too many."""
        relation = Neighbours.of(neighbours)
        groups = groups_of(which, self.n)
        mask = self.mask(allowed)
        if relation.records > 1:
            chosen = self._columns_for_kinds(groups, mask, relation)
            listed = difference_set(chosen, relation)
            return maximal(kinds_of_columns(one_of_each_sign(listed), groups))
        if relation.adds:
            return self.single_kinds(groups, mask)
        return self.pair_kinds(groups, as_classes(mask))

    def mask(self, allowed: Listed) -> Bools | None:
        """Check and return the cells that can hold records; None stands for all of them."""
        return None if allowed is None else _mask(allowed, self.cells)

    # Largest changes by one column and by pairs of columns; None stands for all cells (in one class) --------

    def single(self, weights: Weights, p: int, mask: Bools | None) -> Bound:
        """Return max over the allowed cells of Σ_i weight_i·|w_ij|^p."""
        return largest_column(self.columns if mask is None else self.columns[:, mask], weights, p)

    def pair(self, weights: Weights, p: int, classes: Ints | None) -> Bound:
        """Return max over pairs of cells of one class ≥ 0 of Σ_i weight_i·|w_ij − w_ik|^p."""
        return largest_pair(self.columns, weights, p, self._one_class() if classes is None else classes)

    def single_kinds(self, which: Ints | None, mask: Bools | None) -> list[Kind]:
        """Return the maximal kinds of the allowed columns."""
        return maximal(kinds_of_columns(self.columns if mask is None else self.columns[:, mask], which))

    def pair_kinds(self, which: Ints | None, classes: Ints | None) -> list[Kind]:
        """Return the maximal kinds of the differences of two columns of one class ≥ 0."""
        given = self._one_class() if classes is None else classes
        blocks = pair_blocks(self.columns, distinct_only(self.columns, given))
        if blocks is None:
            raise refuse_many()
        found: set[frozenset[tuple[tuple[int, int], int]]] = set()
        for difference, _, _ in blocks:
            found |= kinds_of_columns(difference, which)
        return maximal(found)

    def __dir__(self) -> list[str]:
        """What users ask a query; the rest is how other rooms ask for its largest changes."""
        return [name for name in SHOWN if hasattr(type(self), name) or name in self.__dict__]

    def __repr__(self) -> str:
        of = "" if self.cells is None else f" of {self.cells} cells"
        return f"{type(self).__name__}({self.n} outputs{of})"

    def _widest(self, relation: Neighbours) -> Fraction:
        if relation.adds:
            entry = abs(self.columns).max() if self.columns.nnz else 0
            return Fraction(int(entry) if self.columns.dtype.kind == "i" else float(entry))
        return widest_row(self.columns, self._one_class())

    def _columns_for_kinds(self, which: Ints | None, mask: Bools | None, relation: Neighbours) -> Columns:
        del which, relation
        return self.columns if mask is None else self.columns[:, mask]

    def _one_class(self) -> Ints:
        return np.zeros(self.cells or 0, np.int64)

    def _cell_shapes(self) -> list[tuple[int, ...]]:
        return [(self.cells or 0,)]


def as_classes(mask: Bools | None) -> Ints | None:
    """Return the allowed cells as one class 0, others −1; None stays None."""
    return None if mask is None else np.where(mask, 0, -1).astype(np.int64)


def _mask(allowed: Any, cells: int | None) -> Bools | None:
    try:
        result = np.asarray(allowed)
    except ValueError:  # lists of unequal lengths
        result = np.empty(0, dtype=object)
    if result.dtype != np.bool_ or result.shape != (cells,):
        raise Refused(
            f"allowed must be {cells} truth values, one per cell, found {result.dtype} of shape {result.shape}"
        )
    return None if result.all() else result
