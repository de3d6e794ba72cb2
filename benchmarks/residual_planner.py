"""The best split of one cube's margins against ResidualPlanner+, whose plans are optimal among Gaussian mechanisms.

    python benchmarks/residual_planner.py [FOLDER of a checkout of github.com/cmla-psu/ResidualPlannerPlus]

Without the folder its closed form (Xiao, He, Zhang, Kifer 2023, Theorem 4: noise on residuals, (Σ √(v·p))²) is computed
here. Both are total squared errors of all entries of the wanted margins at a privacy cost of 1 (μ = 1, add-remove).
Margins alone are measured with whole noise that is drawn exactly; where the Möbius inverse of √(c/q) is negative they
cannot reach the optimum, and `lower_bound` says by how much. Noise on residuals reaches it.
"""

import math
import sys
import time
import types
from itertools import combinations

import holdfast as hf

#: Sizes of axes and the margins that are wanted: the examples of the planner's own experiments whose cells exist here.
CPS = (50, 100, 7, 4, 2)


def up_to(axes, most, least=0):
    return [margin for k in range(least, most + 1) for margin in combinations(range(axes), k)]


CASES = {
    "2×2, both one-way": ((2, 2), [(0,), (1,)]),
    "2×2×3, all two-way (its quick start)": ((2, 2, 3), up_to(3, 2, 2)),
    "CPS, one-way": (CPS, up_to(5, 1, 1)),
    "CPS, two-way": (CPS, up_to(5, 2, 2)),
    "CPS, three-way": (CPS, up_to(5, 3, 3)),
    "CPS, up to three-way": (CPS, up_to(5, 3)),
    "10⁵, up to two-way": ((10,) * 5, up_to(5, 2)),
    "10⁵, up to three-way": ((10,) * 5, up_to(5, 3)),
}


def closed_form(shape, wanted):
    """Σ over sets S of √(rank share × wanted trace), squared: written from the paper, sharing no code with ours."""
    below = {part for margin in wanted for k in range(len(margin) + 1) for part in combinations(margin, k)}
    total = 0.0
    for part in below:
        privacy = math.prod((shape[a] - 1) / shape[a] for a in part)
        variance = 0.0
        for margin in wanted:
            if set(part) <= set(margin):
                variance += math.prod((shape[a] - 1) if a in part else 1 / shape[a] for a in margin)
        total += math.sqrt(variance * privacy)
    return total**2


def theirs(folder):
    """Their planner; Gurobi, which it imports and does not need here, is left out."""
    absent = types.ModuleType("gurobipy")
    absent.GRB = None
    sys.modules["gurobipy"] = absent
    sys.path.insert(0, folder)
    from resplan.ResPlan import ResPlanSum

    def planned(shape, wanted):
        system = ResPlanSum(list(shape), ["I"] * len(shape))
        for margin in wanted:
            system.input_mech(margin)
        return float(system.get_noise_level())

    return planned


def main():
    planner = theirs(sys.argv[1]) if len(sys.argv) > 1 else closed_form
    print("wanted | theirs | margins / theirs | residuals / theirs | our bound / theirs | gap | seconds (processor)")
    print("---|---|---|---|---|---|---")
    missed = False
    for name, (shape, wanted) in CASES.items():
        best = planner(shape, wanted)
        start = time.process_time()
        query = hf.margins(shape, keep=wanted)
        split = hf.best_shares(query, residuals=True)
        took = time.process_time() - start
        ours, bound = split.squared_error, split.lower_bound
        margins = hf.best_shares(query).squared_error
        missed |= abs(bound / best - 1) > 1e-6 or ours > best * (1 + 1e-6) or margins > 1.05 * best
        print(
            f"{name} | {best:.6g} | {margins / best:.6f} | {ours / best:.9f} | {bound / best:.6f} | "
            f"{split.gap / ours:.1e} | {took:.2f}"
        )
    if missed:
        sys.exit("a bar was missed")


if __name__ == "__main__":
    main()
