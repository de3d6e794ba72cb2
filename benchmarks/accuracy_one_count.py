"""One count without a hierarchy: why tables that were cut at zero beat tables drawn given that nothing is negative.

Integer Laplace noise, ε = 1/3 for the whole mechanism, the error and the bias of four ways by the true count, computed
from the law itself: the noisy count as it is; cut at zero (`onto`); the median of what the true count may be after the
noisy one was seen, if all counts from 0 on were equally likely before; and drawn given that it is not negative
(`given`), with noise that pays for that.

    python benchmarks/accuracy_one_count.py
"""

import numpy as np
import numpy.typing as npt

import holdfast as hf

EPSILON = 1 / 3
COUNTS = (0, 1, 2, 5, 10, 30)
#: Noise beyond this has less than 1e-15 of the probability.
FAR = 400

Reals = npt.NDArray[np.float64]


def law(scale: float) -> Reals:
    """Probabilities of noise from −FAR to FAR."""
    weights = np.exp(-np.abs(np.arange(-FAR, FAR + 1)) / scale)
    return weights / weights.sum()


def posterior_median(noisy: int, scale: float) -> int:
    """The median of the true count after the noisy one was seen."""
    weights = np.exp(-np.abs(np.arange(2 * FAR) - noisy) / scale)
    return int(np.searchsorted(np.cumsum(weights), weights.sum() / 2))


def ways(count: int) -> dict[str, tuple[Reals, Reals]]:
    """What each way publishes for a true count, and with which probability."""
    scale = 1 / EPSILON
    noisy, plain = count + np.arange(-FAR, FAR + 1), law(scale)
    paying = hf.laplace(hf.histogram(1), epsilon=EPSILON).given(hf.nonnegative()).calibrated(epsilon=EPSILON)
    allowed = np.where(noisy >= 0, law(_scale(paying)), 0)
    return {
        "as it is": (noisy, plain),
        "cut at zero": (np.maximum(noisy, 0), plain),
        "posterior median": (np.array([posterior_median(int(y), scale) for y in noisy]), plain),
        "given nonnegative": (noisy, allowed / allowed.sum()),
    }


def _scale(mechanism: hf.Mechanism) -> float:
    """The λ at which integer Laplace noise has this mechanism's variance 2α/(1 − α)²."""
    variance = mechanism.base.law.variances[0]
    alpha = (variance + 1 - np.sqrt(2 * variance + 1)) / variance
    return -1 / np.log(alpha)


def main() -> None:
    found = {count: ways(count) for count in COUNTS}
    print("| way | " + " | ".join(f"count {count}" for count in COUNTS) + " |")
    print("|---|" + "---|" * len(COUNTS))
    for way in found[0]:
        cells = []
        for count in COUNTS:
            values, chances = found[count][way]
            cells.append(f"{chances @ np.abs(values - count):.2f} ({chances @ (values - count):+.2f})")
        print(f"| {way} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
