"""A hierarchy cut into halves: every total is divided into two parts, so that a few tables serve all of them.

Children of one output that are alike stand together, in blocks whose sizes are powers of two where possible: a block of
64 leaves is divided as 32 + 32, and each of those as 16 + 16. Parts that are alike (same own law and bounds, same two
parts) are of one *kind*. A *step* divides the total in one line into two lines; steps of one kind stand together.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np

from holdfast.arguments import LARGEST
from holdfast.arrays import Ints
from holdfast.trees.shape.forest import Forest


@dataclass(frozen=True)
class Kind:
    """A part by its two parts (−1: none), its own law (−1: none) and the bounds on its total (∓2**62: none).

    Without parts it is a leaf; with one, an output with one child, or (`top`) the free total of a root.
    """

    left: int
    right: int
    law: int = -1
    low: int = -LARGEST
    high: int = LARGEST
    top: bool = False


@dataclass(frozen=True, eq=False)
class Halves:
    """Kinds, parts before wholes, and the steps that divide totals, wholes before parts.

    Line 0 always holds zeros, and what is written to line 1 is never read.
    """

    kinds: list[Kind]
    step_kind: Ints
    source: Ints
    left: Ints
    right: Ints
    lines: int
    line_of: Ints  # of every output
    zero_totals: list[int]  # kinds of parts whose total is 0, below exact outputs


@dataclass(eq=False)
class _Parts:
    """The parts of one forest, as they are made."""

    kinds: list[Kind] = field(default_factory=list)
    known: dict[Kind, int] = field(default_factory=dict)
    kind: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    output: list[int] = field(default_factory=list)
    leaves: list[int] = field(default_factory=list)

    def add(self, left: int, right: int, output: int, law: int, low: int, high: int) -> int:
        """Add a part made of other parts (−1: none)."""
        below = [part for part in (left, right) if part >= 0]
        kind_left, kind_right = (self.kind[part] if part >= 0 else -1 for part in (left, right))
        self.kind.append(self.number(Kind(kind_left, kind_right, law, low, high)))
        self.left.append(left)
        self.right.append(right)
        self.output.append(output)
        self.leaves.append(sum(self.leaves[part] for part in below) or 1)
        return len(self.kind) - 1

    def number(self, described: Kind) -> int:
        """The number of a kind."""
        if described not in self.known:
            self.known[described] = len(self.kinds)
            self.kinds.append(described)
        return self.known[described]

    def pair(self, one: int, other: int) -> int:
        """Two parts with a common total, and nothing more."""
        return self.add(one, other, -1, -1, -LARGEST, LARGEST)

    def block(self, alike: list[int]) -> int:
        """Parts of one kind as one part."""
        return alike[0] if len(alike) == 1 else self.pair(*self.halves(alike))

    def halves(self, alike: list[int]) -> tuple[int, int]:
        """Two or more parts of one kind as two parts, the first with the largest power of two below their number."""
        half = 1 << (len(alike) - 1).bit_length() - 1
        return self.block(alike[:half]), self.block(alike[half:])

    def two(self, children: list[int]) -> tuple[int, int]:
        """Two or more parts as two parts."""
        by_kind: dict[int, list[int]] = {}
        for part in children:
            by_kind.setdefault(self.kind[part], []).append(part)
        if len(by_kind) == 1:
            return self.halves(children)
        waiting = [(self.leaves[part], part) for part in (self.block(by_kind[k]) for k in sorted(by_kind))]
        heapq.heapify(waiting)
        while len(waiting) > 2:
            one, other = heapq.heappop(waiting)[1], heapq.heappop(waiting)[1]
            made = self.pair(one, other)
            heapq.heappush(waiting, (self.leaves[made], made))
        return waiting[0][1], waiting[1][1]


def _sum(bounds: list[int]) -> int:
    """A sum of bounds; none if one is missing."""
    return next((bound for bound in bounds if abs(bound) >= LARGEST), sum(bounds))


def cut(forest: Forest, law: Ints, low: Ints, high: Ints, leaf_low: Ints, leaf_high: Ints) -> Halves:
    """Cut a forest into halves.

    `law` is −1 where an output is not measured; bounds are on noise and hold 0; `leaf_low` and `leaf_high` are those
    bounds of leaves that the kinds know of. A bound that the bounds below imply is left out.
    """
    parts = _Parts()
    part_of: dict[int, int] = {}  # outputs whose noise is not always 0
    roots: list[tuple[int, bool]] = []
    reach_low, reach_high = low.tolist(), high.tolist()
    for v in forest.order[::-1].tolist():
        exact, own_low, own_high = bool(forest.exact[v]), int(low[v]), int(high[v])
        if forest.is_leaf[v]:
            if exact:
                continue
            made = parts.add(-1, -1, v, int(law[v]), int(leaf_low[v]), int(leaf_high[v]))
        else:
            free = [int(c) for c in forest.children_of(v) if int(c) in part_of and not forest.exact[c]]
            if not free:
                continue
            below_low, below_high = _sum([reach_low[c] for c in free]), _sum([reach_high[c] for c in free])
            reach_low[v], reach_high[v] = max(own_low, below_low), min(own_high, below_high)
            own = (-1, -LARGEST, LARGEST)
            if not exact:
                own = (
                    int(law[v]),
                    own_low if below_low < own_low else -LARGEST,
                    own_high if below_high > own_high else LARGEST,
                )
            children = [part_of[c] for c in free]
            below = parts.two(children) if len(children) > 1 else (children[0], -1)
            made = parts.add(*below, -1 if exact else v, *own)
        part_of[v] = made
        if exact or forest.parents[v] < 0:
            roots.append((made, exact))
    return _laid_out(parts, roots, forest.n)


def _laid_out(parts: _Parts, roots: list[tuple[int, bool]], n: int) -> Halves:
    """Give every part a line, and write down the steps."""
    line_of = np.zeros(n, dtype=np.int64)
    lines = 2
    steps: list[tuple[int, int, int, int]] = []
    zero_totals = [parts.kind[part] for part, exact in roots if exact]
    stack = []
    for part, exact in roots:
        line = 0
        if not exact:
            line, lines = lines, lines + 1
            steps.append((parts.number(Kind(parts.kind[part], -1, top=True)), 0, line, 1))
        stack.append((part, line))
    while stack:
        part, line = stack.pop()
        output, left, right = parts.output[part], parts.left[part], parts.right[part]
        if output >= 0:
            line_of[output] = line
        if right < 0:
            if left >= 0:
                stack.append((left, line))
            continue
        # a total that nobody asks for makes room for its left part
        first = line
        if output >= 0 or line == 0:
            first, lines = lines, lines + 1
        second, lines = lines, lines + 1
        steps.append((parts.kind[part], line, first, second))
        stack += [(left, first), (right, second)]
    # Kinds are numbered parts before wholes, and the tops of roots last.
    steps.sort(key=lambda step: -step[0])
    kind, source, first_line, second_line = np.array(steps, dtype=np.int64).reshape(-1, 4).T.copy()
    return Halves(parts.kinds, kind, source, first_line, second_line, lines, line_of, zero_totals)
