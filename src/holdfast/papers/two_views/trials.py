"""The laws of Table 1 and of the lemmas, each tried: what fails, in words, or nothing."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from holdfast.beliefs import (
    condition,
    given,
    hockey_stick,
    image,
    kl,
    log_ratio,
    mixture,
    push,
    reach_for,
    weights,
    window_for,
    worst,
)
from holdfast.constraints import nonnegative
from holdfast.mechanism import laplace
from holdfast.papers.reproduction import Claim, Findings, Row, Study
from holdfast.papers.two_views.belief_change import events, loss, moves, pairs, response, same
from holdfast.queries import histogram

WORLDS = 4
#: What a comparison of logarithms in doubles may miss.
ROUNDING = 1e-12


def nonnegativity() -> str:
    """One count, integer Laplace noise of scale 1, given that it is not negative: the loss exceeds ε = 1."""
    table = weights("laplace", Fraction(1), reach_for("laplace", Fraction(1), 1e-25) + 1)
    window = window_for([(0,), (1,)], table)
    laws = {x: given((x,), table, lambda z: z[0] >= 0, window) for x in (0, 1)}
    found = worst(laws, [(0, 1)], log_ratio)
    return f"one count ≥ 0, integer Laplace noise at ε = 1: the loss is {found:.4f}" if found > 1 + ROUNDING else ""


def exact_total() -> str:
    """Three cells with an exact total: the largest loss over all neighbours that share it."""
    scale = Fraction(2)
    table = weights("laplace", scale, 60)
    worlds = [(a, b, 6 - a - b) for a in range(-20, 27) for b in range(-20, 27)]
    truths = [(2, 2, 2), (3, 1, 2), (3, 2, 1)]
    laws = {x: given(x, table, worlds) for x in truths}
    found = worst(laws, [(truths[0], truths[1]), (truths[0], truths[2])], log_ratio)
    # One record replaced: two cells change by 1. The noise of the edge cells is cut at the same worlds for all.
    return f"three cells with a total: the loss is {found:.4f}" if found > 2 / float(scale) + 1e-6 else ""


def processing(rng: np.random.Generator, count: int, *, revise: bool) -> str:
    """A function of a changed belief."""
    for pair in pairs(rng, count, WORLDS):
        event = some_event(rng)
        nearest = moves(rng, WORLDS, event)
        changed = tuple(condition(p, event) if revise else image(p, event, nearest) for p in pair)
        merge = {w: int(rng.integers(2)) for w in range(WORLDS)}
        after = tuple(push(p, merge.__getitem__) for p in changed)
        if loss((after[0], after[1])) > loss((changed[0], changed[1])) + ROUNDING:
            return "a function of the output loses more than the output"
    return ""


def composition(rng: np.random.Generator, count: int, *, revise: bool) -> str:
    """Two independent mechanisms, both changed."""
    for one, other in zip(pairs(rng, count, 3), pairs(rng, count, 3), strict=True):
        event = some_event(rng, 3)
        nearest = moves(rng, 3, event)
        first = [condition(p, event) if revise else image(p, event, nearest) for p in one]
        second = [condition(p, event) if revise else image(p, event, nearest) for p in other]
        joint = [{a * 3 + b: p[a] * q[b] for a in p for b in q} for p, q in zip(first, second, strict=True)]
        alone = loss((first[0], first[1])) + loss((second[0], second[1]))
        if loss((joint[0], joint[1])) > alone + ROUNDING:
            return "two mechanisms together lose more than the sum"
    return ""


def union() -> str:
    """The guarantee of a union: randomized response, C = {1}, C' = {0}."""
    yes, no = response()
    branches = max(loss((condition(yes, {w}), condition(no, {w}))) for w in (0, 1))
    both = loss((condition(yes, {0, 1}), condition(no, {0, 1})))
    if both <= branches + ROUNDING:
        return ""
    return (
        "randomized response p = 0.9, C = {1}, C' = {0}: each conditional is constant (ε = 0), on the union ε = "
        f"ln 9 = {both:.4f}; the law mixes, the guarantee does not carry over"
    )


