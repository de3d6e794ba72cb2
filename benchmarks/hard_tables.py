"""Tables that are hard to draw exactly on a hierarchy: none is refused for its counts, and what each takes.

One release each, integer noise given consistency and non-negative leaves, on the secure stream: all empty; one leaf of
a million among empty ones; nearly all empty; scales of 60 and 0.4 side by side; scales from 0.05 to 10,000. All under
one root ("flat"), or below groups of 100. A case that the guarantee refuses from public facts alone is
printed as such. Compiling is not counted: the first release of every law is made twice. Seconds are a processor's.

    python benchmarks/hard_tables.py [--leaves 2000 20000 100000] [--laws laplace gaussian] [--only WORDS]
"""

import argparse
import resource
import sys
import time

import numpy as np

import holdfast as hf


def tables(n):
    """Counts and scales by name: a scale for all outputs, or one for each (the root's and the groups' first)."""
    generator = np.random.default_rng(1)
    full = generator.geometric(1 / 60, n)
    some = generator.geometric(1 / 45, n)
    one = np.where(np.arange(n) == n // 3, 10**6, 0)
    sides = np.where(np.arange(n) % 2, 60.0, 0.4)
    return {
        "all empty": (np.zeros(n, dtype=int), 6),
        "one leaf of a million among empty ones": (one, 6),
        "one leaf in a thousand has 5,000 among empty ones": (np.where(np.arange(n) % 1000 == 7, 5_000, 0), 6),
        "one enormous leaf among full ones": (np.where(one > 0, 10**12, some), 6),
        "95 % empty": (np.where(generator.random(n) < 0.95, 0, full), 6),
        "99.9 % empty": (np.where(generator.random(n) < 0.999, 0, full), 6),
        "scales of 60 and 0.4 side by side": (some, sides),
        "scale 0.05": (some % 3, 0.05),
        "scale 500": (some, 500),
        "scale 500, one leaf of a million": (one, 500),
        "scale 10,000": (some, 10_000),
        "scale 10,000, one leaf of a million": (one, 10_000),
    }


def trees(n):
    """Parents by name."""
    groups = max(n // 100, 1)
    deep = np.concatenate([[-1], np.zeros(groups), 1 + np.arange(n) * groups // n])
    return {"flat": np.concatenate([[-1], np.zeros(n)]).astype(int), "groups": deep.astype(int)}


def mechanism(parents, scale, law):
    """The mechanism and its tree; scales of leaves are those given, and of outputs above them 6."""
    tree = hf.Hierarchy.from_parents(parents)
    if np.ndim(scale):
        scale = np.concatenate([np.full(tree.n - len(scale), 6.0), scale])
    base = hf.laplace if law == "laplace" else hf.gaussian
    return tree, base(hf.counts(tree), scale=scale).given(hf.consistent(tree) & hf.nonnegative(at=tree.leaves))


def release(parents, counts, scale, law):
    """One release; seconds of a processor, or the sentence with which it is refused before any data is seen."""
    tree, noise = mechanism(parents, scale, law)
    try:
        noise.guarantee  # noqa: B018 (what is refused from public facts is refused here)
    except hf.Refused as refusal:
        return None, str(refusal)
    truth = tree.sum_up(counts)
    start = time.process_time()
    made = noise.release(truth).values
    taken = time.process_time() - start
    assert np.array_equal(made, tree.sum_up(made[tree.leaves]))
    assert made[tree.leaves].min() >= 0
    return taken, ""


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--leaves", type=int, nargs="+", default=[2_000, 20_000, 100_000])
    options.add_argument("--laws", nargs="+", default=["laplace", "gaussian"])
    options.add_argument("--only", default="")
    given = options.parse_args()
    for law in given.laws:
        release(trees(5_000)["groups"], np.arange(5_000) % 9, 6, law)  # compile
        for n in given.leaves:
            for name, (counts, scale) in tables(n).items():
                for shape, parents in trees(n).items():
                    words = f"{n:,} leaves, {shape}, {law}, {name}"
                    if given.only not in words:
                        continue
                    taken, refusal = release(parents, counts, scale, law)
                    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
                    said = f"{taken:.1f} s, peak so far {peak:.2f} GiB" if taken is not None else f"said: {refusal}"
                    print(f"{words}: {said}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
