"""holdfast on a system that lacks what POSIX has: a whole release, locks, and no crash at a sign that a screen lacks.

The module of file locks, `os.fork`, users' numbers, handles of folders and their flags are taken away in a process of
its own, and Windows' own locks are stood in for. What Windows itself does is not seen here.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import system

#: What a process without POSIX begins with.
WITHOUT = """
import fcntl as real, multiprocessing, os, socket, subprocess, sys, types  # which look at the system when they begin
for name in ("fcntl", "pwd", "grp", "resource", "termios"):
    sys.modules[name] = None
for name in ("fork", "forkpty", "register_at_fork", "geteuid", "getuid", "sysconf", "fchmod", "posix_fallocate",
             "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK"):
    if hasattr(os, name):
        delattr(os, name)
windows = types.ModuleType("msvcrt")
windows.LK_NBLCK = 2
def locking(descriptor, mode, size):
    try:
        real.flock(descriptor, real.LOCK_EX | real.LOCK_NB)
    except BlockingIOError:
        raise OSError(13, "Permission denied") from None
windows.locking = locking
sys.modules["msvcrt"] = windows
from pathlib import Path
"""
JOB = """
import holdfast as hf
Path("zones.csv").write_text("borough,zone\\nNorth,A\\nNorth,B\\nSouth,C\\n")
Path("trips.csv").write_text("zone\\n" + "A\\n" * 5 + "C\\n" * 7)
spec = {
    "title": "Trips", "data": {"source": "trips.csv", "domain": "zones.csv"},
    "privacy": {"unit": "record", "neighbours": "add-remove", "epsilon": 1},
    "table": {"hierarchy": ["borough", "zone"], "root": "city"}, "hold": ["consistent"], "output": "out/",
}
released = hf.job(spec).release()
print(list(hf.load("out").table().frame()["level"]).count("zone"), sorted(Path(".").glob(".*.lock")))
"""


def run(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, in a folder; without POSIX it does not see which scratch folders are locked."""
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TMPDIR": str(scratch)} | environment,
    )


def test_a_release_goes_through_without_posix_and_leaves_no_lock_behind(tmp_path):
    done = run(WITHOUT + JOB, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3 []\n"
    assert (tmp_path / "out" / "certificate.json").is_file()


def test_a_screen_without_greek_letters_gets_the_report_of_a_verb_all_the_same(tmp_path):
    done = run(WITHOUT + JOB, tmp_path)
    assert done.returncode == 0, done.stderr
    code = WITHOUT + "sys.argv = ['holdfast', 'explain', 'out']\nfrom holdfast.cli.command import main\nmain()"
    told = run(code, tmp_path, PYTHONIOENCODING="cp1252")
    assert told.returncode == 0, told.stderr
    assert "epsilon" in told.stdout.lower()


@pytest.mark.parametrize("posix", [True, False])
def test_a_locked_folder_is_not_locked_twice_and_is_free_afterwards(tmp_path, posix):
    folder = tmp_path / "made"
    folder.mkdir()
    code = (
        ("" if posix else WITHOUT)
        + "from pathlib import Path\nfrom holdfast.system import *\nimport sys\n"
        + "folder = Path('made')\none = open_folder(folder)\nlock(one)\ntwo = open_folder(folder)\n"
        + "try:\n    lock(two)\n    print('twice')\nexcept BlockingIOError:\n    print('once')\n"
        + "close_folder(one, folder)\nlock(two, wait=True)\nprint(is_open(two, folder))\n"
        + "(folder / 'a').mkdir()\n(folder / 'a' / 'b').write_text('c')\n(folder / 'd').symlink_to('nowhere')\n"
        + "clear_folder(two, folder)\nprint(list(folder.iterdir()))\nclose_folder(two, folder)\n"
    )
    assert run(code, tmp_path).stdout.split("\n") == ["once", "True", "[]", ""]


@pytest.mark.parametrize("posix", [True, False])
def test_only_the_folder_that_was_meant_gets_a_new_name(tmp_path, posix):
    for name in ("meant", "other"):
        (tmp_path / name).mkdir()
    code = (
        ("" if posix else WITHOUT)
        + "from pathlib import Path\nfrom holdfast.system import rename_folder\n"
        + "new, other, meant = Path('new'), Path('other'), Path('meant')\n"
        + "try:\n    rename_folder(other, new, meant.stat())\nexcept OSError as error:\n    print(error.strerror)\n"
        + "rename_folder(meant, new, meant.stat())\nprint(new.is_dir(), other.is_dir())\n"
    )
    assert run(code, tmp_path).stdout == "somebody put another folder in its place\nTrue True\n"


def test_this_machine_says_how_much_memory_it_has():
    size = system.memory()
    assert size is not None
    assert size > 1 << 28


def test_linear_algebra_takes_one_thread_and_then_as_many_as_before():
    found = system._linear_algebra()
    before = [get() for get, _ in found]
    with system.one_thread():
        assert all(get() == 1 for get, _ in found)
    assert [get() for get, _ in found] == before
    assert system._linear_algebra("/nowhere") == []  # systems that do not say what is loaded
