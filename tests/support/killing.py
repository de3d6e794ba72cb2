"""Make one job many times in forked children, kill each somewhere else, and tell what is left.

Started with a folder, the way to end ("kill" or "interrupt"), the number of points along the lines that the room
`release` runs, and the number of points in time, it prints one JSON line per point: `test_kill` reads them. The
campaign of `script/harden` does the same with every example, and ends besides at lines that are met for the first time.
"""

import contextlib
import functools
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np

import holdfast.release
import released
from example_jobs import before_drawing, make
from holdfast.pictures.pages import template
from holdfast.release import run as running
from holdfast.release.certificate.verify import verify
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.report.page import REPORT
from holdfast.release.report.page import ROOM as PAGES

#: After every so many points the release is tried again.
AGAIN = 8
ROOM = os.path.dirname(holdfast.release.__file__)
#: What is told beside a job while it is made, and of it.
MARK, ERROR, LINES, STATE = "drawn", "error", "lines", "state"


def forked(work):
    """Run some work in a child and return its process; what it says is lost."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException:
        os._exit(3)
    os._exit(0)


def ended_at(line, how):
    """Trace the lines of the room and end at one of them: the one of a number, or one where it is met first.

    Returns a function that tells how many lines were met, and which.
    """
    seen, met = 0, {}

    def local(frame, event, _):
        nonlocal seen
        if event == "line":
            seen += 1
            place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            met.setdefault(place, seen)
            if line in (seen, place):
                os.kill(os.getpid(), how)
        return local

    sys.settrace(lambda frame, event, arg: local if frame.f_code.co_filename.startswith(ROOM) else None)
    return lambda: [seen, list(met)]


def run(job, folder, line=0, how=signal.SIGKILL):
    """Make a job; leave a mark before the first draw, the lines that were met after the last, and what went wrong."""
    before_drawing((folder / MARK).touch)
    met = ended_at(line, how)
    try:
        make(job)
    except BaseException as error:
        sys.settrace(None)
        (folder / ERROR).write_text(repr((type(error).__name__, str(error), getattr(error, "__notes__", []))))
    sys.settrace(None)
    (folder / LINES).write_text(json.dumps(met()))


def state(job, folder, again):
    """Tell what anybody finds; if asked, make the job again and tell whether that works."""
    out, ledger = Path(job.spec.output), Ledger(job.spec.ledger_file)
    partial = out.with_name(f".{out.name}.partial")
    entries = ledger.entries()
    found = {
        "drawn": (folder / MARK).exists(),
        "slices": len(list(out.with_name(f"{out.name}.agents").glob("agent-*"))),
        "visible": out.exists(),
        "whole": out.exists() and verify(out, ledger).ok,
        "charges": len(entries),
        "states": [entry.state for entry in entries],
        "partial": sorted(path.name for path in partial.iterdir()) if partial.exists() else None,
        "error": (folder / ERROR).read_text() if (folder / ERROR).exists() else None,
    }
    if again:
        if out.exists():
            shutil.rmtree(out)
        make(job)
        found["again"] = verify(out, ledger).ok and not partial.exists()
        found["charges again"] = len(ledger.entries())
    (folder / STATE).write_text(json.dumps(found))


def lost(point, agents=False):
    """Say what is lost where a job was ended at a point; None where nothing is. Agents are charged once for all."""
    if "charges" not in point:
        return "the ledger or the release cannot be read any more"
    if point["visible"] and not point["whole"]:
        return "a release is visible that is not whole"
    if point["charges"] > 1:
        return "charged more than once"
    made = set(point["partial"] or ()) - {"room", "rehearsal"}  # made of public things alone
    if (point["drawn"] or point["slices"] or made) and not point["charges"]:
        return "drawn, and not charged"
    told = point["states"][0] if point["states"] else ""
    if point["visible"] != (told == "published") or (point["drawn"] and not agents and told == "charged, not drawn"):
        return f"the ledger says that it is {told}"
    if not point.get("again", True):
        return "it cannot be made again"
    more = point["charges"] + 1 if not agents else 1
    return None if point.get("charges again", more) == more else "made again, it is not charged as it should be"


def fresh(folder, kept):
    """Empty the folder but for the files of the job."""
    for path in folder.iterdir():
        if path.name not in kept:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def point(job, folder, kept, line, after, how, again):
    """End a job at a line or after some seconds and return what is left."""
    fresh(folder, kept)
    child = forked(lambda: run(job, folder, line, how))
    if after is not None:
        time.sleep(after)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, how)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.waitpid(forked(lambda: state(job, folder, again)), 0)
    report = json.loads((folder / STATE).read_text()) if (folder / STATE).exists() else {}
    return {"line": line, "after": after, "status": status, **report}


def warm(job, folder, kept):
    """Load once what every child would load for itself. The engine is left alone: its threads do not survive a fork.

    What is simulated before the charge needs no file and no ledger, and is simulated once.
    """
    running.errors_by_size = functools.cache(running.errors_by_size)
    for table in job.tables:
        running.errors_by_size(table)  # loads compiled code, which takes longer than a release
        table.mechanism.release(np.zeros(table.layout.query.n, dtype=np.int64)).interval()
    template(PAGES, REPORT)
    Ledger(folder / "warm.sqlite").set_budget("warm", "record", epsilon=1)
    os.waitpid(forked(lambda: make(job)), 0)  # compiles what it needs, which must not be traced
    fresh(folder, kept)
    os.waitpid(forked(lambda: run(job, folder)), 0)
    lines, met = json.loads((folder / LINES).read_text())
    fresh(folder, kept)
    begin = time.monotonic()
    os.waitpid(forked(lambda: make(job)), 0)
    return lines, met, time.monotonic() - begin


def spread(lines, met, seconds, by_line, by_time):
    """Points along the lines that run, along those that are met for the first time, and in time."""
    by_place = by_line // 2
    by_line -= by_place
    yield from ((1 + number * (lines - 1) // max(1, by_line - 1), None) for number in range(by_line))
    yield from ((met[number * (len(met) - 1) // max(1, by_place - 1)], None) for number in range(by_place))
    yield from ((0, seconds * (number + 0.5) / by_time) for number in range(by_time))


def main():
    """Measure an undisturbed release, then end one at every point."""
    folder, way, by_line, by_time = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    how = signal.SIGKILL if way == "kill" else signal.SIGINT
    job = released.job(folder)
    kept = set(os.listdir(folder))
    lines, met, seconds = warm(job, folder, kept)
    for number, (line, after) in enumerate(spread(lines, met, seconds, by_line, by_time)):
        print(json.dumps(point(job, folder, kept, line, after, how, number % AGAIN == 0)), flush=True)


if __name__ == "__main__":
    main()
