"""Run one release many times in forked children, kill each somewhere else, and tell what is left; used by test_kill.

Started with a folder, the way to end ("kill" or "interrupt"), the number of points along the lines that the room
`release` runs, and the number of points in time. Prints one JSON line per point.
"""

import contextlib
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import holdfast.release
import released
from holdfast.mechanism.mechanism import Mechanism
from holdfast.release.certificate.verify import verify
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.report.page import _page
from holdfast.release.run import release

#: After every so many points the release is tried again.
AGAIN = 8
ROOM = os.path.dirname(holdfast.release.__file__)


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
    """Trace the lines of the room and end at one of them; return the count so far as a function."""
    seen = 0

    def local(frame, event, _):
        nonlocal seen
        if event == "line":
            seen += 1
            if seen == line:
                os.kill(os.getpid(), how)
        return local

    sys.settrace(lambda frame, event, arg: local if frame.f_code.co_filename.startswith(ROOM) else None)
    return lambda: seen


def run(job, folder, line=0, how=signal.SIGKILL):
    """Release; leave a mark before the first draw, the number of lines after the last, and what went wrong."""
    draw = Mechanism.release

    def marked(*given):
        (folder / "drawn").touch()
        return draw(*given)

    Mechanism.release = marked
    count = ended_at(line, how)
    try:
        release(job)
    except BaseException as error:
        sys.settrace(None)
        (folder / "error").write_text(repr((type(error).__name__, str(error), getattr(error, "__notes__", []))))
    sys.settrace(None)
    (folder / "lines").write_text(str(count()))


def state(job, folder, again):
    """Tell what a stranger finds; if asked, release again and tell whether that works."""
    out, partial = folder / "out", folder / ".out.partial"
    found = {
        "drawn": (folder / "drawn").exists(),
        "visible": out.exists(),
        "whole": out.exists() and verify(out).ok,
        "charges": len(Ledger(folder / "holdfast-ledger.sqlite").entries()),
        "partial": sorted(path.name for path in partial.iterdir()) if partial.exists() else None,
        "error": (folder / "error").read_text() if (folder / "error").exists() else None,
    }
    if again:
        if out.exists():
            shutil.rmtree(out)
        release(job)
        found["again"] = verify(out).ok and not partial.exists()
        found["charges again"] = len(Ledger(folder / "holdfast-ledger.sqlite").entries())
    (folder / "state").write_text(json.dumps(found))


def fresh(folder):
    """Empty the folder but for the files of the job."""
    for path in folder.iterdir():
        if path.name not in ("spec.yaml", "trips.csv", "zones.csv"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def point(job, folder, line, after, how, again):
    """End one release at a line or after some seconds and print what is left."""
    fresh(folder)
    child = forked(lambda: run(job, folder, line, how))
    if after is not None:
        time.sleep(after)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, how)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.waitpid(forked(lambda: state(job, folder, again)), 0)
    report = json.loads((folder / "state").read_text()) if (folder / "state").exists() else {}
    print(json.dumps({"line": line, "after": after, "status": status, **report}), flush=True)


def warm(job, folder):
    """Load once what every child would load for itself. The engine is left alone: its threads do not survive a fork."""
    for table in job.tables:
        table.mechanism.release(table.layout.query.answer([1] * table.layout.query.cells)).interval()
        assert table.errors  # they load compiled code, which takes longer than a release
    _page()
    Ledger(folder / "warm.sqlite").set_budget("warm", "record", epsilon=1)
    fresh(folder)


def main():
    """Measure an undisturbed release, then end one at every point."""
    folder, way, by_line, by_time = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    how = signal.SIGKILL if way == "kill" else signal.SIGINT
    job = released.job(folder)
    warm(job, folder)
    os.waitpid(forked(lambda: run(job, folder)), 0)
    lines = int((folder / "lines").read_text())
    fresh(folder)
    begin = time.monotonic()
    os.waitpid(forked(lambda: release(job)), 0)
    seconds = time.monotonic() - begin
    for number in range(by_line):
        point(job, folder, 1 + number * (lines - 1) // max(1, by_line - 1), None, how, number % AGAIN == 0)
    for number in range(by_time):
        point(job, folder, 0, seconds * (number + 0.5) / by_time, how, number % AGAIN == 0)


if __name__ == "__main__":
    main()
