"""Try to refute what a mechanism promises: exactly where its law can be listed, by learning from draws otherwise."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from holdfast.arguments import Number, Refused, positive, whole
from holdfast.auditing.pairs import (
    FEWEST_PAIRS,
    MOST_PAIRS,
    Pair,
    Subject,
    given_pairs,
    led_words,
    neighbouring,
    searched_pairs,
)
from holdfast.auditing.sampling import Clock, View, on_pair, sampled_evidence
from holdfast.auditing.tested_claims import (
    EXACT,
    FALSE_ALARM,
    NOT_REFUTED,
    VIOLATED,
    Claim,
    Evidence,
    FalseAlarms,
    known_evidence,
    listed,
    listed_evidence,
)
from holdfast.mechanism.mechanism import Mechanism
from holdfast.privacy import Guarantee
from holdfast.privacy.additive import REAL_ARITHMETIC
from holdfast.queries import Query
from holdfast.randomness import seeded

# --- the report of an audit: what was tested, how, and whether anything was refuted ----------------------------------

#: Seconds that an audit takes at most.
MOST_SECONDS = 10**9
#: Version of the JSON form.
SCHEMA = "holdfast-audit-1"


@dataclass(frozen=True)
class Finding:
    """What was found about one statement: the strongest evidence, or why there is none."""

    statement: Guarantee
    evidence: Evidence | None
    pairs: int
    draws: int
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        return VIOLATED if self.evidence is not None and self.evidence.margin > 0 else NOT_REFUTED

    def __str__(self) -> str:
        what = f"the statement about {self.statement.neighbours} (scope {self.statement.scope})"
        found = self.evidence
        if found is None:
            return f"{NOT_REFUTED}: {what} was not tested: {'; '.join(self.notes)}"
        at = f" at δ = {found.delta:.3g}" if found.delta else ""
        how = "by listing both laws" if found.how == EXACT else "by counting draws"
        said = f"needs ε ≥ {found.epsilon:.4f}{at}, says {found.claimed:.4f}" if found.epsilon > 0 else "nothing found"
        words = f"{self.verdict}: {what} {said} ({how}: {found.event}; {found.pair})"
        return "; ".join([words, *self.notes])


@dataclass(frozen=True)
class Audit:
    """The report of `audit`: one finding per statement. str() is for people, `to_json` for scripts.

    All data in it were made up. What was refuted by listing is refuted without any chance of error.

    Args:
        subject: what was audited, in words.
        findings: one per statement: whether it was refuted, the ε found, the pair of data and the event that show it.
        tests: how many events were counted on fresh draws.
        false_alarm: the chance that draws refute any true statement, over everything that was tested.

    Example:
        >>> import holdfast as hf
        >>> report = hf.audit(hf.laplace(hf.histogram(2), epsilon=1), seconds=0.2)
        >>> report.verdict, report.false_alarm
        ('not refuted', 1e-09)
    """

    subject: str
    findings: tuple[Finding, ...]
    tests: int
    false_alarm: float = FALSE_ALARM

    @property
    def verdict(self) -> str:
        """ "violated" where any statement was refuted, otherwise "not refuted"."""
        return VIOLATED if any(each.verdict == VIOLATED for each in self.findings) else NOT_REFUTED

    @property
    def violated(self) -> bool:
        """Whether a statement was refuted."""
        return self.verdict == VIOLATED

    @property
    def worst(self) -> Finding:
        """The finding that is farthest beyond, or nearest to, what its statement says."""
        return max(self.findings, key=lambda each: -math.inf if each.evidence is None else each.evidence.margin)

    @property
    def epsilon(self) -> float:
        """The strongest lower bound on ε, at `delta`; 0 where nothing was found."""
        found = self.worst.evidence
        return 0.0 if found is None else max(0.0, found.epsilon)

    @property
    def delta(self) -> float:
        """The δ at which `epsilon` is a lower bound."""
        return 0.0 if self.worst.evidence is None else self.worst.evidence.delta

    @property
    def how(self) -> str | None:
        """How the strongest bound was found, "exact" or "sampled"; None where there is none."""
        return None if self.worst.evidence is None else self.worst.evidence.how

    @property
    def confidence(self) -> float:
        """How sure the strongest bound is."""
        return 1.0 if self.how == EXACT else 1.0 - self.false_alarm

    @property
    def pair(self) -> str:
        """The made-up neighbouring data of the strongest bound, in words."""
        return "" if self.worst.evidence is None else self.worst.evidence.pair

    def __str__(self) -> str:
        lines = [f"{self.verdict}: {self.subject}", *(f"  {each}" for each in self.findings)]
        lines.append(
            f"  {self.tests} events were counted on fresh draws; the chance of a false alarm is at most "
            f"{self.false_alarm:g} in all. What is not refuted is not thereby proved."
        )
        return "\n".join(lines)

    def as_mapping(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "schema": SCHEMA,
            "subject": self.subject,
            "verdict": self.verdict,
            "epsilon": _number(self.epsilon),
            "delta": self.delta,
            "confidence": self.confidence,
            "how": self.how,
            "tests": self.tests,
            "false_alarm": self.false_alarm,
            "findings": [
                {
                    "verdict": each.verdict,
                    "statement": each.statement.as_mapping(),
                    "pairs": each.pairs,
                    "draws": each.draws,
                    "notes": list(each.notes),
                    "evidence": None if each.evidence is None else _plain(each.evidence),
                }
                for each in self.findings
            ],
        }

    def to_json(self) -> str:
        """Return the report as JSON text."""
        return json.dumps(self.as_mapping(), ensure_ascii=False, allow_nan=False)


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else "infinity" if value > 0 else "-infinity"


def _plain(found: Evidence) -> dict[str, Any]:
    plain = asdict(found)
    for name in ("margin", "epsilon"):
        plain[name] = _number(plain[name])
    return plain | {"one": list(found.one), "other": list(found.other)}


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
    mechanism: Mechanism | Callable[..., npt.ArrayLike],
    pairs: Iterable[Sequence[npt.ArrayLike]] | None = None,
    seconds: Number = 60,
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
    effort = float(min(positive("seconds", seconds), Fraction(MOST_SECONDS)))
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


def _listed(subject: Subject, test: _Test, clock: Clock) -> tuple[Evidence | None, int]:
    """The strongest evidence of listed laws, None where none can be listed; and how many pairs were looked at."""
    best: Evidence | None = None
    if subject.listed is None or test.view.space is not None:
        return None, 0
    failed = 0
    for k, pair in enumerate(test.pairs):
        if failed > UNLISTED or (best is not None and (clock.left <= 0 or best.margin > 0)):
            return best, k
        try:
            found = _known(subject.listed, test.claim, pair)
        except Refused:
            return best, k
        if found is None:
            failed += 1
            continue
        if best is None or found.margin > best.margin:
            best = on_pair(found, pair)
    return best, len(test.pairs)


def _known(mechanism: Mechanism, claim: Claim, pair: Pair) -> Evidence | None:
    """What the laws themselves say about a pair; None where they cannot be written down."""
    if not mechanism.base.law.integer:
        return known_evidence(claim, mechanism, pair)
    laws = listed(mechanism, pair)
    return None if laws is None else listed_evidence(claim, laws)


def _drawn(
    subject: Subject, test: _Test, listed: tuple[Evidence | None, int], alarms: FalseAlarms, clock: Clock, seed: int
) -> Finding:
    """Look for stronger evidence than that of listed laws by drawing, unless they refute the statement already."""
    (exact, looked), statement, notes = listed, test.claim.statement, test.notes
    if exact is not None and exact.margin > 0:
        return Finding(statement, exact, looked, 0, notes)
    try:
        found, tried, draws = sampled_evidence(subject, test.claim, test.pairs, test.view, alarms, clock, seeded(seed))
    except Refused as refusal:
        found, tried, draws = None, 0, 0
        notes += (f"no draws were made: {refusal}",)
    best = max((each for each in (exact, found) if each is not None), key=lambda each: each.margin, default=None)
    tried = max(tried, looked)
    return Finding(statement, best, tried, draws, (*notes, *led_words(test.pairs[:tried])))


def _large(subject: Subject) -> int:
    """A count far from every edge, for the noise of this mechanism where it is known."""
    base = getattr(subject.listed, "base", None)
    if base is None:
        return LARGE
    spread = np.sqrt(base.law.variances)
    return int(np.ceil(FAR * max(float(spread[np.isfinite(spread)].max(initial=1.0)), 1.0)))
