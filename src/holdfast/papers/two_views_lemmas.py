"""TV Definition 8, Lemmas 10–17, Theorems 12 and 16: as printed and as they hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
from scipy import integrate

from holdfast.arguments import Refused
from holdfast.beliefs import (
    condition,
    credible,
    credible_mechanism,
    hockey_stick,
    image,
    leakage_loss,
    leaked,
    leaked_onto,
    log_ratio,
    mixture,
    push,
    screened,
)
from holdfast.constraints import equals, nonnegative
from holdfast.mechanism import laplace
from holdfast.papers import two_views_trials as trials
from holdfast.papers.reproduction import Claim, Findings, Row, Study
from holdfast.papers.two_views_trials import ROUNDING, Pair, events, listed, loss, moves, pairs, response, same
from holdfast.pictures import Layer, plane
from holdfast.queries import histogram

#: A mechanism whose outputs 0 and 1 tell nothing and whose outputs 2 and 3 tell much.
LEAKY: Pair = (
    {0: Fraction(1, 4), 1: Fraction(1, 4), 2: Fraction(9, 20), 3: Fraction(1, 20)},
    {0: Fraction(1, 4), 1: Fraction(1, 4), 2: Fraction(1, 20), 3: Fraction(9, 20)},
)
#: What exchanges the two halves.
SWAP = {0: 2, 1: 3, 2: 0, 3: 1}


def lemmas(study: Study) -> Findings:
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


#: Numbers of cells whose variances are drawn, and draws of each.
CELLS, DRAWS = (2, 3, 4, 5, 10, 30), 40_000
#: A measured variance may be this many standard errors from the formula.
FAR = 5.0


def by_conditioning(n: int) -> float:
    """The variance of a cell given the total, at λ = 1 (THEORY H9)."""
    return (2 * n - 1) * (n - 1) / (n * (n + 1))


def by_imaging(n: int) -> float:
    """The variance of a projected cell, at λ = 1 (TV Prop 18)."""
    return 2 * (1 - 1 / n)


def variances(study: Study) -> Findings:
    """Draw both, integrate n = 2 and 3, and compare with the formulas."""
    stream, size = study.stream(), study.times(DRAWS, 2_000)
    rows, off = [], []
    for n in CELLS:
        base = laplace(histogram(n), scale=1, integer=False)
        total = equals(np.ones((1, n), dtype=int), [0])
        printed = {"imaging": by_imaging(n), "conditioning": {3: 5 / 6}.get(n)}
        for name, mechanism, formula in (
            ("conditioning", base.given(total), by_conditioning(n)),
            ("imaging", base.onto(total), by_imaging(n)),
        ):
            squares = np.asarray(mechanism.noise(size, stream))[:, 0] ** 2
            row = Row.of(f"n = {n}, {name} (formula {formula:.4f})", printed[name], squares)
            rows.append(row)
            assert isinstance(row.computed, float)
            off.append(abs(row.computed - formula) / row.error)
    exact = [_integrated(2), _integrated(3)]
    rows.append(Row("n = 3, conditioning, by quadrature", 5 / 6, exact[1]))
    claims = (
        Claim("Proposition 18 holds", max(off[1::2]) < FAR, f"at most {max(off[1::2]):.1f} standard errors away"),
        Claim(
            "at n = 3 conditioning has variance 5/6·λ²", abs(exact[1] - 5 / 6) < 1e-6, f"by quadrature {exact[1]:.8f}"
        ),
        Claim(
            "the conjecture: conditioning has the smaller variance for every n",
            all(by_conditioning(n) < by_imaging(n) for n in range(2, 100_001)) and max(off[::2]) < FAR,
            "H9 proves it: (2n−1)(n−1)/(n(n+1)) against 2(1−1/n), ratio (2n−1)/(2n+2) < 1; draws are at most "
            f"{max(off[::2]):.1f} standard errors from the formula, and at n = 2 quadrature gives {exact[0]:.8f}",
        ),
    )
    sizes = [2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100]
    picture = plane(
        [
            Layer("imaging", "line", sizes, [by_imaging(n) for n in sizes]),
            Layer("conditioning", "line", sizes, [by_conditioning(n) for n in sizes]),
            Layer("drawn", "points", [n for n in CELLS for _ in "ab"], [float(r.computed) for r in rows[:-1]]),
        ],
        "cells n",
        "variance of one cell, in λ²",
        logarithmic=True,
    )
    caption = "Variance of one of n cells with an exact total; both tend to 2λ², conditioning from further below."
    return Findings(claims, tuple(rows), ((caption, picture),))


def _integrated(n: int) -> float:
    """The conditioned variance at λ = 1 for two or three cells, by quadrature of the density on the total's line."""
    if n == 2:
        return _ratio(lambda u: math.exp(-2 * abs(u)))
    return _ratio(lambda u: _two(u) * math.exp(-abs(u)))


def _two(u: float) -> float:
    """∫ exp(−|v| − |u + v|) dv for u ≥ 0: between −u and 0, and twice beyond."""

    def density(v: float) -> float:
        return math.exp(-abs(v) - abs(u + v))

    return float(integrate.quad(density, -u, 0)[0] + 2 * integrate.quad(density, 0, np.inf)[0])


def _ratio(density: Callable[[float], float]) -> float:
    above = integrate.quad(lambda u: u * u * density(u), 0, 40)[0]
    return float(above / integrate.quad(density, 0, 40)[0])


# --- TV §5: screened and credibility-limited revision, bounded leakage and its update twin, with the laws they obey

Joint = dict[tuple[int, int], Fraction]


