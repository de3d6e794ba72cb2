"""TV §5: screened and credibility-limited revision, bounded leakage and its update twin, with the laws they obey."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np

from holdfast.arguments import Refused
from holdfast.beliefs import (
    condition,
    credible,
    credible_mechanism,
    leakage_loss,
    leaked,
    leaked_onto,
    log_ratio,
    mixture,
    push,
    screened,
)
from holdfast.constraints import nonnegative
from holdfast.mechanism import laplace
from holdfast.papers.reproduction import Claim, Findings, Study
from holdfast.papers.two_views.belief_change import events, listed, loss, pairs, response, same
from holdfast.papers.two_views.trials import ROUNDING
from holdfast.queries import histogram

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
