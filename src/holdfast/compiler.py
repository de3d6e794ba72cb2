"""The one compiler: what it makes is kept on disk, and whoever has to wait for it is told why.

It is loaded by the first call of a compiled function (`holdfast.arrays.compiled`), and by nothing else.

Kept code is run as it is, so it is read only from folders that nobody else can have written. It is used again only
while nothing changed that went into it: the function's own file, the constants that it sees, and the same of every
function compiled from another file that it sees.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
from llvmlite.binding import parse_assembly  # type: ignore[import-untyped]
from numba.core import caching, event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.sigutils import normalize_signature

from holdfast.progress import Delay
from holdfast.system import made_folder, may_write, users_folder

#: Globals whose values become part of compiled code.
CONSTANTS = (bool, int, float, str, tuple, np.generic)
ROOT = __name__.partition(".")[0]


def compiled(function: Callable[..., Any], inner: bool, options: dict[str, Any]) -> Any:
    """Compile a function when it is first called; with `inner` it can be called from compiled functions only."""
    # Arrays are counted unless a function says otherwise, also in one that such a function calls; and C calls none.
    options = {"_nrt": True, "no_cfunc_wrapper": True, "no_cpython_wrapper": inner} | options
    if inner:
        options["pipeline_class"] = _Inner
    made = numba.njit(function, nogil=True, error_model="numpy", **options)
    if inner:  # Python does not get to see what is compiled, for it could not call it
        made._insert, made._compile_for_args = _nothing, partial(_refused, function.__name__)
    if folder_for(Path(inspect.getfile(function)).parent) is not None:
        made._cache = _Kept(function)  # type: ignore[no-untyped-call]
    return made


def _nothing(*_: Any) -> None:
    """Tell nobody."""


def _refused(name: str, *_: Any, **__: Any) -> Any:
    raise TypeError(f"{name} is inner: compiled functions call it, and nobody else")


class _Inner(Compiler):
    """Compiles functions that only compiled functions call."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile one of them for its callers."""
        self.state.library = _Part(self.state.targetctx.codegen(), func.__qualname__)  # type: ignore[no-untyped-call]
        self.state.library.enable_object_caching()  # so that it can be kept
        return super().compile_extra(func)  # type: ignore[no-untyped-call]


class _Part(JITCodeLibrary):
    """What callers take into their own code. It is optimised with that, once, and nobody needs it as machine code."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        """Let the machine have the names of what functions take from Python, and nothing else."""
        part = self._final_module
        names = [str(each) for each in part.global_variables if each.name.startswith("_ZN08NumbaEnv")]
        empty = str(self._codegen._create_empty_module(self.name))  # type: ignore[no-untyped-call]
        self._final_module = parse_assembly("\n".join([empty, *names]))
        super()._finalize_final_module()  # type: ignore[no-untyped-call]
        self._final_module = part


# --- where it is kept ------------------------------------------------------------------------------------------------


@cache
def folder_for(source: Path) -> Path | None:
    """Where code compiled from a folder of sources is kept; None if nowhere.

    In the folder that numba's users choose; else beside the sources, as Python keeps its own; else with the user.
    """
    beside = source / "__pycache__"
    digest = hashlib.sha256(str(source).encode()).hexdigest()[:16]
    chosen = getattr(numba.config, "CACHE_DIR", "")
    if chosen and made_folder(Path(chosen)):
        return Path(chosen) / f"{source.name}-{digest}"
    if may_write(beside if beside.exists() else source):
        return beside
    own = users_folder()
    return None if own is None else own / f"{source.name}-{digest}"


# --- what it is made of ----------------------------------------------------------------------------------------------


def stamp(function: Callable[..., Any]) -> str:
    """A digest of everything that goes into the compiled code of a function."""
    return _digest(inspect.getfile(function), function.__globals__, function.__module__)


def _digest(file: str, names: dict[str, Any], module: str) -> str:
    digest = hashlib.sha256(_content(file))
    for name, part in sorted(_seen(names, module)):
        digest.update(f"{name}={part}\n".encode())
    return digest.hexdigest()


def _seen(names: dict[str, Any], module: str) -> Iterator[tuple[str, str]]:
    """What compiled code may take from the names of its module and has not in its own file."""
    for name, value in names.items():
        if getattr(getattr(value, "py_func", None), "__module__", module) != module:  # compiled, or to be compiled
            kept = getattr(getattr(value, "made", value), "_cache", None)
            yield name, kept.stamp if isinstance(kept, _Kept) else stamp(value.py_func)
        elif isinstance(value, ModuleType):
            if value.__name__.partition(".")[0] == ROOT and value.__file__:
                yield name, _digest(value.__file__, vars(value), value.__name__)
        elif isinstance(value, CONSTANTS) and not name.startswith("__"):
            yield name, repr(value)
        elif isinstance(value, np.ndarray):
            yield name, hashlib.sha256(repr((value.dtype.str, value.shape)).encode() + value.tobytes()).hexdigest()


@cache
def _content(file: str) -> bytes:
    return Path(file).read_bytes()


# --- numba's own cache, told so --------------------------------------------------------------------------------------


class _Place(caching._CacheLocator):
    """Where the code of one function is kept. Names hold the stamp, so code of another stamp is never found."""

    def __init__(self, function: Callable[..., Any], file: str, folder: Path) -> None:
        self._py_file, self._folder, self._stamp = file, folder, stamp(function)
        self._line = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return f"{self._line}-{self._stamp[:16]}"

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Place | None:
        folder = folder_for(Path(py_file).parent)
        return None if folder is None else cls(py_func, py_file, folder)


class _Files(caching.CompileResultCacheImpl):
    _locator_classes = [_Place]  # type: ignore[list-item] # noqa: RUF012


class _Kept(caching.FunctionCache):
    """The code of one function on disk; what cannot be read is compiled, and what cannot be written is not kept."""

    _impl_class = _Files

    @property
    def stamp(self) -> str:
        """What the code was made of."""
        return str(self._impl.locator.get_source_stamp())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Read what was compiled for some types of arguments; None if there is nothing, or nothing whole.

        Two processes that compile a function at once, for different types, may write their code to one file, so what is
        read must say that it is for these.
        """
        with suppress(Exception):  # files that were cut off, or that another program wrote
            found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
            types, _ = normalize_signature(sig)  # type: ignore[no-untyped-call]
            if found is None or tuple(found.signature.args) == tuple(types):
                return found
        with suppress(OSError):
            self.flush()  # type: ignore[no-untyped-call]
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write what was compiled."""
        with suppress(OSError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]


# --- what is said while it is made -----------------------------------------------------------------------------------


def _sentence() -> str:
    if folder_for(Path(__file__).parent) is None:
        return (
            "compiling what this needs, at every start: no folder can be written where compiled code is safe; "
            "let NUMBA_CACHE_DIR name one of your own"
        )
    return "compiling what this needs, once; the next run starts at once"


class _Listener(event.Listener):
    """Hears of everything that numba compiles in this process, and counts what is ours."""

    def __init__(self) -> None:
        self._delay = Delay(_sentence)

    def on_start(self, event: Any) -> None:
        """Compiling begins."""
        if _ours(event):
            self._delay.begin()

    def on_end(self, event: Any) -> None:
        """Compiling ends."""
        if _ours(event):
            self._delay.end()


def _ours(event: Any) -> bool:
    return str(event.data["dispatcher"].py_func.__module__).partition(".")[0] == ROOT


event.register("numba:compile", _Listener())  # type: ignore[no-untyped-call]
