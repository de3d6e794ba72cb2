"""Laws of noise on a null space: extension, correlated, optimal, k-norm."""

from holdfast.subspace.choose import GAUSSIAN, LAWS, choose
from holdfast.subspace.lattice_noise import LatticeGaussian, lattice_gaussian, lattice_promise
from holdfast.subspace.law import SubspaceLaw, promise

__all__ = [
    "GAUSSIAN",
    "LAWS",
    "LatticeGaussian",
    "SubspaceLaw",
    "choose",
    "lattice_gaussian",
    "lattice_promise",
    "promise",
]
