"""A hierarchy as conditioning sees it: outputs with parents, exact outputs, and bounds on noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from holdfast.arguments import LARGEST
from holdfast.arrays import Ints, only_read
from holdfast.constraints import System, TreeShape
from holdfast.domains.breadth_first import breadth_first


@dataclass(frozen=True, eq=False)
class Forest:
    """Outputs in trees; a parent's value is the sum of its children's. `exact` outputs have no noise."""

    parents: Ints
    exact: npt.NDArray[np.bool_]

    shape: TreeShape | None = None  # the hierarchy whose outputs these are, where there is one

    def __post_init__(self) -> None:
        object.__setattr__(self, "parents", only_read(self.parents))

    @classmethod
    def of(cls, system: System) -> Forest | None:
        """Read a forest from a system: one consistency, exact or fixed outputs, bounds; None if there is more."""
        if system.branches or system.inequalities.count:
            return None
        consistent = [part for part in system.parts if part.kind == "consistent"]
        if len(consistent) != 1 or not isinstance(consistent[0].source, TreeShape):
            return None
        exact = np.zeros(system.n, dtype=bool)
        for part in system.parts:
            if part.rows is None or part.kind in ("consistent", "at_least"):
                continue  # an inequality on one output alone is a bound, and stands among the bounds
            if part.rows.count and part.rows.sizes.max() > 1:
                return None
            exact[part.rows.A.indices] = True
        shape = consistent[0].source
        return cls(shape.outputs, exact, shape)

    @property
    def n(self) -> int:
        """The number of outputs."""
        return int(self.parents.size)

    @cached_property
    def _passed(self) -> tuple[Ints, Ints, Ints, Ints, int]:
        return breadth_first(self.parents) if self.shape is None else self.shape.passed

    @property
    def children(self) -> tuple[Ints, Ints]:
        """Children of output v: children[start[v]:start[v+1]]."""
        start, children, *_ = self._passed
        return children, start

    @property
    def depth(self) -> Ints:
        """How far an output is from its root."""
        return self._passed[3]

    @property
    def order(self) -> Ints:
        """Outputs breadth-first: parents before children, siblings together."""
        return self._passed[2]

    @cached_property
    def by_depth(self) -> list[Ints]:
        """The outputs of each depth from the roots on, siblings together."""
        return np.split(self.order, np.flatnonzero(np.diff(self.depth[self.order])) + 1)

    def children_of(self, v: int) -> Ints:
        """The children of one output."""
        children, start = self.children
        return children[start[v] : start[v + 1]]

    @cached_property
    def is_leaf(self) -> npt.NDArray[np.bool_]:
        """Whether an output has no children."""
        if self.shape is not None and self.shape.by == 1:
            return self.shape.tree.is_leaf
        _, start = self.children
        return only_read(np.diff(start) == 0)

    def noise_bounds(self, system: System, truth: Ints | None, unit: object) -> tuple[Ints, Ints]:
        """Bounds on the noise of each output: table bounds minus the truth; ∓2**62 where there is none."""
        low, high = system.integer_bounds(unit)
        if truth is None:
            return low, high
        return _without(low, truth, -LARGEST), _without(high, truth, LARGEST)


def _without(bounds: Ints, truth: Ints, none: int) -> Ints:
    """Bounds minus the truth, but for those that are none."""
    free = bounds == none
    if free.all():
        return bounds
    result = bounds - truth
    result[free] = none
    return result