def union_as_it_holds(rng: np.random.Generator, count: int) -> Claim:
    """The mixture identity, and the bound: the worst branch plus the ratio of its weights."""
    holds = True
    for p, q in pairs(rng, count, WORLDS):
        one, other = frozenset({0, 1}), frozenset({2})
        shares = [sum((each[w] for w in one), Fraction(0)) / sum(each[w] for w in one | other) for each in (p, q)]
        for each, share in zip((p, q), shares, strict=True):
            mixed = mixture([(share, condition(each, one)), (1 - share, condition(each, other))])
            holds &= same(mixed, condition(each, one | other))
        ratios = [abs(math.log(a / b)) for a, b in ((shares[0], shares[1]), (1 - shares[0], 1 - shares[1]))]
        bound = max(
            loss((condition(p, event), condition(q, event))) + ratio
            for event, ratio in zip((one, other), ratios, strict=True)
        )
        holds &= loss((condition(p, one | other), condition(q, one | other))) <= bound + ROUNDING
    return Claim(
        "belief revision: on a disjoint union the law mixes, and the loss is at most the worst branch plus the log "
        "ratio of the branches' weights",
        holds,
        f"{count} random mechanisms; docs/theory/unions.md",
        ours=True,
    )


def mixtures(rng: np.random.Generator, count: int, *, revise: bool) -> str:
    """Whether changing a mixture is the same mixture of the changed parts, data by data."""
    share = Fraction(1, 3)
    for p, q in pairs(rng, count, WORLDS):
        event = some_event(rng)
        nearest = moves(rng, WORLDS, event)
        whole = mixture([(share, p), (1 - share, q)])
        if revise:
            left, parts = condition(whole, event), [condition(p, event), condition(q, event)]
        else:
            left, parts = image(whole, event, nearest), [image(p, event, nearest), image(q, event, nearest)]
        if not same(left, mixture([(share, parts[0]), (1 - share, parts[1])])):
            shown = ", ".join(str(p[w]) for w in range(WORLDS))
            return f"P = ({shown}), P' = ({', '.join(str(q[w]) for w in range(WORLDS))}), C = {sorted(event)}, weight ⅓"
    return ""


def imaging(rng: np.random.Generator, count: int) -> str:
    """Losses of an imaged mechanism against those of the mechanism."""
    for pair in pairs(rng, count, WORLDS):
        event = some_event(rng)
        nearest = moves(rng, WORLDS, event)
        after = tuple(image(p, event, nearest) for p in pair)
        if loss((after[0], after[1])) > loss(pair) + ROUNDING:
            return "imaging loses more than the mechanism"
        for epsilon in (Fraction(1, 4), Fraction(1)):
            if hockey_stick(after[0], after[1], epsilon) > hockey_stick(pair[0], pair[1], epsilon) + ROUNDING:
                return "imaging has a larger δ than the mechanism"
    return ""


def union_of_images() -> str:
    """An image on C ∪ C' that is no mixture of the images on C and on C', with any weight."""
    p = {w: Fraction(1, 4) for w in range(4)}
    one, other = image(p, {0, 1}, {2: 1, 3: 1}), image(p, {3}, lambda _: 3)
    both = image(p, {0, 1, 3}, {2: 3})
    # The only weight that could do gives the world 3 what it has.
    share = 1 - both[3]
    if same(both, mixture([(share, one), (1 - share, other)])):
        return ""
    return (
        "uniform on 0 … 3, C = {0, 1}, C' = {3}, 2 nearest to 3: (¼, ¼, 0, ½) is no mixture of (¼, ¾, 0, 0) and "
        "(0, 0, 0, 1)"
    )


