"""Run the campaigns against holdfast and print the figures of each; ends with 1 where something was found.

A campaign is named with how many cases to run and from which seed on; a case is repeated by its seed. Kills are
`tests/support/killing.py`, which needs a folder, the way to end, and the numbers of points in lines and in time.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

SUPPORT = Path(__file__).parents[1] / "tests" / "support"
KILLS = 1_000
SHOWN = 20


def campaign(name: str, count: int | None, seed: int) -> bool:
    """Run one campaign; return whether nothing was found."""
    sys.path.insert(0, str(SUPPORT))
    warnings.simplefilter("ignore")
    from campaigns import CAMPAIGNS

    run, usual = CAMPAIGNS[name]
    cases, wrong, begin = Counter(), [], time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for what, found in run(Path(folder), usual if count is None else count, seed):
            cases[what] += 1
            if found is not None:
                wrong.append(found)
            if name == "load":
                print(f"  {what}", flush=True)
    print(f"{name}: {sum(cases.values())} cases, {len(wrong)} wrong, {time.monotonic() - begin:.0f} s", flush=True)
    if name == "power":
        print(f"  {', '.join(f'{what}: {number}' for what, number in sorted(cases.items()))}")
    for found in wrong[:SHOWN]:
        print(f"  {found}")
    return not wrong


def kills(count: int) -> bool:
    """Kill releases at points along their lines and in time; return whether nothing was lost."""
    import json

    with tempfile.TemporaryDirectory() as folder:
        points = [str(SUPPORT / "killing.py"), folder, "kill", str(count - count // 8), str(count // 8)]
        done = subprocess.run([sys.executable, *points], capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    lost = [each for each in found if not (each.get("whole") or not each.get("visible", True))]
    lost += [each for each in found if each.get("drawn") and each.get("charges") != 1]
    print(f"kills: {len(found)} points, {len(lost)} wrong")
    return not lost


def main(words: list[str]) -> int:
    """Run what is named, or everything."""
    count = int(words[1]) if len(words) > 1 else None
    if words and words[0] == "kills":
        return 0 if kills(count or KILLS) else 1
    if words:
        return 0 if campaign(words[0], count, int(words[2]) if len(words) > 2 else 0) else 1
    names = ("calls", "specs", "sources", "tampered", "flips", "races", "power", "load", "page", "kills")
    ends = [subprocess.run([sys.executable, __file__, name], check=False).returncode for name in names]
    return max(ends)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
