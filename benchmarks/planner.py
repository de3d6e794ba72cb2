"""How long the planner takes to answer for a city, in a real browser: from a key on a slider to the changed figure.

The city of examples/city (270 figures, `method: auto`) is served as `holdfast page` serves it and opened in Chromium. A
key moves a slider by one step; the page itself notes when it hears of it and when a figure in its table has changed.
Each slider is moved while the planner is at rest, and then as somebody drags it, every `DRAG` seconds. It prints the
least, the median and the largest time on the clock, the processor time of the planner for an answer, and the load of
the machine. It exits with an error when the least time is above the bar: the others measure how busy the machine is.

    python benchmarks/planner.py [SPEC]
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

import browser  # noqa: E402

#: Milliseconds within which a change must be answered, and moves of each slider.
BAR, MOVES = 300, 20
#: Seconds between two keys while a slider is dragged.
DRAG = 0.15
SLIDERS = {"ε": "#epsilon-slider", "the share of a level": ".slide.share input[type=range]"}
WATCH = """(() => {
  window.answered = []; window.asked = null;
  const figures = () => [...document.querySelectorAll('.errors tr[data-level]')].map((row) => row.dataset.error).join();
  let last = figures();
  document.addEventListener('input', () => { window.asked ??= performance.now(); }, true);
  new MutationObserver(() => {
    if (window.asked === null || figures() === last) return;
    last = figures(); window.answered.push(performance.now() - window.asked); window.asked = null;
  }).observe(document.getElementById('errors'), {childList: true, subtree: true});
})()"""
MEASURED = "document.getElementById('status').textContent.startsWith('Measured, as')"


def until(page: browser.Page, condition: str, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not page(condition):
        if time.monotonic() > end:
            raise SystemExit(f"not within {seconds} s: {condition}")
        time.sleep(0.02)


def processor(process: int) -> float:
    """Processor seconds of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def press(page: browser.Page, key: str) -> None:
    for kind in ("keyDown", "keyUp"):
        page.send("Input.dispatchKeyEvent", type=kind, key=key, code=key)


def told(name: str, times: list[float], seconds: float | None) -> float:
    ordered = sorted(times)
    spent = "" if seconds is None else f", {1000 * seconds:.0f} ms of processor until it is answered"
    print(
        f"{name}: least {ordered[0]:.0f} ms, median {ordered[len(ordered) // 2]:.0f} ms, "
        f"largest {ordered[-1]:.0f} ms of {len(ordered)}{spent}; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    return ordered[0]


def at_rest(page: browser.Page, process: int, slider: str) -> tuple[list[float], float]:
    """Move a slider once everything is measured; the times, and the least processor time of an answer."""
    times, spent = [], []
    for i in range(MOVES):
        until(page, MEASURED)
        page(f"document.querySelector('{slider}').focus()")
        before = processor(process)
        press(page, "ArrowRight")  # always on: a plan that was asked before is known
        until(page, f"answered.length > {i}")
        spent.append(processor(process) - before)
        times = page("answered")
    return times, min(spent)


def dragged(page: browser.Page, slider: str) -> list[float]:
    """Move a slider on and on, while earlier moves are still measured."""
    until(page, MEASURED)
    page("answered.length = 0")
    page(f"document.querySelector('{slider}').focus()")
    for _ in range(MOVES):
        press(page, "ArrowRight")
        time.sleep(DRAG)
    until(page, "asked === null")
    return page("answered")


def main() -> None:
    spec = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "examples" / "city" / "spec.yaml"
    least = []
    with tempfile.TemporaryDirectory() as folder, browser.Browser() as opened:
        shutil.copytree(spec.parent, folder, dirs_exist_ok=True)
        command = [sys.executable, "-m", "holdfast.cli", "page", spec.name, "--no-open"]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as served:
            try:
                address = served.stdout.readline().split()[-1]
                began = time.perf_counter()
                page = opened.page(address)
                until(page, "document.querySelector('.errors tr[data-level]') !== null")
                print(f"the first figures: {1000 * (time.perf_counter() - began):.0f} ms after the page was asked for")
                for name, slider in SLIDERS.items():
                    page(WATCH)
                    times, spent = at_rest(page, served.pid, slider)
                    least.append(told(f"{name}, at rest", times, spent))
                    told(f"{name}, dragged", dragged(page, slider), None)
            finally:
                served.kill()
    sys.exit(max(least) > BAR)


if __name__ == "__main__":
    main()
