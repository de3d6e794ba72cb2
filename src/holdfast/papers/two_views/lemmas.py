"""TV Definition 8, Lemmas 10–17, Theorems 12 and 16: as printed and as they hold."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from holdfast.beliefs import condition, hockey_stick, image, push
from holdfast.papers.reproduction import Claim, Findings, Study
from holdfast.papers.two_views import trials
from holdfast.papers.two_views.finite import Pair, loss, moves, pairs, same
from holdfast.papers.two_views.trials import ROUNDING

#: A mechanism whose outputs 0 and 1 tell nothing and whose outputs 2 and 3 tell much.
LEAKY: Pair = (
    {0: Fraction(1, 4), 1: Fraction(1, 4), 2: Fraction(9, 20), 3: Fraction(1, 20)},
    {0: Fraction(1, 4), 1: Fraction(1, 4), 2: Fraction(1, 20), 3: Fraction(9, 20)},
)
#: What exchanges the two halves.
SWAP = {0: 2, 1: 3, 2: 0, 3: 1}


def findings(study: Study) -> Findings:
    rng, count = study.generator(), study.times(120, 12)
    tried = f"{count} random mechanisms"
    total = trials.exact_total()
    first = trials.processing(rng, count, revise=True)
    claims = (
        *_definition_8(),
        Claim("Lemma 10: linear equalities cost nothing", not total, total or "every output of three cells listed"),
        Claim("Lemma 11 (1): h ∘ (M|C) keeps the guarantee", not first, first or tried),
        *_lemma_11_part_2(),
        *_theorem_12(rng, count),
        _composes(rng, count, "Lemma 13: guarantees given C₁ and C₂ add up", revise=True),
        _kept(rng, count),
        *_lemma_15(rng, count),
        *_theorem_16(rng, count),
        _composes(rng, count, "Lemma 17: guarantees of imaged mechanisms add up", revise=False),
    )
    return Findings(claims)


def _definition_8() -> tuple[Claim, ...]:
    """M(D) ∈ C ⇔ f(D) ∈ C with probability one: a count ≥ 0 fails at once, and where it holds nothing changes."""
    count = {z: Fraction(1, 4) for z in (-1, 0, 1)} | {2: Fraction(1, 4)}
    inside = sum((value for z, value in count.items() if z >= 0), Fraction(0))
    literal = inside in (0, 1)
    sure = {0: Fraction(1, 2), 1: Fraction(1, 2)}
    nothing = same(condition(sure, {0, 1, 2}), sure)
    return (
        Claim(
            "Definition 8 read literally admits C = {z ≥ 0} for a noisy count",
            literal,
            f"a count of 0 or more is released below 0 with probability {1 - inside}: no noise reaches over an edge "
            "of C",
        ),
        Claim(
            "read so, conditioning changes nothing; what is meant is f(D) ∈ C for every possible D (a structural "
            "constraint)",
            nothing,
            "P(C) = 1 gives M|C = M",
            ours=True,
        ),
    )


def _lemma_11_part_2() -> tuple[Claim, ...]:
    event = {0, 1}
    inner = [push(condition(p, event), SWAP.__getitem__) for p in LEAKY]
    outer = [condition(push(p, SWAP.__getitem__), event) for p in LEAKY]
    given_c = loss((condition(LEAKY[0], event), condition(LEAKY[1], event)))
    found = loss((outer[0], outer[1]))
    return (
        Claim(
            "Lemma 11 (2): h ∘ (M|C) = (h ∘ M)|C",
            all(same(a, b) for a, b in zip(inner, outer, strict=True)),
            "outputs 0 … 3, C = {0, 1}, h exchanges the halves: one law is on {2, 3}, the other on {0, 1}",
        ),
        Claim(
            "Lemma 11 (2): (h ∘ M)|C keeps the guarantee of M|C",
            found <= given_c + ROUNDING,
            f"there M|C has ε = {given_c:.4g} and (h ∘ M)|C has ε = {found:.4g}",
        ),
        Claim(
            "(h ∘ M)|C = h ∘ (M | h⁻¹(C)), which is what a guarantee must be known for",
            all(
                same(condition(push(p, SWAP.__getitem__), event), push(condition(p, {2, 3}), SWAP.__getitem__))
                for p in LEAKY
            ),
            "the same example, exactly",
            ours=True,
        ),
    )


def _theorem_12(rng: np.random.Generator, count: int) -> tuple[Claim, ...]:
    instead = trials.union_as_it_holds(rng, count)
    fails = trials.union()
    return (
        Claim("Theorem 12 (1): on a disjoint union the law mixes", instead.holds, instead.because),
        Claim("Theorem 12 (2): the guarantee of the parts carries over", not fails, fails),
        instead,
    )


def _composes(rng: np.random.Generator, count: int, words: str, *, revise: bool) -> Claim:
    fails = trials.composition(rng, count, revise=revise)
    return Claim(words, not fails, fails or f"{count} random pairs of independent mechanisms")


def _kept(rng: np.random.Generator, count: int) -> Claim:
    fails = trials.imaging(rng, count)
    return Claim("Lemma 14: imaging keeps (ε, δ)", not fails, fails or f"{count} random mechanisms")


def _lemma_15(rng: np.random.Generator, count: int) -> tuple[Claim, ...]:
    event, nearest = {0, 1}, {2: 0, 3: 0}
    imaged = loss((image(LEAKY[0], event, nearest), image(LEAKY[1], event, nearest)))
    after = [image(push(p, SWAP.__getitem__), event, nearest) for p in LEAKY]
    found = loss((after[0], after[1]))
    holds = True
    for pair in pairs(rng, count, 4):
        function = {w: int(rng.integers(4)) for w in range(4)}
        chosen = trials.some_event(rng)
        moved = moves(rng, 4, chosen)
        both = [image(push(p, function.__getitem__), chosen, moved) for p in pair]
        holds &= loss((both[0], both[1])) <= loss(pair) + ROUNDING
        holds &= hockey_stick(both[0], both[1], 1) <= hockey_stick(pair[0], pair[1], 1) + ROUNDING
    return (
        Claim(
            "Lemma 15: if M_C is private, so is (h ∘ M)_C",
            found <= imaged + ROUNDING,
            f"outputs 0 … 3, C = {{0, 1}}, 2 and 3 nearest to 0, h exchanges the halves: M_C has ε = {imaged:.4g}, "
            f"(h ∘ M)_C has ε = {found:.4g}",
        ),
        Claim(
            "if M is private, so is (h ∘ M)_C: the hypothesis must be about M",
            holds,
            f"{count} random mechanisms, functions and constraints",
            ours=True,
        ),
    )


def _theorem_16(rng: np.random.Generator, count: int) -> tuple[Claim, ...]:
    law = trials.mixtures(rng, count, revise=False)
    holds = True
    for one, other in zip(pairs(rng, count, 4), pairs(rng, count, 4), strict=True):
        event = trials.some_event(rng)
        nearest = moves(rng, 4, event)
        parts = [[image(p, event, nearest) for p in pair] for pair in (one, other)]
        mixed = [{w: (parts[0][k][w] + 2 * parts[1][k][w]) / 3 for w in range(4)} for k in (0, 1)]
        holds &= loss((mixed[0], mixed[1])) <= max(loss((a[0], a[1])) for a in parts) + ROUNDING
    return (
        Claim("Theorem 16 (1): the image of a mixture is the mixture of the images", not law, law or f"{count} pairs"),
        Claim("Theorem 16 (2): its guarantee is the worst of the parts'", holds, f"{count} random mixtures"),
    )
