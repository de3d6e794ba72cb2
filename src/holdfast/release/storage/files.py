"""Files that survive a power cut, their hashes, and a folder that appears whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.arguments import Refused, later
from holdfast.system import (
    AT_ONCE,
    BYTES,
    NO_LINK,
    clear_folder,
    close_folder,
    handle_of,
    is_mine,
    is_open,
    keep_private,
    lock,
    open_folder,
    rename_folder,
    sync_folder,
)

#: What makes a folder a release, and how such a file says of which kind it is, whatever its version.
CERTIFICATE, KIND = "certificate.json", b'"holdfast-certificate-'
#: Bytes read at a time.
CHUNK = 1 << 20
#: Bytes of the largest file that is read whole.
LARGEST = 1 << 30
#: Claims of a folder that another process published or removed in between; more than a few mean trouble.
CLAIMS = 100
#: Where the system lists what is mounted.
MOUNTS = Path("/proc/self/mounts")
#: File systems of other machines, on which locks and commits are not to be trusted.
_NETWORKS = "nfs nfs4 cifs smb3 smbfs sshfs afs ceph glusterfs lustre gpfs ocfs2 davfs 9p"
NETWORKS = frozenset(_NETWORKS.split())


def sync_file(path: Path) -> None:
    """Wait until the content of a file is on the disk."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked_folder(path: Path) -> Iterator[None]:
    """Let one process at a time make something in a folder; others wait."""
    descriptor = open_folder(path)
    try:
        lock(descriptor, wait=True)
        yield
    finally:
        close_folder(descriptor, path)


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


def read_plain(path: Path) -> bytes:
    """Return the content of a file that is no link."""
    descriptor = os.open(path, os.O_RDONLY | NO_LINK | AT_ONCE | BYTES)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file")
        if os.fstat(descriptor).st_size > LARGEST:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return file.read()


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


def refuse_inside(folder: Path) -> None:
    """Refuse a folder inside a release, which would not be as certified with it."""
    for above in folder.absolute().parents:
        with suppress(OSError):
            if KIND in read_plain(above / CERTIFICATE)[:100]:
                raise Refused(f"{above} is a release, and stays as it is: name an output folder outside of it")


@contextmanager
def workplace(folder: Path) -> Iterator[Path]:
    """Give an empty folder beside the wanted one, for one process at a time; whatever is left in it is removed.

    It belongs to this user alone until it is published, and is reached by its handle where the system allows it, so
    that nobody can put a link in its place. What a killed process left behind is removed too: its lock died with it.
    Folders above it are made if need be, and removed again if nothing was published in them.
    """
    if not folder.name:
        raise Refused(f"{folder} exists already: name another output folder")
    refuse_inside(folder)
    path = _partial(folder)
    made = _make_parents(folder)
    held = _claim(path, folder)
    try:
        clear_folder(held, path)
        if os.path.lexists(folder):
            raise Refused(f"{folder} exists already: name another output folder, or move this one away")
        yield handle_of(held, path)
    finally:
        if is_open(held, path):
            with suppress(OSError):
                clear_folder(held, path)
                os.rmdir(path)
        close_folder(held, path)
        with suppress(OSError):  # the first that is not empty ends it
            for parent in made:
                parent.rmdir()


def publish(place: Path, folder: Path) -> None:
    """Give a finished folder its name, in one step that cannot be seen half done."""
    before = place.stat()
    os.chmod(place, _usual_mode(place))
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))  # when it was written is nobody's business
    sync_folder(place)
    rename_folder(_partial(folder), folder, place.stat())


def _partial(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.partial")


def _make_parents(folder: Path) -> list[Path]:
    """Make the folders above, the innermost first in what is returned; their names are on the disk then."""
    made = [parent for parent in folder.parents if not parent.exists()]
    for parent in reversed(made):
        parent.mkdir(exist_ok=True)
        sync_folder(parent.parent)
    return made


def _usual_mode(place: Path) -> int:
    """The mode of a new folder: what the user's mask leaves."""
    probe = place / "mode"
    probe.mkdir()
    mode = stat.S_IMODE(probe.stat().st_mode)
    probe.rmdir()
    return mode


def _claim(path: Path, folder: Path) -> int:
    """Return a locked descriptor of the folder at a path, which is made if need be."""
    for _ in range(CLAIMS):
        try:
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
            held = open_folder(path, follow=False)
        except FileNotFoundError:
            if not folder.parent.exists():
                raise
            continue  # published or removed by its owner just now
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise Refused(f"{path} is a link or a file, and stands in the way: remove it") from None
            raise
        if not is_mine(os.fstat(held)):
            os.close(held)
            raise Refused(f"{path} belongs to another user: remove it, or name another output folder")
        try:
            lock(held)
        except BlockingIOError:
            os.close(held)
            busy = Refused(f"another release to {folder} is under way: wait for it, or name another folder")
            raise later(busy) from None
        if is_open(held, path):
            keep_private(held)
            return held
        close_folder(held, path)
    raise Refused(f"{path} cannot be claimed: name another output folder")


def network_of(folder: Path) -> str | None:
    """Return the kind of network file system that a folder is on; None where it is on this machine, or unknown."""
    try:
        mounts = [line.split() for line in MOUNTS.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return None
    place = folder.resolve()
    found = [(len(parts[1]), parts[2]) for parts in mounts if place.is_relative_to(parts[1].replace("\\040", " "))]
    kind = max(found, default=(0, ""))[1]
    return kind if kind.removeprefix("fuse.") in NETWORKS else None


#: What a server's driver says to whoever is not let in, and what to do about it.
_KEPT_OUT = {
    "no password supplied": "asks for a password, and none was given: set PGPASSWORD, or keep a ~/.pgpass",
    'authentication failed|role ".*" does not exist': "refuses this user or password: check PGUSER and PGPASSWORD",
    'database ".*" does not exist': "has another name on its server: check how the address ends",
}


def kept_out(said: str) -> str | None:
    """Why a database lets nobody in, in words that repeat nothing of what its driver said; None: it is away."""
    return next((words for pattern, words in _KEPT_OUT.items() if re.search(pattern, said)), None)
