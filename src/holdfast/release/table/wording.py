"""What the library says to a programmer, said as a spec does: figures by their names, remedies by their keys."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from holdfast.release.facts import Holds
from holdfast.release.spec.table import UNNAMED

if TYPE_CHECKING:
    from holdfast.release.table.shape import Layout

#: How a figure is known, besides what the rule book calls published and following.
DEFINED, NOISY = "known by definition", "noisy"
#: How a spec allows values that are not whole.
REAL = "numbers: real"
#: What is asked of columns, and what holds in a table, by the key of the certificate.
LEARN, NOT_COVERED = "Can somebody learn it?", "not covered by this promise"
HOW = (
    "Exact figures must stay as they are, so a record often cannot change alone: others must change with it. A promise "
    "about fewer than it takes does not cover the column."
)
HOLDS = {"consistent": "sums add up", "nonnegative": "no value is negative", "whole": "values are whole numbers"}
#: Rules with how many there are, of one and of several.
RULES = {
    "orders": ("ordered row of figures never falls", "ordered rows never fall"),
    "linear": ("weighted sum is in its limits", "weighted sums are in theirs"),
    "impossible": ("figure is 0 by definition", "figures are 0 by definition"),
}
_REMEDIES = {
    "use Gaussian noise, or onto(..., integer=False)": f"use noise: gaussian, or onto with {REAL}",
    "use onto(..., integer=False)": f"use onto with {REAL}",
    "use law='laplace', or laplace(...).given(...)": "use extend-laplace or given",
    "use law='gaussian' or law='laplace'": "use extend-gaussian or extend-laplace",
    "use integer=False, Laplace noise, or onto()": "use noise: laplace, or method: onto",
    "this mechanism promises no rho: calibrate to what it does promise": (
        "this method promises no rho here: write epsilon and delta instead, or use another method"
    ),
    "pass integer=False": f"write {REAL} in the table",
    "use integer noise and integer=True": "write numbers: whole in the table",
    "use integer=True": "write numbers: whole in the table",
    "integer=False": REAL,
    "consistent(tree)": "consistent",
    ", norm='l2'": "",
    "; otherwise leave method out": "; otherwise write method: auto",
}


def percent(share: float) -> str:
    return f"{100 * share:.6g} %"


def ways_in_words(ways: str) -> str:
    return " and ".join(dict.fromkeys(ways.split(", ")))


_ONE = re.compile(r"\b(the output |the entry )?at position (\d+)")
_TWO = re.compile(r"\bthe outputs at positions (\d+) and (\d+)")
_LISTED = re.compile(r"\b(fixed|between)\((?:(\S+), (\S+), )?at=\[([0-9, ]+)( and \d+ more)?\]\)")
_EVERYWHERE = re.compile(r"\bbetween\((\S+), ([^\s,()]+)\)")
_WHOLE = re.compile(r"\bconsistent\(\d+ outputs\)")


_LAW = re.compile(r"law='([a-z-]+)'")
_FRACTION = re.compile(r"\bFraction\((\d+), (\d+)\)")


def in_words_of_the_spec(layout: Layout, sentence: str) -> str:
    """Say a sentence of the library in the words of a spec."""

    def name(position: str) -> str:
        return f"{layout.query.labels[int(position)]!r}"

    def one(found: re.Match[str]) -> str:
        return name(found[2]) if found[1] else f"(at {name(found[2])})"

    def listed(found: re.Match[str]) -> str:
        rule, low, high, positions, more = found.groups()
        names = ", ".join(map(name, positions.split(", "))) + (more or "")
        return f"impossible: {names}" if rule == "fixed" else f"{limits(low, high)} at {names}"

    def limits(low: str, high: str) -> str:
        if high == "inf":
            return f"at least {low}"
        return f"at most {high}" if low == "−inf" else f"between {low} and {high}"

    for old, new in _REMEDIES.items():
        sentence = sentence.replace(old, new)
    sentence = _LAW.sub(r"extend-\1", sentence)
    sentence = _FRACTION.sub(lambda found: f"{int(found[1]) / int(found[2]):.6g}", sentence)
    sentence = _WHOLE.sub("consistent", _LISTED.sub(listed, sentence))
    sentence = _EVERYWHERE.sub(lambda found: limits(found[1], found[2]), sentence)
    return _ONE.sub(one, _TWO.sub(lambda found: f"{name(found[1])} and {name(found[2])}", sentence))


def words_about(table: str, words: str) -> str:
    return words if table == UNNAMED else f"{table}: {words}"


def sentence_about(table: str, words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}" if table == UNNAMED else f"{table}: {words}"


def as_sentence(words: str, tables: Iterable[Any]) -> str:
    """Begin with a capital, unless the words begin with the name of a table, and end with a full stop."""
    named = any(words.startswith(f"{table.name}: ") for table in tables)
    return f"{words if named else words[:1].upper() + words[1:]}."


def counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def held(holds: Holds, exact: bool = True) -> str:
    """Say what holds; `exact`: also which figures are published exactly."""
    words = [words for key, words in HOLDS.items() if getattr(holds, key)]
    words += ["counts stay within the bounds of the spec"] if holds.bounds else []
    for name, rules in RULES.items():
        count = len(getattr(holds, name))
        words += [counted(count, *rules)] if count else []
    if holds.either:
        words.append(f"one of {' and '.join(str(len(sides)) for sides in holds.either)} sides holds")
    if holds.exact and exact:
        words.append(f"published exactly: {', '.join(figure.figure for figure in holds.exact)}")
    return ", ".join(words) or "nothing is required"
