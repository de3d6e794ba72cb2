"""The few kinds of picture that releases need, each a function of names and figures."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from holdfast.pictures.svg import (
    CHARACTER,
    COLOURS,
    TEXT,
    Picture,
    Scale,
    circle,
    element,
    label_width,
    last_names,
    line,
    number,
    rectangle,
    scale_of,
    shortened,
    text,
)

#: Width of pictures: on a phone they shrink a little, elsewhere they stand at this size.
WIDTH = 420.0
ROW, AXIS, LABELS = 28.0, 38.0, 205.0
#: Size of the text of ticks and limits.
SMALL = 11
Row = tuple[str, float, float]


def bands(rows: Sequence[Row], words: str) -> Picture:
    """Draw for each name how far figures fall from the truth: its mean error inside, the limits of most around it.

    `rows` are name, mean absolute error and the distance within which most figures fall; 0 stands for exact.
    """
    names = [name for name, _, _ in rows]
    left = label_width(names, LABELS)
    reach = max((limit for _, _, limit in rows if math.isfinite(limit)), default=0.0) or 1.0
    scale = Scale(-reach, reach, left + 4, WIDTH - 56)
    height = AXIS + ROW * len(rows)
    middle = scale(0.0)
    drawn = [line(middle, 18, middle, height - 18, stroke_dasharray="2 3"), text(middle, 9, "the truth", "middle")]
    for i, (name, mean, limit) in enumerate(rows):
        y = 20 + ROW * (i + 0.5)
        drawn.append(text(left - 8, y, shortened(name, left), "end"))
        if not math.isfinite(limit):
            drawn.append(text(middle + 6, y, "depends on the data"))
        elif limit == 0:
            drawn.append(element("path", d=f"M{middle - 6:g} {y:g}l6 -6l6 6l-6 6z", fill="currentColor"))
            drawn.append(text(middle + 11, y, "exact"))
        else:
            drawn.append(rectangle(scale(-limit), y - 8, scale(limit) - scale(-limit), 16, 4, rx=3))
            drawn.append(rectangle(scale(-mean), y - 8, max(scale(mean) - scale(-mean), 1.5), 16, 0, rx=1))
            drawn.append(text(scale(limit) + 5, y, f"±{number(limit)}"))
    drawn.append(_below(scale, height - 8, words, WIDTH))
    told = [
        f"{name}: {'exact' if limit == 0 else f'mean error {number(mean)}, most within {number(limit)}'}"
        for name, mean, limit in rows
    ]
    return Picture("".join(drawn), WIDTH, height, f"How far figures fall from the truth. {'; '.join(told)}.")


def bars(rows: Sequence[Row], words: str, chosen: Collection[int] = (), nothing: str = "exact") -> Picture:
    """Draw a bar for each name and figure, with a thin line to a second figure where it is larger.

    `chosen`: the bars that stand out; none: all alike. An unknown figure is infinite; one of 0 is called `nothing`.
    """
    left = label_width([name for name, _, _ in rows], LABELS + 80)
    width = WIDTH + max(left - LABELS, 0.0)  # long names do not take the room of the bars
    scale = scale_of([value for _, *both in rows for value in both], left, width - 60)
    bottom = 6 + ROW * len(rows)
    drawn = [_axis(scale, bottom, words, width)]
    for i, (name, value, limit) in enumerate(rows):
        y = 6 + ROW * (i + 0.5)
        drawn.append(text(left - 8, y, shortened(name, left), "end"))
        if not math.isfinite(value):
            drawn.append(text(left + 6, y, "depends on the data"))
            continue
        if value > 0:
            colour = 0 if not chosen or i in chosen else 4
            drawn.append(rectangle(left, y - 8, scale(value) - left, 16, colour, rx=1))
        shown, end = number(value) if value > 0 else nothing, scale(value) if value > 0 else left
        reaches = math.isfinite(limit) and limit > value
        drawn.append(text(end + 6, y - 6 if reaches else y, shown, font_weight=600 if reaches else None))
        if reaches:  # the figure of the bar stands above the line, that of the line at its end
            drawn.append(line(end, y + 5, scale(limit), y + 5))
            drawn.append(line(scale(limit), y + 1, scale(limit), y + 9))
            drawn.append(text(scale(limit) + 6, y + 5, number(limit), font_size=SMALL))
    told = [
        f"{name}: {number(value) if value > 0 else nothing}" + (f", line to {number(limit)}" if limit > value else "")
        for name, value, limit in rows
    ]
    return Picture("".join(drawn), width, bottom + AXIS, f"{words}. {'; '.join(told)}.")


def parts(rows: Sequence[tuple[str, float]]) -> Picture:
    """Draw shares of a whole as parts of one bar, named below it."""
    total = sum(share for _, share in rows) or 1.0
    drawn, at = [], 0.0
    fades = [max(0.35, 1 - 0.22 * (i // len(COLOURS))) for i in range(len(rows))]
    for i, (_, share) in enumerate(rows):
        width = WIDTH * share / total
        drawn.append(rectangle(at, 2, max(width - 2, 0.5), 26, i % len(COLOURS), opacity=fades[i]))
        at += width
    x, y = 0.0, 46.0
    for i, (name, share) in enumerate(rows):
        percent = f" {100 * share / total:.3g} %"
        words = shortened(name, WIDTH / 2 - len(percent) * CHARACTER) + percent
        room = len(words) * CHARACTER + 34
        if x and x + room > WIDTH:
            x, y = 0.0, y + 22
        drawn.append(rectangle(x, y - 6, 12, 12, i % len(COLOURS), opacity=fades[i]))
        drawn.append(text(x + 18, y, words))
        x += room
    told = "; ".join(f"{name} {100 * share / total:.3g} percent" for name, share in rows)
    return Picture("".join(drawn), WIDTH, y + 14, f"Shares of the budget: {told}.")


def curves(
    x: Sequence[float], series: Sequence[tuple[str, Sequence[float]]], across: str, up: str, *, even: bool = False
) -> Picture:
    """Draw figures against sizes, one line per name, told apart by colour, mark and dash.

    `even`: equal steps of the size are equally wide; otherwise equal factors are, and a size of 0 stands first.
    """
    left, top, right, bottom = 52.0, 44.0, WIDTH - 16, 244.0
    known = [value for _, values in series for value in values if math.isfinite(value)]
    highest, lowest = max([*known, 0.0]) or 1.0, min([*known, 0.0])
    room = (highest - lowest) * 0.06
    height = Scale(lowest - (room if lowest < 0 else 0.0), highest + room, bottom, top)
    sizes = [value for value in x if value > 0 or even]
    low, high = (min(sizes, default=1.0), max(sizes, default=10.0))
    start = left + (12 if even else 34)
    scale = Scale(low, high if high > low else 10 * low, start, right - 10, logarithmic=not even)

    def across_at(size: float) -> float:
        return scale(size) if size > 0 or even else left + 8

    drawn = [line(left, height(tick), right, height(tick), opacity=0.6 if tick == 0 else 0.15) for tick in height.ticks]
    drawn += [text(left - 6, height(tick), number(tick), "end") for tick in height.ticks]
    ticks = scale.ticks if even else _factors(low, high)
    for size in [*([0.0] if min(x) == 0 and not even else []), *(ticks or [low, high])]:
        drawn.append(line(across_at(size), bottom, across_at(size), bottom + 4))
        drawn.append(text(across_at(size), bottom + 14, number(size), "middle"))
    drawn.append(text(2, 8, up, opacity=0.75))
    for i, (name, values) in enumerate(series):
        places = [(across_at(a), height(b)) for a, b in zip(x, values, strict=True) if math.isfinite(b)]
        dash = None if i == 0 else "5 4"
        joined = " ".join(f"{a:.5g},{b:.5g}" for a, b in places)
        look: dict[str, Any] = {"fill": "none", "stroke": COLOURS[i], "stroke_width": 2, "stroke_dasharray": dash}
        drawn.append(element("polyline", points=joined, class_=f"hf-line-{i}", **look))
        drawn += [circle(a, b, 3.5, i) if i == 0 else rectangle(a - 3.2, b - 3.2, 6.4, 6.4, i) for a, b in places]
        start = left + i * (WIDTH - left) / 2
        drawn.append(circle(start + 6, 28, 4, i) if i == 0 else rectangle(start + 2, 24, 8, 8, i))
        drawn.append(text(start + 16, 28, name))
    drawn.append(text((left + right) / 2, bottom + 34, across, "middle", opacity=0.75))
    told = "; ".join(
        f"{name}: {', '.join(f'{number(b)} at size {number(a)}' for a, b in zip(x, values, strict=True))}"
        for name, values in series
    )
    return Picture("".join(drawn), WIDTH, bottom + 44, f"{up} against {across}. {told}.")


def line_over_time(rows: Sequence[tuple[str, float, float, float]], words: str) -> Picture:
    """Draw a value in every period as a line on the band of its intervals; nothing at a period that was left out."""
    left, right, top, bottom = 62.0, WIDTH - 10, 10.0, 150.0
    ends = [each for _, *figures in rows for each in figures if math.isfinite(each)]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    height = Scale(low, high if high > low else low + 1, bottom, top)
    at = [left + (right - left) * (i + 0.5) / len(rows) for i in range(len(rows))]
    there = [(x, *figures) for x, (_, *figures) in zip(at, rows, strict=True) if math.isfinite(figures[0])]
    both = [f"{x:.5g},{height(end):.5g}" for x, _, end, _ in there]
    both += [f"{x:.5g},{height(end):.5g}" for x, _, _, end in reversed(there)]
    drawn = [line(left, height(tick), right, height(tick), opacity=0.15) for tick in height.ticks]
    drawn += [text(left - 6, height(tick), number(tick), "end") for tick in height.ticks]
    drawn.append(element("polygon", points=" ".join(both), fill=COLOURS[4], opacity=0.5))
    joined = " ".join(f"{x:.5g},{height(value):.5g}" for x, value, _, _ in there)
    drawn.append(element("polyline", points=joined, fill="none", stroke=COLOURS[0], stroke_width=2))
    drawn += [circle(x, height(value), 2.5, 0) for x, value, _, _ in there]
    drawn += [text(x, bottom + 14, rows[i][0], where) for i, x, where in ((0, left, "start"), (-1, right, "end"))]
    told = "; ".join(f"{name} {number(value)} {_between(a, b)}" for name, value, a, b in rows if math.isfinite(value))
    return Picture("".join(drawn), WIDTH, bottom + 26, f"{words}. {told}.")


def _factors(low: float, high: float) -> list[float]:
    """Round figures from low to high: powers of ten, and where these are few also twice and five times them."""
    powers = [10.0**power for power in range(-3, 19)]
    ticks = [power for power in powers if low * 0.999 <= power <= high * 1.001]
    several = sorted(power * times for power in powers for times in (1, 2, 5))
    return ticks if len(ticks) > 2 else [each for each in several if low * 0.999 <= each <= high * 1.001]


def hundred(right: int, before: int = 50) -> Picture:
    """Draw one hundred guesses: those right by chance, those right through the release, and the others."""
    drawn = []
    for i in range(100):
        x, y = 9 + 16 * (i % 20), 9 + 16 * (i // 20)
        if i < right:
            drawn.append(circle(x, y, 6, 4 if i < before else 1))
        else:
            drawn.append(element("circle", cx=x, cy=y, r=5.4, fill="none", stroke="currentColor", opacity=0.5))
    words = f"Of 100 guesses at most {right} are right, {before} of them by chance."
    return Picture("".join(drawn), 322, 82, words)


def points(rows: Sequence[tuple[str, float, float, float]], words: str, beside: str = "") -> Picture:
    """Draw for each name its value as a dot on the band of its interval, and print both.

    An interval that is not known is left out. `beside` says in a last line what is not drawn.
    """
    names, height = last_names([name for name, *_ in rows]), 22.0
    left = label_width(names, LABELS)
    known = [each for _, *figures in rows for each in figures if math.isfinite(each)]
    lowest, highest = min([*known, 0.0]), max([*known, 0.0]) or 1.0
    printed = [(number(value), _between(low, high)) for _, value, low, high in rows]
    widest = max((len(value) for value, _ in printed), default=0) * CHARACTER
    right = widest + max((len(ends) for _, ends in printed), default=0) * CHARACTER * SMALL / TEXT + 24
    width = max(WIDTH, left + right + 170)
    scale = Scale(lowest, highest, left + 6, width - right - 8)
    bottom = 6 + height * len(rows)
    drawn = [_axis(scale, bottom, words, width)]
    for i, (_, value, low, high) in enumerate(rows):
        y = 6 + height * (i + 0.5)
        drawn.append(text(left - 8, y, shortened(names[i], left, end=True), "end"))
        if math.isfinite(low) and math.isfinite(high):  # higher than the dot, so that a narrow one is seen too
            drawn.append(rectangle(scale(low), y - 6, scale(high) - scale(low), 12, 4, opacity=0.6))
            drawn += [line(scale(end), y - 6, scale(end), y + 6) for end in (low, high)]
        drawn.append(circle(scale(value), y, 3, 0, stroke="currentColor", stroke_width=0.8))
        drawn.append(text(width - right + 8 + widest, y, printed[i][0], "end", font_weight=600))
        drawn.append(text(width - right + 16 + widest, y, printed[i][1], font_size=SMALL))
    if beside:
        drawn.append(_below(scale, bottom + 44, shortened(beside, width), width, font_size=SMALL))
    told = "; ".join(f"{name} {number(value)} {_between(low, high)}".rstrip() for name, value, low, high in rows)
    tall = bottom + AXIS + (16 if beside else 0)
    return Picture("".join(drawn), width, tall, f"{words}. {told}.{f' {beside}.' if beside else ''}")


def chosen_rows(levels: Mapping[str, Any], level: str | None, most: int) -> tuple[list[int], str, str]:
    """Choose which figures a picture shows, from the rows of each level: some rows, their name, what is left out.

    Without a level all of them, where they are at most `most`; otherwise the finest level of at most so many; otherwise
    the first figures of the first level that has several.
    """
    sizes = {name: len(rows) for name, rows in levels.items()}
    if level is None and sum(sizes.values()) <= most:
        return sorted(int(row) for rows in levels.values() for row in rows), "", ""
    if level is None:
        several = [name for name, size in sizes.items() if size > 1] or list(sizes)
        level = next((name for name in reversed(several) if sizes[name] <= most), several[0])
    others = [name for name in levels if name != level]
    left_out = f"not drawn, plot(level=…): {', '.join(others[:4])}{', …' if len(others) > 4 else ''}" if others else ""
    part = "" if sizes[level] <= most else f", the first {most} of {sizes[level]:,}"
    return [int(row) for row in levels[level][:most]], f"{level}{part}: ", left_out


def _between(low: float, high: float) -> str:
    """An interval in words, where there is one."""
    if not math.isfinite(low + high):
        return ""
    return f"exactly {number(low)}" if low == high else f"{number(low)} to {number(high)}"


def _axis(scale: Scale, y: float, words: str, width: float = WIDTH) -> str:
    drawn = [line(tick_at, 2, tick_at, y, opacity=0.15) for tick_at in map(scale, scale.ticks)]
    drawn += [text(scale(tick), y + 11, number(tick), "middle", font_size=SMALL) for tick in scale.ticks]
    how = f"{words}, logarithmic" if scale.logarithmic else words
    return "".join([*drawn, _below(scale, y + 28, how, width)])


def _below(scale: Scale, y: float, words: str, width: float, **look: Any) -> str:
    """Words in the middle of a scale, or as near as the picture has room for them."""
    half = len(words) * CHARACTER * 0.46
    middle = max(half, min((scale.start + scale.end) / 2, width - half)) if half < width / 2 else width / 2
    return text(middle, y, words, "middle", opacity=0.75, **look)


def spreads(rows: Sequence[tuple[str, Sequence[float], float, float]], words: str) -> Picture:
    """Draw for each name the distribution of its errors around the truth, and a line over the middle 95 in 100.

    `rows` are name, how often errors fall into equal parts of −reach … reach, reach, and half the width of the line;
    a reach of 0 stands for exact, an infinite one for unknown.
    """
    left, height = label_width([name for name, *_ in rows], LABELS), 60.0
    reach = max((each for _, _, each, _ in rows if math.isfinite(each)), default=0.0) or 1.0
    scale = Scale(-reach, reach, left + 4, WIDTH - 56)
    bottom = 22 + height * len(rows)
    middle = scale(0.0)
    drawn = [line(middle, 16, middle, bottom, stroke_dasharray="2 3"), text(middle, 8, "the truth", "middle")]
    for i, (name, parts_of, own, limit) in enumerate(rows):
        y = 22 + height * (i + 1) - 10
        drawn.append(text(left - 8, y - 6, shortened(name, left), "end"))
        if not math.isfinite(own):
            drawn.append(text(middle + 6, y - 6, "depends on the data"))
        elif own == 0:
            drawn.append(element("path", d=f"M{middle - 6:g} {y - 6:g}l6 -6l6 6l-6 6z", fill="currentColor"))
            drawn.append(text(middle + 11, y - 6, "exact"))
        else:
            drawn.append(_hill(parts_of, own, scale, y, height - 20))
            drawn.append(line(scale(-limit), y + 5, scale(limit), y + 5, stroke_width=2))
            drawn.append(text(scale(max(own, limit)) + 6, y - 6, f"±{number(limit)}"))
    drawn += [text(scale(tick), bottom + 11, number(tick), "middle", font_size=SMALL) for tick in scale.ticks]
    drawn.append(_below(scale, bottom + 28, words, WIDTH))
    told = "; ".join(
        f"{name}: {'exact' if own == 0 else 'unknown' if math.isinf(own) else f'95 in 100 within {number(limit)}'}"
        for name, _, own, limit in rows
    )
    return Picture("".join(drawn), WIDTH, bottom + 38, f"Distribution of errors. {told}.")


def _hill(parts_of: Sequence[float], reach: float, scale: Scale, bottom: float, height: float) -> str:
    """The outline of a distribution, as high as its highest part."""
    top, width = max(parts_of) or 1.0, 2 * reach / len(parts_of)
    places = [(scale(-reach), bottom)]
    for i, part in enumerate(parts_of):
        y = bottom - height * part / top
        places += [(scale(-reach + i * width), y), (scale(-reach + (i + 1) * width), y)]
    places.append((scale(reach), bottom))
    joined = " ".join(f"{x:.5g},{y:.5g}" for x, y in places)
    return element("polygon", points=joined, class_="hf-0", fill=COLOURS[0])