def findings(study: Study) -> Findings:
    """Try each law; all of them are ours, since the paper only names the models."""
    rng, count = study.generator(), study.times(120, 12)
    return Findings((*_limited(), *_on_mechanisms(study), *_leakage(rng, count)))


def _limited() -> tuple[Claim, ...]:
    half, core = Fraction(1, 2), frozenset({0, 1})
    accepts_or_keeps = keeps_core = nested = twice = plain = True
    for p, event in product(listed(3, 4), events(3)):
        found = credible(p, event, half)
        mass = sum(p[w] for w in event)
        accepts_or_keeps &= sum(found[w] for w in event) == 1 or same(found, p)
        twice &= same(credible(found, event, half), found)
        plain &= not mass or same(credible(p, event, mass), condition(p, event))
        nested &= all(
            sum(credible(p, wider, half)[w] for w in wider) == 1
            for wider in events(3)
            if event <= wider and mass >= half
        )
        if p[2] == 0:
            kept = screened(p, event, core)
            keeps_core &= sum(kept[w] for w in core) == 1 and (
                sum(kept[w] for w in event) == 1 or (same(kept, p) and not mass)
            )
    words = "every belief of a grid about three worlds, every event"
    return (
        Claim(
            "credibility-limited revision accepts what is learned or keeps the belief",
            accepts_or_keeps,
            words,
            ours=True,
        ),
        Claim("it accepts everything that follows from what it accepts", nested, words, ours=True),
        Claim("learning the same again changes nothing", twice, words, ours=True),
        Claim("with a threshold that is met it is conditioning", plain, words, ours=True),
        Claim("screened revision never gives up its core", keeps_core, words, ours=True),
    )


def _on_mechanisms(study: Study) -> tuple[Claim, ...]:
    """Acceptance that depends on the data costs everything; decided on the output it is post-processing."""
    yes, no = response()
    apart = max(
        log_ratio(credible(yes, {1}, Fraction(1, 2)), credible(no, {1}, Fraction(1, 2))),
        log_ratio(credible(no, {1}, Fraction(1, 2)), credible(yes, {1}, Fraction(1, 2))),
    )
    try:
        credible_mechanism({"yes": yes, "no": no}, {1}, Fraction(1, 2))
        refused = False
    except Refused:
        refused = True
    made = laplace(histogram(2), epsilon=1)
    onto = made.onto(nonnegative())

    def near(values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Move a noisy table to counts of 0 and more if it is at most 2 away, and leave it as it is otherwise."""
        moved = onto.image(values)
        return np.asarray(moved if np.abs(moved - values).max() <= 2 else values)

    limited = made.then(near, "moved to counts of 0 and more where that is near")
    drawn = np.array(limited.simulate(np.array([1, 4]), study.times(400, 60), study.stream()))
    both = bool((drawn < -2).any() or ((drawn >= 0).all(axis=1).any()))
    return (
        Claim(
            "a mechanism that decides by its data whether to accept has no pure ε, and is refused",
            math.isinf(apart) and refused,
            "randomized response p = 0.9, C = {1}, threshold ½: one answer accepts, the other does not",
            ours=True,
        ),
        Claim(
            "a limit on the noisy output instead (update only where it is near) is post-processing and costs nothing",
            limited.guarantee.epsilon == made.guarantee.epsilon and both,
            f"mechanism.then(…): ε = {limited.guarantee.epsilon:g} before and after",
            ours=True,
        ),
    )


def _leakage(rng: np.random.Generator, count: int) -> tuple[Claim, ...]:
    equals = independent = total = bounded = free = True
    for p, q in pairs(rng, count, 4):
        inside = {0, 1}
        tells = [{(w, int(w in inside)): value for w, value in each.items()} for each in (p, q)]
        conditioned = condition(p, inside)
        equals &= same(leaked(tells[0], 1), {w: conditioned[w] for w in inside})
        coin = {(w, b): value / 2 for w, value in p.items() for b in (0, 1)}
        independent &= same(leaked(coin, 1), p)
        joints = [_joint(each, rng_seed) for each, rng_seed in ((p, 1), (q, 2))]
        shares = [push(joint, lambda pair: pair[1]) for joint in joints]
        parts = [(shares[0][o], leaked(joints[0], o)) for o in shares[0]]
        total &= same(mixture(parts), push(joints[0], lambda pair: pair[0]))
        together = max(log_ratio(joints[0], joints[1]), log_ratio(joints[1], joints[0]))
        weights = max(abs(math.log(shares[0][o] / shares[1][o])) for o in shares[0])
        bounded &= leakage_loss(joints[0], joints[1]) <= together + weights + ROUNDING <= 2 * together + ROUNDING
        moved = [leaked_onto(joint, 1, lambda pair: (pair[0], 1)) for joint in joints]
        free &= loss((moved[0], moved[1])) <= together + ROUNDING
    words = f"{count} random mechanisms that leak"
    return (
        Claim("[M'(D) = o] that tells whether the output lies in C is conditioning on C", equals, words, ours=True),
        Claim("a leak that has nothing to do with the output changes nothing", independent, words, ours=True),
        Claim("mixed over its outcomes it is the mechanism itself", total, words, ours=True),
        Claim(
            "given a leak the loss is at most that of the pair plus the log ratio of the leak's chances",
            bounded,
            words,
            ours=True,
        ),
        Claim("its update twin loses no more than the pair (a function of it)", free, words, ours=True),
    )


def _joint(p: dict[int, Fraction], tilt: int) -> Joint:
    """An output with a leak of two values whose chances depend on it."""
    return {
        (w, b): value * (Fraction(w + tilt, 6) if b else 1 - Fraction(w + tilt, 6))
        for w, value in p.items()
        for b in (0, 1)
    }
