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

#: Where Debian's packages put the programs, which are not on the path.
PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
USER, PASSWORD = "curator", "s3cret of the curator"


class Unavailable(Exception):
    """There is no server here, and none can be installed."""


def programs() -> Path:
    """Find the programs of the server, or install them from Debian's packages where that is allowed."""
    found = next(
        (place for place in [*PLACES, *Path("/usr/lib/postgresql").glob("*/bin")] if (place / "initdb").exists()), None
    )
    if found is not None:
        return found
    if os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": False, "timeout": 240}
        subprocess.run(["apt-get", "install", "-y", "--no-install-recommends", "postgresql"], **quiet)
        found = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
    if found is None:
        raise Unavailable("PostgreSQL is not installed, and Debian's package cannot be")
    return found


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
    run = {"check": True, "cwd": folder, "capture_output": True, "timeout": 120, **who}
    data = folder / "data"
    how = ["-A", "scram-sha-256", "-U", USER, f"--pwfile={secret}", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
    try:
        subprocess.run([place / "initdb", "-D", data, *how], **run)
        starting = {**run, "capture_output": False, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([place / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start"], **starting)
        yield f"127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([place / "pg_ctl", "-D", data, "-m", "immediate", "stop"], **{**run, "check": False})
        shutil.rmtree(folder, ignore_errors=True)


def _known(name: str) -> bool:
    try:
        return bool(pwd.getpwnam(name))
    except KeyError:
        return False
