"""Telling how far long work has come: on a terminal one line that is rewritten, elsewhere a line now and then.

Nothing is said before work has taken two seconds, but in lines of JSON, which scripts ask for. Elsewhere than on a
terminal only the command speaks; a library keeps quiet there, but for the one sentence that code is being compiled.
What is said never depends on confidential values: it names steps and counts pieces of work, which follow from the
public shape and the noise.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType

#: Seconds before anything is said, between two updates of a terminal's line, and between two lines elsewhere.
PATIENCE, PAUSE, SELDOM = 2.0, 0.2, 10.0


class _Voice:
    """The one that writes on standard error while others work; threads share it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._under_way: list[Progress] = []
        self._width, self._next = 0, 0.0
        self.commanded, self.quiet, self.as_json = False, False, False

    @property
    def heard(self) -> bool:
        return self.as_json or (not self.quiet and (self.commanded or _terminal()))

    def begin(self, work: Progress, *, at_once: bool = False) -> None:
        """Some work begins, inside what is under way."""
        with self._lock:
            if at_once or not self._under_way:
                shown_at_once = at_once and (self.as_json or _terminal())
                self._next = time.monotonic() + (0.0 if shown_at_once else PATIENCE)
            self._under_way.append(work)
        if at_once:
            self.tick()

    def end(self, work: Progress) -> None:
        with self._lock:
            self._under_way.remove(work)
            if not self._under_way:
                self._wipe()

    def tick(self) -> None:
        """Say how far the innermost work has come, if it is time to."""
        with self._lock:
            now = time.monotonic()
            if not self._under_way or now < self._next or not self.heard:
                return
            text = f"holdfast: {self._under_way[-1].words(now)}"
            if self.as_json:
                self._next = now + SELDOM
                _write(json.dumps(self._under_way[-1].as_mapping(now), ensure_ascii=False) + "\n")
            elif _terminal():
                self._next = now + PAUSE
                self._width = max(self._width, len(text))
                _write("\r" + text.ljust(self._width))
            else:
                self._next = now + SELDOM
                _write(text + "\n")

    def say(self, sentence: str) -> None:
        with self._lock:
            if not self.quiet and not self.as_json:
                self._wipe()
                _write(f"holdfast: {sentence}\n")

    def _wipe(self) -> None:
        if self._width:
            _write("\r" + " " * self._width + "\r")
            self._width = 0


def _terminal() -> bool:
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()


def _write(text: str) -> None:
    with suppress(OSError, ValueError, AttributeError):  # nobody listens any more, and the work goes on
        sys.stderr.write(text)
        sys.stderr.flush()


_VOICE = _Voice()


def heard() -> bool:
    return _VOICE.heard


class Progress:
    """Work under way, of which pieces may be counted; threads may share it. Use as a context manager."""

    def __init__(self, title: str, total: int = 0) -> None:
        self._title, self._total, self._done = title, total, 0
        self._lock, self._begun = threading.Lock(), time.monotonic()

    def __enter__(self) -> Progress:
        _VOICE.begin(self)
        return self

    def advance(self, count: int) -> None:
        """Count some pieces of work as done, and say so now and then."""
        with self._lock:
            self._done += count
        _VOICE.tick()

    def words(self, now: float) -> str:
        """What is done and how far it has come: the share of pieces, and the seconds that it has taken."""
        share = f", {min(100, 100 * self._done // self._total)} %" if self._total else ""
        taken = now - self._begun
        return f"{self._title}{share}" + (f", {taken:.0f} s" if taken >= PATIENCE else "")

    def as_mapping(self, now: float) -> dict[str, str | int | None]:
        """The same as plain values: the step, per cent of its pieces (None: not counted) and its seconds."""
        share = min(100, 100 * self._done // self._total) if self._total else None
        return {"step": self._title, "percent": share, "seconds": int(now - self._begun)}

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _VOICE.end(self)


@contextmanager
def command(*, quiet: bool, as_json: bool = False) -> Iterator[Callable[[str], None]]:
    """The steps of a command: give the function that is told, in public words, which step begins.

    A quiet command says nothing until it ends; `as_json`: every step is a line of JSON.
    """
    before = _VOICE.commanded, _VOICE.quiet, _VOICE.as_json
    _VOICE.commanded, _VOICE.quiet, _VOICE.as_json = True, quiet, as_json
    steps: list[Progress] = []
    done = threading.Event()

    def end() -> None:
        while steps:
            _VOICE.end(steps.pop())

    def step(words: str) -> None:
        end()
        steps.append(Progress(words))
        _VOICE.begin(steps[0], at_once=True)

    def watch() -> None:
        while not done.wait(PAUSE):
            _VOICE.tick()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield step
    finally:
        done.set()
        watcher.join()
        end()
        _VOICE.commanded, _VOICE.quiet, _VOICE.as_json = before


class Delay:
    """Waits that add up: once they have taken PATIENCE in all, a sentence is said, and then never again."""

    def __init__(self, sentence: Callable[[], str]) -> None:
        self._sentence, self._lock = sentence, threading.Lock()
        self._depth, self._spent, self._since, self._said = 0, 0.0, 0.0, False
        self._timer: threading.Timer | None = None

    def begin(self) -> None:
        """A wait begins, perhaps inside another."""
        with self._lock:
            self._depth += 1
            if self._depth == 1 and not self._said:
                self._since = time.monotonic()
                self._timer = threading.Timer(max(PATIENCE - self._spent, 0.0), self._say)
                self._timer.daemon = True
                self._timer.start()

    def end(self) -> None:
        """The innermost wait is over."""
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._timer is not None:
                self._timer.cancel()
                self._spent += time.monotonic() - self._since

    def _say(self) -> None:
        with self._lock:
            said, self._said = self._said, True
        if not said:
            _VOICE.say(self._sentence())
