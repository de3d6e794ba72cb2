"""Arrays and what works on them: their types, the one compiler, and what is kept once it was computed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

import numba
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

#: Results that one function keeps with one owner, where arguments beside the owner tell them apart.
MOST_KEPT = 8

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")
#: Guards the making of an owner's own lock, which happens once per owner.
_MAKING = threading.Lock()


@overload
def compiled(function: Callable[..., Any]) -> Any: ...
@overload
def compiled(function: None = None, **options: Any) -> Callable[[Callable[..., Any]], Any]: ...
def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function: kept on disk, without the interpreter's lock, dividing as numpy does.

    Plain, or with options of numba: `@compiled(inline="always")`.
    """
    return numba.njit(function, cache=True, nogil=True, error_model="numpy", **options)


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
        memo = _memo_of(owner)
        key = (*arguments, *sorted(named.items()))
        with memo.lock:
            results = memo.results.setdefault(function, {})
            if key in results:
                found: Result = results[key]
                return found
        made = function(owner, *arguments, **named)
        with memo.lock:
            results = memo.results.setdefault(function, {})
            first: Result = results.setdefault(key, made)
            while len(results) > MOST_KEPT:
                del results[next(iter(results))]
            return first

    return keeping
