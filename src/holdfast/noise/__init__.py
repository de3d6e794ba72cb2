"""Laws of noise; integer laws are drawn exactly."""

from holdfast.noise.gaussian import Gaussian, IntegerGaussian
from holdfast.noise.independent import Independent, Law
from holdfast.noise.laplace import IntegerLaplace, Laplace

__all__ = ["Gaussian", "Independent", "IntegerGaussian", "IntegerLaplace", "Laplace", "Law"]
