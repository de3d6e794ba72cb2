"""A private folder for what does not fit into memory. It goes with its process, or else with the next one.

A process keeps its folder locked as long as it lives, also when it is killed: a folder that can be locked belongs to
nobody, and is removed.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from holdfast.arguments import Refused
from holdfast.release.storage.files import is_open

PREFIX = "holdfast-scratch-"


def scratch_folder() -> Path:
    """Make a folder that only this user can read; it is removed when the process ends."""
    process = os.getpid()
    place = os.environ.get("TMPDIR") or tempfile.gettempdir()
    for abandoned in Path(place).glob(f"{PREFIX}*"):
        with suppress(OSError):  # of another user, or gone meanwhile
            _remove(abandoned)
    while True:
        try:
            folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        except OSError:
            sentence = "cannot be written: set TMPDIR to a folder for what does not fit into memory"
            raise Refused(f"{place!r} {sentence}") from None
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue  # taken for abandoned before it was opened
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_open(lock, folder):
                break
        os.close(lock)  # another process took it for abandoned before it was locked

    def end() -> None:
        if os.getpid() == process:  # a forked process must leave the folder of its parent alone
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return folder


def _remove(folder: Path) -> None:
    """Remove a folder of this user that no process has locked."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(lock).st_uid == os.geteuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
    finally:
        os.close(lock)
