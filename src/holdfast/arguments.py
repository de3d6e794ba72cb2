"""What public functions accept, and the one sentence with which they refuse.

Every refusal names the argument, what was found and what is expected. Values that come from confidential
data are never part of a message: functions that take such values describe only where the trouble is.
"""

from __future__ import annotations

import difflib
import math
import numbers
import os
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:  # both take long to import
    from narwhals.typing import IntoFrame
    from scipy import sparse

#: Whole numbers in tables stay strictly within ±2**62, so that a value plus its noise fits in 64 bits.
LARGEST = 2**62
#: Digits and bits of a number that is accepted at most: many more than any double has.
MOST_DIGITS, MOST_BITS = 2000, 8000
#: What a message may show as it is.
SCALARS = (numbers.Number, Decimal, str, np.generic, os.PathLike)
#: Entries of a list of names, parts or sentences.
MOST_LISTED = 2**22
#: Positions stay below this where the number of outputs is not known yet: bounds of all of them are kept in memory.
MOST_POSITIONS = 2**27

#: What public functions take: one number, a vector and a matrix, of exact numbers where they are exact.
Number = int | float | Fraction | Decimal | np.integer[Any] | np.floating[Any]
Numbers = npt.ArrayLike | Number | Sequence[Number]
Matrix: TypeAlias = "npt.ArrayLike | Sequence[Sequence[object]] | sparse.sparray | sparse.spmatrix"
#: A budget or another number that may be left out.
Amount = Number | None
#: A number for each level: by its name or depth, or with a margin of it. (A mapping's keys vary with nothing.)
ByLevel = Mapping[Any, Number]
#: A data frame of any library that narwhals reads.
Frame: TypeAlias = "IntoFrame | Mapping[str, Any]"

Found = TypeVar("Found")


class Refused(ValueError):
    """The input cannot be used; nothing was drawn or released. The message is one sentence for the user.

    Example:
        >>> import holdfast as hf
        >>> try:
        ...     hf.laplace(hf.histogram(2))
        ... except hf.Refused as refused:
        ...     print("refused")
        refused
    """

    #: Whether the same may go through at another time: something was busy or away, and nothing that was asked is wrong.
    retry = False
    #: What is wrong in a word that stays, for scripts and tests; sentences may be bettered.
    code = "HF-REFUSED"


def later(refusal: Refused) -> Refused:
    """The refusal of what may go through at another time."""
    refusal.retry = True
    return refusal


class Fault(RuntimeError):
    """Something that must hold does not: a fault of holdfast, in a sentence of its own that shows no record."""


@dataclass(frozen=True)
class NoWay:
    """No way is known to compute something; the sentence is for the user, should it come to that."""

    sentence: str


def known(found: Found | NoWay) -> Found:
    """What was found; refused with its sentence where there is no way."""
    if isinstance(found, NoWay):
        raise Refused(found.sentence)
    return found


def shown(value: Any) -> str:
    """Return what was found as a message shows it: a scalar itself, anything else by its type and shape alone.

    What was passed by mistake may be confidential: counts for a budget, records for a query.
    """
    kind = type(value).__name__
    try:
        if value is None or (isinstance(value, SCALARS) and not isinstance(value, np.void)):
            text = repr(value)
            return text if len(text) <= MOST_DIGITS else f"{text[:MOST_DIGITS]}…"
        if isinstance(value, type):
            return f"the type {value.__name__}"
        if hasattr(type(value), "__array__") or hasattr(type(value), "nnz"):
            return f"{kind} of shape {tuple(map(int, value.shape))}"
        if isinstance(value, (Sequence, Set, Mapping)):
            return f"{kind} of {len(value)} entries"
    except Exception:  # numbers of many digits, and whatever objects of others do
        return f"a value of type {kind}"
    return f"a value of type {kind}"


