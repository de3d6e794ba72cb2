"""Short cards for notebooks: a heading, some rows, a small table; every word is escaped.

Colours are those of the notebook, so that a card reads in light and dark themes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

_CARD = "display:inline-block;max-width:60em;border:1px solid #8888;border-radius:6px;padding:.5em .9em;color:inherit"
_PLAIN = "border:none;background:transparent;text-align:left;vertical-align:top;padding:.1em 1.2em .1em 0"
_HEAD = f"{_PLAIN};font-weight:600;white-space:nowrap"
_RIGHT = _PLAIN.replace("left", "right")


def card(kind: str, heading: str, *parts: str) -> str:
    """Return a card; `parts` are HTML already."""
    name = f'<span style="opacity:.65">{escape(kind)}</span> '
    return f'<div style="{_CARD}"><div>{name}<b>{escape(heading)}</b></div>{"".join(parts)}</div>'


def rows_of(rows: Mapping[str, str]) -> str:
    """Return names with their words as rows."""
    told = (
        f'<tr style="background:transparent"><th scope="row" style="{_HEAD}">{escape(name)}</th>'
        f'<td style="{_PLAIN}">{escape(words)}</td></tr>'
        for name, words in rows.items()
        if words
    )
    return f'<table style="border:none;margin:.3em 0">{"".join(told)}</table>'


def table_of(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a small table; columns of numbers stand right, others left."""
    sides = [_RIGHT if i and all(row[i][:1] in "−0123456789" for row in rows) else _PLAIN for i in range(len(columns))]
    head = "".join(
        f'<th scope="col" style="{side};font-weight:600">{escape(name)}</th>'
        for name, side in zip(columns, sides, strict=True)
    )
    body = "".join(
        '<tr style="background:transparent">'
        + "".join(f'<td style="{side}">{escape(words)}</td>' for words, side in zip(row, sides, strict=True))
        + "</tr>"
        for row in rows
    )
    return f'<table style="border:none;margin:.3em 0"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
