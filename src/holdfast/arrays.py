"""Arrays and what works on them: their types, the one compiler, and what is kept once it was computed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial, update_wrapper, wraps
from types import FunctionType
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]
Array = npt.NDArray[Any]

#: Options of compiled functions that make no arrays. Whoever has an array is counted, by all threads in one place, and
#: they wait for each other there; these functions do not count the arrays that they are given.
BORROWED: dict[str, Any] = {"_nrt": False}
#: Results that one function keeps with one owner, where arguments beside the owner tell them apart.
MOST_KEPT = 8

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")
Number = TypeVar("Number", bound=np.generic)
#: Guards the making of an owner's own lock, and of compiled functions: each happens once.
_MAKING = threading.RLock()
#: How many numbers small calls hold together that are part of something larger; see `together`.
_TOGETHER: ContextVar[int] = ContextVar("together", default=0)


@overload
def compiled(function: Callable[..., Any]) -> Any: ...
@overload
def compiled(
    function: None = None, *, beyond: int | None = None, inner: bool = False, **options: Any
) -> Callable[[Callable[..., Any]], Any]: ...
def compiled(
    function: Callable[..., Any] | None = None, *, beyond: int | None = None, inner: bool = False, **options: Any
) -> Any:
    """Compile a function when it is first called: kept on disk, without the interpreter's lock, dividing as numpy does.

    Plain, or with options of numba: `@compiled(inline="always")`. With `beyond`, calls whose arrays hold at most that
    many numbers (or those of all calls `together`) run as the function is written: they would be over long before it
    was compiled. Both ways give the same bits, but for the last one of exp and log. With `inner` it is called by
    compiled functions alone: it is compiled sooner, without what Python would need to call it.
    """
    if function is None:
        return partial(compiled, beyond=beyond, inner=inner, **options)
    made = Compiled(function, inner, options)
    return made if beyond is None else update_wrapper(Sized(made, beyond), function)


class Compiled:
    """A function that is to be compiled: numba is loaded when it is first called, and not before."""

    def __init__(self, function: Callable[..., Any], inner: bool, options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.py_func, self._how, self._made = function, (inner, options), None

    @property
    def made(self) -> Any:
        """What numba makes of it, which takes its place in its module, as do compiled functions that it may call."""
        with _MAKING:
            if self._made is None:
                from holdfast import compiler  # numba is loaded by what is compiled, and by nothing else

                names, home = self.py_func.__globals__, self.py_func.__module__
                _put_in_place(names, lambda each: each.py_func.__module__ != home)
                self._made = compiler.compiled(self.py_func, *self._how)
                _put_in_place(names, lambda each: each.py_func.__module__ == home)
            return self._made

    def __call__(self, *arguments: Any) -> Any:
        return self.made(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.made, name)


def _put_in_place(names: dict[str, Any], which: Callable[[Compiled], bool]) -> None:
    for name, value in list(names.items()):
        if isinstance(value, Compiled) and which(value):
            names[name] = value.made


@contextmanager
def together(numbers: int) -> Iterator[None]:
    """Let each call in here count as one with so many numbers: it is one of many, whose arrays hold these together."""
    before = _TOGETHER.set(numbers)
    try:
        yield
    finally:
        _TOGETHER.reset(before)


class Sized:
    """A compiled function whose small calls run as it is written; it can be called from Python only."""

    def __init__(self, made: Any, beyond: int) -> None:
        self.compiled, self.beyond = made, beyond

    def __call__(self, *arguments: Any) -> Any:
        """Call the function: compiled if its arrays, or all `together`, hold more than `beyond` numbers; or plainly."""
        if max(_numbers(arguments), _TOGETHER.get()) > self.beyond:
            return self.compiled(*arguments)
        return self.plain(*arguments)

    def plain(self, *arguments: Any) -> Any:
        """What the function gives as it is written, every compiled function that it calls included."""
        names = _plain_names(self.compiled.py_func.__module__)
        with np.errstate(all="ignore"):  # compiled code divides by 0 and overflows in silence
            return _plainly(self.compiled.py_func, names)(*arguments)


def _numbers(arguments: tuple[Any, ...]) -> int:
    """How many numbers arrays hold, those in tuples included."""
    return sum(
        each.size if isinstance(each, np.ndarray) else _numbers(each)
        for each in arguments
        if isinstance(each, np.ndarray | tuple)
    )


def _plainly(function: Callable[..., Any], names: dict[str, Any]) -> FunctionType:
    return FunctionType(function.__code__, names, function.__name__, function.__defaults__)


@cache
def _plain_names(module: str) -> dict[str, Any]:
    """The names of a module, with functions as they are written in place of compiled ones."""
    names = dict(vars(sys.modules[module]))
    for name, value in names.items():
        written = getattr(value, "py_func", None)
        if isinstance(written, FunctionType):
            home = written.__module__
            names[name] = _plainly(written, names if home == module else _plain_names(home))
    return names


@compiled(inner=True)
def put(values: Any, into: Any) -> None:
    """Copy numbers into an array.

    A slice on the left, `into[:] = values`, takes five seconds longer to compile: numba compiles the words of the error
    that it would raise for other lengths.
    """
    for i in range(values.size):
        into[i] = values[i]


def only_read(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """The same numbers as an array that cannot be written: what is shared, and what is compiled for one kind of array.

    Compiled code is made once for arrays that may be written and once more for those that may not.
    """
    result = values.view()
    result.flags.writeable = False
    return result


def ranges(start: Ints, counts: Ints) -> Ints:
    """start[0], start[0] + 1, …, so many, then the same of the next."""
    return np.repeat(start - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))


class Owner:
    """Something from which much is computed: it keeps the results of functions marked `kept` as long as it lives.

    What is kept is no part of its value: copies and pickles begin without it.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_memo"}

    def forget(self, *functions: Any) -> None:
        """Let go of what these functions gave; of everything if none is named."""
        memo = _memo_of(self)
        with memo.lock:
            for function in functions or tuple(memo.results):
                memo.results.pop(getattr(function, "__wrapped__", function), None)


