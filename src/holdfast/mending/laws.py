"""Any law at any output of a hierarchy, given that all adds up: forecasts and reports that are probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from holdfast.arguments import Refused, listed
from holdfast.arrays import Floats, Ints
from holdfast.domains import Hierarchy
from holdfast.mechanism.checking import chosen_stream, how_many
from holdfast.randomness import Stream
from holdfast.trees.any_laws import AnyLaws, Never
from holdfast.trees.shape.forest import Forest

#: Most values of one law, and the largest value.
MOST_VALUES, LARGEST_VALUE = 1_000_000, 2**40
#: Cumulative probabilities that miss a level by less have reached it.
TIE = 1e-12
NEVER = "the laws never meet: no table that adds up has a positive probability"


def reconcile_laws(tree: Hierarchy, laws: Sequence[object]) -> ReconciledLaws:
    """Condition independent laws of the nodes of a hierarchy on adding up; exact.

    Args:
        tree: the hierarchy; a forest has several roots.
        laws: one per node: None (nothing is known of it), an array with the probabilities of 0, 1, 2, …, or a pair
            (first, probabilities). Probabilities need not sum to 1. A leaf without a law must follow from its parent
            and its siblings.

    Example:
        >>> import holdfast as hf
        >>> tree = hf.Hierarchy.from_parents([-1, 0, 0])
        >>> together = hf.reconcile_laws(tree, [[0, 0, 1, 1], [1, 1, 1], [1, 1, 1]])
        >>> together.mean.round(2).tolist()
        [2.4, 1.2, 1.2]
    """
    if not isinstance(tree, Hierarchy):
        raise Refused(f"tree must be a Hierarchy, found {type(tree).__name__}")
    laws = listed("laws", laws, "a list with one law, or None, for each node")
    if len(laws) != tree.n:
        raise Refused(f"laws must be a list with one law, or None, for each of {tree.n} nodes")
    read = [None if law is None else _read(law, node) for node, law in enumerate(laws)]
    if not any(read):
        raise Refused("laws must hold at least one law")
    low = np.array([law[0] if law else -np.inf for law in read])
    high = np.array([law[0] + law[1].size - 1 if law else np.inf for law in read])
    forest = Forest(tree.parents, np.zeros(tree.n, dtype=np.bool_))
    least, most = _within(forest, low, high)
    for node in range(tree.n):
        law = read[node]
        if law is None and forest.is_leaf[node]:  # whatever others leave is as likely
            if most[node] - least[node] >= MOST_VALUES:
                raise Refused(f"node {node} has no law and may have more than {MOST_VALUES:,} values: give it one")
            law = int(least[node]), np.ones(int(most[node] - least[node] + 1))
        if law is not None:
            start = max(0, int(least[node]) - law[0])
            inside = law[1][
                start : max(0, int(most[node]) - law[0] + 1)
            ]  # what others rule out would only be in the way
            if not inside.any():
                raise Refused(NEVER)
            read[node] = _read((law[0] + start, inside), node)
    try:
        return ReconciledLaws(AnyLaws(tree.parents, forest.order, read))
    except Never:
        raise Refused(NEVER) from None


def _read(law: Any, node: int) -> tuple[int, Floats]:
    """The first value with a probability above 0, and the probabilities up to the last one."""
    first, values = law if isinstance(law, tuple) and len(law) == 2 and np.ndim(law[1]) == 1 else (0, law)
    if isinstance(first, bool) or not isinstance(first, int | np.integer) or abs(int(first)) > LARGEST_VALUE:
        raise Refused(f"the law of node {node} must begin at a whole number")
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise Refused(f"the law of node {node} must be an array of probabilities") from None
    if numbers.ndim != 1 or not 0 < numbers.size <= MOST_VALUES:
        raise Refused(f"the law of node {node} must be an array of 1 to {MOST_VALUES:,} probabilities")
    if not np.isfinite(numbers).all() or numbers.min() < 0 or not numbers.any():
        raise Refused(f"the law of node {node} must hold finite probabilities of at least 0, one of them above 0")
    some = np.flatnonzero(numbers)
    return int(first) + int(some[0]), numbers[some[0] : some[-1] + 1] / numbers.max()


def _within(forest: Forest, low: Floats, high: Floats) -> tuple[Ints, Ints]:
    """Bounds that follow for every node, from its own law, those below and those above; a leaf must have both."""
    children, start = forest.children
    inner = [v for v in forest.order.tolist() if start[v + 1] > start[v]]
    for _ in range(2):
        for v in inner[::-1]:
            below = children[start[v] : start[v + 1]]
            low[v], high[v] = max(low[v], low[below].sum()), min(high[v], high[below].sum())
        for v in inner:
            below = children[start[v] : start[v + 1]]
            for ends, others, narrower in ((high, low, np.minimum), (low, high, np.maximum)):
                loose = np.isinf(others[below])
                rest = others[below][~loose].sum() - np.where(loose, 0.0, others[below])
                alone = loose.sum() - loose == 0  # all siblings have a bound
                ends[below] = np.where(alone, narrower(ends[below], ends[v] - rest), ends[below])
    if (low > high).any():
        raise Refused(NEVER)
    open_ = np.flatnonzero(forest.is_leaf & (np.isinf(low) | np.isinf(high)))
    if open_.size:
        raise Refused(f"node {open_[0]} has no law and does not follow from others: give it one")
    return low.astype(np.int64), high.astype(np.int64)


@dataclass(frozen=True, eq=False)
class ReconciledLaws:
    """The laws of all nodes of a hierarchy, given that all adds up.

    `mean` and `standard_error` are arrays over nodes; `law(node)` is (values, probabilities); `interval(p)` holds the
    ends of intervals with equal tails, (n, 2); `draw(size)` draws tables, (size, n).
    """

    _together: AnyLaws

    @cached_property
    def mean(self) -> Floats:
        """The mean of every node."""
        return np.array([first + chances @ np.arange(chances.size) for first, chances in self._together.laws])

    @cached_property
    def standard_error(self) -> Floats:
        """The standard deviation of every node."""
        moved = [
            (np.arange(chances.size) + first - mean, chances)
            for mean, (first, chances) in zip(self.mean, self._together.laws, strict=True)
        ]
        return np.sqrt([distance**2 @ chances for distance, chances in moved])

    def law(self, node: object) -> tuple[Ints, Floats]:
        """The values of a node and their probabilities."""
        laws = self._together.laws
        if not isinstance(node, int | np.integer) or not 0 <= node < len(laws):
            raise Refused(f"node must be one of 0 to {len(laws) - 1}")
        first, chances = laws[int(node)]
        used = np.flatnonzero(chances)
        return first + np.arange(used[0], used[-1] + 1), chances[used[0] : used[-1] + 1].copy()

    def interval(self, p: object = 0.95) -> Ints:
        """For every node an interval that holds it with a probability of at least p, (n, 2)."""
        if not isinstance(p, int | float) or not 0 < p < 1:
            raise Refused("p must be a number between 0 and 1")
        levels = np.array([(1 - p) / 2, 1 - (1 - p) / 2]) - TIE
        laws = self._together.laws
        return np.array(
            [first + np.minimum(chances.cumsum().searchsorted(levels), chances.size - 1) for first, chances in laws]
        )

    def draw(self, size: object, rng: Stream | None = None) -> Ints:
        """Draw tables that add up, (size, n), from the secure stream or from rng."""
        return self._together.draw(how_many(size, len(self._together.laws)), chosen_stream(rng))
