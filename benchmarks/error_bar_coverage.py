"""Coverage and width of error bars beside tables with bounds (THEORY H10), against re-running the mechanism.

Cases: a city's taxi trips by borough and zone (boroughs exact), counties (states exact), sparse blocks of a county, and
hair by eye colour by sex with exact one-way margins; each whole, non-negative and adding up. Real counts where a folder
of data is given, made-up ones of the same shape otherwise. For 50, 90, 95 and 99 % the share of figures covered,
over releases, with its Monte-Carlo error between releases; no share may lie below its level by more than five of them.

The baseline is the census's own approach (arXiv 2503.19714): take the published table for the truth, run the whole
mechanism on it 50 times, and put the normal quantile times the root mean squared difference around each published
figure, cut at zero. It is shown for the same releases: coverage, mean width, and its ratio to ours.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import polars as pl
from accuracy_data import Case, blocks, city
from scipy import special

import holdfast as hf

CONFIDENCES = (0.5, 0.9, 0.95, 0.99)
RELEASES, COMPARED, RERUNS = 200, 20, 50
BAR = 5.0
#: Figures of a table that vary at all; exact ones are covered for certain and are left out.
SHAPES = {"city": [43, 61, 1, 69, 69, 20], "counties": [60] * 50, "blocks": [20] * 30}


def counties(folder: Path) -> Case:
    """People of the United States in 2020 by state and county."""
    frame = pl.read_csv(folder / "us_counties_2020.csv", schema_overrides={"fips": pl.String})
    frame = frame.filter(~pl.col("fips").str.starts_with("72"))
    return Case.of("counties", frame.select("state", county="fips"), frame["pop2020"].to_list())


def one_county(folder: Path) -> Case:
    """People of one county of Rhode Island by tract, block group and block: many blocks are empty."""
    case = blocks(folder)
    kept = [v for v in case.tree.leaves if str(case.tree.names[v]).startswith("44001")]
    paths = [case.tree.path(int(v))[1:] for v in kept]
    domain = pl.DataFrame(paths, schema=["county", "tract", "group", "block"], orient="row").drop("county")
    return Case.of("blocks", domain, case.truth[kept].tolist())


def made_up(name: str) -> Case:
    """Counts of the shape of a case: a few large ones, many small ones."""
    sizes, rng = SHAPES[name], np.random.default_rng(3)
    domain = pl.DataFrame(
        [(f"p{i}", f"p{i}-{j}") for i, size in enumerate(sizes) for j in range(size)],
        schema=["part", "leaf"],
        orient="row",
    )
    counts = rng.geometric(1 / 30, sum(sizes)) * (rng.random(sum(sizes)) < 0.6)
    return Case.of(name, domain, counts.tolist())


def mechanisms(case: Case, exact: int | None):
    """Both methods with error bars, and the baseline of the census, at ε = 1."""
    equal = hf.consistent(case.tree)
    if exact is not None:
        equal = equal & hf.invariant(hf.exact_nodes(case.tree, case.tree.nodes_at(case.tree.levels[exact])))
    noise = hf.laplace(hf.counts(case.tree), epsilon=1)
    yield "given-then-onto", noise.given(equal).onto(hf.nonnegative(), integer=True)
    yield "topdown", noise.onto(equal & hf.nonnegative(), integer=True, method="topdown")


def contingency(folder: Path | None):
    """Hair by eye colour by sex, one-way margins exact."""
    if folder is None:
        truth = np.random.default_rng(4).geometric(1 / 15, 32)
    else:
        frame = pl.read_csv(folder / "ct_hair_eye_color.csv").sort("Hair", "Eye", "Sex")
        truth = frame["Freq"].to_numpy().astype(np.int64)
    query = hf.margins((4, 4, 2), keep=None)
    held = hf.invariant(hf.exact_margins((4, 4, 2), [(0,), (1,), (2,)])) & hf.nonnegative()
    return truth, hf.laplace(query, epsilon=0.5).onto(held, integer=True)


def rerun(mechanism, values, confidences, stream):
    """Intervals of the census's approach: (confidences, n, 2)."""
    again = mechanism.simulate(values, RERUNS, stream)
    error = np.sqrt(((again - values) ** 2).mean(axis=0))
    factors = special.ndtri(0.5 + np.array(confidences) / 2)
    return np.stack([np.column_stack([np.maximum(values - k * error, 0), values + k * error]) for k in factors])


def measure(name: str, truth, mechanism, releases: int) -> bool:
    stream = hf.seeded(11)
    shares, theirs, widths, their_widths = [], [], [], []
    start = time.perf_counter()
    for number in range(releases):
        drawn = mechanism.release(truth, rng=stream)
        ends = np.stack([drawn.interval(confidence) for confidence in CONFIDENCES])
        free = drawn.error_bars.low < drawn.error_bars.high
        shares.append(((ends[..., 0] <= truth) & (truth <= ends[..., 1]))[:, free].mean(axis=1))
        if number < COMPARED:
            other = rerun(mechanism, drawn.values, CONFIDENCES, stream)
            theirs.append(((other[..., 0] <= truth) & (truth <= other[..., 1]))[:, free].mean(axis=1))
            widths.append((ends[..., 1] - ends[..., 0])[:, free].mean(axis=1))
            their_widths.append((other[..., 1] - other[..., 0])[:, free].mean(axis=1))
    seconds = time.perf_counter() - start
    found, error = np.mean(shares, axis=0), np.std(shares, axis=0) / np.sqrt(len(shares))
    census, wide, narrow = (np.mean(each, axis=0) for each in (theirs, their_widths, widths))
    missed = False
    for k, confidence in enumerate(CONFIDENCES):
        z = (found[k] - confidence) / max(error[k], 1e-9)
        missed |= bool(z < -BAR)
        print(
            f"{name}, {confidence:.0%}: covered {found[k]:.2%} (± {error[k]:.2%}), mean width {narrow[k]:.2f}; re-run "
            f"{RERUNS} times {census[k]:.2%}, width {wide[k]:.2f}, ratio {wide[k] / narrow[k]:.2f}"
        )
    print(f"  {len(truth)} figures, {releases} releases, {seconds:.0f} s\n", flush=True)
    return missed


def main() -> int:
    """Print coverage and width; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder of the public data; made-up counts without it")
    parser.add_argument("--releases", type=int, default=RELEASES)
    asked = parser.parse_args()
    read = {"city": city, "counties": counties, "blocks": one_county}
    missed = False
    for name, exact in (("city", 1), ("counties", 1), ("blocks", None)):
        case = made_up(name) if asked.data is None else read[name](asked.data)
        for method, mechanism in mechanisms(case, exact):
            missed |= measure(f"{name}, {method}", case.truth, mechanism, asked.releases)
    missed |= measure("hair × eye × sex, onto", *contingency(asked.data), asked.releases)
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())
