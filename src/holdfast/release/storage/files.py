"""Files that survive a power cut, their hashes, and a folder that appears whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.arguments import Refused

#: Bytes read at a time.
CHUNK = 1 << 20
#: Claims of a folder that another process published or removed in between; more than a few mean trouble.
CLAIMS = 100


def sync_file(path: Path) -> None:
    """Wait until the content of a file is on the disk."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked_folder(path: Path) -> Iterator[None]:
    """Let one process at a time make something in a folder; others wait."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Write a new text file in UTF-8 and wait until it is on the disk."""
    with path.open("x", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as "sha256:<hex>"."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"


def refuse_without_room(folder: Path, size: int) -> None:
    """Refuse with OSError if the disk, or a limit on files, has no room for so many bytes in the folder."""
    if shutil.disk_usage(folder).free < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    allocate = getattr(os, "posix_fallocate", None)
    if allocate is None:
        return  # limits and quotas show only when a file is made, which not every system does without writing it
    path = folder / "room"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL)
    try:
        allocate(descriptor, 0, size)
    finally:
        os.close(descriptor)
        path.unlink()


@contextmanager
def workplace(folder: Path) -> Iterator[Path]:
    """Give an empty folder beside the wanted one, for one process at a time; whatever is left in it is removed.

    What a killed process left behind is removed too: its lock died with it. Folders above it are made if need be, and
    removed again if nothing was published in them.
    """
    if not folder.name:
        raise Refused(f"{folder} exists already: name another output folder")
    path = folder.with_name(f".{folder.name}.partial")
    made = [parent for parent in folder.parents if not parent.exists()]
    lock = _claim(path, folder)
    try:
        _clear(path)
        if os.path.lexists(folder):
            raise Refused(f"{folder} exists already: name another output folder, or move this one away")
        yield path
    finally:
        if is_open(lock, path):
            shutil.rmtree(path, ignore_errors=True)
        os.close(lock)
        with suppress(OSError):  # the first that is not empty ends it
            for parent in made:
                parent.rmdir()


def publish(path: Path, folder: Path) -> None:
    """Give a finished folder its name, in one step that cannot be seen half done."""
    sync_folder(path)
    os.rename(path, folder)
    sync_folder(folder.parent)


def _claim(path: Path, folder: Path) -> int:
    """Return a locked descriptor of the folder at a path, which is made if need be."""
    for _ in range(CLAIMS):
        try:
            path.mkdir(parents=True, exist_ok=True)
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue  # published or removed by its owner just now
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise Refused(f"another release to {folder} is under way: wait for it, or name another folder") from None
        if is_open(lock, path):
            return lock
        os.close(lock)
    raise Refused(f"{path} cannot be claimed: name another output folder")


def is_open(descriptor: int, path: Path) -> bool:
    """Say whether the path still names the folder that a descriptor was opened for."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _clear(path: Path) -> None:
    for child in path.iterdir():
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child)
        else:
            child.unlink()
