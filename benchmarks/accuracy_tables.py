"""Tables and the picture of the accuracy study, from its file of results."""

import csv
from dataclasses import dataclass, fields
from math import hypot
from pathlib import Path

from accuracy_methods import BASELINES, METHODS


@dataclass(frozen=True)
class Result:
    """How wrong one method's tables are on the nodes of one level, all or those of one size."""

    dataset: str
    noise: str
    epsilon: str
    split: str
    method: str
    level: str
    size: str
    nodes: int
    repetitions: int
    error: float
    error_se: float
    bias: float
    bias_se: float
    seconds: float


def read(file: Path) -> list[Result]:
    """Read the results so far; none if there is no file."""
    if not file.exists():
        return []
    kinds = [field.type for field in fields(Result)]
    with file.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.reader(lines))[1:]
    return [Result(*(kind(value) for kind, value in zip(kinds, row, strict=True))) for row in rows]


def report(results: list[Result]) -> str:
    """All tables of errors, and of the bias at the leaves."""
    settings = dict.fromkeys((row.dataset, row.noise, row.epsilon, row.split) for row in results)
    return "\n\n".join(part for setting in settings for part in _of_setting(results, setting))


def _of_setting(results: list[Result], setting: tuple[str, ...]) -> list[str]:
    here = [row for row in results if (row.dataset, row.noise, row.epsilon, row.split) == setting]
    title = "{}, {}, ε = {}, split {}".format(*setting)
    whole = [row for row in here if row.size == "all"]
    sized = [row for row in here if row.size != "all" and row.level == whole[-1].level]
    parts = [f"{title}: mean absolute error by level", _table(whole, "level", "error"), verdict(whole)]
    return [*parts, f"{title}: bias by size of the true count, {whole[-1].level}", _table(sized, "size", "bias")]


def _table(rows: list[Result], column: str, number: str) -> str:
    """Markdown with one line for each method; figures that nobody beats by three standard errors are bold."""
    heads = dict.fromkeys((getattr(row, column), row.nodes) for row in rows)
    lines = ["| method | " + " | ".join(f"{head} ({nodes:,})" for head, nodes in heads) + " |"]
    lines.append("|---|" + "---|" * len(heads))
    for method in sorted({row.method for row in rows}, key=_place):
        cells = []
        for head, _ in heads:
            ours = next(row for row in rows if row.method == method and getattr(row, column) == head)
            text = f"{getattr(ours, number):.3f} ± {getattr(ours, number + '_se'):.3f}"
            others = [row for row in rows if getattr(row, column) == head]
            best = number == "error" and not any(_clear(other, ours) for other in others)
            cells.append(f"**{text}**" if best else text)
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _place(method: str) -> tuple[int, str]:
    return (METHODS.index(method) if method in METHODS else len(METHODS), method)


def _clear(better: Result, worse: Result) -> bool:
    return worse.error - better.error > 3 * hypot(better.error_se, worse.error_se)


def verdict(rows: list[Result]) -> str:
    """Which holdfast methods no baseline beats at any level, by three standard errors, and where they are ahead."""
    rivals = [row for row in rows if row.method in BASELINES]
    if not rivals:
        return "no baseline was run"
    found = []
    for method in sorted({row.method for row in rows} - {*BASELINES, "metropolis"}, key=_place):
        ours = [row for row in rows if row.method == method]
        beaten = [row.level for row in ours if any(_clear(o, row) for o in rivals if o.level == row.level)]
        ahead = [row.level for row in ours if all(_clear(row, o) for o in rivals if o.level == row.level)]
        if not beaten:
            found.append(f"{method} is beaten nowhere and ahead of all baselines at {', '.join(ahead) or 'no level'}")
    return "; ".join(found) or "no holdfast method is unbeaten at every level"


#: What the picture shows: dataset, noise, ε, split.
PANELS = (("city", "laplace", "1.0", "even"), ("blocks", "laplace", "1.0", "even"))
COLOURS = {"given": "#1b6ca8", "onto": "#e08a00", "given, topdown": "#0b8043", "bluedown": "#8e44ad"}
WIDTH, ROW, LEFT, TOP, PANEL = 640, 30, 150, 60, 40
LEAST, MOST = 0.6, 1.3


def picture(results: list[Result]) -> str:
    """Each level's error, as a multiple of TopDown's, as an SVG."""
    rows, parts, y = results, [], TOP

    def x(ratio: float) -> float:
        return LEFT + (WIDTH - LEFT - 20) * (min(max(ratio, LEAST), MOST) - LEAST) / (MOST - LEAST)

    for i, (method, colour) in enumerate(COLOURS.items()):
        parts.append(f'<circle cx="{LEFT + 115 * i}" cy="20" r="5" fill="{colour}"/>')
        parts.append(f'<text x="{LEFT + 115 * i + 9}" y="24">{method}</text>')
    for panel in PANELS:
        here = [r for r in rows if (r.dataset, r.noise, r.epsilon, r.split) == panel and r.size == "all"]
        usual = {r.level: r for r in here if r.method == "topdown"}
        if not usual:
            continue
        parts.append(f'<text x="8" y="{y - 12}" font-weight="bold">{panel[0]}, {panel[1]}, ε = {panel[2]}</text>')
        for level, other in usual.items():
            parts.append(f'<text x="{LEFT - 12}" y="{y + 14}" text-anchor="end">{level} ({other.nodes:,})</text>')
            parts.append(f'<path d="M{LEFT} {y + 10}H{WIDTH - 20}" stroke="#ddd"/>')
            for i, (method, colour) in enumerate(COLOURS.items()):
                for ours in (r for r in here if r.method == method and r.level == level):
                    place = x(ours.error / other.error)
                    parts.append(f'<circle cx="{place:.1f}" cy="{y + 10}" r="{7 - i}" fill="{colour}"/>')
            y += ROW
        parts.append(f'<path d="M{x(1):.1f} {y - ROW * len(usual) - 6}V{y}" stroke="#555" stroke-dasharray="4 3"/>')
        y += PANEL
    ticks = (0.6, 0.8, 1.0, 1.2)
    parts += [f'<text x="{x(tick):.1f}" y="{y - 18}" text-anchor="middle">{tick}</text>' for tick in ticks]
    parts.append(f'<text x="{LEFT}" y="{y}">mean absolute error, as a multiple of TopDown\'s</text>')
    style = 'font-family="sans-serif" font-size="13"'
    size = f'viewBox="0 0 {WIDTH} {y + 12}" width="{WIDTH}" height="{y + 12}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n' + "\n".join(parts) + "\n</svg>\n"
