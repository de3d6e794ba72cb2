"""What a release leaves on the disk when it is killed, or the power goes, at any of its calls to the file system.

A release is traced once (`strace`); its calls are replayed on a model of a disk that knows what was synced. After every
call a state can be laid out and looked at: all calls done (a kill), the last write torn, everything unsynced dropped,
names kept and contents dropped, and some of both. Nothing but the trace is taken from the library: SQLite's own calls
and those of the engine that writes tables are in it too.

Started with a spec it releases it, and leaves a mark before the first draw: that is what is traced. With a further
word it releases carelessly, syncing nothing itself, to see that this is found.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

TRACED = (
    "openat,open,creat,write,pwrite64,writev,pwritev,ftruncate,truncate,lseek,fsync,fdatasync,rename,renameat,renameat2,"
    "unlink,unlinkat,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,sendfile,copy_file_range,fallocate"
)
MARK = "drawn.mark"
#: Ways in which a disk can be found.
WAYS = ("killed", "torn", "dropped", "names", "some")
_CALL = re.compile(r"^(\d+\.\d+) (\w+)\((.*)\) += (-?\d+)(<.*>)?")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_HANDLE = re.compile(r"(?:AT_FDCWD|\d+)<((?:[^<>]|\\x[0-9a-f]{2})*)>")


class Unavailable(RuntimeError):
    """Calls cannot be traced here."""


class File:
    def __init__(self, content=b""):
        self.now, self.safe = bytearray(content), bytes(content)


class Folder:
    def __init__(self):
        self.now, self.safe = {}, {}

    def settle(self):
        """What was there before the trace is on the disk."""
        self.safe = dict(self.now)
        for found in self.now.values():
            if isinstance(found, Folder):
                found.settle()


def traced(spec, *careless):
    """Release a spec under strace; return what was there before, and the calls within its folder, in order."""
    if shutil.which("strace") is None:
        raise Unavailable("strace is not installed")
    folder = spec.parent
    logs = folder.with_name(f"{folder.name}.trace")
    logs.mkdir()
    disk = loaded(folder)
    words = ["strace", "-ff", "-ttt", "-y", "-xx", "-s", "100000000", "-e", f"trace={TRACED}", "-o", str(logs / "log")]
    done = subprocess.run(
        [*words, sys.executable, __file__, str(spec), *careless], capture_output=True, text=True, check=False
    )
    if "PTRACE" in done.stderr or "ptrace" in done.stderr:
        raise Unavailable("processes must not be traced here")
    if done.returncode:
        raise RuntimeError(done.stderr)
    lines = sorted(
        (float(found[1]), found[2], found[3], int(found[4]), found[5])
        for log in logs.iterdir()
        for line in log.read_text().splitlines()
        if (found := _CALL.match(line)) and int(found[4]) >= 0
    )
    shutil.rmtree(logs)
    open_ones = {}
    return disk, [call for line in lines if (call := _call(str(folder), open_ones, *line[1:])) is not None]


def _call(root, open_ones, name, given, result, opened):
    """One call as a tuple, with paths below the folder; None where it is about something else.

    `open_ones` has the path of every handle: a path may begin with one.
    """
    if opened is not None:
        open_ones[result] = _plain(opened[1:-1])
    texts = [bytes.fromhex(text.replace("\\x", "")) for text in _TEXT.findall(given)]
    handles = [_plain(handle) for handle in _HANDLE.findall(given)]

    def inside(path):
        return path[len(root) + 1 :] if path == root or path.startswith(f"{root}/") else None

    if name.startswith(("open", "creat", "mkdir", "unlink", "rename", "rmdir", "link", "symlink")):
        bases = handles or ["/"]
        paths = [
            inside(_whole(bases[min(i, len(bases) - 1)], os.fsdecode(text), open_ones)) for i, text in enumerate(texts)
        ]
        if name.startswith(("open", "creat")):
            paths = [inside(open_ones[result])]
        if all(path is None for path in paths):
            return None
        if name.startswith(("open", "creat")):
            return ("open", paths[0], result, "O_CREAT" in given, "O_TRUNC" in given, "O_APPEND" in given)
        if name.startswith("unlink"):
            return ("rmdir" if "AT_REMOVEDIR" in given else "unlink", paths[0])
        return (name.removesuffix("at2").removesuffix("at"), *paths)
    path = inside(handles[0]) if handles else None
    if path is None:
        return None
    handle = int(re.match(r"\d+", given)[0])
    numbers = [int(number) for number in re.findall(r", (-?\d+)", _TEXT.sub("", given))]
    if name in ("write", "pwrite64"):
        place = numbers[-1] if name == "pwrite64" else None
        return ("write", path, handle, texts[0][:result], place)
    if name == "lseek":
        return ("seek", path, handle, result)
    if name in ("ftruncate", "truncate"):
        return ("truncate", path, numbers[0])
    if name in ("fsync", "fdatasync"):
        return ("sync", path)
    if name == "fallocate":
        return None if "KEEP_SIZE" in given else ("extend", path, numbers[-2] + numbers[-1])
    raise NotImplementedError(f"{name} of a file of the release")


def _whole(base, path, open_ones):
    by_handle = re.match(r"/proc/self/fd/(\d+)", path)
    if by_handle:
        path = open_ones[int(by_handle[1])] + path[by_handle.end() :]
    return os.path.normpath(os.path.join(base, path))


def _plain(handle):
    if "\\x" in handle:
        handle = os.fsdecode(bytes.fromhex(handle.replace("\\x", "")))
    return handle


def loaded(folder):
    """The model of a folder that is on the disk."""
    found = Folder()
    for path in folder.iterdir():
        found.now[path.name] = loaded(path) if path.is_dir() else File(path.read_bytes())
    found.settle()
    return found


class Disk:
    """A folder on a disk, and what was synced of it."""

    def __init__(self, root):
        self.root, self.places = root, {}

    def _at(self, path):
        found = self.root
        for name in filter(None, path.split("/")):
            found = found.now.get(name) if isinstance(found, Folder) else None
        return found

    def _parent(self, path):
        above, _, name = path.rpartition("/")
        return self._at(above), name

    def do(self, call):
        """Do one call."""
        kind, path = call[:2]
        if kind == "open":
            _, _, handle, make, cut, append = call
            parent, name = self._parent(path)
            if make and name and parent is not None and name not in parent.now:
                parent.now[name] = File()
            found = self._at(path)
            if cut and isinstance(found, File):
                del found.now[:]
            self.places[handle] = None if append else 0
        elif kind == "write":
            found, place = self._at(path), call[4]
            if not isinstance(found, File):
                return  # a file that has no name any more
            if place is None:
                place = self.places.get(call[2])
                place = len(found.now) if place is None else place
                if self.places.get(call[2]) is not None:
                    self.places[call[2]] = place + len(call[3])
            found.now[len(found.now) :] = bytes(max(0, place - len(found.now)))
            found.now[place : place + len(call[3])] = call[3]
        elif kind == "seek":
            self.places[call[2]] = call[3]
        elif kind == "truncate":
            found = self._at(path)
            if isinstance(found, File):
                del found.now[call[2] :]
                found.now += bytes(call[2] - len(found.now))
        elif kind == "extend":
            found = self._at(path)
            if isinstance(found, File):
                found.now += bytes(max(0, call[2] - len(found.now)))
        elif kind == "sync":
            found = self._at(path)
            if found is not None:
                found.safe = bytes(found.now) if isinstance(found, File) else dict(found.now)
        elif kind == "mkdir":
            parent, name = self._parent(path)
            parent.now[name] = Folder()
        elif kind in ("unlink", "rmdir"):
            parent, name = self._parent(path)
            parent.now.pop(name, None)
        elif kind == "rename":
            (before, old), (after, new) = self._parent(path), self._parent(call[2])
            after.now[new] = before.now.pop(old)
        else:
            raise NotImplementedError(kind)

    def lay_out(self, place, way, call=None, source=None):
        """Write what would be found into a new folder."""
        torn = self._at(call[1]) if way == "torn" and call is not None and call[0] == "write" else None

        def put(found, where):
            if isinstance(found, Folder):
                where.mkdir()
                keeps = way in ("killed", "torn", "names") or (way == "some" and source.random() < 0.5)
                for name, below in (found.now if keeps else found.safe).items():
                    put(below, where / name)
                return
            keeps = way in ("killed", "torn") or (way == "some" and source.random() < 0.5)
            content = bytes(found.now) if keeps else found.safe
            where.write_bytes(content[: len(content) - len(call[3]) // 2 - 1] if found is torn else content)

        put(self.root, place)


def states(spec, folder, source, share=1.0, careless=()):
    """Trace a release, and lay out what is left after some of its calls; yields the call, the way, and the folder.

    With it comes whether drawing had begun.
    """
    root, calls = traced(spec, *careless)
    disk, drawn = Disk(root), False
    for number, call in enumerate(calls):
        disk.do(call)
        drawn = drawn or MARK in call[1]
        if call[0] == "seek" or source.random() >= share:
            continue
        for way in WAYS:
            if way == "torn" and (call[0] != "write" or len(call[3]) < 2 or call[4] is not None):
                continue  # SQLite writes at places, and counts on a write to leave the bytes around it alone
            place = folder / f"{number}-{way}"
            disk.lay_out(place, way, call, source)
            yield f"{number} of {len(calls)} ({call[0]} {call[1]})", way, place, drawn
            shutil.rmtree(place)


def wrong_with(place, spec, drawn):
    """Say what is wrong with what a release left in a folder; None where all is as it must be."""
    from holdfast import Refused
    from holdfast.release.certificate.verify import verify
    from holdfast.release.ledger.ledger import Ledger
    from holdfast.release.spec.spec import read_spec

    found = read_spec(place / spec.name)
    ledger, output = Ledger(found.ledger_file), Path(found.output)
    slices = sorted(output.with_name(f"{output.name}.agents").glob("agent-*"))
    try:
        charges = len(ledger.entries())
        ledger.verify()
    except Refused as refusal:
        return f"the ledger cannot be read: {refusal}"
    if (drawn or slices) and charges != 1:
        return f"drawn, and {charges} charges"
    try:
        if output.exists():
            report = verify(output, ledger)
            if not report.ok:
                return f"published, but {report.differences[0].sentence}"
        for each in slices:
            _refuse_half(each, ledger)
    except Refused as refusal:
        return f"published, but {refusal}"
    return None


def _refuse_half(place, ledger):
    """Refuse a slice that is not what its agent says, or not what the ledger says."""
    from holdfast import Refused
    from holdfast.release.agents import SHEET, VALUES, published_slices

    texts = {name: (place / name).read_bytes() if (place / name).exists() else b"" for name in (SHEET, VALUES)}
    hashes = {name: hashlib.sha256(text).hexdigest() for name, text in texts.items()}
    told = json.loads(texts[SHEET] or b"{}")
    if (
        told.get("sha256") != hashes[VALUES]
        or published_slices(ledger, told["release"])[told["agent"]] != hashes[SHEET]
    ):
        raise Refused(f"the slice in {place.name} is half")


def digest(place):
    """What stands in a folder, name by name; the same for the same files."""
    found = hashlib.sha256()
    for path in sorted(place.rglob("*")):
        found.update(repr((str(path.relative_to(place)), path.read_bytes() if path.is_file() else None)).encode())
    return found.digest()


def main():
    from example_jobs import before_drawing, job_of, make

    path = Path(sys.argv[1])
    before_drawing((path.parent / MARK).touch)
    if sys.argv[2:]:
        os.fsync = lambda _: None
    make(job_of(path))


if __name__ == "__main__":
    main()
