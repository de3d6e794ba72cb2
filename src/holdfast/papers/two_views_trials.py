"""The laws of Table 1 and of the lemmas, each tried: what fails, in words, or nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations, product

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
from holdfast.pictures import bars
from holdfast.queries import histogram

World = int
Belief = dict[World, Fraction]
#: A mechanism on two neighbouring datasets.
Pair = tuple[Belief, Belief]


def listed(worlds: int, parts: int) -> Iterator[Belief]:
    """Every belief about so many worlds whose probabilities are multiples of 1/parts."""
    for ends_of in combinations(range(parts + worlds - 1), worlds - 1):
        ends = [-1, *ends_of, parts + worlds - 1]
        yield {w: Fraction(ends[w + 1] - ends[w] - 1, parts) for w in range(worlds)}


def events(worlds: int) -> list[frozenset[int]]:
    found = (frozenset(w for w, chosen in enumerate(each) if chosen) for each in product([0, 1], repeat=worlds))
    return [event for event in found if event]


def pairs(rng: np.random.Generator, count: int, worlds: int) -> Iterator[Pair]:
    """Random mechanisms: what two neighbouring datasets give, every world possible."""
    for _ in range(count):
        both = rng.integers(1, 12, size=(2, worlds))
        yield _belief(both[0].tolist()), _belief(both[1].tolist())


def _belief(weights: list[int]) -> Belief:
    total = sum(weights)
    return {w: Fraction(weight, total) for w, weight in enumerate(weights)}


def moves(rng: np.random.Generator, worlds: int, event: frozenset[int]) -> dict[int, int]:
    inside = sorted(event)
    return {w: inside[int(rng.integers(len(inside)))] for w in range(worlds) if w not in event}


def loss(pair: tuple[Mapping[int, Fraction], Mapping[int, Fraction]]) -> float:
    """The pure ε of a mechanism on two datasets."""
    return max(log_ratio(pair[0], pair[1]), log_ratio(pair[1], pair[0]))


def same(p: Mapping[int, Fraction], q: Mapping[int, Fraction]) -> bool:
    """Whether two beliefs are equal; worlds that are left out have probability 0."""
    return all(p.get(w, 0) == q.get(w, 0) for w in {*p, *q})


def response(p: Fraction = Fraction(9, 10)) -> Pair:
    """Randomized response: the answer is right with probability p."""
    return {1: p, 0: 1 - p}, {1: 1 - p, 0: p}


FEW_WORLDS, PARTS = 3, 4
#: Worlds of Example 3: a and b, a alone, b alone, neither.
APPLE = {1: Fraction(0), 2: Fraction(7, 10), 3: Fraction(3, 10), 4: Fraction(0)}


def belief_change(study: Study) -> Findings:
    """Try every belief, event and rule of a small grid."""
    del study  # nothing is random, and it is quick
    revised, updated = condition(APPLE, {3, 4}), image(APPLE, {3, 4}, {1: 3, 2: 4})
    rows = (
        Row("Example 3: p(ω₃ | no apple)", 1.0, float(revised[3])),
        Row("Example 3: p(ω₄ | no apple)", 0.0, float(revised[4])),
        Row("Example 3: p imaged, ω₃", 0.3, float(updated[3])),
        Row("Example 3: p imaged, ω₄", 0.7, float(updated[4])),
    )
    picture = bars(
        [
            ("believed: apple", 0.7, 0.0),
            ("believed: banana", 0.3, 0.0),
            ("revised: banana", float(revised[3]), 0.0),
            ("updated: banana", float(updated[3]), 0.0),
            ("updated: empty", float(updated[4]), 0.0),
        ],
        "probability of what is in the box",
    )
    return Findings(_claims(rows), rows, (("Learning that there is no apple, in the two ways.", picture),))


def _claims(rows: tuple[Row, ...]) -> tuple[Claim, ...]:
    right = all(row.printed == row.computed for row in rows)
    first, tried = _proposition_1()
    second, cases = _proposition_2()
    linear, mixed = _homomorphic()
    least, compared = _least_change()
    only, rule = _another_homomorphic_rule()
    return (
        Claim("Example 3 comes out as printed", right, "exact fractions"),
        Claim("Proposition 1: conditioning is marked by no relative change", first, f"{tried:,} pairs of beliefs"),
        Claim("Proposition 2: on a disjoint union conditioning mixes", second, f"{cases:,} beliefs and events"),
        Claim("(2): imaging goes through mixtures", linear, f"{mixed:,} pairs of beliefs, every map"),
        Claim("conditioning is nearest in KL divergence", least, f"{compared:,} other beliefs with P(C) = 1"),
        Claim("imaging is the only rule that goes through mixtures", not only, rule),
        Claim(
            "it is the only such rule that sends every single world to a single one",
            _sure_rules_are_images(),
            "a rule that goes through mixtures is fixed by what it does to the single worlds, so it moves each to one",
            ours=True,
        ),
    )


def _proposition_1() -> tuple[bool, int]:
    grid, tried = list(listed(FEW_WORLDS, PARTS)), 0
    for p, event in product(grid, events(FEW_WORLDS)):
        if not sum(p[w] for w in event):
            continue
        revised = condition(p, event)
        for other in [*grid, revised]:
            tried += 1
            if _no_relative_change(p, other, event) != same(other, revised):
                return False, tried
    return True, tried


def _no_relative_change(p: Belief, other: Belief, event: frozenset[int]) -> bool:
    """The two conditions of Proposition 1, ratios multiplied out: for single worlds, from which all B follow."""
    outside = sum(other[w] for w in other if w not in event)
    return not outside and all(other[a] * p[b] == p[a] * other[b] for a in event for b in event)


def _proposition_2() -> tuple[bool, int]:
    tried = 0
    for p, one, other in product(listed(FEW_WORLDS, PARTS), events(FEW_WORLDS), events(FEW_WORLDS)):
        weights = [sum(p[w] for w in event) for event in (one, other)]
        if one & other or not all(weights):
            continue
        share = Fraction(weights[0]) / sum(weights)
        tried += 1
        if not same(condition(p, one | other), mixture([(share, condition(p, one)), (1 - share, condition(p, other))])):
            return False, tried
    return True, tried


def _homomorphic() -> tuple[bool, int]:
    tried, third = 0, Fraction(1, 3)
    for event in events(FEW_WORLDS):
        outside = [w for w in range(FEW_WORLDS) if w not in event]
        for targets in product(sorted(event), repeat=len(outside)):
            nearest = dict(zip(outside, targets, strict=True))
            for p, q in product(listed(FEW_WORLDS, 2), repeat=2):
                tried += 1
                whole = image(mixture([(third, p), (1 - third, q)]), event, nearest)
                if not same(whole, mixture([(third, image(p, event, nearest)), (1 - third, image(q, event, nearest))])):
                    return False, tried
    return True, tried


def _least_change() -> tuple[bool, int]:
    tried = 0
    grid = list(listed(FEW_WORLDS, PARTS))
    for p, event in product(grid, events(FEW_WORLDS)):
        if not sum(p[w] for w in event):
            continue
        least = kl(condition(p, event), p)
        for other in grid:
            if sum(other[w] for w in event) == 1:
                tried += 1
                if kl(other, p) < least - 1e-12:
                    return False, tried
    return True, tried


def _another_homomorphic_rule() -> tuple[bool, str]:
    """A rule that shares a world's mass between two nearest ones: it mixes, and is no imaging by one nearest world."""
    kernel = {0: {1: Fraction(1, 2), 2: Fraction(1, 2)}, 1: {1: Fraction(1)}, 2: {2: Fraction(1)}}

    def shared(p: Belief) -> Belief:
        return {w: sum((p[v] * kernel[v].get(w, Fraction(0)) for v in p), Fraction(0)) for w in range(3)}

    third = Fraction(1, 3)
    mixes = all(
        same(shared(mixture([(third, p), (1 - third, q)])), mixture([(third, shared(p)), (1 - third, shared(q))]))
        for p, q in product(listed(3, 2), repeat=2)
    )
    at_zero = shared({0: Fraction(1), 1: Fraction(0), 2: Fraction(0)})
    words = (
        "sharing a world's mass evenly between two worlds of C goes through mixtures too (Gärdenfors' general imaging)"
    )
    return mixes and max(at_zero.values()) < 1, words


def _sure_rules_are_images() -> bool:
    """Every rule given by single worlds for single worlds is an image: all maps of three worlds that keep an event."""
    for event in events(FEW_WORLDS):
        outside = [w for w in range(FEW_WORLDS) if w not in event]
        for targets in product(sorted(event), repeat=len(outside)):
            nearest = dict(zip(outside, targets, strict=True))
            for p in listed(FEW_WORLDS, 2):
                by_worlds = mixture(
                    [(p[w], {v: Fraction(int(v == nearest.get(w, w))) for v in range(FEW_WORLDS)}) for w in p]
                )
                if not same(by_worlds, image(p, event, nearest)):
                    return False
    return True


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
