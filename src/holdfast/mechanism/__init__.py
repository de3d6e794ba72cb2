"""Mechanisms: a query, noise, the two verbs, and what they promise and release."""

from holdfast.mechanism.base_mechanisms import gaussian, laplace
from holdfast.mechanism.composed import compose
from holdfast.mechanism.correlated.series import series
from holdfast.mechanism.extended import extend
from holdfast.mechanism.mechanism import Mechanism
from holdfast.mechanism.mixed import Mixture, mixture
from holdfast.mechanism.named_subspace import within
from holdfast.mechanism.projected import Projected, project
from holdfast.mechanism.release import Release

__all__ = [
    "Mechanism",
    "Mixture",
    "Projected",
    "Release",
    "compose",
    "extend",
    "gaussian",
    "laplace",
    "mixture",
    "project",
    "series",
    "within",
]