def rational(name: str, value: Any) -> Fraction:
    """Return a finite number as the exact rational it stands for."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (numbers.Number, Decimal)):
        raise Refused(f"{name} must be a number, found {shown(value)}")
    if isinstance(value, numbers.Rational):
        above, below = int(value.numerator), int(value.denominator)
        if max(above.bit_length(), below.bit_length()) > MOST_BITS:
            raise Refused(f"{name} must be a number of at most {MOST_DIGITS} digits, found a longer one")
        return Fraction(above, below)
    if not isinstance(value, (numbers.Real, Decimal)) or not _finite(value):
        raise Refused(f"{name} must be a finite number, found {shown(value)}")
    if not isinstance(value, Decimal):
        return Fraction(float(value))
    _, digits, exponent = value.as_tuple()
    if len(digits) + abs(int(exponent)) > MOST_DIGITS:  # as a fraction it would fill the memory
        raise Refused(f"{name} must be a number of at most {MOST_DIGITS} digits, found a longer one")
    return Fraction(value)


def written_rational(name: str, text: str) -> Fraction:
    """Return the number that a text such as 1/10 or 0.1 stands for; one of more digits than are read is refused."""
    try:
        above, *below = [rational(name, Decimal(part)) for part in text.split("/", 1)]
        return above / (below[0] if below else 1)
    except (ArithmeticError, AttributeError, TypeError):
        raise Refused(f"{name} must be a number such as 1/10, found {shown(text)}") from None


def _finite(value: Any) -> bool:
    """Whether a number is finite; one that no double can hold is not."""
    try:
        return value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)
    except (OverflowError, ValueError, TypeError):
        return False


def positive(name: str, value: Any) -> Fraction:
    """Return a finite number above zero as an exact rational."""
    number = rational(name, value)
    if number <= 0:
        raise Refused(f"{name} must be above 0, found {shown(value)}")
    return number


def probability(name: str, value: Any) -> Fraction:
    """Return a number strictly between 0 and 1 as an exact rational."""
    number = rational(name, value)
    if not 0 < number < 1:
        raise Refused(f"{name} must lie strictly between 0 and 1, found {shown(value)}")
    return number


def whole(name: str, value: Any, at_least: int | None = None, at_most: int | None = None) -> int:
    """Return a whole number within its limits as an int."""
    number = rational(name, value)
    if number.denominator != 1:
        raise Refused(f"{name} must be a whole number, found {shown(value)}")
    if at_least is not None and number < at_least:
        raise Refused(f"{name} must be at least {at_least}, found {shown(value)}")
    if at_most is not None and number > at_most:
        raise Refused(f"{name} must be at most {at_most}, found {shown(value)}")
    return int(number)


def one_of(name: str, value: Any, allowed: Iterable[Any]) -> Any:
    """Return the value if it is allowed; otherwise refuse, naming the nearest allowed one."""
    options = list(allowed)
    if any(isinstance(value, type(option)) and value == option for option in options):
        return value
    near = difflib.get_close_matches(shown(value).strip("'"), [str(option) for option in options], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    expected = ", ".join(repr(option) for option in options)
    raise Refused(f"{name} must be one of {expected}, found {shown(value)}{hint}")


def listed(name: str, values: Any, expected: str) -> list[Any]:
    """Return the entries of a list of things that are few; refused where it is none, with what is expected."""
    try:
        entries = None if isinstance(values, (str, bytes)) else list(islice(values, MOST_LISTED + 1))
    except Exception:  # whatever objects of others do
        entries = None
    if entries is None or len(entries) > MOST_LISTED:
        raise Refused(f"{name} must be {expected}, found {shown(values)}")
    return entries


def of_type(name: str, value: Any, kind: type[Found]) -> Found:
    """Return a value of a type; refused where it has another."""
    if not isinstance(value, kind):
        raise Refused(f"{name} must be a {kind.__name__}, found {shown(value)}")
    return value


def path_of(name: str, value: Any) -> Path:
    """Return the path that a text or a path names; refused where no file can have the name."""
    try:
        os.fsencode(value)  # TypeError: neither; ValueError: half a character
        path = Path(value)
        if "\0" not in str(path):
            return path
    except (TypeError, ValueError):
        pass
    raise Refused(f"{name} must be a path, found {shown(value)}")


def array(name: str, values: Any, shape: Sequence[int] | None = None) -> npt.NDArray[Any]:
    """Return the values as a numeric array, refusing anything ragged, textual, complex, labelled or masked.

    Of a shape, if one is told; what has more entries than that is not made an array.
    """
    if shape is not None and isinstance(values, Sequence) and len(values) > math.prod(shape):
        raise Refused(f"{name} must have shape {tuple(shape)}, found {shown(values)}")
    result = _array(name, values)
    if shape is not None and result.shape != tuple(shape):
        raise Refused(f"{name} must have shape {tuple(shape)}, found shape {result.shape}")
    return result


def as_array(name: str, values: Any, dtype: Any = None) -> npt.NDArray[Any]:
    """Return what numpy makes of the values; refused where it makes nothing of them."""
    try:
        return np.asarray(values, dtype=dtype)
    except MemoryError:
        raise Refused(f"{name} is larger than memory, found {shown(values)}") from None
    except Exception:  # whatever objects of others do
        raise Refused(f"{name} must be an array of numbers, found values of unequal shape or kind") from None


def _array(name: str, values: Any) -> npt.NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise Refused(f"{name} must not have masked entries: fill them in, or leave them out")
    labels = getattr(values, "index", None) if hasattr(values, "iloc") else None
    if labels is not None and type(labels).__name__ != "RangeIndex":
        raise Refused(f"{name} is labelled, and labels are not matched: put it in order and pass .to_numpy()")
    result = as_array(name, values)
    if result.dtype == object:
        try:
            exact = [rational(name, value) for value in result.ravel()]
        except Refused:
            raise Refused(f"{name} must hold finite numbers only") from None
        if any(abs(value) >= LARGEST for value in exact):
            raise Refused(f"{name} must stay below 2**62 in size, found a larger entry")
        if all(value.denominator == 1 for value in exact):
            return np.array([int(value) for value in exact], dtype=np.int64).reshape(result.shape)
        return np.array([float(value) for value in exact], dtype=np.float64).reshape(result.shape)
    if result.dtype.kind not in "iuf":
        raise Refused(f"{name} must hold numbers, found values of type {result.dtype}")
    return result


def whole_numbers(
    name: str, values: Any, shape: Sequence[int] | None = None, *, copy: bool = True
) -> npt.NDArray[np.int64]:
    """Return confidential or public whole numbers as int64; a refusal names a position, never a value.

    Without a copy they may be the same array, and are only to be read.
    """
    result = array(name, values, shape)
    if result.dtype.kind == "f":
        reals(name, result)
        bad = np.flatnonzero(result.ravel() != np.rint(result.ravel()))
        if bad.size:
            raise Refused(f"{name} must hold whole numbers, but the entry at position {bad[0]} is not whole")
    if result.size and (result.max() >= LARGEST or result.min() <= -LARGEST):
        bad = np.flatnonzero((result.ravel() >= LARGEST) | (result.ravel() <= -LARGEST))
        raise Refused(f"{name} must stay below 2**62 in size, but the entry at position {bad[0]} does not")
    return result.astype(np.int64, copy=copy)


def reals(name: str, values: Any, shape: Sequence[int] | None = None) -> npt.NDArray[np.float64]:
    """Return confidential or public finite numbers as float64; a refusal names a position, never a value."""
    result = array(name, values, shape)
    converted = result.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(converted.ravel()))
    if bad.size:
        raise Refused(f"{name} must hold finite numbers, but the entry at position {bad[0]} is not finite")
    return converted


def positions(name: str, values: Any, n: int | None = None) -> npt.NDArray[np.int64]:
    """Return distinct public positions 0 … n−1 (one number or a list) as an int64 array in the given order."""
    result = np.atleast_1d(whole_numbers(name, values))
    if result.ndim != 1 or result.size == 0:
        raise Refused(f"{name} must be one position or a list of positions, found shape {result.shape}")
    most = MOST_POSITIONS if n is None else n
    if result.min() < 0 or result.max() >= most:
        limit = f"between 0 and {most - 1}" if n is not None or result.min() >= 0 else "0 or more"
        bad = int(np.flatnonzero((result < 0) | (result >= most))[0])
        where = shown(values) if np.isscalar(values) else f"another at place {bad}"
        raise Refused(f"{name} must hold positions {limit}, found {where}")
    ordered = np.sort(result)  # many times faster than np.unique on millions of positions
    if (ordered[1:] == ordered[:-1]).any():
        raise Refused(f"{name} must not name a position twice")
    return result
