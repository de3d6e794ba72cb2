"""An SVG picture as text: its elements, its numbers and its scales.

Text and lines take the colour of the page (`currentColor`), areas one of a few colours that readers who cannot tell red
from green can tell apart (Okabe and Ito 2008), in tones that show on light and dark ground. Every name is escaped. A
page can give the classes `hf-0`, `hf-1`, … colours of its own; nothing here needs a style sheet, a script or a network.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

#: Blue, orange, bluish green, reddish purple, sky blue: told apart by eyes of every kind, and by their lightness.
COLOURS = ("#1f78b4", "#e08214", "#1b9e77", "#b5679c", "#7fb8e0")
#: Size of text in the units of a picture, and the width of an average character of it.
TEXT, CHARACTER = 12.5, 7.3
#: From this ratio between the largest and the smallest figure on, figures are told apart on a logarithmic scale only.
WIDE = 200.0
#: What stands between the names of a path.
BETWEEN = " / "


@dataclass(frozen=True)
class Picture:
    """An SVG picture. `description` says in words what it shows; notebooks show the picture itself."""

    body: str
    width: float
    height: float
    description: str

    def __str__(self) -> str:
        size = f'viewBox="0 0 {self.width:g} {self.height:g}" width="{self.width:g}" height="{self.height:g}"'
        look = f'class="hf-picture" font-family="system-ui, sans-serif" font-size="{TEXT}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {look} role="img" '
            f'aria-label="{escape(self.description)}">{self.body}</svg>'
        )

    def __repr__(self) -> str:
        return f"<Picture of {self.width:g} × {self.height:g}: notebooks show it, save('picture.svg') writes it>"

    def _repr_html_(self) -> str:
        return str(self)

    def save(self, path: str | Path) -> None:
        Path(path).write_text(f"{self}\n", encoding="utf-8")


def number(value: float) -> str:
    """Write a number for people: thousands separated, three digits of a fraction, a true minus sign."""
    if math.isnan(value) or math.isinf(value):
        return "unknown"
    size = abs(value)
    if float(value).is_integer() or size >= 1000:
        shown = f"{value:,.0f}"
    else:
        shown = f"{value:.3g}" if size >= 0.001 or size == 0 else f"{value:.1e}"
    return shown.replace("-", "−")


def element(tag: str, inside: str = "", **attributes: Any) -> str:
    """Return one element; underscores in names of attributes stand for hyphens, and values are escaped."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(f"{value:.6g}" if isinstance(value, float) else str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{written}>{inside}</{tag}>" if inside else f"<{tag}{written}/>"


def text(x: float, y: float, words: str, anchor: str = "start", **attributes: Any) -> str:
    """Return a line of text whose middle is at this height."""
    return element(
        "text",
        escape(words),
        x=x,
        y=y,
        text_anchor=anchor,
        dominant_baseline="central",
        fill="currentColor",
        **attributes,
    )


def rectangle(x: float, y: float, width: float, height: float, colour: int, **attributes: Any) -> str:
    size: dict[str, Any] = {"x": x, "y": y, "width": max(width, 0.0), "height": height}
    return element("rect", class_=f"hf-{colour}", fill=COLOURS[colour % len(COLOURS)], **size, **attributes)


def circle(x: float, y: float, radius: float, colour: int, **attributes: Any) -> str:
    return element(
        "circle", class_=f"hf-{colour}", fill=COLOURS[colour % len(COLOURS)], cx=x, cy=y, r=radius, **attributes
    )


def line(x1: float, y1: float, x2: float, y2: float, **attributes: Any) -> str:
    look: dict[str, Any] = {"stroke": "currentColor", "stroke_width": 1} | attributes
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, **look)


def shortened(words: str, width: float, *, end: bool = False) -> str:
    """Cut words that are wider than this; of a path keep the `end`."""
    most = max(int((width - 12) / CHARACTER), 2)
    if len(words) <= most:
        return words
    return f"…{words[1 - most :]}" if end else f"{words[: most - 1]}…"


def last_names(paths: list[str]) -> list[str]:
    """The ends of paths (`city / North / N1`) that tell them apart: as few names of each as will do."""
    split = [path.split(BETWEEN) for path in paths]
    for count in range(1, max(map(len, split), default=1)):
        ends = [BETWEEN.join(names[-count:]) for names in split]
        if len(set(ends)) == len(set(paths)):
            return ends
    return paths


def label_width(names: list[str], most: float) -> float:
    return min(most, max((len(name) for name in names), default=0) * CHARACTER + 12)


@dataclass(frozen=True)
class Scale:
    """From figures to places on a line; logarithmic where figures differ too much to be seen beside each other."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """The place of a figure, never outside the line."""
        low, high, at = self.low, self.high, min(max(value, self.low), self.high)
        if self.logarithmic:
            low, high, at = (math.log10(each) for each in (low, high, at))
        return self.start + (self.end - self.start) * (at - low) / (high - low)

    @property
    def ticks(self) -> list[float]:
        if self.logarithmic:
            first, last = round(math.log10(self.low)), round(math.log10(self.high))
            return [10.0**power for power in range(first, last + 1, max(1, -(-(last - first) // 5)))]
        step = _round_step((self.high - self.low) / 4.5)
        return [i * step for i in range(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1)]


def scale_of(values: list[float], start: float, end: float, *, origin: bool = True) -> Scale:
    """Return a scale for figures of 0 or more: from 0, unless they differ too much, then from a power of ten."""
    known = [value for value in values if math.isfinite(value)]
    most = max(known, default=0.0) or 1.0
    least = min((value for value in known if value > 0), default=most)
    if most / least > WIDE or not origin:
        low, high = 10.0 ** math.floor(math.log10(least)), 10.0 ** math.ceil(math.log10(most))
        return Scale(low, high if high > low else 10 * low, start, end, logarithmic=True)
    step = _round_step(most / 4.5)
    return Scale(0.0, math.ceil(most / step - 1e-9) * step, start, end)


def _round_step(step: float) -> float:
    """The next round step: 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(round_one * power for round_one in (1.0, 2.0, 5.0, 10.0) if round_one * power >= step * (1 - 1e-9))


_CARD = "display:inline-block;max-width:60em;border:1px solid #8888;border-radius:6px;padding:.5em .9em;color:inherit"
_PLAIN = "border:none;background:transparent;text-align:left;vertical-align:top;padding:.1em 1.2em .1em 0"
_HEAD = f"{_PLAIN};font-weight:600;white-space:nowrap"
_RIGHT = _PLAIN.replace("left", "right")


def card(kind: str, heading: str, *parts: str) -> str:
    """Return a card; `parts` are HTML already."""
    name = f'<span style="opacity:.65">{escape(kind)}</span> '
    return f'<div style="{_CARD}"><div>{name}<b>{escape(heading)}</b></div>{"".join(parts)}</div>'


def rows_of(rows: Mapping[str, str]) -> str:
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