class _Memo:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.results: dict[Callable[..., Any], dict[Any, Any]] = {}

    def get(self, function: Callable[..., Any], key: Any, make: Callable[[], Result], most: int) -> Result:
        """What a function gave for a key; made without the lock, and of two that were made the first is kept."""
        with self.lock:
            results = self.results.setdefault(function, {})
            if key in results:
                found: Result = results[key]
                return found
        made = make()
        with self.lock:
            results = self.results.setdefault(function, {})
            first: Result = results.setdefault(key, made)
            while len(results) > most:
                del results[next(iter(results))]
            return first


class Shared:
    """Results that all who ask with an equal key share, whatever they own: the newest few."""

    def __init__(self, most: int) -> None:
        self._memo, self._most = _Memo(), most

    def get(self, key: Any, make: Callable[[], Result]) -> Result:
        """The result that is kept under a key, or else the one that is made now."""
        return self._memo.get(Shared, key, make, self._most)

    def known(self, key: Any) -> Any:
        """What is kept under a key, or None."""
        with self._memo.lock:
            return self._memo.results.get(Shared, {}).get(key)

    def put(self, key: Any, value: Result) -> Result:
        """Keep this value under a key, as the newest."""
        with self._memo.lock:
            self._memo.results.setdefault(Shared, {}).pop(key, None)
        return self.get(key, lambda: value)

    def __len__(self) -> int:
        return len(self._memo.results.get(Shared, ()))


def _memo_of(owner: Owner) -> _Memo:
    memo: _Memo | None = owner.__dict__.get("_memo")
    if memo is None:
        with _MAKING:
            memo = owner.__dict__.setdefault("_memo", _Memo())
    return memo


def kept(
    function: Callable[Concatenate[Any, Arguments], Result],
) -> Callable[Concatenate[Any, Arguments], Result]:
    """Keep what a function of an `Owner`, and of arguments that can be compared, returns: the newest few of each owner.

    Threads may call it at once; then it may be computed twice, and all get the result that was kept first.
    """

    @wraps(function)
    def keeping(owner: Any, /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        key = (*arguments, *sorted(named.items()))
        return _memo_of(owner).get(function, key, lambda: function(owner, *arguments, **named), MOST_KEPT)

    return keeping
