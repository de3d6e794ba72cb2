"""Several releases about the same people: what they promise together.

*Guarantee:* for pure ε the sum (Dwork, McSherry, Nissim and Smith 2006; TV Lemmas 13 and 17); for (ε, δ) both
sums (Dwork, Kenthapadi, McSherry, Mironov and Naor 2006); for zCDP the sum of ρ (Bun and Steinke 2016, Lemma
1.7); for Gaussian privacy √Σμ² (Dong, Roth and Su 2022, arXiv 1905.02383, Corollary 3.3); at each Rényi order
the sum (Mironov 2017, Proposition 1). All hold when a later release is chosen after seeing earlier ones.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from holdfast.arguments import Refused, probability, shown, whole
from holdfast.privacy.guarantee import LOSS_LAW, SCOPES, Counted, Guarantee
from holdfast.privacy.losses.adding import LEAST_DELTA, total_loss
from holdfast.privacy.losses.conversion import pure_rho
from holdfast.privacy.losses.gaussian import not_negative
from holdfast.privacy.losses.integer_gaussian import joined
from holdfast.privacy.rounding import ball, inward, outward, settled
from holdfast.queries.neighbours import Neighbours

#: Added when exact figures may differ between the parts (THEORY §3, last lines; SDP §2.3).
DIFFERENT_FIGURES = (
    "the parts may publish different exact figures: together these may determine more than each alone (hf.pinned with "
    "earlier=... tells), and more records may have to change together to keep all of them, perhaps more than this "
    "statement is about (hf.compose of the mechanisms tells)"
)
#: How a statement marks exact figures.
PUBLISHED = "(published exactly)"
#: How figures are called that are not all named: the same words may then stand for different ones.
NAMELESS = ("invariant row", f" more {PUBLISHED}")
#: Carried by statements from which none about more records follows (docs/theory/composition.md).
THESE_RECORDS_ONLY = (
    "nothing follows from this statement about more records than it names: what must hold may let more records change "
    "only together"
)
#: What a statement says in numbers, and the ground for it.
NUMBERS = ("epsilon", "delta", "rho", "mu", "orders", "losses", "because")
#: The two fields that hold probabilities.
DELTAS = ("delta", "numerical_delta")
#: The sum of the loss laws (docs/theory/composition.md).
LOSS_LAWS = "addition of the loss laws (Dong–Roth–Su 2022, Zhu–Dong–Wang 2022), rounded upwards"
#: The parts that only state (ε, δ) beside the sum of the others, stated at a δ or at an ε.
BASIC = "basic composition of these with "
#: Ways to add that are for amounts fixed beforehand (Rogers, Roth, Ullman and Vadhan 2016): the sum of loss laws, also
#: of integer Gaussian noise alone.
FIXED_AMOUNTS = (LOSS_LAWS, LOSS_LAW)
AMOUNTS_BEFOREHAND = (
    "the sum at a delta is true only if the amount of each release was fixed before results of others were seen; what "
    "is asked for may follow from them"
)
#: SDP Prop 9 composes mechanisms fixed beforehand; the exact figures of one part are not protected, so a
#: later part chosen by them would not be covered.
CHOSEN_BEFOREHAND = "the sum is true only if no part was chosen after exact figures of another were seen"


def compose(guarantees: Iterable[Guarantee], *, epsilon: Any = None, delta: Any = None) -> Guarantee:
    """Return what several releases promise together.

    With `delta`, the smallest proved ε at this δ is stated; with `epsilon`, the smallest proved δ at this ε;
    with neither, the plain sums. A `Counter` of statements says how often each is made. Statements of
    different `records` are brought to the largest by group privacy where that is proved; different kinds of
    neighbours are refused. The scope is the narrowest of the parts: an "all" statement is a subspace statement
    for every subspace (SDP Cor 8), a pair of subspace statements is one for the product of the null spaces (SDP
    Props 7 and 9), and with an invariant-sharing part only neighbours that share *all* exact figures are covered
    (THEORY §3).
    """
    if isinstance(guarantees, Guarantee) or not isinstance(guarantees, Iterable):
        raise Refused(f"guarantees must be a list of guarantees, found {type(guarantees).__name__}")
    parts = _checked(guarantees)
    if epsilon is not None and delta is not None:
        raise Refused("compose takes epsilon or delta, not both: the other one is what it computes")
    if any(part.void for part, _ in parts):
        void = "one of the composed statements is void, so the composition is too"
        return _together(parts, {"epsilon": math.inf, "because": void})
    if _count(parts) == 1:
        numbers = {name: getattr(parts[0][0], name) for name in NUMBERS}
    else:
        numbers = _sums(parts)
    if delta is not None:
        numbers = _at_delta(parts, numbers, inward(probability("delta", delta)))
    elif epsilon is not None:
        numbers = _at_epsilon(parts, numbers, inward(not_negative("epsilon", epsilon)))
    elif all(numbers[name] is None for name in ("epsilon", "rho", "mu")):
        raise Refused(
            "these statements have no plain sum, because some state only (epsilon, delta) and others "
            "only rho or mu; pass delta to compose at one delta"
        )
    return _together(parts, numbers)


def _checked(guarantees: Iterable[Guarantee]) -> Counted:
    """Return the different statements for one number of records, each with how often it is there."""
    # Most parts of a long list are one and the same value: these are counted without looking at what they say.
    listed: dict[int, tuple[Any, int]] = {}
    often = guarantees.items() if isinstance(guarantees, Counter) else ((part, 1) for part in guarantees)
    for part, number in often:
        before = listed.get(id(part))
        listed[id(part)] = (part, number if before is None else before[1] + number)
    if not listed:
        raise Refused("guarantees must hold at least one statement, found none")
    counted: Counter[Guarantee] = Counter()
    for part, number in listed.values():
        if not isinstance(part, Guarantee):
            raise Refused(f"guarantees must hold Guarantee values, found {type(part).__name__}")
        counted[part] += whole("the number of times of a statement", number, at_least=1)
    parts = list(counted)
    kinds = sorted({part.neighbours.kind for part in parts})
    if len(kinds) > 1:
        raise Refused(
            f"guarantees must be about the same neighbours to be composed, found {' and '.join(map(repr, kinds))}: "
            "make the mechanisms for the same neighbours and compose these"
        )
    records = max(part.records for part in parts)
    return [(for_records(part, records), number) for part, number in counted.items()]


def _count(parts: Counted) -> int:
    return sum(number for _, number in parts)


def for_records(guarantee: Guarantee, records: Any) -> Guarantee:
    """Return the statement for changes of more records at once (group privacy).

    *Guarantee:* for f = ⌈records/k⌉ steps of k records: pure ε gives fε; (ε, δ) gives fε and δ·Σ e^(iε) over
    i < f (triangle inequality); ρ-zCDP gives f²ρ (Bun and Steinke 2016, Proposition 1.9); μ gives fμ (Dong,
    Roth and Su 2022, arXiv 1905.02383, Theorem 2.14). A statement at whole orders only loses its ρ.
    Invariant-sharing statements are refused: the datasets on the way need not share the figures. So are statements
    with the caveat `THESE_RECORDS_ONLY`: the datasets on the way need not obey what must hold.
    """
    number = whole("records", records, at_least=1)
    if number == guarantee.records:
        return guarantee
    if number < guarantee.records:
        raise Refused(f"records must be at least {guarantee.records}, those of the statement, found {number}")
    relation = Neighbours(guarantee.neighbours.kind, records=number)
    if guarantee.void:
        return replace(guarantee, neighbours=relation)
    if guarantee.scope == "invariant-sharing":
        raise Refused(
            f"a statement beside exact figures says nothing about {number} records where it names {guarantee.records}: "
            "when more records change one after the other, exact figures may change on the way. Make the mechanism for "
            f"neighbours that differ in {number} records"
        )
    if THESE_RECORDS_ONLY in guarantee.caveats:
        raise Refused(
            f"where not all data are possible, a statement says nothing about {number} records where it names "
            f"{guarantee.records}: make the mechanism for neighbours that differ in {number} records"
        )
    steps = -(-number // guarantee.records)
    values: dict[str, Any] = dict.fromkeys(("epsilon", "rho", "mu")) | {
        "delta": 0.0,
        "numerical_delta": 0.0,
        "orders": "all",
        "losses": (),
    }
    if guarantee.rho is not None and guarantee.orders == "all":
        values["rho"] = outward(steps**2 * Fraction(guarantee.rho))
    if guarantee.mu is not None:
        values["mu"] = outward(steps * Fraction(guarantee.mu))
    if guarantee.epsilon is not None:
        e = Fraction(guarantee.epsilon)
        grown = {name: _grown(Fraction(getattr(guarantee, name)), e, steps) for name in DELTAS}
        if grown["delta"] < 1:
            values |= grown | {"epsilon": outward(steps * e)}
        elif values["rho"] is None and values["mu"] is None:
            values["epsilon"] = math.inf
    if all(values.get(name) is None for name in ("epsilon", "rho", "mu")):
        raise Refused("a rho proved at whole orders only has no group privacy statement: state it at a delta first")
    reason = f"{guarantee.because.rstrip('. ')}; for {number} records by group privacy in {steps} steps"
    return replace(guarantee, neighbours=relation, because=reason, exact=False, **values)


def for_all_changes(guarantees: Iterable[Guarantee], relation: Neighbours, **words: Any) -> Guarantee:
    """Return a statement about all changes of so many records, for those among them that keep every exact figure.

    Where they do, the part of the output that a subspace statement leaves out is the same before and after.
    """
    found = next((each for each in guarantees if each.scope != "invariant-sharing" and not each.void), None)
    if found is None:
        raise Refused("a part makes no statement about all neighbours: compose the guarantees instead")
    # A replaced record is one that goes and one that comes.
    steps = relation.records * (2 if found.neighbours.adds and not relation.adds else 1)
    several = for_records(found, max(steps, found.records))
    caveats = (*several.caveats, *words.pop("caveats", ()))
    return replace(several, neighbours=relation, caveats=caveats, **words)


def _grown(delta: Fraction, epsilon: Fraction, steps: int) -> float:
    """Return δ·Σ e^(iε) over i < steps, rounded up and cut at 1."""
    if delta == 0:
        return 0.0
    grown = settled(lambda: ball(delta) * sum(((i * ball(epsilon)).exp() for i in range(steps)), ball(0)))
    return min(1.0, outward(grown))


def _total(parts: Counted, value: Callable[[Guarantee], float | None]) -> float | None:
    """Return the exact sum of a number of every part rounded up once, or None when one is not known."""
    total = Fraction(0)
    for part, number in parts:
        found = value(part)
        if found is None:
            return None
        total += number * Fraction(found)
    return outward(total)


def _rho(part: Guarantee) -> float | None:
    """Return the ρ of a part: stated, from pure ε, or μ²/2, that of N(0, 1) and N(μ, 1)."""
    choices = [part.rho] if part.rho is not None else []
    if part.pure:
        choices.append(pure_rho(part.epsilon))
    if part.mu is not None:
        choices.append(outward(Fraction(part.mu) ** 2 / 2))
    return min(choices) if choices else None


def _whole_orders_only(part: Guarantee) -> bool:
    """Say whether the ρ that `_rho` gives is proved at whole orders only."""
    return part.orders == "integer" and part.rho is not None and part.rho == _rho(part)


def _sums(parts: Counted) -> dict[str, Any]:
    """Return the plain sums: each is given when every part can supply it."""
    epsilon, delta = _total(parts, lambda part: part.epsilon), 0.0
    if epsilon is not None:
        delta = _total(parts, lambda part: part.delta) or 0.0
        if delta >= 1 or math.isinf(epsilon):
            epsilon, delta = None, 0.0
    rho = _total(parts, _rho)
    orders = "integer" if rho is not None and any(_whole_orders_only(part) for part, _ in parts) else "all"
    mu = None
    if all(part.mu is not None for part, _ in parts):
        square = sum((number * Fraction(part.mu or 0.0) ** 2 for part, number in parts), Fraction(0))
        mu = outward(settled(lambda: ball(square).sqrt())) if square else 0.0
    reasons = []
    if epsilon is not None:
        reasons.append("ε and δ add (basic composition, TV Lemmas 13 and 17)")
    if rho is not None:
        mixed = any(part.rho is None for part, _ in parts)
        extra = ", pure ε counting as ε·tanh(ε/2)" if mixed else ""
        reasons.append(f"ρ adds, order by order (Bun–Steinke 2016, Lemma 1.7; Mironov 2017, Prop 1){extra}")
    if mu is not None:
        reasons.append("μ² adds (Dong–Roth–Su 2022, Corollary 3.3)")
    because = f"{_count(parts)} statements composed: {'; '.join(reasons)}"
    return {
        "epsilon": epsilon,
        "delta": delta,
        "rho": rho,
        "mu": mu,
        "orders": orders,
        "losses": joined((part.losses, number) for part, number in parts),
        "because": because,
    }


def _split(parts: Counted) -> tuple[Counted, Counted]:
    """Return the parts that only state (ε, δ > 0), and the others."""
    loose = [each for each in parts if each[0].rho is None and each[0].mu is None and each[0].delta > 0]
    return loose, [each for each in parts if each not in loose]


def _at_delta(parts: Counted, numbers: dict[str, Any], limit: float) -> dict[str, Any]:
    """Return the numbers with the smallest proved ε at this δ among all ways to compose."""
    choices: list[tuple[float, float, str]] = []
    if numbers["epsilon"] is not None and numbers["delta"] <= limit:
        choices.append((numbers["epsilon"], numbers["delta"], "basic composition"))
    stated = _stated(parts, numbers)
    if stated is not None:
        at = stated.at_delta(limit)
        choices.append((at.epsilon or 0.0, at.delta, _theorem(at.because)))
    laws = total_loss(parts, limit)
    if laws is not None:
        found = laws.epsilon(limit)
        if math.isfinite(found):
            choices.append((found, limit, LOSS_LAWS))
    loose, rest = _split(parts)
    left = inward(Fraction(limit) - sum((number * Fraction(part.delta) for part, number in loose), Fraction(0)))
    others = _stated(rest, _sums(rest)) if loose and rest and left > 0 else None
    if others is not None:
        at = others.at_delta(left)
        spent = sum((number * Fraction(part.epsilon or 0.0) for part, number in loose), Fraction(at.epsilon or 0.0))
        choices.append((outward(spent), limit, BASIC + _theorem(at.because)))
    if not choices:
        raise Refused(f"delta must exceed the sum of the parts' own deltas, found {shown(limit)}")
    return _chosen(numbers, *min(choices))


def _chosen(numbers: dict[str, Any], epsilon: float, delta: float, theorem: str) -> dict[str, Any]:
    because = f"{numbers['because']}; (ε, δ) by {theorem}"
    return {**numbers, "epsilon": epsilon, "delta": delta, "because": because}


def _stated(parts: Counted, numbers: dict[str, Any]) -> Guarantee | None:
    """Return the summed ρ and μ as a statement, for conversion; None when there is neither."""
    if numbers["rho"] is None and numbers["mu"] is None:
        return None
    return Guarantee(
        rho=numbers["rho"],
        mu=numbers["mu"],
        orders=numbers["orders"],
        losses=numbers["losses"],
        neighbours=parts[0][0].neighbours,
        because="sum",
    )


def _theorem(because: str) -> str:
    return because.rpartition(" by ")[2]


def _at_epsilon(parts: Counted, numbers: dict[str, Any], wanted: float) -> dict[str, Any]:
    """Return the numbers with the smallest proved δ at this ε among all ways to compose."""
    choices: list[tuple[float, float, str]] = []
    if numbers["epsilon"] is not None and numbers["epsilon"] <= wanted:
        choices.append((numbers["delta"], numbers["epsilon"], "basic composition"))
    stated = _stated(parts, numbers)
    if stated is not None:
        at = stated.at_epsilon(wanted)
        choices.append((at.delta, at.epsilon or 0.0, _theorem(at.because)))
    loose, rest = _split(parts)
    spent = sum((number * Fraction(part.epsilon or 0.0) for part, number in loose), Fraction(0))
    left = inward(Fraction(wanted) - spent)
    others = _stated(rest, _sums(rest)) if loose and rest and left >= 0 else None
    if others is not None:
        at = others.at_epsilon(left)
        total = outward(sum((number * Fraction(part.delta) for part, number in loose), Fraction(at.delta)))
        if total < 1:
            choices.append((total, wanted, BASIC + _theorem(at.because)))
    # What is found so far says how small a δ to look for.
    laws = total_loss(parts, max(min((delta for delta, _, _ in choices), default=1.0), LEAST_DELTA))
    if laws is not None:
        found = laws.delta(Fraction(wanted))
        if found < 1:
            choices.append((found, wanted, LOSS_LAWS))
    if not choices:
        raise Refused(f"epsilon must be at least the sum of the parts' own epsilons, found {shown(wanted)}")
    delta, epsilon, theorem = min(choices)
    return _chosen(numbers, epsilon, delta, theorem)


def _together(counted: Counted, numbers: dict[str, Any]) -> Guarantee:
    """Return the numbers with the joint scope, status, caveats and unprotected figures."""
    parts, count = [part for part, _ in counted], _count(counted)
    caveats = [caveat for part in parts for caveat in part.caveats]
    if _figures_may_differ(counted):
        caveats.append(DIFFERENT_FIGURES)
    scope = max((part.scope for part in parts), key=SCOPES.index)
    if scope == "subspace" and count > 1:
        caveats.append(CHOSEN_BEFOREHAND)
    # Losses that were joined will be converted at a δ sooner or later.
    if count > 1 and (numbers.get("losses") or numbers["because"].endswith(FIXED_AMOUNTS)):
        caveats.append(AMOUNTS_BEFOREHAND)
    numerical = outward(sum((number * Fraction(part.numerical_delta) for part, number in counted), Fraction(0)))
    return Guarantee(
        **numbers,
        neighbours=parts[0].neighbours,
        scope=scope,
        status="estimated" if any(part.status == "estimated" for part in parts) else "proved",
        unprotected=tuple(dict.fromkeys(item for part in parts for item in part.unprotected)),
        assumes=tuple(dict.fromkeys(item for part in parts for item in part.assumes)),
        numerical_delta=min(numerical, numbers.get("delta", 0.0)),
        caveats=tuple(dict.fromkeys(caveats)),
        exact=count == 1 and parts[0].exact and numbers["because"] == parts[0].because,
        unit=parts[0].unit if len({part.unit for part in parts}) == 1 else None,
    )


def _figures_may_differ(parts: Counted) -> bool:
    """Say whether some parts may publish other exact figures than others, as far as words tell."""
    publishing: Counter[tuple[str, ...]] = Counter()
    for part, number in parts:
        publishing[tuple(item for item in part.unprotected if part.scope != "all" or item.endswith(PUBLISHED))] += (
            number
        )
    del publishing[()]
    nameless = any(words in item for figures in publishing for item in figures for words in NAMELESS)
    return publishing.total() > 1 and (nameless or len(publishing) > 1)
