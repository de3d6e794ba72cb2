"""Release the trip counts of a made-up city both ways, and print values, errors and guarantees side by side.

The city has 6 boroughs and 263 zones; its trips are generated here, so the true counts may be printed. First the
whole hierarchy is released so that it adds up, by revision (`given`, whole numbers) and by update (`onto`); then the
zones are released with exact borough totals.
"""

from __future__ import annotations

import numpy as np

import holdfast as hf
from holdfast.mechanism import Release

ZONES = {"Northbank": 43, "Harbour": 61, "Airport": 1, "Midtown": 69, "Eastfield": 69, "Islands": 20}
TRIPS = 300_000


def made_up_city() -> tuple[hf.Hierarchy, np.ndarray]:
    """Return the city's public hierarchy and its generated trip counts, one per zone."""
    domain = {
        "borough": [borough for borough, count in ZONES.items() for _ in range(count)],
        "zone": [f"{borough} {i + 1}" for borough, count in ZONES.items() for i in range(count)],
    }
    tree = hf.Hierarchy.from_frame(as_frame(domain), levels=["borough", "zone"], root="city")
    generator = np.random.default_rng(20260101)
    popularity = generator.lognormal(0.0, 1.8, size=len(tree.leaves))
    return tree, generator.multinomial(TRIPS, popularity / popularity.sum())


def as_frame(columns: dict[str, list[str]]) -> object:
    """Return a data frame of whatever kind is installed."""
    import polars

    return polars.DataFrame(columns)


def table(title: str, header: list[str], rows: list[list[object]]) -> None:
    """Print rows under a header, first column left, the others right."""
    cells = [
        header,
        *[
            [f"{c:,.1f}" if isinstance(c, float) else f"{c:,}" if isinstance(c, int) else str(c) for c in row]
            for row in rows
        ],
    ]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    print(f"\n{title}")
    for place, row in enumerate(cells):
        print(
            "  "
            + "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        )
        if place == 0:
            print("  " + "  ".join("-" * w for w in widths))


def errors_by_level(tree: hf.Hierarchy, truth: np.ndarray, releases: dict[str, Release]) -> list[list[object]]:
    """Mean absolute error of each release at each level."""
    return [
        [level, *(float(np.abs(r.values - truth)[tree.depth == depth].mean()) for r in releases.values())]
        for depth, level in enumerate(tree.levels)
    ]


def hierarchy(tree: hf.Hierarchy, trips: np.ndarray) -> None:
    """The whole hierarchy, made to add up in the two ways."""
    query = hf.counts(tree)
    truth = query.answer(trips)
    adds_up = hf.consistent(tree)
    base = hf.laplace(query, epsilon=1)
    releases = {
        "given": base.given(adds_up).release(truth),
        "onto": base.onto(adds_up, integer=False).release(truth),
    }
    shown = np.flatnonzero(tree.depth < 2)
    rows = [[tree.names[i], int(truth[i]), *(r.values[i].item() for r in releases.values())] for i in shown]
    table("Trips per borough: true and released", ["", "true", *releases], rows)
    table("Mean absolute error", ["level", *releases], errors_by_level(tree, truth, releases))
    for name, release in releases.items():
        gap = release.values[tree.depth == 1].sum() - release.values[0]
        how = "is the city's, exactly" if gap == 0 else f"is the city's up to {abs(gap):.0e}"
        print(f"\n{name}: the boroughs' sum {how}.\n  {release.guarantee}")
    price = base.given(adds_up & hf.nonnegative())
    print(
        f"\nNon-negative as well, by revision: epsilon {price.guarantee.epsilon:.4f} instead of 1 (exactly that much)."
    )


def exact_boroughs(tree: hf.Hierarchy, trips: np.ndarray) -> None:
    """Zones as whole numbers, with every borough's total published exactly."""
    borough_of = tree.parents[tree.leaves]
    totals = np.array([(borough_of == borough).astype(int) for borough in np.unique(borough_of)])
    base = hf.laplace(hf.histogram(len(trips)), epsilon=1, neighbours="replace-one")
    mandated = hf.invariant(totals)
    releases = {"given": base.given(mandated).release(trips), "onto": base.onto(mandated).release(trips)}
    zones = tree.names[tree.leaves]
    rows = [[zones[i], int(trips[i]), *(r.values[i].item() for r in releases.values())] for i in range(0, 263, 33)]
    table("Some zones, borough totals exact: true and released", ["", "true", *releases], rows)
    errors = [["zone", *(float(np.abs(r.values - trips).mean()) for r in releases.values())]]
    table("Mean absolute error", ["", *releases], errors)
    for name, release in releases.items():
        print(f"\n{name}:")
        for statement in release.guarantees:
            print(f"  {statement}")


if __name__ == "__main__":
    the_tree, the_trips = made_up_city()
    print(f"A made-up city: {the_tree.n} nodes, {len(the_trips)} zones, {the_trips.sum():,} trips.")
    hierarchy(the_tree, the_trips)
    exact_boroughs(the_tree, the_trips)
