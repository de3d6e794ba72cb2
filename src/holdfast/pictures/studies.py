"""Pictures of studies: points, lines and boxes over two axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.pictures.svg import COLOURS, Picture, Scale, circle, element, line, number, rectangle, text

#: Width and height of the picture, and where its axes stand.
WIDTH, LEFT, TOP, BOTTOM = 640.0, 62.0, 44.0, 310.0


@dataclass(frozen=True)
class Layer:
    """Figures drawn in one colour: `kind` is "line", "points" or "boxes".

    Boxes have five figures for every place: least, lower quarter, median, upper quarter, greatest.
    """

    name: str
    kind: str
    x: Sequence[float]
    y: Sequence[Any]

    @property
    def heights(self) -> list[float]:
        return [float(value) for each in self.y for value in (each if self.kind == "boxes" else [each])]


def plane(layers: Sequence[Layer], across: str, up: str, *, logarithmic: bool = False) -> Picture:
    """Draw layers over two axes; `logarithmic`: along the first one."""
    places = [float(value) for layer in layers for value in layer.x]
    heights = [value for layer in layers for value in layer.heights if math.isfinite(value)]
    x = _axis(places, LEFT + 8, WIDTH - 14, logarithmic)
    y = _axis(heights, BOTTOM, TOP, False)
    drawn = [line(LEFT, y(tick), WIDTH - 8, y(tick), opacity=0.5 if tick == 0 else 0.15) for tick in y.ticks]
    drawn += [text(LEFT - 6, y(tick), number(tick), "end", font_size=11) for tick in y.ticks]
    drawn += [
        text(x(tick), BOTTOM + 14, number(tick), "middle", font_size=11) for tick in x.ticks if x.low <= tick <= x.high
    ]
    width = min(14.0, 0.7 * (WIDTH - LEFT) / max([1, *(len(layer.x) for layer in layers)]))
    at = LEFT
    for i, layer in enumerate(layers):
        colour = i % len(COLOURS)
        drawn += _DRAWN[layer.kind](layer, x, y, colour, width)
        drawn.append(rectangle(at, 6, 10, 10, colour))
        drawn.append(text(at + 15, 11, layer.name))
        at += 34 + 7.3 * len(layer.name)
    drawn.append(text((LEFT + WIDTH) / 2, BOTTOM + 34, across, "middle", opacity=0.75))
    drawn.append(text(LEFT, TOP - 12, up, opacity=0.75, font_size=11))
    told = "; ".join(f"{layer.name}: {len(layer.x)} figures" for layer in layers)
    return Picture("".join(drawn), WIDTH, BOTTOM + 46, f"{up} against {across}. {told}.")


def _axis(values: Sequence[float], start: float, end: float, logarithmic: bool) -> Scale:
    low, high = min(values), max(values)
    if logarithmic:
        return Scale(low, high if high > low else 10 * low, start, end, logarithmic=True)
    room = 0.04 * (high - low) or 0.5
    return Scale(low - room, high + room, start, end)


def _line(layer: Layer, x: Scale, y: Scale, colour: int, width: float) -> list[str]:
    del width
    joined = " ".join(f"{x(a):.5g},{y(b):.5g}" for a, b in zip(layer.x, layer.y, strict=True) if math.isfinite(b))
    look: dict[str, Any] = {"fill": "none", "stroke": COLOURS[colour], "stroke_width": 2}
    return [element("polyline", points=joined, class_=f"hf-line-{colour}", **look)]


def _points(layer: Layer, x: Scale, y: Scale, colour: int, width: float) -> list[str]:
    size = min(3.4, max(1.6, width / 2))
    return [circle(x(a), y(b), size, colour) for a, b in zip(layer.x, layer.y, strict=True) if math.isfinite(b)]


def _boxes(layer: Layer, x: Scale, y: Scale, colour: int, width: float) -> list[str]:
    drawn = []
    for a, (low, first, middle, third, high) in zip(layer.x, layer.y, strict=True):
        left = x(a) - width / 2
        drawn.append(line(x(a), y(low), x(a), y(high), opacity=0.6))
        drawn.append(rectangle(left, y(third), width, max(y(first) - y(third), 0.5), colour, opacity=0.75))
        drawn.append(line(left, y(middle), left + width, y(middle)))
    return drawn


_DRAWN = {"line": _line, "points": _points, "boxes": _boxes}


def five(values: Sequence[float]) -> tuple[float, float, float, float, float]:
    """The five figures of a box: least, lower quarter, median, upper quarter, greatest."""
    ordered = sorted(values)

    def at(share: float) -> float:
        place = share * (len(ordered) - 1)
        below = math.floor(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (place - below) * (ordered[above] - ordered[below])

    return ordered[0], at(0.25), at(0.5), at(0.75), ordered[-1]
