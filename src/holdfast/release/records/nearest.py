"""The public name that a value outside the domain was most likely meant to be, and in what the two differ."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress

#: Domains of so many names or fewer are also searched for similar spellings.
MOST_COMPARED = 5_000


def _case(text: str) -> str:
    return text.casefold()


def _spaces(text: str) -> str:
    return "".join(text.split())


def _zeros(text: str) -> str:
    """Whole numbers without the zeros before them, and without a fraction of zeros behind them."""
    whole, _, fraction = text.partition(".")
    return (whole.lstrip("0") or "0") if whole.isdigit() and not fraction.strip("0") else text


def _encoding(text: str) -> str:
    """Undo what happens where UTF-8 is read as another encoding, and write every letter in one way."""
    for wrong in ("cp1252", "latin-1"):
        with suppress(UnicodeError):
            text = text.encode(wrong).decode("utf-8")
            break
    return unicodedata.normalize("NFKC", text)


def _accents(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text)
    return "".join(each for each in plain if not unicodedata.combining(each))


def _all(text: str) -> str:
    return _zeros(_spaces(_case(_accents(_encoding(text)))))


#: What two names may differ in, the least first, and how a name is written where that does not matter.
DIFFERENCES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("upper and lower case", _case),
    ("spaces", _spaces),
    ("leading zeros", _zeros),
    ("encoding", _encoding),
    ("accents", _accents),
    ("case, spaces, zeros, encoding and accents", _all),
)


def nearest(value: str, names: Sequence[str]) -> tuple[str, str] | None:
    """Return the name meant and what it differs in, or nothing where no single name is near."""
    for what, plain in DIFFERENCES:
        wanted = plain(value)
        found = {name for name in names if plain(name) == wanted}
        if len(found) == 1:
            return found.pop(), what
    if len(names) <= MOST_COMPARED:
        similar = difflib.get_close_matches(value, names, n=1)
        if similar:
            return similar[0], "spelling"
    return None
