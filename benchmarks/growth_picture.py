"""A small picture of how times grow: one line per series over two logarithmic axes, written as SVG by hand."""

import math

COLOURS = ("#1b6ca8", "#c8553d", "#588157", "#8d6a9f")
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 400, 70, 40, 150, 50


def draw(path, title, across, series):
    """Write series {name: {size: seconds}} as lines; both axes are marked at powers of ten."""
    points = [(math.log10(x), math.log10(y)) for line in series.values() for x, y in line.items()]
    low = [math.floor(min(point[i] for point in points)) for i in (0, 1)]
    high = [math.ceil(max(point[i] for point in points)) for i in (0, 1)]

    def at(x, y):
        return (
            LEFT + (x - low[0]) / (high[0] - low[0]) * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - (y - low[1]) / (high[1] - low[1]) * (HEIGHT - TOP - BOTTOM),
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="14">{title}</text>',
    ]
    for power in range(low[0], high[0] + 1):
        (x, bottom), (_, top) = at(power, low[1]), at(power, high[1])
        parts.append(f'<path d="M{x:.1f} {bottom:.1f}V{top:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18:.1f}" text-anchor="middle">{10**power:,}</text>')
    for power in range(low[1], high[1] + 1):
        (left, y), (right, _) = at(low[0], power), at(high[0], power)
        parts.append(f'<path d="M{left:.1f} {y:.1f}H{right:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g} s</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">{across}</text>')
    ends = sorted(((math.log10(line[max(line)]), name) for name, line in series.items()), reverse=True)
    label = TOP
    for colour, (last, name) in zip(COLOURS, ends, strict=False):
        line = [at(math.log10(x), math.log10(y)) for x, y in sorted(series[name].items())]
        path_data = "L".join(f"{x:.1f} {y:.1f}" for x, y in line)
        parts.append(f'<path d="M{path_data}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in line]
        label = max(label + 16, at(high[0], last)[1] + 4)
        parts.append(f'<text x="{WIDTH - RIGHT + 8}" y="{label:.1f}" fill="{colour}">{name}</text>')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*parts, "</svg>"]) + "\n")
