"""What holds for every possible dataset: consistency, bounds, orders, fixed values, linear rows."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from holdfast.arguments import LARGEST, Matrix, Numbers, Refused, positions, whole
from holdfast.arrays import Bools
from holdfast.constraints.constraint import Constraint, build
from holdfast.constraints.system.exact_figures import ExactMargins, ExactNodes
from holdfast.constraints.system.null_space import TreeShape
from holdfast.constraints.system.own_sums import OwnSums
from holdfast.constraints.system.parts import Bounds, Part, listing
from holdfast.constraints.system.rows import Names, Rows
from holdfast.domains.hierarchy import Hierarchy, sums_of_children
from holdfast.exact.rationals import ExactVector, numeric, read_matrix, read_vector, tidy


class HasConsistency(Protocol):
    """A query, as far as what its answers always obey goes."""

    @property
    def n(self) -> int:
        """The number of outputs."""

    def consistency(self) -> sparse.csr_array:
        """Whole rows A with A·W = 0."""


def _tree_shape(tree: Any, by: int) -> TreeShape:
    return TreeShape(tree if isinstance(tree, Hierarchy) else Hierarchy.from_parents(tree.parents), by)


def _tree_rows(shape: TreeShape) -> Rows:
    """Return for every inner node (and category) the row: node − sum of its children = 0."""
    by, inner = shape.by, np.flatnonzero(~shape.tree.is_leaf)
    if by == 1:
        names = Names.numbered("consistency at node {}", inner)
    else:
        labels = np.stack([np.repeat(inner, by), np.tile(np.arange(by), inner.size)], axis=1)
        names = Names.numbered("consistency at node {}, category {}", labels)
    return Rows(tidy(sums_of_children(shape.tree.parents, by)), np.zeros(inner.size * by, dtype=np.int64), names)


def consistent(tree_or_query: Hierarchy | HasConsistency) -> Constraint:
    """Require a table to add up: every inner node of a tree is the sum of its children.

    Args:
        tree_or_query: a hierarchy; or a query: every linear relation that holds between its outputs whatever the data
            are.

    Example:
        >>> import holdfast as hf
        >>> tree = hf.Hierarchy.from_parents([-1, 0, 0])
        >>> values = hf.laplace(hf.counts(tree), epsilon=1).given(hf.consistent(tree)).release([9, 4, 5]).values
        >>> bool(values[0] == values[1] + values[2])
        True
    """
    if all(hasattr(tree_or_query, name) for name in ("n", "parents", "leaves")):
        shape = _tree_shape(tree_or_query, 1)
        n = int(tree_or_query.n)
        return build([Part(f"consistent({n} nodes)", "consistent", n, n, rows=_tree_rows(shape), source=shape)])
    if not (hasattr(tree_or_query, "n") and hasattr(tree_or_query, "consistency")):
        raise Refused(
            "tree_or_query must be a Hierarchy or a query whose outputs are known, "
            f"found {type(tree_or_query).__name__}"
        )
    n = whole("the number of outputs", tree_or_query.n, at_least=1)
    many = getattr(tree_or_query, "many_sums", None)
    if many is not None:
        later = OwnSums(tree_or_query, many)
        return build([Part(f"consistent({n} outputs)", "consistent", n, n, rows=later, source=tree_or_query)])
    A = tidy(tree_or_query.consistency())
    if A.shape[1] != n:
        raise Refused(f"the query's consistency rows must have {n} columns, found {A.shape[1]}")
    rows = Rows(A, np.zeros(A.shape[0], dtype=np.int64), Names.numbered("consistency row {}", range(A.shape[0])))
    source: Any = tree_or_query
    tree = getattr(tree_or_query, "tree", None)
    if tree is not None and n % int(tree.n) == 0:
        shape = _tree_shape(tree, n // int(tree.n))
        known = _tree_rows(shape)
        if known.A.shape == A.shape and abs(abs(known.A) - abs(A)).sum() == 0:
            rows, source = known, shape
    return build([Part(f"consistent({n} outputs)", "consistent", n, n, rows=rows, source=source)])


def nonnegative(at: npt.ArrayLike | None = None) -> Constraint:
    """Require values of 0 or more.

    Args:
        at: the positions; None: all of them.

    Example:
        >>> import holdfast as hf
        >>> base = hf.laplace(hf.histogram(1), epsilon=1)
        >>> moved, conditioned = base.onto(hf.nonnegative()), base.given(hf.nonnegative())
        >>> moved.guarantee.epsilon, conditioned.guarantee.epsilon > 1  # conditioning on a bound has a price
        (1.0, True)
    """
    where = None if at is None else positions("at", at)
    low = np.zeros(1 if where is None else where.size, dtype=np.int64)
    name = "nonnegative" if where is None else f"nonnegative(at={listing(where)})"
    least = 1 if where is None else int(where.max()) + 1
    return build([Part(name, "nonnegative", least, bounds=Bounds(where, low, np.full_like(low, LARGEST)))])


def _one_side(name: str, given: Any, none: int, count: int | None) -> ExactVector:
    """Return exact bounds; None and the infinity that bounds nothing become the mark for no bound."""
    if given is None:
        return np.full(count or 1, none, dtype=np.int64)
    found = numeric(name, given)
    flat = np.atleast_1d(found)
    if flat.ndim != 1 or (count is not None and flat.size not in (1, count)) or flat.size == 0:
        wanted = "one number or a list of numbers" if count is None else f"one number or {count} numbers"
        raise Refused(f"{name} must be {wanted}, found shape {found.shape}")
    infinite = np.copysign(np.inf, none)
    open_end = [
        value is None or (isinstance(value, (float, np.floating)) and value == infinite) for value in flat.tolist()
    ]
    filled = flat.copy()
    filled[open_end] = 0
    exact, _ = read_vector(name, filled, flat.size)
    exact[open_end] = none
    return np.broadcast_to(exact, (count,)).copy() if count is not None else exact


def _short(given: Any, none: str) -> str:
    if given is None:
        return none
    return str(given) if np.ndim(given) == 0 else "…"


def between(low: Numbers | None, high: Numbers | None, at: npt.ArrayLike | None = None) -> Constraint:
    """Require low ≤ z ≤ high, both inclusive.

    Args:
        low: a number, or one number per position; None and −inf mean no bound.
        high: likewise; None and inf mean no bound.
        at: the positions; None: all of them.

    Example:
        >>> import holdfast as hf
        >>> values = hf.laplace(hf.histogram(2), epsilon=1).onto(hf.between(0, 10)).release([0, 10]).values
        >>> bool(values.min() >= 0 and values.max() <= 10)
        True
    """
    where = None if at is None else positions("at", at)
    size: int | None = None if where is None else where.size
    if size is None:
        ends = [numeric(name, side) for name, side in (("low", low), ("high", high)) if side is not None]
        sizes = {end.size for end in ends if end.ndim > 0}
        if len(sizes) > 1:
            raise Refused(f"low and high must have the same length, found {' and '.join(map(str, sorted(sizes)))}")
        size = sizes.pop() if sizes else None
    lower = _one_side("low", low, -LARGEST, size)
    upper = _one_side("high", high, LARGEST, size)
    if not ((lower > -LARGEST).any() or (upper < LARGEST).any()):
        raise Refused("between needs a low or a high bound, found neither")
    crossed = np.flatnonzero(np.asarray(lower > upper, dtype=bool))
    if crossed.size:
        place = f" at position {crossed[0] if where is None else where[crossed[0]]}" if size is not None else ""
        values = "" if place else f", found {lower[crossed[0]]} and {upper[crossed[0]]}"
        raise Refused(f"low must not exceed high{place}{values}")
    n = size if where is None else None
    limits = f"{_short(low, '−inf')}, {_short(high, 'inf')}"
    name = f"between({limits})" if where is None else f"between({limits}, at={listing(where)})"
    least = int(where.max()) + 1 if where is not None else size or 1
    return build([Part(name, "between", least, n, bounds=Bounds(where, lower, upper))])


def ordered(indices: npt.ArrayLike) -> Constraint:
    """Require z[i₀] ≤ z[i₁] ≤ … for the listed positions.

    Args:
        indices: at least two positions.

    Example:
        >>> import holdfast as hf
        >>> values = hf.laplace(hf.histogram(3), epsilon=1).onto(hf.ordered([0, 1, 2])).release([1, 5, 9]).values
        >>> bool(values[0] <= values[1] <= values[2])
        True
    """
    chain = positions("indices", indices)
    if chain.size < 2:
        raise Refused("indices must list at least two positions, found one")
    steps = chain.size - 1
    columns = np.stack([chain[:-1], chain[1:]], axis=1)
    values = np.tile(np.array([-1, 1], dtype=np.int64), steps)
    least = int(chain.max()) + 1
    A = tidy(sparse.csr_array((values, columns.ravel(), 2 * np.arange(steps + 1)), shape=(steps, least)))
    rows = Rows(A, np.zeros(steps, dtype=np.int64), Names.numbered("ordered {} ≤ {}", columns))
    return build([Part(f"ordered({listing(chain)})", "ordered", least, rows=rows)])


def fixed(at: npt.ArrayLike, values: Numbers) -> Constraint:
    """Require the listed positions to have these values, known by definition (impossible cells, say).

    Args:
        at: positions.
        values: one number, or one per position.

    Example:
        >>> import holdfast as hf
        >>> mechanism = hf.laplace(hf.histogram(3), epsilon=1).given(hf.fixed([1], [0]))
        >>> int(mechanism.release([5, 0, 7]).values[1])
        0
    """
    where = positions("at", at)
    b, _ = read_vector("values", values, where.size)
    least = int(where.max()) + 1
    A = sparse.csr_array(
        (np.ones(where.size, dtype=np.int64), where, np.arange(where.size + 1)), shape=(where.size, least)
    )
    rows = Rows(A, b, Names.numbered("fixed {}", where))
    return build([Part(f"fixed(at={listing(where)})", "fixed", least, rows=rows)])


def _linear(kind: Any, A: Any, b: Any) -> tuple[Part, Bools]:
    matrix = read_matrix("A", A)
    m, n = matrix.A.shape
    side, _ = read_vector("b", b, m)
    side = matrix.scaled(side)
    if any(abs(value) >= LARGEST for value in side.tolist()):
        raise Refused("b must stay below 2**62 in size once the denominators of A are cleared, found a larger number")
    rows = Rows(matrix.A, side, Names.numbered(f"{kind} row {{}}", range(m)))
    name = f"{kind}({m} row{'s' if m > 1 else ''})"
    return Part(name, kind, n, n, rows=rows, rational=matrix.rational), rows.sizes == 0


def equals(A: Matrix, b: Numbers) -> Constraint:
    """Require A z = b, in every possible dataset.

    Args:
        A: a rational (m, n) matrix, dense or sparse, or one row.
        b: one number per row.

    Example:
        >>> import holdfast as hf
        >>> mechanism = hf.laplace(hf.histogram(3), epsilon=1).given(hf.equals([[1, 1, 1]], [12]))
        >>> int(mechanism.release([5, 0, 7]).values.sum())
        12
    """
    part, empty = _linear("equals", A, b)
    assert part.rows is not None
    bad = np.flatnonzero(empty & np.asarray(part.rows.b != 0, dtype=bool))
    if bad.size:
        raise Refused(f"equals row {bad[0]} cannot hold: its coefficients are all zero, its right-hand side is not")
    return build([part])


def at_least(A: Matrix, b: Numbers) -> Constraint:
    """Require A z ≥ b.

    Args:
        A: a rational (m, n) matrix, dense or sparse, or one row.
        b: one number per row.

    Example:
        >>> import holdfast as hf
        >>> most_in_first = hf.at_least([[1, -1]], [0])  # z[0] ≥ z[1] in every possible dataset
        >>> values = hf.laplace(hf.histogram(2), epsilon=1).onto(most_in_first).release([9, 3]).values
        >>> bool(values[0] >= values[1])
        True
    """
    part, empty = _linear("at_least", A, b)
    assert part.rows is not None
    bad = np.flatnonzero(empty & np.asarray(part.rows.b > 0, dtype=bool))
    if bad.size:
        raise Refused(f"at_least row {bad[0]} cannot hold: its coefficients are all zero but it asks for more")
    return build([part])


def invariant(C: Matrix | ExactNodes | ExactMargins) -> Constraint:
    """Require C z = C q(x): these combinations of the true answer are published exactly.

    Args:
        C: a rational matrix (dense, sparse, lists of fractions; a vector is one row), or what `exact_nodes` or
            `exact_margins` return.

    Guarantee:
        The right-hand side is read from the data; what it says is *unprotected*. Statements beside it speak of data
        that share it, or of what it leaves open.

    Example:
        >>> import holdfast as hf
        >>> mechanism = hf.laplace(hf.histogram(3), epsilon=1).given(hf.invariant([1, 1, 1]))
        >>> mechanism.guarantee.scope, int(mechanism.release([5, 0, 7]).values.sum())
        ('invariant-sharing', 12)
    """
    if isinstance(C, (ExactNodes, ExactMargins)):
        name, rows = f"invariant({C})", C.rows()
        return build([Part(name, "invariant", C.n, C.n, "invariant", rows, source=C)])
    matrix = read_matrix("C", C)
    if matrix.A.nnz == 0:
        raise Refused("C must have an entry that is not zero, found none: it would publish nothing")
    m, n = matrix.A.shape
    rows = Rows(matrix.A, np.zeros(m, dtype=np.int64), Names.numbered("invariant row {}", range(m)))
    name = f"invariant({m} row{'s' if m > 1 else ''})"
    return build([Part(name, "invariant", n, n, "invariant", rows, rational=matrix.rational, factors=matrix.factors)])
