"""What differs between operating systems: locks, an open folder, waiting for the disk, whose a file is, memory.

POSIX opens the folder itself, locks it and reaches what is in it by its handle. Windows opens no folder: a file beside
it is locked instead, and what is in it is reached by name.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

fcntl: Any
try:
    fcntl = import_module("fcntl")
except ModuleNotFoundError:  # there is none on Windows
    fcntl = None

#: Seconds between two looks at a lock on which a process waits, where the system does not wake it.
PAUSE = 0.05
#: Flags that not every system has.
_FOLDER = getattr(os, "O_DIRECTORY", 0)
NO_LINK, AT_ONCE, BYTES = (getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))


def open_folder(path: Path, *, follow: bool = True) -> int:
    """Open a folder, or what stands for it; close it with `close_folder`."""
    if fcntl is not None:
        return os.open(path, os.O_RDONLY | _FOLDER | (0 if follow else NO_LINK))
    if not follow and path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if not path.is_dir():
        number = errno.ENOTDIR if path.exists() else errno.ENOENT
        raise OSError(number, os.strerror(number))
    return os.open(_beside(path), os.O_RDWR | os.O_CREAT)


def close_folder(descriptor: int, path: Path) -> None:
    """Close what `open_folder` opened."""
    os.close(descriptor)
    if fcntl is None:
        with suppress(OSError):  # another process has it open
            _beside(path).unlink()


def is_open(descriptor: int, path: Path) -> bool:
    """Whether the open folder is the one at a path."""
    try:
        there = path.lstat()
        return fcntl is None or os.path.samestat(os.fstat(descriptor), there)
    except FileNotFoundError:
        return False


def clear_folder(descriptor: int, path: Path) -> None:
    """Remove everything in an open folder; links are removed and not followed."""
    names: Any = descriptor if fcntl is not None else path
    at: dict[str, Any] = {"dir_fd": descriptor} if fcntl is not None else {}
    for name in os.listdir(names):
        each = name if at else str(path / name)
        if stat.S_ISDIR(os.stat(each, follow_symlinks=False, **at).st_mode):
            shutil.rmtree(each, **at)
        else:
            os.unlink(each, **at)


def rename_folder(old: Path, new: Path, content: os.stat_result) -> None:
    """Give a folder another name beside it, in one step that is on the disk when this returns; it must be `content`."""
    if fcntl is None:
        if not os.path.samestat(old.stat(), content):
            raise OSError(errno.ESTALE, "somebody put another folder in its place")
        os.rename(old, new)
        return
    parent = open_folder(new.parent)
    try:
        if not os.path.samestat(os.stat(old.name, dir_fd=parent, follow_symlinks=False), content):
            raise OSError(errno.ESTALE, "somebody put another folder in its place")
        os.rename(old.name, new.name, src_dir_fd=parent, dst_dir_fd=parent)
        os.fsync(parent)
    finally:
        os.close(parent)


def handle_of(descriptor: int, path: Path) -> Path:
    """A name of an open folder that no other folder can take, where the system has one."""
    handle = Path(f"/proc/self/fd/{descriptor}")
    return handle if fcntl is not None and handle.is_dir() else path


def lock(descriptor: int, *, wait: bool = False) -> None:
    """Lock what is open for this process, until it is closed; BlockingIOError where another has it."""
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return
    windows: Any = import_module("msvcrt")
    while True:
        try:
            windows.locking(descriptor, windows.LK_NBLCK, 1)
        except OSError:
            if not wait:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from None
            time.sleep(PAUSE)
        else:
            return


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk; Windows writes them with the files."""
    if fcntl is None:
        return
    descriptor = open_folder(path)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def user() -> int | None:
    """The number of this user; None where users have none."""
    return os.geteuid() if hasattr(os, "geteuid") else None


def is_mine(status: os.stat_result) -> bool:
    """Whether a file is this user's, as far as the system says."""
    return user() in (None, status.st_uid)


def others_may(status: os.stat_result, what: int) -> bool:
    """Whether the mode of a file lets others do something; on Windows files have no such mode."""
    return user() is not None and bool(status.st_mode & what)


def keep_private(descriptor: int) -> None:
    """Let nobody but this user into an open folder; on Windows it inherits who may."""
    if fcntl is not None:
        os.fchmod(descriptor, 0o700)


def after_fork_in_child(hook: Callable[[], object]) -> None:
    """Let a forked process begin with a call; where nothing forks there is nothing to do."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=hook)


def memory() -> int | None:
    """Bytes of memory of this machine; None where the system does not say."""
    if hasattr(os, "sysconf"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    size = ctypes.c_ulonglong()
    with suppress(AttributeError):  # kilobytes that are built in
        if ctypes.windll.kernel32.GetPhysicallyInstalledSystemMemory(ctypes.byref(size)):  # type: ignore[attr-defined]
            return size.value << 10
    return None


#: How the libraries of linear algebra that numpy and scipy bring call their number of threads, to get it and to set it.
_THREADS = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads")


@cache
def _linear_algebra(maps: str = "/proc/self/maps") -> list[tuple[Any, Any]]:
    """The functions that get and set threads of each library that is loaded; none where that cannot be seen."""
    with suppress(OSError):
        lines = Path(maps).read_text(encoding="utf-8", errors="replace").splitlines()
        paths = dict.fromkeys(line[line.index("/") :] for line in lines if "openblas" in line and "/" in line)
        loaded = [ctypes.CDLL(path) for path in paths]
        names = [[name.format(verb) for verb in ("get", "set")] for name in _THREADS]
        pairs = [[pair for pair in names if hasattr(each, pair[1])][:1] for each in loaded]
        return [(each[get], each[put]) for each, found in zip(loaded, pairs, strict=True) for get, put in found]
    return []


@contextmanager
def one_thread() -> Iterator[None]:
    """Let linear algebra take one thread, where that can be said: those of small products wait for each other."""
    found = [(put, get()) for get, put in _linear_algebra()]
    for put, _ in found:
        put(1)
    try:
        yield
    finally:
        for put, before in found:
            put(before)


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name.lstrip('.')}.lock")


@cache
def users_folder() -> Path | None:
    """A folder of this user's that nobody else can write: among the caches or else the temporary ones; or None."""
    temporary = Path(tempfile.gettempdir()) / f"holdfast-{user() or 0}"
    try:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "holdfast"
    except RuntimeError:  # this user has no home
        caches = temporary
    return next((place for place in (caches, temporary) if made_folder(place) and is_private(place)), None)


def made_folder(folder: Path) -> bool:
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return may_write(folder)
    return False


def may_write(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)


def is_private(folder: Path) -> bool:
    """Whether nobody but this user, and the administrator, can write a folder or put another one in its place."""
    own = folder.lstat()
    if not stat.S_ISDIR(own.st_mode) or not is_mine(own) or others_may(own, 0o022):
        return False
    above = [place.stat() for place in {*folder.absolute().parents, *folder.resolve().parents}]
    return all(
        (place.st_uid == 0 or is_mine(place)) and (not others_may(place, 0o022) or bool(place.st_mode & stat.S_ISVTX))
        for place in above
    )
