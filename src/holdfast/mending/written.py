"""Figures as they are written in tables: separators, which each column's own values tell, and the marks of offices.

A column is read in every way in which all of its values are numbers, and refused where two of these ways differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused, one_of, shown
from holdfast.arrays import Bools, Floats

#: What a mark says of its figure: it is exactly zero; it is missing, for one reason or another; it is there, but
#: uncertain; or, for figures in brackets, it is below zero.
MISSING = ("unknown", "suppressed", "unreliable", "later", "impossible")
MEANINGS = ("zero", *MISSING, "wide", "negative")
#: Figures in brackets, and a zero with decimals: more than nothing, and less than half of the last digit.
BRACKETS, SMALL = "( )", "0,0"
#: Keys of a preset beside its marks: the sign before decimals, and letters behind a figure that change nothing.
DECIMAL, FLAGS = "decimal", "flags"

_DASHES = dict.fromkeys(("-", "–", "—"), "zero")
_NOT_YET = dict.fromkeys(("...", "…"), "later")
_DE = {
    **_DASHES, **_NOT_YET, ".": "unknown", "/": "unreliable", "x": "suppressed", "X": "suppressed",
    BRACKETS: "wide", SMALL: "wide", DECIMAL: ",", FLAGS: "prs",
}  # fmt: skip
#: The marks of offices, by country; "eu": Eurostat.
PRESETS: dict[str, dict[str, str]] = {
    "de": _DE,
    "ch": {**_DE, **dict.fromkeys(("...", "…"), "unknown"), DECIMAL: ".,"},
    "fr": {
        **_DASHES, **dict.fromkeys(("...", "…", "nd", "n.d."), "unknown"), **dict.fromkeys("sc", "suppressed"),
        **dict.fromkeys(("ns", "n.s."), "unreliable"), "///": "impossible", BRACKETS: "wide", SMALL: "wide",
        DECIMAL: ",", FLAGS: "epr",
    },
    "uk": {"[x]": "unknown", "[c]": "suppressed", "[u]": "unreliable", "[z]": "impossible", DECIMAL: ".", FLAGS: "epr"},
    "eu": {":": "unknown", ":c": "suppressed", ":u": "unreliable", ":z": "impossible", DECIMAL: ".", FLAGS: "bdeprs"},
}  # fmt: skip
#: Marks that stand for a missing figure wherever nothing else is said.
ANYWHERE = dict.fromkeys(
    ("", "x", "X", "c", "C", "s", ":", ".", "..", "...", "…", "*", "**", "/", "na", "NA", "n/a", "N/A", "nan"),
    "unknown",
)
#: Signs of decimals and of thousands that tables use together; all kinds of spaces and apostrophes count as one.
WAYS = ((".", ""), (".", ","), (".", " "), (".", "'"), (",", ""), (",", "."), (",", " "), (",", "'"))
_SIGNS = str.maketrans("\u2212\u00a0\u2009\u202f\u2019", "-   '")


def _form(decimal: str, between: str) -> re.Pattern[str]:
    grouped = rf"[1-9]\d{{0,2}}(?:{re.escape(between)}\d{{3}})+|" if between else ""
    exponent = r"(?:[eE][+-]?\d+)?" if decimal == "." and not between else ""
    return re.compile(rf"[+-]?(?:(?:{grouped}\d+)(?:{re.escape(decimal)}\d*)?|{re.escape(decimal)}\d+){exponent}")


_FORMS = {way: _form(*way) for way in WAYS}


@dataclass(frozen=True, eq=False)
class Written:
    """A column of figures: NaN where missing; which are marked as exactly zero or as uncertain; marks by meaning."""

    figures: Floats
    zero: Bools
    wide: Bools
    marks: Counter[tuple[str, str]]


def read_marks(said: Any) -> dict[str, str]:
    """Read what is said about marks: a preset, a mapping from marks to meanings, or a list of these, later ones first.

    A mapping may give the sign before decimals: {"decimal": ","}.
    """
    found = dict(ANYWHERE)
    for each in [said] if isinstance(said, (str, Mapping)) else said or ():
        if isinstance(each, str):
            found |= PRESETS[one_of("marks", each, tuple(PRESETS))]
            continue
        if not isinstance(each, Mapping):
            raise Refused(f"marks must be a country, such as 'de', or map marks to meanings, found {shown(each)}")
        for mark, meaning in each.items():
            known = (".", ",") if mark == DECIMAL else MEANINGS
            found[str(mark)] = str(meaning) if mark == FLAGS else one_of(f"the meaning of {mark!r}", meaning, known)
    return found


def is_number(entry: Any, marks: Mapping[str, str]) -> bool:
    """Whether an entry is a number in some way of writing; a code with a leading zero is none."""
    if isinstance(entry, bool):
        return False
    text = _unwrapped(str(entry).strip(), marks)[0].translate(_SIGNS)
    if len(text) > 1 and text[0] == "0" and text[1].isdigit():
        return False
    return any(form.fullmatch(text) for form in _FORMS.values())


def read_column(column: npt.NDArray[Any], name: str, marks: Mapping[str, str]) -> Written:
    """Read a column; refused where a text is no number, or where its values can be read in two ways."""
    count = column.size
    zero, wide = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    if column.dtype.kind in "iuf":
        figures = column.astype(np.float64)
        if np.isinf(figures).any():
            raise Refused(f"row {int(np.argmax(np.isinf(figures))) + 1} of {name!r} holds an infinite number")
        return Written(figures, zero, wide, Counter())
    figures, seen = np.full(count, np.nan), Counter[tuple[str, str]]()
    texts: dict[str, list[int]] = {}
    for row, entry in enumerate(column.tolist()):
        if entry is None or entry != entry:
            continue
        text = str(entry).strip()
        meaning = marks.get(text) if text not in (DECIMAL, FLAGS) else None
        if meaning is not None:
            seen[text, meaning] += bool(text)
            if meaning in ("zero", "wide"):
                figures[row], zero[row], wide[row] = 0.0, meaning == "zero", meaning == "wide"
            continue
        text, meaning, mark = _unwrapped(text, marks)
        if meaning is not None:
            seen[mark, meaning] += 1
            wide[row] = meaning == "wide"
        texts.setdefault(text if meaning != "negative" else f"-{text}", []).append(row)
    for text, figure in _numbers(texts, name, marks).items():
        figures[texts[text]] = figure
    return Written(figures, zero, wide, seen)


def _unwrapped(text: str, marks: Mapping[str, str]) -> tuple[str, str | None, str]:
    """A figure without brackets and flags, what these mean, and the mark that says so."""
    flags = marks.get(FLAGS, "")
    if len(text) > 1 and text[-1] in flags and text[-2] in "0123456789) ":
        text = text[:-1].strip()
    if text[:1] == "(" and text[-1:] == ")" and BRACKETS in marks:
        return text[1:-1].strip(), marks[BRACKETS], BRACKETS
    if SMALL in marks and re.fullmatch(r"0[.,]0+", text):
        return text, marks[SMALL], SMALL
    return text, None, ""


def _numbers(texts: Mapping[str, Sequence[int]], name: str, marks: Mapping[str, str]) -> dict[str, float]:
    """The numbers of all texts of a column, in the one way in which all can be read."""
    ways = [way for way in WAYS if way[0] in marks.get(DECIMAL, ".,")]
    plain = {text: text.translate(_SIGNS) for text in texts}
    for text, rows in texts.items():
        fitting = [way for way in ways if _FORMS[way].fullmatch(plain[text])]
        if not fitting:
            where = f"row {rows[0] + 1} of {name!r} holds {text!r}, which"
            if not any(form.fullmatch(plain[text]) for form in _FORMS.values()):
                raise Refused(f"{where} is not a number: {_advice(text)}")
            raise Refused(
                f"{where} is written in another way than the figures before it, or than marks say: use one sign for "
                "thousands and another one for decimals throughout"
            )
        ways = fitting
    signs = [str.maketrans({decimal: ".", between or decimal: "" if between else "."}) for decimal, between in ways]
    found = [{text: float(each.translate(sign)) for text, each in plain.items()} for sign in signs]
    for text, rows in texts.items():
        readings = sorted({each[text] for each in found})
        if len(readings) > 1:
            raise Refused(
                f"column {name!r} can be read in two ways: {text!r} in row {rows[0] + 1} is {readings[0]:.15g} or "
                f"{readings[-1]:.15g}; say which sign stands before decimals, with marks={{'decimal': ','}} or a "
                "country, such as marks='de'"
            )
    return found[0] if found else {}


def _advice(text: str) -> str:
    """What to do about a text that is no number."""
    if text[:1] == "(" and text[-1:] == ")":
        return (
            "figures in brackets are uncertain in tables of offices and below zero in accounts: pass marks='de' or "
            "marks={'( )': 'negative'}"
        )
    known = {country: marks[text] for country, marks in PRESETS.items() if text in marks}
    if known:
        country, meaning = next(iter(known.items()))
        return (
            f"in tables of {', '.join(map(repr, known))} it means {meaning!r}; pass marks={{{text!r}: {meaning!r}}}, "
            f"or marks={country!r} where thousands are written as there, too"
        )
    return f"if it is a mark, say what it means, as in marks={{{text!r}: 'unknown'}}"
