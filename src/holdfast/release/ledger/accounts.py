"""What releases about one dataset cost a record or a person together, and what a budget has left.

Every table is charged with all statements that hold for it, the one that its budget counts first. They are added by
the library's own rules (`privacy.compose`, THEORY §3): exact sums, rounded outwards once.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from holdfast.arguments import Refused, positive, probability, written_rational
from holdfast.privacy import Guarantee, compose, for_records, inward
from holdfast.privacy.composition import AMOUNTS_BEFOREHAND
from holdfast.privacy.guarantee import SCOPES
from holdfast.privacy.words import figure
from holdfast.queries import Neighbours

# --- Names that are easily taken for each other: one account of a ledger must not become two by how its name is typed
# In the manner of Unicode's skeletons (UTS 39): compatible characters are one, and so are capitals and small letters,
# runs of blanks, dashes, and letters of other alphabets that look like Latin ones. Two names that look alike need
# not be
# one: they are refused, never joined.

#: Letters that look like those of the second line: Cyrillic, Greek, Armenian and others.
_ALIKE = str.maketrans(
    "АВЕКМНОРСТУХЅІЈԚԜаеорсухѕіјһԁԛԝӏкмтΑΒΕΖΗΙΚΜΝΟΡΤΥΧαβεικνορτυχωհոսօցɑɡɩıƖℓ",
    "ABEKMHOPCTYXSIJQWaeopcyxsijhdqwlkmtABEZHIKMNOPTYXabeikvoptyxwhnuogagiill",
)
_STROKES = str.maketrans("i1|0", "lllo")
#: Characters that are not seen, besides controls and formats: joiners, fillers, selectors of variants.
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d") | {chr(0xFE00 + i) for i in range(16)}


def alike(one: str, other: str) -> bool:
    return not _looks(one).isdisjoint(_looks(other)) or _in_two_alphabets(_look(one), _look(other))


def _in_two_alphabets(one: str, other: str) -> bool:
    """Whether names differ in few characters, each time an English one and a foreign one: no list has all."""
    pairs = [(a, b) for a, b in zip(one, other, strict=False) if a != b]
    few = len(one) == len(other) and 2 * len(pairs) <= len(one)
    return few and all(a.isascii() != b.isascii() for a, b in pairs)


def _looks(name: str) -> set[str]:
    """What names that look like this one have in common: as it is written, and in small letters."""
    plain = unicodedata.normalize("NFKC", name)
    return {_look(plain.translate(_ALIKE)), _look(plain)}


def _look(name: str) -> str:
    small = unicodedata.normalize("NFKC", name.casefold()).translate(_ALIKE).translate(_STROKES)
    kinds = ((each, unicodedata.category(each)) for each in small if each not in _UNSEEN)
    shown = ("-" if kind == "Pd" else each for each, kind in kinds if each.isspace() or kind not in ("Cf", "Cc"))
    return " ".join("".join(shown).split())


# --- whom a release protects: single records, or persons of whom a bounded number of records is kept -----------------
# The ledger keeps one account per dataset and protected unit (`who`). How many records of a person a release keeps
# belongs to its charge: releases that keep 5 and 3 records of one person spend on the same person.

RECORD, COLUMN = "record", "column "
_TEXT = re.compile(rf"{COLUMN}(?P<column>.+?)(?:, at most (?P<number>[1-9][0-9]*) records?)?", re.DOTALL)


@dataclass(frozen=True)
class Unit:
    """A record, or a person: a value of a column of the records, of whom at most `max_records` records are kept."""

    column: str | None = None
    max_records: int | None = None

    @classmethod
    def read(cls, text: Any) -> Unit:
        """Read what `str` writes; the number of records may be left out, as in the name of an account."""
        if text == RECORD:
            return cls()
        found = _TEXT.fullmatch(text) if isinstance(text, str) else None
        if found is None or not found["column"].strip():
            raise Refused(f"unit must be {RECORD!r} or '{COLUMN}NAME', the column of the persons, found {text!r}")
        return cls(found["column"], None if found["number"] is None else int(found["number"]))

    @property
    def who(self) -> str:
        return RECORD if self.column is None else f"{COLUMN}{self.column}"

    @property
    def words(self) -> str:
        return RECORD if self.column is None else f"person ({COLUMN}{self.column})"

    def __str__(self) -> str:
        if self.max_records is None:
            return self.who
        return f"{self.who}, at most {self.max_records} record{'s' if self.max_records > 1 else ''}"


def about_persons(statement: Guarantee, kept: int) -> Guarantee:
    """Return a statement about records as one about persons of whom at most `kept` records are kept.

    *Guarantee:* p persons who come or go change at most p times `kept` of the kept records, whatever theirs are.
    """
    persons = statement.records // kept
    if persons == 0:
        raise Refused(f"a statement about {statement.records} records does not cover a person with {kept} of them")
    return replace(statement, neighbours=Neighbours(statement.neighbours.kind, records=persons))


def about_records(statement: Guarantee, kept: set[int]) -> Guarantee:
    """Return a sum of statements about persons as one about so many records as every release keeps of them."""
    persons, least = statement.records, min(kept)
    relation = Neighbours(statement.neighbours.kind, records=persons * least)
    if len(kept) == 1:
        return replace(statement, neighbours=relation)
    numbers = " or ".join(map(str, sorted(kept)))
    whom = "one person" if persons == 1 else f"{persons} persons"
    reason = f"{statement.because.rstrip('. ')}; it covers {whom}, of whom the releases keep at most {numbers} records"
    return replace(statement, neighbours=relation, because=reason, exact=False)


def about_their_records(statement: Guarantee) -> tuple[Guarantee, ...]:
    """Return a statement about kept records of persons as statements about single records, whoever has them.

    *Guarantee:* a record that comes or goes changes at most two kept ones: itself, and one of the same person that
    makes room for it or takes its place (docs/theory/composition.md). Nothing follows from persons who are replaced:
    one may have other records besides.
    """
    if not statement.neighbours.adds:
        return ()
    try:
        covered = for_records(statement, max(2, statement.records))
    except Refused:
        return ()
    two = "a record that comes or goes changes at most two kept ones (docs/theory/composition.md)"
    reason = f"{covered.because.rstrip('. ')}; {two}"
    several = covered.records // 2
    numbers = (several,) if covered.scope == "invariant-sharing" else dict.fromkeys((1, several))
    relations = (Neighbours(covered.neighbours.kind, records=number) for number in numbers)
    return tuple(replace(covered, neighbours=relation, because=reason, exact=False) for relation in relations)


def for_each_record(parts: Sequence[Sequence[Guarantee]]) -> tuple[tuple[Guarantee, ...], ...]:
    """Return what tables promise persons as what they promise single records; nothing where nothing follows."""
    return tuple(tuple(each for one in statements for each in about_their_records(one)) for statements in parts)


#: A sum may pass its budget by one part in 10^12: ten times 0.1 is then 1, which it is not in doubles. What is
#: reported as spent is the sum itself.
SLACK = Fraction(1, 10**12)
#: So small a part of a budget is told as nothing: rounding left it.
NOTHING = Fraction(1, 10**9)


class Overspent(Refused):
    """The budget has too little left for the release; nothing was charged or drawn."""

    code = "HF-BUDGET-SPENT"


class Incomparable(Refused):
    """What the budget has left cannot be said, since releases do not add up; nothing was charged or drawn."""

    code = "HF-BUDGET-INCOMPARABLE"


@dataclass(frozen=True)
class Budget:
    """What may be spent in all: epsilon alone, epsilon with delta, or rho alone."""

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None

    @classmethod
    def of(cls, epsilon: Any = None, delta: Any = None, rho: Any = None) -> Budget:
        """Read a budget from numbers of any kind, exactly."""
        if (epsilon is None) == (rho is None):
            raise Refused("a budget is epsilon, epsilon with delta, or rho: give exactly one of epsilon and rho")
        if rho is not None and delta is not None:
            raise Refused("delta goes with epsilon: give both, or rho alone")
        return cls(
            None if epsilon is None else positive("epsilon", epsilon),
            None if delta is None else probability("delta", delta),
            None if rho is None else positive("rho", rho),
        )

    @property
    def limit(self) -> Fraction:
        """The number that the sum must not pass: ε, or ρ."""
        limit = self.rho if self.epsilon is None else self.epsilon
        assert limit is not None
        return limit

    def together(self, parts: Iterable[Guarantee]) -> Guarantee:
        """Return what the parts promise together, stated in the terms of this budget; refused where impossible."""
        total = compose(parts, delta=self.delta)
        if self.rho is not None and total.rho is None:
            raise Refused("the budget is in rho and a release states none: set the budget as epsilon with delta")
        if self.delta is None and self.rho is None and not total.pure:
            raise Refused("the budget is epsilon alone and a release states a delta: set the budget with delta")
        return total

    def surely_admits(self, parts: Iterable[Guarantee]) -> bool:
        """Say whether the plain sums show already that the parts stay within the budget; no is no answer.

        The best sum at a δ takes a while for many parts, and a ledger is locked meanwhile.
        """
        plain = compose(parts)
        if self.delta is None or plain.void:
            return False
        stated = [plain] if plain.epsilon is not None and plain.delta <= self.delta else []
        if plain.rho is not None or plain.mu is not None:
            stated.append(replace(plain, losses=()).at_delta(self.delta))
        return any(self.admits(each) for each in stated)

    def amount(self, total: Guarantee) -> Fraction:
        amount = total.rho if self.epsilon is None else total.epsilon
        assert amount is not None
        return Fraction(amount)

    def admits(self, total: Guarantee) -> bool:
        return self.amount(total) <= self.limit * (1 + SLACK)

    def as_mapping(self) -> dict[str, str]:
        """Return the exact numbers as text, such as {"epsilon": "1/10"}."""
        return {name: str(value) for name, value in vars(self).items() if value is not None}

    @classmethod
    def from_mapping(cls, found: Mapping[Any, str]) -> Budget:
        return cls.of(**{name: written_rational(name, value) for name, value in found.items()})

    def __str__(self) -> str:
        if self.epsilon is None:
            return f"ρ = {_shown(self.limit)}"
        delta = "" if self.delta is None else f", δ = {_shown(self.delta)}"
        return f"ε = {_shown(self.epsilon)}{delta}"


@dataclass(frozen=True)
class Account:
    """What was spent on one dataset for one unit. `parts` has all statements of every table, the counted one first.

    Where the unit is a person, `kept` has for every part how many records of a person its release keeps at most: the
    parts are then added up person by person, whatever these numbers are. `times` says how often every part was charged;
    left out, once.
    """

    dataset: str
    unit: str
    budget: Budget | None
    parts: tuple[tuple[Guarantee, ...], ...]
    kept: tuple[int, ...] = ()
    times: tuple[int, ...] = ()

    @cached_property
    def _sums(self) -> tuple[tuple[Guarantee, ...], str | None]:
        found: dict[str, Guarantee] = {}
        tried: list[Counter[Guarantee]] = []
        trouble = None
        for scope in (None, *SCOPES):
            try:
                parts = self._alike(scope)
                if parts is None or parts in tried:
                    continue
                tried.append(parts)
                total = compose(parts) if self.budget is None else self.budget.together(parts)
            except Refused as refusal:
                trouble = trouble or str(refusal)
            else:
                found.setdefault(total.scope, about_records(total, set(self.kept)) if self.kept else total)
        return tuple(found.values()), trouble

    @property
    def spent(self) -> tuple[Guarantee, ...]:
        """What all tables promise together: the sum of what their budgets count, then one statement per other scope."""
        return self._sums[0]

    @property
    def trouble(self) -> str | None:
        """Why the releases cannot be added up, where nothing can be said about all of them."""
        if self.spent or not self.parts:
            return None
        return self._sums[1] or "some release has no statement that can be added to the others"

    @property
    def remaining(self) -> float | None:
        """What is left of ε (at the budget's δ) or ρ, rounded down; None without a budget.

        A release may cost this much for certain; noise that adds up better than its ε says may cost more.
        """
        if self.budget is None:
            return None
        if not self.parts:
            return inward(self.budget.limit)
        if not self.spent:
            return 0.0
        return max(0.0, inward(self.budget.limit - self.budget.amount(self.spent[0])))

    @property
    def allowed(self) -> dict[str, float] | None:
        """The budget as numbers; None without one."""
        if self.budget is None:
            return None
        return {name: float(Fraction(text)) for name, text in self.budget.as_mapping().items()}

    @property
    def left(self) -> dict[str, float] | None:
        """What is left in the budget's own terms, such as {"epsilon": 0.5}; None without a budget."""
        if self.budget is None or self.remaining is None:
            return None
        if self.budget.epsilon is None:
            return {"rho": self.remaining}
        delta = {} if self.budget.delta is None else {"delta": float(self.budget.delta)}
        return {"epsilon": self.remaining, **delta}

    @property
    def amount(self) -> str:
        """How much was spent, in the terms of the budget where there is one."""
        return "an amount that cannot be added up" if self.trouble else _amount(self.spent, self.budget)

    @property
    def words(self) -> str:
        """What was spent so far and what is left, in one sentence."""
        whom = Unit.read(self.unit).words
        if self.trouble is not None:
            return f"What was spent on this dataset per {whom} cannot be added up: {self.trouble}."
        spent = f"On this dataset {self.amount} was spent so far per {whom}"
        if self.budget is None:
            return f"{spent}; no budget is set for it."
        left = f"{self.rest} is left"
        assumed = "".join(f" {words[0].upper()}{words[1:]}." for words in self.assumed)
        return f"{spent}; its budget is {self.budget}, of which {left}.{assumed}"

    @property
    def rest(self) -> str:
        """What is left of the budget, as ε or ρ, rounded down."""
        name = "ρ" if self.budget is None or self.budget.epsilon is None else "ε"
        left = Fraction(self.remaining or 0.0)
        none = self.budget is not None and left <= NOTHING * self.budget.limit
        return f"{name} = {_shown(Fraction(0) if none else left)}"

    @property
    def assumed(self) -> tuple[str, ...]:
        """What the sum takes for granted about how releases were chosen, where a budget at a δ rests on it."""
        if self.budget is None or self.budget.delta is None or not self.spent:
            return ()
        return tuple(words for words in self.spent[0].caveats if words == AMOUNTS_BEFOREHAND)

    def refusal(
        self, parts: Sequence[Sequence[Guarantee]], max_records: int | None = None
    ) -> Overspent | Incomparable | None:
        """Return what refuses one more release, given by its tables, or None if the budget admits it.

        `max_records` is how many records of a person the release keeps, where the unit is a person.
        """
        if self.budget is None:
            return None
        one = self.of(parts, max_records)
        after = self.joined(one)
        if after._surely_admitted():
            return None
        where = f"the budget of {self.dataset!r} per {Unit.read(self.unit).words}"
        if not after.spent:
            return Incomparable(f"{where} cannot be checked: {after.trouble}{self._remedy(one)}")
        if self.budget.admits(after.spent[0]):
            return None
        name = "ρ" if self.budget.epsilon is None else "ε"
        remedy = "ask for less, or raise the budget, in the ledger (holdfast ledger budget) and in the spec"
        if one.spent and self.budget.amount(one.spent[0]) > Fraction(self.remaining or 0.0):
            cost = self.budget.amount(one.spent[0])
            return Overspent(
                f"{where} is {self.budget} and {self.rest} is left, but the release costs {name} = "
                f"{_shown(cost)}: {remedy}"
            )
        together = after.spent[0]
        return Overspent(
            f"{where} is {self.budget}, but with what was spent before the release comes to {name} = "
            f"{_shown(self.budget.amount(together))}, where {together.neighbours}: {remedy}"
        )

    def _remedy(self, one: Account) -> str:
        """Say which statement of a release could be added to those before it, where these have another relation."""
        try:
            before, now = ({part.neighbours for part in each._stated(None)} for each in (self, one))
        except Refused:
            return ""
        if len({each.kind for each in before}) != 1 or before == now:
            return ""
        relation = max(before, key=lambda each: each.records)
        asked = f"privacy: {{neighbours: {relation.kind}, records: {relation.records}}}"
        without = ", or release it without exact figures" if relation.kind in {each.kind for each in now} else ""
        return f"; ask for what the releases before it state, {asked}{without}"

    def of(self, parts: Sequence[Sequence[Guarantee]], max_records: int | None) -> Account:
        """Return the account with nothing on it but one release, given by its tables."""
        kept = () if max_records is None else (max_records,) * len(parts)
        return replace(self, parts=tuple(map(tuple, parts)), kept=kept, times=())

    def joined(self, other: Account) -> Account:
        """Return the account with what another one has besides."""
        times = self._times + other._times
        return replace(self, parts=self.parts + other.parts, kept=self.kept + other.kept, times=times)

    def _surely_admitted(self) -> bool:
        """Say whether plain sums show that the budget admits everything that is counted."""
        try:
            parts = self._alike(None)
            return parts is not None and self.budget is not None and self.budget.surely_admits(parts)
        except Refused:
            return False

    @property
    def _times(self) -> tuple[int, ...]:
        return self.times or (1,) * len(self.parts)

    def _alike(self, scope: str | None) -> Counter[Guarantee] | None:
        """Return a statement of every table and how often it counts, for one relation: the first, or those for a scope.

        None where a table has no such statement.
        """
        parts = _same_relation(self._stated(scope))
        if not parts or len(parts) < len(self.parts):
            return None
        relation = max((part.neighbours for part in parts), key=lambda each: each.records)
        counts: Counter[Guarantee] = Counter()
        for place, (part, times) in enumerate(zip(parts, self._times, strict=True)):
            about = None if part.neighbours == relation else self._about(place, relation)
            counts[about or part] += times
        return counts

    def _stated(self, scope: str | None) -> list[Guarantee]:
        """The first statement of every table that has one, or the one for a scope, about the unit."""
        chosen = [_statement(statements, scope) for statements in self.parts]
        return [
            about_persons(statement, self.kept[place]) if self.kept else statement
            for place, statement in enumerate(chosen)
            if statement is not None
        ]

    def _about(self, place: int, relation: Neighbours) -> Guarantee | None:
        """What a table states about more of the unit than its first statement: at least so many."""
        kept = self.kept[place] if self.kept else 1
        wider = (
            replace(each, neighbours=relation)
            for each in self.parts[place]
            if not each.void and each.neighbours.kind == relation.kind and each.records >= kept * relation.records
        )
        return min(wider, key=lambda each: each.rank, default=None)


def _statement(statements: Sequence[Guarantee], scope: str | None) -> Guarantee | None:
    """Return a table's first statement, or the one for a scope: of this scope, or else of the next wider one."""
    usable = [each for each in statements if not each.void]
    if scope is None:
        return usable[0] if usable else None
    reach = SCOPES.index(scope)
    covering = [each for each in usable if SCOPES.index(each.scope) <= reach]
    return min(covering, key=lambda each: (reach - SCOPES.index(each.scope), each.rank), default=None)


def _same_relation(parts: Sequence[Guarantee]) -> list[Guarantee]:
    """Return the parts for one relation of neighbours: where they differ, all for replaced records.

    *Guarantee:* a replaced record is one that is removed and one that is added, so a statement about 2k records
    that come and go covers k that are replaced.
    """
    if len({part.neighbours.kind for part in parts}) == 1:
        return list(parts)
    return [_for_replaced(part) if part.neighbours.adds else part for part in parts]


def _for_replaced(part: Guarantee) -> Guarantee:
    doubled = for_records(part, 2 * part.records)
    reason = f"{doubled.because.rstrip('. ')}; a replaced record is one removed and one added"
    return replace(doubled, neighbours=Neighbours("replace-one", records=part.records), because=reason)


def _amount(spent: Sequence[Guarantee], budget: Budget | None) -> str:
    """Write how much the first statement allows, in the terms of the budget."""
    if not spent:
        return "nothing"
    numbers = {"ε": spent[0].epsilon, "δ": spent[0].delta or None, "ρ": spent[0].rho}
    if budget is not None:
        numbers = {name: numbers[name] for name in (("ρ",) if budget.epsilon is None else ("ε", "δ"))}
    return ", ".join(f"{name} = {figure(value)}" for name, value in numbers.items() if value is not None)


def _shown(value: Fraction) -> str:
    return f"{float(value):.6g}"
