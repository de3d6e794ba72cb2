"""A PostgreSQL server of its own for tests: on loopback, with files of its own, as a user without rights."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USER, PASSWORD = "curator", "s3cret-of-the-curator"


class Unavailable(Exception):
    """There is no server here, and none can be installed."""


def programs() -> Path:
    """Find the programs of the server, or install them from Debian's packages where that is allowed."""
    found = _installed()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _run(["apt-get", "install", "-y", "--no-install-recommends", "postgresql"], check=False)
        found = _installed()
    if found is None:
        raise Unavailable("PostgreSQL is not installed, and Debian's package cannot be")
    return found


def _installed() -> Path | None:
    """Where Debian's packages put the programs, which are not on the path."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists()), None)


def _run(words: list[object], *, check: bool, **more: object) -> None:
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([str(word) for word in words], check=check, timeout=240, **quiet, **more)


@contextmanager
def server() -> Iterator[str]:
    """Start a server that asks for a password; give the address of its database without user and password."""
    place = programs()
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a path of a socket must be short
    secret = folder / "password"
    secret.write_text(PASSWORD)
    who: dict[str, object] = {}
    if os.geteuid() == 0:  # the server refuses to run as root
        user = next((name for name in ("postgres", "nobody") if _known(name)), None)
        if user is None:
            raise Unavailable("PostgreSQL does not run as root, and there is no other user")
        for path in (folder, secret):
            shutil.chown(path, user)
        who = {"user": user, "group": pwd.getpwnam(user).pw_gid}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data, who = folder / "data", {"cwd": folder, **who}
    how = ["-A", "scram-sha-256", "-U", USER, f"--pwfile={secret}", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
    try:
        _run([place / "initdb", "-D", data, *how], check=True, **who)
        _run([place / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start"], check=True, **who)
        yield f"127.0.0.1:{port}/postgres"
    finally:
        _run([place / "pg_ctl", "-D", data, "-m", "immediate", "stop"], check=False, **who)
        shutil.rmtree(folder, ignore_errors=True)


def _known(name: str) -> bool:
    try:
        return bool(pwd.getpwnam(name))
    except KeyError:
        return False
