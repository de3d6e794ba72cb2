"""Any laws of the nodes of a forest, given that all adds up: sums in balls, tables drawn half by half.

A node weighs its law times the sum of its children's weights. Weights are added up in balls, whose errors are relative,
so neither gaps nor probabilities that differ by any power of ten are lost (docs/theory/circles.md, section 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import arb, arb_poly

from holdfast.arrays import Floats, Ints
from holdfast.noise.draws.decisions import FIRST_BITS, Digits
from holdfast.noise.precision import working_precision
from holdfast.randomness import Stream
from holdfast.trees.circles.exact import Joined, Part, half_of, joined

#: Bits at which laws that seem never to meet are taken to be so, and the largest error of a probability.
MOST_BITS, ERROR = 1 << 13, 1e-15


class Never(Exception):
    """No table that adds up has a positive probability."""


class Node:
    """Weights of a node's values: its law (first value, weights up to 1; None: all alike) times its children's sums."""

    def __init__(self, output: int, law: tuple[int, Floats] | None, below: Part | None) -> None:
        self.output, self.law, self.below = output, law, below
        self._windows: dict[int, tuple[int, list[arb], arb]] = {}

    def own(self, first: int, size: int) -> tuple[int, list[arb]]:
        """The node's law on a window of its children's sums, or as much as both have."""
        if self.law is None:
            return first, [arb(1)] * size
        start = max(first, self.law[0])
        inside = self.law[1][start - self.law[0] : max(0, first + size - self.law[0])]
        return start, [arb(each) for each in inside.tolist()]

    def window(self, more: int) -> tuple[int, list[arb], arb]:
        """See Part."""
        if more not in self._windows:
            left = arb(0)
            if self.below is None:
                assert self.law is not None
                first, values = self.own(self.law[0], self.law[1].size)
            else:
                start, sums, left = self.below.window(more)
                first, values = self.own(start, len(sums))
                values = [a * b for a, b in zip(values, sums[first - start :], strict=False)]
            whole = sum(values, arb(0)).mid()
            if not whole > 0:
                raise Never
            self._windows[more] = first, [each / whole for each in values], left / whole
        return self._windows[more]


class AnyLaws:
    """Laws of all nodes, given that parents are the sums of their children; a leaf has a law."""

    def __init__(self, parents: Ints, order: Ints, laws: Sequence[tuple[int, Floats] | None]) -> None:
        below: list[list[Part]] = [[] for _ in laws]
        #: Children before parents.
        self.nodes = [Node(v, laws[v], None) for v in order[::-1].tolist()]
        self.roots = [node for node in self.nodes if parents[node.output] < 0]
        for node in self.nodes:
            node.below = joined(below[node.output][::-1]) if below[node.output] else None
            if parents[node.output] >= 0:
                below[int(parents[node.output])].append(node)
        self._doubles: dict[Part, tuple[int, Floats, float]] = {}
        self.bits = FIRST_BITS
        while not self._made():
            self.bits *= 2

    def _made(self) -> bool:
        """Find all laws, unless they take more bits."""
        with working_precision(self.bits):
            try:
                self._reach(self.bits)
                self.laws = self._found(self.bits - FIRST_BITS)
            except Never:
                if self.bits >= MOST_BITS:
                    raise
                return False
            self._tops = []
            for root in self.roots:  # the first half of a total of 0, of which the other may be anything alike
                first, values, _ = root.window(self.bits - FIRST_BITS)
                mirror = Node(-1, (1 - first - len(values), np.ones(len(values))), None)
                mirror.window(self.bits - FIRST_BITS)
                self._tops.append(Joined(root, mirror))
        return True

    def _reach(self, bits: int) -> None:
        """Add weights up, children before parents."""
        for node in self.nodes:
            node.window(bits - FIRST_BITS)

    def _found(self, more: int) -> list[tuple[int, Floats]]:
        """The first value of every node, and the probabilities from there on, down from the roots."""
        # All that any window left out is left out at a root.
        if not all(root.window(more)[2] < ERROR for root in self.roots):
            raise Never
        result: list[Any] = [None] * len(self.nodes)
        todo: list[tuple[Part, list[arb]]] = [(root, [arb(1)] * len(root.window(more)[1])) for root in self.roots]
        while todo:
            part, shares = todo.pop()
            first, values, _ = part.window(more)
            if isinstance(part, Joined):
                (start, ones, _), (begin, others, _) = part.one.window(more), part.other.window(more)
                shares = [arb(0)] * (first - start - begin) + shares  # what was cut off
                todo += [
                    (part.one, _beside(shares, others, len(ones))),
                    (part.other, _beside(shares, ones, len(others))),
                ]
                continue
            assert isinstance(part, Node)
            law = [a * b for a, b in zip(values, shares, strict=True)]
            whole = sum(law, arb(0))
            if not whole > 0 or not whole.rad() < ERROR * whole.mid():
                raise Never
            result[part.output] = first, np.array([float((each / whole).mid()) if each > 0 else 0.0 for each in law])
            if part.below is not None:
                start, sums, _ = part.below.window(more)
                own = part.own(start, len(sums))[1]
                before = [arb(0)] * (first - start)
                after = [arb(0)] * (len(sums) - len(before) - len(own))
                todo.append((part.below, [*before, *(a * b / whole for a, b in zip(own, shares, strict=True)), *after]))
        return result

    def draw(self, size: int, stream: Stream) -> Ints:
        """Draw tables, (size, nodes)."""
        result = np.zeros((size, len(self.nodes)), dtype=np.int64)
        none = np.zeros(size, dtype=np.int64)
        todo: list[tuple[Part, Ints]] = [(top.one, self._halves(top, none, stream)) for top in self._tops]
        while todo:
            part, totals = todo.pop()
            if isinstance(part, Joined):
                half = self._halves(part, totals, stream)
                todo += [(part.one, half), (part.other, totals - half)]
            elif isinstance(part, Node):
                result[:, part.output] = totals
                todo += [(part.below, totals)] if part.below is not None else []
        return result

    def _halves(self, part: Joined, totals: Ints, stream: Stream) -> Ints:
        """What the first half has of each total, by uniform numbers: in doubles, in balls where these do not decide."""
        first, ones, error = self._in_doubles(part.one)
        start, others, more = self._in_doubles(part.other)
        words, result = stream.words(totals.size), np.empty(totals.size, dtype=np.int64)
        known, which = np.unique(totals, return_inverse=True)
        rows = np.argsort(which, kind="stable")
        ends = np.searchsorted(which[rows], np.arange(known.size + 1))
        for k, total in enumerate(known.tolist()):
            last = total - first - start
            low, high = max(0, last - others.size + 1), min(ones.size, last + 1)
            sums = np.cumsum(ones[low:high] * others[last - high + 1 : last - low + 1][::-1])
            mine = rows[ends[k] : ends[k + 1]]
            wanted = words[mine] * 2.0**-64 * sums[-1]
            slack = (sums.size + 16) * (2.0**-50 * sums[-1] + 1e-300) + 2 * (error + more)
            place = np.searchsorted(sums, wanted - slack, "right")
            result[mine] = first + low + place
            for row in mine[place < np.searchsorted(sums, wanted + slack, "right")].tolist():
                result[row] = half_of(part, total, Digits(int(words[row]), 64, lambda: stream), self.bits)
        return result

    def _in_doubles(self, part: Part) -> tuple[int, Floats, float]:
        """A part's first value, its weights as doubles, and the largest error but for rounding."""
        if part not in self._doubles:
            first, values, left = part.window(self.bits - FIRST_BITS)
            doubles = np.maximum([float(each.mid()) for each in values], 0.0)
            self._doubles[part] = first, doubles, max(float(each.rad()) for each in values) + float(left) + 1e-300
        return self._doubles[part]


def _beside(shares: list[arb], others: list[arb], size: int) -> list[arb]:
    """Shares of a sum's first part: over all that the other part has."""
    found = (arb_poly(shares) * arb_poly(others[::-1])).coeffs()[len(others) - 1 :][:size]
    return found + [arb(0)] * (size - len(found))
