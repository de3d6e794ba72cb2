"""Try to refute what a mechanism promises: exactly where its law can be listed, by learning from draws otherwise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from holdfast.arguments import Refused, positive, whole
from holdfast.auditing.claims import Claim, Evidence
from holdfast.auditing.closed_forms import known_evidence
from holdfast.auditing.counting import FalseAlarms
from holdfast.auditing.listing import listed
from holdfast.auditing.losses import listed_evidence
from holdfast.auditing.pairs import FEWEST_PAIRS, MOST_PAIRS, Pair, given_pairs, neighbouring, searched_pairs
from holdfast.auditing.report import Audit, Finding
from holdfast.auditing.sampling import Clock, View, on_pair, sampled_evidence
from holdfast.auditing.subject import Subject
from holdfast.mechanism.mechanism import Mechanism
from holdfast.privacy import Guarantee
from holdfast.privacy.additive import REAL_ARITHMETIC
from holdfast.queries import Query
from holdfast.randomness import seeded

#: Pairs that are made up for every second of effort, up to a limit.
PAIRS_PER_SECOND = 20
#: A count this many scales of the noise from every edge counts as large.
FAR = 40
#: A large count where the noise is not known.
LARGE = 1_000
NO_PAIRS = "no pair of possible neighbouring datasets was found for it: pass some as pairs="
NOT_ABOUT = "it is about none of these pairs"
#: After so many pairs that could not be listed no more are tried.
UNLISTED = 4
BITS = "it is about real arithmetic: outputs were rounded, and the low bits of doubles were not looked at"


def audit(
    mechanism: Any,
    pairs: Any = None,
    seconds: Any = 60,
    *,
    query: Query | None = None,
    guarantee: Guarantee | None = None,
    seed: int = 1,
) -> Audit:
    """Try to refute every statement of a mechanism on made-up neighbouring data, and report.

    Args:
        mechanism: one of holdfast's, an object with `simulate(truth, size, rng)`, `guarantee` (or `guarantees`) and
            `query`, or a function from a truth to one release, with `guarantee` and `query` beside it.
        pairs: pairs of truths, as `simulate` takes them; None searches for bad ones.
        seconds: bounds the effort and nothing else: it may take a little longer, and usually takes less.
        query: tells which data are neighbours, where the mechanism does not.
        guarantee: replaces what a mechanism says about itself.
        seed: of the made-up data and of the draws.

    Guarantee:
        A true statement is called violated with a chance of at most 1e-9, over all pairs, events and rounds together;
        never, by listed laws (docs/theory/auditing.md). What is not refuted is not thereby proved.

    Example:
        >>> import holdfast as hf
        >>> mechanism = hf.laplace(hf.histogram(2), epsilon=1)
        >>> claim = hf.Guarantee(epsilon=0.5, neighbours="add-remove", because="too good to be true")
        >>> hf.audit(mechanism, guarantee=claim, seconds=0.2).verdict
        'violated'
    """
    effort = float(positive("seconds", seconds))
    subject = Subject.of(mechanism, query, guarantee)
    passed = None if pairs is None else given_pairs(pairs, _width(subject))
    if passed is None and subject.query is None:
        raise Refused("pairs of truths are needed where the query is not known: pass pairs= or query=")
    alarms, clock = FalseAlarms(), Clock(effort)
    most = int(min(MOST_PAIRS, max(FEWEST_PAIRS, PAIRS_PER_SECOND * effort)))
    tests = [_test(subject, statement, passed, most, whole("seed", seed)) for statement in subject.statements]
    listing = clock.part(0.5)
    exact = [_listed(subject, test, listing.part(1 / (len(tests) - k))) for k, test in enumerate(tests)]
    findings = []
    for k, (test, found) in enumerate(zip(tests, exact, strict=True)):
        share = clock.part(1 / (len(tests) - k))
        findings.append(_drawn(subject, test, found, alarms, share, seed))
    if all(finding.evidence is None for finding in findings):
        raise Refused(f"nothing can be audited: {'; '.join(dict.fromkeys(n for f in findings for n in f.notes))}")
    return Audit(subject.name, tuple(findings), alarms.tests)


def _width(subject: Subject) -> int | None:
    return None if subject.query is None else subject.query.n


@dataclass(frozen=True, eq=False)
class _Test:
    """A statement to be refuted: its claim, the pairs it is about, and what it speaks of."""

    claim: Claim
    pairs: list[Pair]
    view: View
    notes: tuple[str, ...]


def _test(subject: Subject, statement: Guarantee, passed: list[Pair] | None, most: int, seed: int) -> _Test:
    relation, scope = statement.neighbours, statement.scope
    if passed is not None:
        about = [each for each in passed if neighbouring(each, subject.query, subject.held, scope, relation)]
    else:
        assert subject.query is not None
        about = searched_pairs(subject.query, subject.held, scope, relation, _large(subject), seed, most)
    notes = () if about else (NO_PAIRS if passed is None else NOT_ABOUT,)
    view = View(None, REAL_ARITHMETIC in statement.caveats or scope == "subspace")
    if scope == "subspace" and subject.held is not None:
        view = replace(view, space=subject.held.null_space())
    return _Test(Claim.of(statement), about, view, notes + ((BITS,) if view.real else ()))


def _listed(subject: Subject, test: _Test, clock: Clock) -> Evidence | None:
    """The strongest evidence of listed laws; None where none can be listed."""
    best: Evidence | None = None
    if subject.listed is None or test.view.space is not None:
        return None
    failed = 0
    for pair in test.pairs:
        if failed > UNLISTED or (best is not None and (clock.left <= 0 or best.margin > 0)):
            break
        try:
            found = _known(subject.listed, test.claim, pair)
        except Refused:
            return best
        if found is None:
            failed += 1
            continue
        if best is None or found.margin > best.margin:
            best = on_pair(found, pair)
    return best


def _known(mechanism: Mechanism, claim: Claim, pair: Pair) -> Evidence | None:
    """What the laws themselves say about a pair; None where they cannot be written down."""
    if not mechanism.base.law.integer:
        return known_evidence(claim, mechanism, pair)
    laws = listed(mechanism, pair)
    return None if laws is None else listed_evidence(claim, laws)


def _drawn(
    subject: Subject, test: _Test, exact: Evidence | None, alarms: FalseAlarms, clock: Clock, seed: int
) -> Finding:
    """Look for stronger evidence than that of listed laws by drawing, unless they refute the statement already."""
    statement, notes = test.claim.statement, test.notes
    if exact is not None and exact.margin > 0:
        return Finding(statement, exact, len(test.pairs), 0, notes)
    try:
        found, tried, draws = sampled_evidence(subject, test.claim, test.pairs, test.view, alarms, clock, seeded(seed))
    except Refused as refusal:
        found, tried, draws = None, 0, 0
        notes += (f"no draws were made: {refusal}",)
    best = max((each for each in (exact, found) if each is not None), key=lambda each: each.margin, default=None)
    return Finding(statement, best, len(test.pairs) if exact is not None else tried, draws, notes)


def _large(subject: Subject) -> int:
    """A count far from every edge, for the noise of this mechanism where it is known."""
    base = getattr(subject.listed, "base", None)
    if base is None:
        return LARGE
    spread = np.sqrt(base.law.variances)
    return int(np.ceil(FAR * max(float(spread[np.isfinite(spread)].max(initial=1.0)), 1.0)))
