"""LR (11): seven answers about grades, and what every single change loses through the best refinement."""

from __future__ import annotations

from itertools import combinations

from holdfast.papers.refinement.examples import GRADES, NAMES, ONE_MORE
from holdfast.papers.reproduction import Claim, Findings, Row, Study
from holdfast.pictures import bars
from holdfast.refinement import LinearRefinement, refinement_loss

#: One student more changes three answers at most: the scale at ε = 1.
SCALE = 3


def findings(study: Study) -> Findings:
    """Every added student, and every changed grade."""
    del study  # nothing is random
    best, free = LinearRefinement.best(GRADES), LinearRefinement.best(GRADES[:, :2])
    rows, found = [], {}
    changes = {f"one {name} more": change for name, change in ONE_MORE.items()} | {
        f"{a} becomes {b}": tuple(y - x for x, y in zip(ONE_MORE[a], ONE_MORE[b], strict=True))
        for a, b in combinations(ONE_MORE, 2)
    }
    kept, structural = [], []
    for name, change in changes.items():
        loss = refinement_loss(best, list(change), SCALE)
        assert loss.exact is not None
        found[name] = float(loss.exact)
        seen = ", ".join(NAMES[i] for i in loss.outputs)
        rows.append(Row(f"{name}: ρ/ε (seen: {seen})", None, float(loss.exact)))
        if not change[0] + change[1]:
            kept.append((loss.exact, sum(abs(value) for value in change)))
        structural.append((refinement_loss(free, list(change), SCALE).exact, sum(abs(value) for value in change)))
    most = found["one A more"]
    claims = (
        Claim(
            "where the known combinations do not change, ρ is at most ε (Theorem 2's corollary)",
            all(loss * SCALE <= size for loss, size in kept),
            f"{len(kept)} changes that keep A + B = 80: none loses more than its noise allows",
        ),
        Claim(
            "where a known combination changes, ρ can exceed ε",
            most > 1,
            f"one A more: {most:.4f}ε, exactly 5/3",
        ),
        Claim(
            "without the 80 (sums by definition alone) no change loses more than ε for an added student",
            all(loss is not None and loss * SCALE <= size for loss, size in structural),
            f"{len(structural)} changes",
            ours=True,
        ),
    )
    picture = bars([(name, value, 0.0) for name, value in found.items()], "ρ/ε")
    return Findings(claims, tuple(rows), (("The loss of every single change, as a multiple of ε.", picture),))