def nearest_in_kl(rng: np.random.Generator, count: int) -> str:
    """Whether another belief with P(C) = 1 is nearer than the conditioned one."""
    for p, q in pairs(rng, count // 4, WORLDS):
        for event in events(WORLDS):
            other = condition(q, event)  # any other belief with P'(C) = 1
            if kl(other, p) < kl(condition(p, event), p) - ROUNDING:
                return "another belief is nearer"
    return ""


def nearest_points() -> str:
    """The library's projection of points of a grid, against every point of the constraint on a finer grid."""
    mechanism = laplace(histogram(2), scale=1, integer=False).onto(nonnegative())
    steps = np.arange(-12, 13) / 4
    noisy = np.stack([axis.ravel() for axis in np.meshgrid(steps, steps)], axis=1)
    moved = mechanism.image(noisy)
    allowed = noisy[(noisy >= 0).all(axis=1)]
    least = ((noisy[:, None, :] - allowed[None]) ** 2).sum(axis=2).min(axis=1)
    found = ((moved - noisy) ** 2).sum(axis=1)
    return "a point is moved too far" if (found > least + ROUNDING).any() or (moved < 0).any() else ""


def some_event(rng: np.random.Generator, worlds: int = WORLDS) -> frozenset[int]:
    found = events(worlds)
    return found[int(rng.integers(len(found)))]


def table_1(study: Study) -> Findings:
    rng, count = study.generator(), study.times(120, 12)
    cells = [*_revision(rng, count), *_update(rng, count)]
    rows = tuple(Row(f"{view}: {column}", printed, found) for view, column, printed, found, _ in cells)
    claims = [
        Claim(f"{view}: {column} is {printed}", found == printed, because)
        for view, column, printed, found, because in cells
    ]
    claims.append(union_as_it_holds(rng, count))
    return Findings(tuple(claims), rows)


Cell = tuple[str, str, str, str, str]


def _cell(view: str, column: str, printed: str, fails: str, tried: str) -> Cell:
    """A cell as it was found: a cross where something fails, with the counterexample; otherwise a tick."""
    return view, column, printed, "✗" if fails else "✓", fails or tried


def _revision(rng: np.random.Generator, count: int) -> list[Cell]:
    view = "belief revision"
    tried = f"{count} random mechanisms"
    return [
        _cell(view, "privacy preserving", "✗", nonnegativity(), tried),
        _cell(
            view,
            "privacy preserving for linear equalities",
            "✓",
            exact_total(),
            "every output of three cells with an exact total listed; THEORY §2, TV Lemma 10",
        ),
        _cell(view, "postprocessing", "✓", processing(rng, count, revise=True), f"{tried}; TV Lemma 11 (1)"),
        _cell(view, "basic composition", "✓", composition(rng, count, revise=True), f"{tried}; TV Lemma 13"),
        _cell(view, "disjoint union composition", "✓", union(), tried),
        _cell(view, "mixture composition", "✗", mixtures(rng, count, revise=True), tried),
        _cell(view, "minimum principle KL divergence", "✓", nearest_in_kl(rng, count), f"{tried}; THEORY §2"),
    ]


def _update(rng: np.random.Generator, count: int) -> list[Cell]:
    view = "belief update"
    tried = f"{count} random mechanisms"
    kept = imaging(rng, count)
    return [
        _cell(view, "privacy preserving", "✓", kept, f"{tried}, pure ε and δ(ε); TV Lemma 14"),
        _cell(view, "privacy preserving for linear equalities", "✓", kept, "the same: C is any set there"),
        _cell(view, "postprocessing", "✓", processing(rng, count, revise=False), f"{tried}; h after imaging"),
        _cell(view, "basic composition", "✓", composition(rng, count, revise=False), f"{tried}; TV Lemma 17"),
        _cell(view, "disjoint union composition", "✗", union_of_images(), tried),
        _cell(view, "mixture composition", "✓", mixtures(rng, count, revise=False), f"{tried}; TV Theorem 16"),
        _cell(
            view,
            "minimum principle L2 distance",
            "✓",
            nearest_points(),
            "every point of a grid is moved nearest",
        ),
    ]
