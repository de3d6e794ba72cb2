"""Calls of the public names with whatever somebody may pass: each must return or refuse.

A TypeError is Python's own alone: a call with too few or too many arguments, which reaches no line of holdfast.

Left out are methods whose arguments only the library itself makes: difference sets, scales by output, columns, names of
arguments.
"""

import inspect
import random
import traceback
from decimal import Decimal
from fractions import Fraction

import numpy as np

import holdfast as hf

INNER = (
    "in_steps",
    "level_number",
    "signatures",
    "touched_by_one",
    "touched_by_pairs",
    "statement_about",
    "statement_for",
    "protection",
    "pair",
    "single",
    "pair_kinds",
    "single_kinds",
    "error_bars",
)
#: Values of every kind, few of which fit anywhere.
ODD = (
    None, True, False, 0, 1, -1, 2, 3, 7, 2**31, 2**63, 2**64, -(2**70), 10**400, 10**5000, 0.0, -0.0, 0.5, 1.5, 1e-300,
    1e300, float("inf"), float("-inf"), float("nan"), Fraction(1, 3), Fraction(-7, 2), Decimal("0.1"), Decimal("NaN"),
    Decimal("1e-99999999"), Decimal("1e99999999"), 1j, "", "a", "city", "\ud800", "a\x00b", "~nouser/x", "nowhere.csv",
    "given", "onto", "law", "add-remove", "replace-one", b"", b"bytes", b"x" * 32, [], [0], [1, 2, 3, 4],
    [[1, 2], [3, 4]],
    [[1], [2, 3]], ["a", "b"], [None], [float("nan")], [2**70], [-1, 0, 0], [-1, 0, 0, 1, 1], (), (1, 2), {}, {"a": 1},
    {"city": 1}, {1, 2}, frozenset(), range(4), range(0), slice(1), object(), int, len, Exception(), np.nan, np.int8(3),
    np.float32(0.5), np.bool_(True), np.array([]), np.array(3), np.array([1, 2, 3, 4]), np.array([0.5, np.nan]),
    np.array(["a"]), np.array([None, 1], dtype=object), np.zeros((2, 0)), np.zeros((2, 2, 2)),
    np.array([2**63], dtype=np.uint64), np.array([1 + 2j]), np.datetime64("2020-01-01"),
    np.ma.masked_array([1, 2], [True, False]),
)  # fmt: skip


def things():
    """Values that fit: one or two of every kind that the public names make."""
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1])
    cube = hf.Cube((2, 2), names=("sex", "age"))
    counts, histogram = hf.counts(tree), hf.histogram(4)
    laplace, gaussian = hf.laplace(histogram, epsilon=1), hf.gaussian(histogram, rho=0.5)
    nodes = hf.laplace(counts, epsilon=1).given(hf.consistent(counts))
    return [
        tree, cube, counts, histogram, hf.margins(cube, [["sex"], ["age"]]), laplace, gaussian, nodes, hf.nonnegative(),
        hf.equals([[1, 1, 1, 1]], [10]), hf.between(0, 5), hf.consistent(counts), hf.invariant([[1, 1, 1, 1]]),
        hf.exact_nodes(tree, "level 0") if "level 0" in tree.levels else hf.at_least(0), laplace.guarantee,
        hf.seeded(1),
        hf.Keys.of(b"x" * 32), hf.Neighbours("add-remove"), laplace.release([1, 2, 3, 4], rng=hf.seeded(2)),
    ]  # fmt: skip


def _reading(thing, name):
    return lambda: getattr(thing, name)


def targets(found):
    """The public names, and the public methods and properties of what they make."""
    named = [
        (name, getattr(hf, name))
        for name in hf.__all__
        if callable(getattr(hf, name)) and name not in ("Refused", "audit")
    ]
    for thing in found:
        kind = type(thing)
        public = next((each for each in kind.__mro__ if getattr(hf, each.__name__, None) is each), None)
        for name in dir(public or object):
            if name.startswith("_") or name in INNER:
                continue
            method = callable(getattr(public, name, None))
            named.append((f"{kind.__name__}.{name}", getattr(thing, name) if method else _reading(thing, name)))
    return named


def arguments(function, source, found):
    """Some arguments for a function: as many as it wants or a few more or less, by place or by name."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    chosen = [source.choice(found) if source.random() < 0.45 else source.choice(ODD) for _ in range(6)]
    placed, named = [], {}
    for parameter in parameters[:6]:
        value = chosen[len(placed) + len(named)]
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            if parameter.default is parameter.empty or source.random() < 0.5:
                (placed.append(value) if not named else named.__setitem__(parameter.name, value))
            elif source.random() < 0.4:
                named[parameter.name] = value
        elif parameter.kind == parameter.KEYWORD_ONLY and source.random() < 0.5:
            named[parameter.name] = value
        elif parameter.kind == parameter.VAR_POSITIONAL:
            placed += chosen[: source.randrange(3)] if not named else []
    if source.random() < 0.03:
        placed.append(1)
    return placed, named


def one_call(number, found, named):
    """Make one call, given by its number; return its name and what it raised that it must not, with the place."""
    source = random.Random(number)
    name, function = source.choice(named)
    placed, words = arguments(function, source, found)
    try:
        function(*placed, **words)
    except hf.Refused:
        return name, None
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "/holdfast/" in frame.filename]
        if isinstance(error, TypeError) and not ours:
            return name, None
        where = ours[-1] if ours else last
        place = f"{where.filename.rsplit('/holdfast/', 1)[-1]}:{where.lineno}"
        return name, f"{type(error).__name__} at {place}: {str(error)[:80]}"
    return name, None
