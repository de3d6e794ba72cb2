"""Arrays and what works on them: their types, the one compiler, and what is kept once it was computed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial, wraps
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
#: Guards the making of an owner's own lock, which happens once per owner.
_MAKING = threading.Lock()


@overload
def compiled(function: Callable[..., Any]) -> Any: ...
@overload
def compiled(
    function: None = None, *, beyond: int | None = None, inner: bool = False, **options: Any
) -> Callable[[Callable[..., Any]], Any]: ...
def compiled(
    function: Callable[..., Any] | None = None, *, beyond: int | None = None, inner: bool = False, **options: Any
) -> Any:
    """Compile a function: kept on disk, without the interpreter's lock, dividing as numpy does.

    Plain, or with options of numba: `@compiled(inline="always")`. With `beyond`, calls whose arrays hold at most that
    many numbers run as the function is written: they would be over long before it was compiled. With `inner` it is
    called by compiled functions alone: it is compiled sooner, without what Python would need to call it.
    """
    from holdfast import compiler  # numba is loaded by what is compiled, and by nothing else

    made = partial(compiler.compiled, beyond=beyond, inner=inner, options=options)
    return made if function is None else made(function)


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
