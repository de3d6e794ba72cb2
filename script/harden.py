"""Run the campaigns against holdfast and print the figures of each; ends with 1 where something was found.

A campaign is named with how many cases to run and from which seed on; a case is repeated by its seed.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

SUPPORT = Path(__file__).parents[1] / "tests" / "support"
SHOWN = 20


def campaign(name: str, count: int | None, seed: int) -> bool:
    """Run one campaign; return whether nothing was found."""
    sys.path.insert(0, str(SUPPORT))
    warnings.simplefilter("ignore")
    from campaigns import CAMPAIGNS

    run, usual = CAMPAIGNS[name]
    cases, wrong, begin = Counter(), [], time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.suppress(KeyboardInterrupt),
    ):  # tells what it saw
        for what, found in run(Path(folder), usual if count is None else count, seed):
            cases[what] += 1
            if found is not None:
                wrong.append(found)
            if name == "load":
                print(f"  {what}", flush=True)
    print(f"{name}: {sum(cases.values())} cases, {len(wrong)} wrong, {time.monotonic() - begin:.0f} s", flush=True)
    if name in ("power", "kills", "races", "tampered", "laws", "statements", "draws", "proofs"):
        print(f"  {', '.join(f'{what}: {number}' for what, number in sorted(cases.items()))}")
    for found in wrong[:SHOWN]:
        print(f"  {found}")
    return not wrong


def main(words: list[str]) -> int:
    """Run what is named, or everything."""
    count = int(words[1]) if len(words) > 1 else None
    if words:
        return 0 if campaign(words[0], count, int(words[2]) if len(words) > 2 else 0) else 1
    first = ("calls", "specs", "sources", "tampered", "flips", "races", "laws", "statements", "draws", "proofs")
    names = (*first, "power", "load", "page", "kills")
    ends = [subprocess.run([sys.executable, __file__, name], check=False).returncode for name in names]
    return max(ends)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
