"""How long the report of 49,900 figures takes to answer in a real browser, and how large its page is.

A hierarchy of 49,700 zones in 199 counties is released by `given` and by `onto`, with Laplace and Gaussian noise, and
its page is opened in Chromium. Sums of 1 to all zones and counties are asked for, scattered ones too. The first answer
makes the law ready; of the others the median and the largest are printed, in milliseconds. It exits with an error when
a page is above its bar, or an answer but the first.

    python benchmarks/report_answers.py
"""

import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

import browser  # noqa: E402
import released  # noqa: E402
from holdfast.release.run import release  # noqa: E402

#: Bytes of a page, and milliseconds of an answer, at most.
LARGEST, BAR = 3_000_000, 100
ZONES = [(f"County {i // 250}", f"{i:06d}") for i in range(49_700)]
HOLD = ("consistent, nonnegative, {between: {high: 100000, at: [zone]}}", "consistent")
GIVEN, GAUSSIAN = ("method: onto", "method: given"), ("epsilon: 1.0", "rho: 0.1")
KINDS = {"given": (HOLD, GIVEN), "given, Gaussian": (HOLD, GIVEN, GAUSSIAN), "onto": (), "onto, Gaussian": (GAUSSIAN,)}
ASKED = [{"zone": [zone for _, zone in ZONES[start : start + size]]} for size in (1, 3, 40, 1000) for start in (0, 249)]
ASKED += [{"borough": [f"County {i}" for i in range(size)]} for size in (1, 7, 150)]
ASKED += [{"zone": [zone for i, (_, zone) in enumerate(ZONES) if i % 97 % part]} for part in (2, 40)]
ASKED += [{"zone": [zone for _, zone in ZONES[: 25_000 * part]]} for part in (1, 2)]
TIMES = """(asked) => asked.map((where) => {
  const start = performance.now();
  holdfast.estimate(where, 0.9);
  return performance.now() - start;
})"""


def job(folder: Path, kind: str) -> Path:
    """Release a kind with few records, and return its page."""
    folder.mkdir()
    records = {(zone, county, "F", "old", "X"): 2 for county, zone in ZONES[::7]}
    made = released.job(folder, "moved", *KINDS[kind], records=records, zones=ZONES)
    return release(made) / "report.html"


def main() -> int:
    slow = 0
    with tempfile.TemporaryDirectory() as place, browser.Browser() as opened:
        for number, kind in enumerate(KINDS):
            path = job(Path(place) / str(number), kind)
            page, size = opened.page(path), path.stat().st_size
            first, *later = page(f"({TIMES})({json.dumps([ASKED[0], *ASKED])})")
            middle = sorted(later)[len(later) // 2]
            told = f"first {first:.0f} ms, then {middle:.0f} ms, at most {max(later):.0f} ms"
            print(f"{kind:16} {size / 1e6:.2f} MB, {told}")
            slow += size > LARGEST or max(later) > BAR
    return int(slow > 0)


if __name__ == "__main__":
    sys.exit(main())
