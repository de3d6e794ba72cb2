"""Compiled choices: a leaf's noise, a part of a total, or a total, drawn by one random word.

The places are gone through in a fixed order, and the first is taken at which the sum of their weights passes the word's
share of all of it. Sums are rounded; where that does not tell which place it is, the choice is left undecided and made
again in ball arithmetic (exact.py). Proofs: docs/theory/exact-trees.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.arrays import BORROWED, compiled
from holdfast.trees.steps.ends import HIGH, LOW, ROUNDING
from holdfast.trees.steps.joining import NEGLIGIBLE, beyond

#: What a draw returns that the error bounds do not decide.
UNDECIDED = np.iinfo(np.int64).min


@compiled(**BORROWED)
def choose_leaf(
    f: Any, lo: Any, powers: Any, low: Any, high: Any, s: Any, start: Any, total: Any, word: Any, slack: Any
) -> Any:
    """Draw a leaf's noise b with weight powers[|b|]·f(s−b), in the order start, start+1, start−1, … from low to high.

    `total` is the sum of all weights; it and all partial sums are known up to the share `slack` of it. Return
    UNDECIDED where that does not tell on which side of a partial sum the random word lies, or beyond the window.
    """
    if low > high:
        return UNDECIDED
    goal = np.float64(word) * 5.421010862427522e-20 * total
    before = 0.0
    running = f[s - start - lo] * powers[abs(start)]
    if running > goal:
        return start if running - goal > total * (slack + ROUNDING * 17) else UNDECIDED
    turn = min(high - start, start - low)
    b = start
    for d in range(1, turn + 1):
        b = start + d
        before = running
        running += f[s - b - lo] * powers[abs(b)]
        if running > goal:
            break
        b = start - d
        before = running
        running += f[s - b - lo] * powers[abs(b)]
        if running > goal:
            break
    if not running > goal:
        side = 1 if high - start > start - low else -1
        for d in range(turn + 1, max(high - start, start - low) + 1):
            b = start + side * d
            before = running
            running += f[s - b - lo] * powers[abs(b)]
            if running > goal:
                break
    margin = total * (slack + ROUNDING * (2 * abs(b - start) + 17))
    if running - goal > margin and goal - before > margin:
        return b
    return UNDECIDED


@compiled(**BORROWED)
def choose_part(one: Any, other: Any, tilt: Any, s: Any, start: Any, word: Any, slack: Any, terms: Any) -> Any:
    """Draw f's part a of a total s with weight f(a)·g(s−a)·e^{tilt·a}, in the order start, start+1, start−1, …

    f and g are given by their values, the ends of their windows, and which of these are hard.
    """
    f, f_lo, f_hi, f_hard = one
    g, g_lo, g_hi, g_hard = other
    low, high = max(f_lo, s - g_hi), min(f_hi, s - g_lo)
    if low > high or start < low or start > high:
        return UNDECIDED
    up, down = np.exp(tilt), np.exp(-tilt)
    # terms around the start until they do not count; those left out are bounded as in `add_piece`
    total = f[start - f_lo] * g[s - start - g_lo]
    terms[start - low] = total
    largest = total
    factor = 1.0
    last = start
    while last < high:
        last += 1
        factor *= up
        term = f[last - f_lo] * g[s - last - g_lo] * factor
        terms[last - low] = term
        total += term
        largest = max(largest, term)
        if term < 0.01 * NEGLIGIBLE * largest:
            break
    factor = 1.0
    first = start
    while first > low:
        first -= 1
        factor *= down
        term = f[first - f_lo] * g[s - first - g_lo] * factor
        terms[first - low] = term
        total += term
        largest = max(largest, term)
        if term < 0.01 * NEGLIGIBLE * largest:
            break
    left_out = 0.0
    if not ((first == f_lo and f_hard & LOW) or (first == s - g_hi and g_hard & HIGH)):
        left_out += beyond(terms[first - low], terms[first + 1 - low] if first < last else 0.0)
    if not ((last == f_hi and f_hard & HIGH) or (last == s - g_lo and g_hard & LOW)):
        left_out += beyond(terms[last - low], terms[last - 1 - low] if first < last else 0.0)
    if not (total > 1e-250 and left_out < 0.1 * total):
        return UNDECIDED
    slack += left_out / total + ROUNDING * (1 + abs(tilt)) * 2 * (last - first + 16)
    goal = np.float64(word) * 5.421010862427522e-20 * total
    running = 0.0
    turn = 2 * min(last - start, start - first) + 1
    side = 1 if last - start > start - first else -1
    for k in range(last - first + 1):
        if k < turn:
            a = start + (k + 1) // 2 if k & 1 else start - k // 2
        else:
            a = start + side * (k - turn // 2)
        before = running
        running += terms[a - low]
        if running > goal:
            margin = total * (slack + ROUNDING * (k + 16))
            if running - goal <= margin or (k > 0 and goal - before <= margin):
                return UNDECIDED
            return a
    return UNDECIDED


@compiled(inner=True)
def choose_total(f: Any, lo: Any, hi: Any, hard: Any, tilt: Any, start: Any, word: Any, slack: Any, terms: Any) -> Any:
    """Draw a total with weight f(s)·e^{−tilt·s}, in the order start, start+1, start−1, …"""
    ones = np.ones(hi - lo + 1)
    one, other = (f, lo, hi, hard), (ones, -hi, -lo, np.int64(0))
    return choose_part(one, other, -tilt, np.int64(0), start, word, slack, terms)
