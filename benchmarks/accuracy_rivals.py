"""Packages that users would pick instead, at the same guarantee: InfTDA (`inf-tda`) and Private-PGM (`mbi`).

They are used only where they are installed. Both get the budget that holdfast's methods get in the same setting. InfTDA
publishes the total exactly and knows only replaced records, so it stands among the methods with an exact total; it
measures every level below with integer Gaussian noise of its own. Private-PGM gets the very measurements that `onto`
gets, as marginals of the two attributes borough and zone, of which one determines the other.
"""

import importlib.util
import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from accuracy_data import Case
from accuracy_methods import DELTA, Setting, rho

import holdfast as hf

#: Rounds of Private-PGM's mirror descent: its default, and as many as it needs here.
ROUNDS = {"mbi": 1_000, "mbi, 50,000 rounds": 50_000}
PACKAGES = {"InfTDA": "InfTDA", **dict.fromkeys(ROUNDS, "mbi")}


def missing(method: str) -> bool:
    """Whether the package of a method is not installed."""
    return importlib.util.find_spec(PACKAGES[method]) is None


def tables(case: Case, setting: Setting, method: str, size: int, seed: int) -> Iterator[npt.NDArray[np.float64]]:
    """Tables of a package, one at a time."""
    return inf_tda(case, setting, size) if method == "InfTDA" else private_pgm(case, setting, method, size, seed)


def inf_tda(case: Case, setting: Setting, size: int) -> Iterator[npt.NDArray[np.float64]]:
    """InfTDA with the (ε, δ) that it converts to our ρ; it draws from the system's randomness."""
    import pandas as pd
    from InfTDA import inf_tda as release

    tree = case.tree
    ancestors = [tree.leaves]
    for _ in tree.levels[2:]:
        ancestors.append(np.asarray(tree.parents)[ancestors[-1]])
    index = pd.MultiIndex.from_arrays([tree.names[nodes] for nodes in reversed(ancestors)])
    counts = pd.Series(case.truth[tree.leaves].astype(np.int32), index=index)
    spent, theirs = rho(setting.epsilon), (len(tree.levels) - 1) / rho(setting.epsilon)
    if not np.isclose(setting.base(case).base.law.variances[tree.leaves], theirs).all():
        raise RuntimeError("InfTDA's noise is not the one that holdfast certifies")
    budget = (spent + 2 * math.sqrt(spent * math.log(1 / DELTA)), DELTA)
    for _ in range(size):
        leaves = release(counts, budget, 1, privacy_type="bounded").reindex(index, fill_value=0).to_numpy(np.int64)
        yield tree.sum_up(leaves)


def private_pgm(case: Case, setting: Setting, method: str, size: int, seed: int) -> Iterator[npt.NDArray[np.float64]]:
    """Private-PGM's model of a city; its total is the best combination of the three noisy ones."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    import mbi

    tree, base = case.tree, setting.base(case)
    setting.check(base.onto(hf.consistent(tree)))
    places = [tree.depth == depth for depth in range(3)]
    above = np.asarray(tree.parents)[tree.leaves] - np.flatnonzero(places[1])[0]
    domain = mbi.Domain(["zone", "borough"], [int(places[2].sum()), int(places[1].sum())])
    known = mbi.Constraint(domain, mapping=above)
    sigma = np.sqrt(base.base.law.variances)
    for noisy in base.simulate(case.truth, size, rng=hf.seeded(seed)).astype(np.float64):
        total, borough, zone = (noisy[place] for place in places)
        precision = [1 / (sigma[place] ** 2).sum() for place in places]
        measurements = [
            mbi.LinearMeasurement(zone, ("zone",), float(sigma[places[2]][0])),
            mbi.LinearMeasurement(borough, ("borough",), float(sigma[places[1]][0])),
        ]
        model = mbi.estimation.MirrorDescent().estimate(
            domain,
            measurements,
            known_total=float(np.average([total.sum(), borough.sum(), zone.sum()], weights=precision)),
            constraints=[known],
            iters=ROUNDS[method],
        )
        zones = np.asarray(model.project(("zone",)).datavector())
        yield np.concatenate([[zones.sum()], np.bincount(above, zones), zones])
