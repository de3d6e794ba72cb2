"""Telling how far long work has come: one line on the terminal, and only where somebody watches.

Nothing is shown when standard error is not a terminal, nor before the work has taken a second and a half. What is shown
never depends on confidential values: it counts pieces of work, which follow from the public shape and the noise.
"""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

#: Seconds before anything is shown, and between two updates.
PATIENCE = 1.5
PAUSE = 0.2


class Progress:
    """Counts done pieces of work; threads may share it. Use as a context manager."""

    def __init__(self, title: str, total: int) -> None:
        self._title, self._total, self._done = title, total, 0
        self._lock = threading.Lock()
        self._next = time.monotonic() + PATIENCE
        self._width = 0

    def __enter__(self) -> Progress:
        return self

    def advance(self, count: int) -> None:
        """Count some pieces of work as done, and show it now and then."""
        with self._lock:
            self._done += count
            now = time.monotonic()
            if now < self._next or not sys.stderr.isatty():
                return
            self._next = now + PAUSE
            text = f"holdfast: {self._title}, {min(100, 100 * self._done // max(self._total, 1))} %"
            self._width = max(self._width, len(text))
            sys.stderr.write("\r" + text.ljust(self._width))
            sys.stderr.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
