"""The methods of the accuracy study, each made so that holdfast certifies the same guarantee for all, and checked."""

from dataclasses import dataclass
from functools import cache

from accuracy_data import Case

import holdfast as hf

DELTA = 1e-6
#: Laplace noise at ε; Gaussian noise at the ρ of the same (ε, δ); the same with an exact total, one record replaced;
#: Gaussian noise at (ε, δ) itself, where independent noise has a tighter statement than its ρ.
NOISES = ("laplace", "gaussian", "exact total", "gaussian by δ")
#: How often a leaf's share of the budget is that of another level.
SPLITS = {"even": 1.0, "leaves 1.5": 1.5, "leaves 2": 2.0, "leaves 4": 4.0}
#: The ways to make a table, in the order in which they are shown.
METHODS = (
    "given",
    "onto",
    "given, onto",
    "given, topdown",
    "onto, topdown",
    "given nonnegative",
    "topdown",
    "bluedown",
    "metropolis",
)
#: What stands for the rest of the world; Metropolis–Hastings draws from the law of `given` and is no rival to it.
BASELINES = ("topdown", "bluedown", "mbi", "mbi, 50,000 rounds", "InfTDA")


@dataclass(frozen=True)
class Setting:
    """What the noise is, how large the budget is, and how it is split over levels."""

    noise: str
    epsilon: float
    split: str

    @property
    def neighbours(self) -> str:
        """What one record may do."""
        return "replace-one" if self.noise == "exact total" else "add-remove"

    def shares(self, case: Case) -> dict[int, float]:
        """The budget's shares by depth; a total that is published exactly is not measured."""
        levels = len(case.tree.levels)
        shares = dict.fromkeys(range(levels - 1), 1.0) | {levels - 1: SPLITS[self.split]}
        return shares | {0: 0.0} if self.noise == "exact total" else shares

    def base(self, case: Case) -> hf.Mechanism:
        """The noise before anything must hold."""
        query, shares = hf.counts(case.tree), self.shares(case)
        if self.noise == "laplace":
            return hf.laplace(query, epsilon=self.epsilon, shares=shares)
        if self.noise == "gaussian by δ":
            return hf.gaussian(query, epsilon=self.epsilon, delta=DELTA, shares=shares)
        return hf.gaussian(query, rho=rho(self.epsilon), neighbours=self.neighbours, shares=shares)

    def mechanism(self, case: Case, method: str) -> hf.Mechanism:
        """Make a method's mechanism and check what holdfast says of it."""
        base, adds_up = self.base(case), hf.consistent(case.tree)
        if self.noise == "exact total":
            adds_up &= hf.invariant(hf.exact_nodes(case.tree, [0]))
        counts = hf.nonnegative(at=case.tree.leaves)
        if method == "given":
            made = base.given(adds_up)
        elif method == "metropolis":
            return base.given(adds_up, method="metropolis")  # a chain promises nothing
        elif method == "given nonnegative":
            made = base.given(adds_up & counts)
        elif method == "given, onto":
            made = base.given(adds_up).onto(counts, integer=True)
        elif method == "given, topdown":
            made = base.given(adds_up).onto(counts, integer=True, method="topdown")
        elif method == "onto, topdown":
            made = base.onto(adds_up, integer=True).onto(counts, integer=True, method="topdown")
        else:
            made = base.onto(adds_up & counts, integer=True, method=None if method == "onto" else method)
        if self.noise == "laplace" and made.guarantee.epsilon > self.epsilon:
            made = made.calibrated(epsilon=self.epsilon)
        if self.noise == "gaussian by δ" and made.guarantee.at_delta(DELTA).epsilon > self.epsilon:
            made = made.calibrated(epsilon=self.epsilon, delta=DELTA)
        self.check(made)
        return made

    def check(self, mechanism: hf.Mechanism) -> None:
        """Fail unless the guarantee is the one that all methods of this setting have."""
        statement = mechanism.guarantee
        spent, budget = statement.epsilon, self.epsilon
        if self.noise == "gaussian by δ":
            spent = statement.at_delta(DELTA).epsilon
        elif self.noise != "laplace":
            spent, budget = statement.rho, rho(self.epsilon)
            if statement.at_delta(DELTA).epsilon > self.epsilon:
                raise RuntimeError(f"{mechanism!r} promises less than ε = {self.epsilon} with δ = {DELTA}")
        said = (statement.scope, statement.status, statement.records, mechanism.base.neighbours.kind)
        if said != ("all", "proved", 1, self.neighbours):
            raise RuntimeError(f"{mechanism!r} promises something else: {statement}")
        if not budget * (1 - 1e-9) <= spent <= budget:
            raise RuntimeError(f"{mechanism!r} spends {spent} of {budget}")


@cache
def rho(epsilon: float) -> float:
    """The ρ with which every method promises (ε, δ); with bounds whole Rényi orders hold only, so they decide."""
    tree = hf.Hierarchy.from_parents([-1, 0, 0])
    counts = hf.consistent(tree) & hf.nonnegative(at=tree.leaves)
    mechanism = hf.gaussian(hf.counts(tree), rho=epsilon**2 / 50).given(counts)
    return mechanism.calibrated(epsilon=epsilon, delta=DELTA).guarantee.rho
