"""Compiled code: where it is kept, what makes it stale, and what is said while it is made."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast import arrays, compiler, progress, system

PACKAGE = Path(compiler.__file__).parent
NOBODY = 65534
ROOT = os.geteuid() == 0
TREE = (
    "import numpy as np; from holdfast.trees.normal.normal_passes import _upwards\n"
    "_upwards.compiled(np.array([1, 1]), np.array([False]), np.array([1.0]))\n"
)
HITS = "print(sum(_upwards.compiled.stats.cache_hits.values()))\n"


@pytest.fixture(scope="module")
def read_only() -> Iterator[Path]:
    """A copy of the package that nobody can write, and a folder for temporary ones."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    shutil.copytree(PACKAGE, place / "site" / "holdfast", ignore=shutil.ignore_patterns("__pycache__"))
    (place / "tmp").mkdir()
    (place / "tmp").chmod(0o1777)
    folders = [path for path in (place / "site").rglob("*") if path.is_dir()] + [place / "site"]
    for folder in folders:
        folder.chmod(0o555)
    yield place
    for folder in folders:
        folder.chmod(0o755)
    shutil.rmtree(place)


def without_rights() -> None:
    """Let an administrator keep to permissions like everybody else: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH go."""
    for capability in (1, 2):
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)


def ran(place: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run some code with the copy, as somebody without rights and without a home."""
    site, nowhere = str(place / "site"), str(place / "site" / "nowhere")
    words = {"PYTHONPATH": site, "HOME": nowhere, "TMPDIR": str(place / "tmp"), "PATH": ""}
    drop = without_rights if ROOT else None
    return subprocess.run(
        [sys.executable, "-B", "-c", code], env=words, preexec_fn=drop, capture_output=True, text=True, check=True
    )


@pytest.mark.slow
def test_without_a_home_and_beside_sources_that_nobody_can_write_code_is_kept_in_a_private_folder(
    read_only: Path,
) -> None:
    said = ran(read_only, f"from holdfast import progress; progress.PATIENCE = 0\n{TREE}").stderr
    assert "compiling what this needs, once; the next run starts at once" in said
    (kept,) = (read_only / "tmp").iterdir()
    assert kept.name.startswith("holdfast-")
    assert kept.stat().st_mode & 0o777 == 0o700
    again = ran(read_only, TREE + HITS)
    assert (again.stdout.strip(), again.stderr) == ("1", "")


@pytest.mark.slow
def test_a_folder_that_somebody_else_made_is_not_used(read_only: Path) -> None:
    shutil.rmtree(read_only / "tmp")
    planted = read_only / "tmp" / f"holdfast-{os.geteuid()}"
    planted.mkdir(parents=True)
    (read_only / "tmp").chmod(0o1777)
    planted.chmod(0o777)  # so it could be used, by everybody
    if ROOT:
        os.chown(planted, NOBODY, NOBODY)
    said = ran(read_only, f"from holdfast import progress; progress.PATIENCE = 0\n{TREE}").stderr
    assert "at every start: no folder can be written" in said
    assert not list(planted.iterdir())


def test_a_private_folder_is_ours_and_nobody_else_can_write_it_or_above_it(tmp_path, monkeypatch):
    own = tmp_path / "above" / "own"
    own.mkdir(parents=True, mode=0o700)
    assert system.is_private(own)
    for place, mode in ((own, 0o770), (own, 0o702), (own.parent, 0o777), (own.parent, 0o775)):
        before = place.stat().st_mode
        place.chmod(mode)
        assert not system.is_private(own)
        place.chmod(before)
    own.parent.chmod(0o1777)  # as the folder of temporary ones: what is there cannot be replaced by others
    assert system.is_private(own)
    (tmp_path / "link").symlink_to(own)
    assert not system.is_private(tmp_path / "link")
    monkeypatch.setattr(os, "geteuid", lambda: own.stat().st_uid + 1)
    assert not system.is_private(own)


def test_folders_are_tried_in_their_order(tmp_path, monkeypatch):
    source = tmp_path / "source"
    source.mkdir()
    beside = source / "__pycache__"
    own = tmp_path / "own"
    monkeypatch.setattr(compiler, "users_folder", lambda: own)
    monkeypatch.setattr(compiler.numba.config, "CACHE_DIR", "")
    found = compiler.folder_for.__wrapped__
    assert found(source) == beside
    monkeypatch.setattr(compiler, "may_write", lambda folder: folder not in (source, beside))
    assert found(source).parent == own
    monkeypatch.setattr(compiler, "users_folder", lambda: None)
    assert found(source) is None
    monkeypatch.setattr(compiler.numba.config, "CACHE_DIR", str(tmp_path / "chosen"))
    assert found(source).parent == tmp_path / "chosen"


def module(folder: Path, name: str, text: str) -> ModuleType:
    """A module of the package, made up."""
    file = folder / f"{name}.py"
    file.write_text(textwrap.dedent(text))
    made = ModuleType(f"holdfast.made_up.{name}")
    made.__file__ = str(file)
    exec(compile(file.read_text(), str(file), "exec"), vars(made))
    return made


def stamps(folder: Path, constant: str, body: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The stamp of a function that calls one from another file, which has a constant from a third."""
    folder.mkdir()
    first = module(folder, "first", f"LIMIT = {constant}\n")
    second = module(folder, "second", "")
    text = f"from holdfast.arrays import compiled\n@compiled\ndef inner(x):\n    return {body}\n"
    vars(second)["LIMIT"] = first.LIMIT
    (folder / "second.py").write_text(text)
    compiler._content.cache_clear()
    exec(compile(text, str(folder / "second.py"), "exec"), vars(second))
    third = module(folder, "third", "")
    vars(third)["inner"] = second.inner
    text = "from holdfast.arrays import compiled\n@compiled\ndef outer(x):\n    return inner(x) + 1\n"
    (folder / "third.py").write_text(text)
    compiler._content.cache_clear()
    exec(compile(text, str(folder / "third.py"), "exec"), vars(third))
    return str(third.outer._cache.stamp)


def test_code_is_stale_when_a_function_or_a_constant_of_another_file_changed(tmp_path, monkeypatch):
    """Numba looks at the function's own file alone."""
    as_it_is = stamps(tmp_path / "a", "7", "x + LIMIT", monkeypatch)
    assert stamps(tmp_path / "b", "7", "x + LIMIT", monkeypatch) == as_it_is
    assert stamps(tmp_path / "c", "8", "x + LIMIT", monkeypatch) != as_it_is
    assert stamps(tmp_path / "d", "7", "x - LIMIT", monkeypatch) != as_it_is


def test_inner_functions_are_called_by_compiled_ones_alone(tmp_path):
    """Before and after they are compiled: what Python would need to call them is not made."""
    text = (
        "from holdfast.arrays import compiled\n@compiled(inner=True)\ndef inner(x):\n    return 2 * x\n"
        "@compiled\ndef outer(x):\n    return inner(x) + 1\n"
    )
    made = module(tmp_path, "nested", text)
    for _ in range(2):
        with pytest.raises(TypeError, match="inner is inner: compiled functions call it, and nobody else"):
            made.inner(3)
        assert made.outer(3) == 7
    assert len(made.inner.overloads) == 1


def test_inner_functions_that_were_kept_are_part_of_new_callers_and_raise_their_errors(tmp_path):
    """They are kept for other compiled functions: what they see and what they refuse go with them."""
    text = (
        "import numpy as np\nfrom holdfast.arrays import compiled\nTABLE = np.array([3.0, 5.0])\n"
        "@compiled(inner=True)\ndef least(x):\n    if x < 0:\n        raise ValueError('below', x)\n"
        "    return TABLE[x]\n"
        "@compiled(inner=True)\ndef inner(x):\n    return 2 * least(x)\n"
        "@compiled\ndef outer(x):\n    return inner(x) + 1\n"
        "@compiled\ndef other(x):\n    return inner(x) + least(x)\n"
    )
    made = module(tmp_path, "nested", text)
    assert made.outer(1) == 11
    again = module(tmp_path, "nested", text)
    assert (again.other(0), again.outer(1)) == (9, 11)
    assert [sum(each.stats.cache_hits.values()) for each in (again.inner, again.outer, again.other)] == [1, 1, 0]
    for made in (again, module(tmp_path, "nested", text)):
        for function in (made.outer, made.other):
            with pytest.raises(ValueError, match=r"\('below', -1\)"):
                function(-1)


def test_kept_code_that_is_broken_is_compiled_again(tmp_path):
    text = "from holdfast.arrays import compiled\n@compiled\ndef f(x):\n    return x + 1\n"
    made = module(tmp_path, "broken", text)
    assert made.f(1) == 2
    kept = sorted(Path(made.f._cache.cache_path).glob("broken.f-*"))
    assert len(kept) == 2
    for file in kept:
        file.write_bytes(b"\x80\x04broken")
    again = module(tmp_path, "broken", text)
    assert again.f(1) == 2


def test_kept_code_for_other_types_is_compiled_again(tmp_path):
    """Two processes that compile at once may each write the first code of a function: one file for two types."""
    text = "from holdfast.arrays import compiled\n\n\n@compiled\ndef first(x):\n    return x[0] + 1\n"
    made = module(tmp_path, "mixed", text)
    assert (made.first(np.array([2])), made.first(np.array([0.25]))) == (3, 1.25)
    one, two = sorted((tmp_path / "__pycache__").glob("mixed.first*.nbc"))
    two.write_bytes(one.read_bytes())
    again = module(tmp_path, "mixed", text)
    assert (again.first(np.array([2])), again.first(np.array([0.25]))) == (3, 1.25)


class Listener:
    """What is written, and a clock that only the test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> None:
        self.text, self.now = "", 100.0
        monkeypatch.setattr(progress, "_write", self.heard)
        monkeypatch.setattr(progress, "_terminal", lambda: terminal)
        monkeypatch.setattr(progress.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(progress, "PAUSE", 60.0)  # the watcher sleeps

    def heard(self, text: str) -> None:
        self.text += text


def test_a_piped_command_says_now_and_then_how_far_it_is(monkeypatch):
    told = Listener(monkeypatch, terminal=False)
    with progress.command(quiet=False) as step:
        step("counting")
        for told.now in range(100, 130):
            progress._VOICE.tick()
        step("drawing")
        told.now = 130  # began at 129
        progress._VOICE.tick()
        with progress.Progress("making messages", 10) as work:
            told.now = 140
            work.advance(3)
    assert told.text.splitlines() == [
        "holdfast: counting, 2 s",
        "holdfast: counting, 12 s",
        "holdfast: counting, 22 s",
        "holdfast: making messages, 30 %, 10 s",
    ]


def test_a_quiet_command_and_a_piped_library_say_nothing(monkeypatch):
    told = Listener(monkeypatch, terminal=False)
    with progress.command(quiet=True) as step:
        step("counting")
        told.now = 200
        progress._VOICE.tick()
        progress._VOICE.say("something")
    with progress.Progress("drawing", 10) as work:
        told.now = 300
        work.advance(3)
    assert told.text == ""
    assert not progress.heard()


def test_a_terminal_shows_one_line_and_wipes_it(monkeypatch):
    told = Listener(monkeypatch, terminal=True)
    with progress.Progress("drawing", 10) as work:
        work.advance(1)
        assert told.text == ""  # not before one has waited
        told.now = 103
        work.advance(2)
        line = "holdfast: drawing, 30 %, 3 s"
        assert told.text == "\r" + line
        progress._VOICE.say("compiling")
        assert told.text == f"\r{line}\r{' ' * len(line)}\rholdfast: compiling\n"
        told.now = 200
        work.advance(1)
    assert told.text.endswith("\r")


def test_waits_that_add_up_are_told_once(monkeypatch):
    told = Listener(monkeypatch, terminal=False)
    timers: list[tuple[float, Any]] = []

    class Timer:
        daemon = False

        def __init__(self, seconds: float, call: Any) -> None:
            timers.append((seconds, call))

        def start(self) -> None: ...
        def cancel(self) -> None: ...

    monkeypatch.setattr(progress.threading, "Timer", Timer)
    delay = progress.Delay(lambda: "compiling")
    for _ in range(3):  # 1.5 s each, with another inside
        delay.begin()
        delay.begin()
        delay.end()
        told.now += 1.5
        delay.end()
    assert [seconds for seconds, _ in timers] == [2.0, 0.5, 0.0]
    timers[-1][1]()
    timers[-1][1]()
    delay.begin()
    assert len(timers) == 3
    assert told.text == "holdfast: compiling\n"


# --- what is not worth compiling -------------------------------------------------------------------------------------


def test_small_calls_compile_nothing_and_large_ones_do() -> None:
    """Which way is taken depends on the numbers in arrays alone, those in tuples included."""
    taken: list[str] = []

    class Both(arrays.Sized):
        def plain(self, *_: Any) -> None:
            taken.append("plain")

    sized = Both(lambda *_: taken.append("compiled"), 6)
    for rows in (np.zeros(6), np.zeros((2, 3)), np.zeros(7)):
        sized(rows, 10_000, "name")
    sized((np.zeros(3), (np.zeros(3),)), np.zeros(0))
    sized((np.zeros(3), (np.zeros(3),)), np.zeros(1))
    assert taken == ["plain", "plain", "compiled", "plain", "compiled"]


def test_small_calls_that_are_large_together_run_compiled() -> None:
    taken: list[str] = []

    class Both(arrays.Sized):
        def plain(self, *_: Any) -> None:
            taken.append("plain")

    sized = Both(lambda *_: taken.append("compiled"), 6)
    with arrays.together(7):
        sized(np.zeros(3))
        with arrays.together(6):
            sized(np.zeros(3))
        sized(np.zeros(3))
    sized(np.zeros(3))
    assert taken == ["compiled", "plain", "compiled", "plain"]


def test_a_plain_call_calls_nothing_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions of other files that it calls run as they are written too."""

    def never(*_: Any) -> None:
        raise AssertionError("compiled")

    monkeypatch.setattr("numba.core.dispatcher.Dispatcher._compile_for_args", never)
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2])
    query = hf.counts(tree)
    must = hf.consistent(tree) & hf.nonnegative() & hf.between(0, 4, at=[3])
    for norm in ("l2", "l1"):
        for integer in (True, False):
            moved = hf.gaussian(query, scale=[1, 2, 1, 1, 2, 1]).onto(must, norm=norm, integer=integer)
            image = moved.image(query.answer([5, 0, 7]))
            assert np.isclose(image[0], image[1:3].sum())
    hf.laplace(query, epsilon=1).given(hf.consistent(tree)).release(query.answer([5, 0, 7])).interval(0.9)
