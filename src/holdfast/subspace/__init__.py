"""Laws of noise on a null space: extension, correlated, optimal, k-norm."""

from holdfast.subspace.choose import GAUSSIAN, LAWS, choose
from holdfast.subspace.law import Evidence, SubspaceLaw
from holdfast.subspace.promise import promise

__all__ = ["GAUSSIAN", "LAWS", "Evidence", "SubspaceLaw", "choose", "promise"]
