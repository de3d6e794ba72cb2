"""Independent noise over many coordinates, of few laws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Refused, array, positive, whole
from holdfast.arrays import Array, Floats, Ints
from holdfast.noise.gaussian import Gaussian, IntegerGaussian
from holdfast.noise.laplace import IntegerLaplace, Laplace
from holdfast.randomness import Stream

Law = Laplace | Gaussian | IntegerLaplace | IntegerGaussian
#: The law of each kind, of whole noise or not.
LAWS: dict[tuple[str, bool], Any] = {
    (law.kind, law.integer): law for law in (Laplace, Gaussian, IntegerLaplace, IntegerGaussian)
}


#: Coordinates up to which those of every law are kept as a list; beyond, they are found each time.
MOST_LISTED = 10_000_000


@dataclass(frozen=True, eq=False)
class Independent:
    """n independent coordinates; coordinate i has law `laws[which[i]]`, or `laws[0]` if which is None.

    A law of None means that the coordinate is not measured: its scale is infinite, it adds nothing to a
    density, and it cannot be drawn.
    """

    laws: tuple[Law | None, ...]
    which: npt.NDArray[np.int32] | None
    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "laws", tuple(self.laws))
        object.__setattr__(self, "n", whole("n", self.n, at_least=0))
        for law in self.laws:
            if law is not None and not isinstance(law, Law):
                raise Refused(f"laws must hold laws of noise or None, found {type(law).__name__}")
        if len({type(law) for law in self.laws if law is not None}) != 1:
            raise Refused("laws must hold at least one law of noise, and laws of one type only")
        if self.which is None:
            if self.laws[0] is None:
                raise Refused("laws must start with a law of noise when which is None, found None")
            return
        which = array("which", self.which)
        if which.shape != (self.n,) or which.dtype.kind not in "iu":
            raise Refused(f"which must hold {self.n} positions in laws, found shape {which.shape}")
        if which.size and (which.min() < 0 or which.max() >= len(self.laws)):
            raise Refused(f"which must hold positions in laws, between 0 and {len(self.laws) - 1}")
        which = which.astype(np.int32, copy=False).view()
        which.setflags(write=False)
        object.__setattr__(self, "which", which)

    @property
    def _measured_law(self) -> Law:
        return next(law for law in self.laws if law is not None)

    @property
    def integer(self) -> bool:
        return self._measured_law.integer

    @property
    def kind(self) -> str:
        return self._measured_law.kind

    @cached_property
    def _used(self) -> tuple[int, ...]:
        """The numbers of the laws that some coordinate has, where there are several laws."""
        assert self.which is not None
        return tuple(np.flatnonzero(np.bincount(self.which, minlength=1)).tolist())

    @cached_property
    def _groups(self) -> tuple[tuple[Law | None, npt.NDArray[np.intp]], ...]:
        """The coordinates of each law that has any, when there are several laws."""
        assert self.which is not None
        order = np.argsort(self.which, kind="stable")
        ends = np.searchsorted(self.which[order], np.arange(len(self.laws) + 1))
        pieces = [order[ends[k] : ends[k + 1]] for k in range(len(self.laws))]
        return tuple((law, piece) for law, piece in zip(self.laws, pieces, strict=True) if piece.size)

    @property
    def _only(self) -> Law | None:
        """The one law that all coordinates share, if they do."""
        if self.which is None:
            return self.laws[0]
        return self.laws[self._used[0]] if len(self._used) == 1 else None

    def _parts(self) -> Iterator[tuple[Law | None, Any]]:
        """Each law with the index of its coordinates; a slice where all share one law, to avoid copies."""
        if self.which is None:
            yield self.laws[0], slice(None)
        elif len(self._used) == 1:
            yield self.laws[self._used[0]], slice(None)
        elif self.n > MOST_LISTED:
            yield from ((self.laws[k], np.flatnonzero(self.which == k)) for k in self._used)
        else:
            yield from self._groups

    def log_density(self, u: npt.ArrayLike) -> Floats:
        """Return the log density (log probability for integer noise) of each row of u, shape (..., n)."""
        values = array("u", u)
        if values.ndim == 0 or values.shape[-1] != self.n:
            raise Refused(f"u must have {self.n} entries in its last dimension, found shape {values.shape}")
        result = np.zeros(values.shape[:-1])
        for law, at in self._parts():
            if law is not None:
                result += law.log_density(values[..., at]).sum(axis=-1)
        return result

    def draw(self, size: int, stream: Stream) -> Array:
        """Draw the noise `size` times, shape (size, n), int64 or float64.

        *Law:* rows and coordinates are independent, each coordinate with its own law; exactly, if integer.
        """
        size = whole("size", size, at_least=0)
        if any(law is None for law, _ in self._parts()):
            raise Refused("noise cannot be drawn, because it is infinite where an output is not measured")
        only = self._only
        if only is not None:
            return only.draw(size * self.n, stream).reshape(size, self.n)
        result = np.empty((size, self.n), dtype=np.int64 if self.integer else np.float64)
        for law, at in self._parts():
            assert law is not None
            result[:, at] = law.draw(size * len(at), stream).reshape(size, -1)
        return result

    def measured_draw(self, size: int, stream: Stream) -> Array:
        """Draw the noise `size` times, with 0 at coordinates that are not measured."""
        if all(law is not None for law, _ in self._parts()):
            return self.draw(size, stream)
        result = np.zeros((size, self.n), dtype=np.int64 if self.integer else np.float64)
        for law, at in self._parts():
            if law is not None:
                result[:, at] = law.draw(size * len(at), stream).reshape(size, -1)
        return result

    def at(self, positions: Ints) -> Independent:
        """Return the noise of some coordinates, in the given order (a coordinate may come more than once)."""
        if self.which is None:
            return Independent(self.laws, None, len(positions))
        used, which = np.unique(self.which[positions], return_inverse=True)
        laws = tuple(self.laws[k] for k in used)
        if all(law is None for law in laws):
            laws = (*laws, self._measured_law)  # so that the noise keeps its type
        if len(laws) == 1:
            return Independent(laws, None, len(positions))
        return Independent(laws, which.astype(np.int32), len(positions))

    @property
    def variances(self) -> Floats:
        """The variance of each coordinate, infinite where it is not measured."""
        return self.of_output([np.inf if law is None else law.variance for law in self.laws], np.float64)

    def quantiles(self, p: float | Fraction) -> Array:
        """Return the p-quantile of each coordinate: int64, or float64 with ±inf where one is not measured."""
        found = [None if law is None else law.quantile(p) for law in self.laws]
        endless = np.inf if 2 * p > 1 else -np.inf
        if self.integer and all(law is not None for law, _ in self._parts()):
            return self.of_output([value or 0 for value in found], np.int64)
        return self.of_output([endless if value is None else value for value in found], np.float64)

    @property
    def complete(self) -> npt.NDArray[np.int32]:
        return np.zeros(self.n, dtype=np.int32) if self.which is None else self.which

    def of_output(self, values: npt.ArrayLike, dtype: Any = None) -> Array:
        table = np.asarray(values, dtype=dtype)
        return np.full(self.n, table[0]) if self.which is None else table[self.which]

    @property
    def scale_values(self) -> tuple[Fraction | None, ...]:
        """The parameter of each law: λ for Laplace, σ² for Gaussian noise, None where not measured."""
        return tuple(_parameter(law) for law in self.laws)

    def times(self, factor: Fraction) -> Independent:
        """Return the noise whose scales λ or σ are multiplied by a factor above 0 (σ² by its square)."""
        exact = positive("factor", factor)
        laws = tuple(None if law is None else law.times(exact) for law in self.laws)
        return Independent(laws, self.which, self.n)


def _parameter(law: Law | None) -> Fraction | None:
    if law is None:
        return None
    return law.scale if isinstance(law, (Laplace, IntegerLaplace)) else law.sigma2
