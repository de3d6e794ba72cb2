"""Try to refute what a mechanism promises: exactly where its law can be listed, by learning from draws otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from holdfast.arguments import Refused, positive, whole
from holdfast.auditing.claims import Claim
from holdfast.auditing.counting import FalseAlarms
from holdfast.auditing.evidence import Evidence
from holdfast.auditing.listing import listed
from holdfast.auditing.losses import listed_evidence
from holdfast.auditing.pairs import Pair, given_pairs, neighbouring, searched_pairs
from holdfast.auditing.report import Audit, Finding
from holdfast.auditing.sampling import Clock, View, sampled_evidence, shown
from holdfast.auditing.subject import Subject
from holdfast.privacy import Guarantee
from holdfast.privacy.additive import REAL_ARITHMETIC
from holdfast.queries import Query
from holdfast.randomness import seeded

#: A count this many scales of the noise from every edge counts as large.
FAR = 40
#: A large count where the noise is not known.
LARGE = 1_000
NO_PAIRS = "no pair of possible neighbouring datasets was found for it: pass some as pairs="
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

    `mechanism`: one of holdfast's, an object with `simulate(truth, size, rng)`, `guarantee` (or `guarantees`) and
    `query`, or a function from a truth to one release, with `guarantee` and `query` beside it. `guarantee` replaces
    what a mechanism says about itself. `pairs`: pairs of truths, as `simulate` takes them; None searches for bad ones.
    `seconds` bounds the effort and nothing else: it may take a little longer, and usually takes less.
    Guarantee: a true statement is called violated with a chance of at most 1e-9, over all pairs, events and rounds
    together; never, by listed laws (docs/theory/auditing.md). What is not refuted is not thereby proved.
    """
    effort = float(positive("seconds", seconds))
    subject = Subject.of(mechanism, query, guarantee)
    passed = None if pairs is None else given_pairs(pairs, _width(subject))
    if passed is None and subject.query is None:
        raise Refused("pairs of truths are needed where the query is not known: pass pairs= or query=")
    alarms, clock = FalseAlarms(), Clock(effort)
    findings: list[Finding] = []
    for k, statement in enumerate(subject.statements):
        share = clock.part(1 / (len(subject.statements) - k))
        findings.append(_tested(subject, statement, passed, alarms, share, whole("seed", seed)))
    if all(finding.evidence is None for finding in findings):
        raise Refused(f"nothing can be audited: {'; '.join(dict.fromkeys(n for f in findings for n in f.notes))}")
    return Audit(subject.name, tuple(findings), alarms.tests)


def _width(subject: Subject) -> int | None:
    return None if subject.query is None else subject.query.n


def _tested(
    subject: Subject, statement: Guarantee, passed: list[Pair] | None, alarms: FalseAlarms, clock: Clock, seed: int
) -> Finding:
    """Test one statement on every pair it is about: first by listing, then by drawing."""
    relation, scope = statement.neighbours, statement.scope
    if passed is not None:
        about = [each for each in passed if neighbouring(each, subject.query, subject.held, scope, relation)]
    else:
        assert subject.query is not None
        about = searched_pairs(subject.query, subject.held, scope, relation, _large(subject), seed)
    notes = () if about else (NO_PAIRS if passed is None else "it is not about any of these pairs",)
    view = View(None, REAL_ARITHMETIC in statement.caveats or scope == "subspace")
    if scope == "subspace" and subject.held is not None:
        view = replace(view, space=subject.held.null_space())
    claim = Claim.of(statement)
    exact = None if scope == "subspace" else _listed(subject, claim, about, clock.part(0.5))
    if exact is not None and exact.margin > 0:
        return Finding(statement, exact, len(about), 0, notes)
    if view.real:
        notes += (BITS,)
    try:
        found, tried, draws = sampled_evidence(subject, claim, about, view, alarms, clock, seeded(seed))
    except Refused as refusal:
        found, tried, draws = None, 0, 0
        notes += (f"no draws were made: {refusal}",)
    both = [each for each in (exact, found) if each is not None]
    best = max(both, key=lambda each: each.margin, default=None)
    return Finding(statement, best, max(tried, len(about) if exact else 0), draws, notes)


def _listed(subject: Subject, claim: Claim, pairs: list[Pair], clock: Clock) -> Evidence | None:
    """The strongest evidence of listed laws; None where none can be listed."""
    best: Evidence | None = None
    if subject.listed is None:
        return None
    for pair in pairs:
        if best is not None and (clock.left <= 0 or best.margin > 0):
            break
        try:
            laws = listed(subject.listed, pair)
        except Refused:
            return best
        if laws is None:
            return best
        found = listed_evidence(claim, laws)
        if best is None or found.margin > best.margin:
            best = replace(found, pair=pair.words, one=shown(pair.one), other=shown(pair.other))
    return best


def _large(subject: Subject) -> int:
    """A count far from every edge, for the noise of this mechanism where it is known."""
    base = getattr(subject.listed, "base", None)
    if base is None:
        return LARGE
    spread = np.sqrt(base.law.variances)
    return int(np.ceil(FAR * max(float(spread[np.isfinite(spread)].max(initial=1.0)), 1.0)))
