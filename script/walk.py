"""Walk through the house as data does: which files a statement goes through, and to which of them it comes back.

Run: .venv/bin/python script/walk.py STATEMENT [ROOM]     (such as "import holdfast as hf; hf.laplace(...)")
A step is a call from one file of src/holdfast to another, each pair of files counted once; a return is a step to a file
that the walk had seen before the file it leaves. With a room (such as `release`) only steps inside it are counted. What
runs before a line `# walk` is not watched.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

SOURCE = str(Path(__file__).resolve().parent.parent / "src" / "holdfast") + "/"


def walked(statement: str) -> tuple[list[str], list[tuple[str, str]]]:
    """The files in the order in which the statement reaches them, and its steps in the order of the first time."""
    order: dict[str, None] = {}
    steps: dict[tuple[str, str], None] = {}

    def seen(frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(SOURCE) or frame.f_code.co_name == "<module>":
            return
        above = frame.f_back
        while above is not None and not above.f_code.co_filename.startswith(SOURCE):
            above = above.f_back
        order.setdefault(file.removeprefix(SOURCE))
        if above is not None and above.f_code.co_filename != file and above.f_code.co_name != "<module>":
            steps.setdefault((above.f_code.co_filename.removeprefix(SOURCE), file.removeprefix(SOURCE)))

    before, _, after = statement.rpartition("# walk")
    names: dict[str, Any] = {}
    exec(before, names)
    sys.setprofile(seen)
    try:
        exec(after, names)
    finally:
        sys.setprofile(None)
    return list(order), list(steps)


def main(statement: str, room: str = "") -> int:
    """Print the figures of a walk, and every return."""
    order, steps = walked(statement)
    inside = [(one, two) for one, two in steps if one.startswith(room) and two.startswith(room)]
    returns = [(one, two) for one, two in inside if order.index(two) < order.index(one)]
    print(f"{sum(file.startswith(room) for file in order)} files, {len(inside)} steps, {len(returns)} returns")
    for one, two in sorted(returns, key=lambda step: (step[1], step[0])):
        print(f"  {one} → {two}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
