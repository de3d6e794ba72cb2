"""A guarantee: one privacy statement, with its numbers, its reach, its reason and its limits.

All numbers of one guarantee hold at the same time: (epsilon, delta), rho (concentrated privacy) and mu
(Gaussian privacy) are three ways to say how strongly the same changes in the data are hidden.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeVar

from holdfast.arguments import Number, Refused, listed, one_of, probability, shown, whole
from holdfast.privacy.losses.conversion import ORDERS, rho_to_delta, rho_to_epsilon
from holdfast.privacy.losses.gaussian import gaussian_delta, gaussian_epsilon, not_negative
from holdfast.privacy.losses.integer_gaussian import (
    Losses,
    checked_losses,
    losses_delta,
    losses_epsilon,
    losses_from_plain,
)
from holdfast.privacy.rounding import inward, outward
from holdfast.privacy.words import Learnable, Persons, describe
from holdfast.queries.neighbours import Neighbours

__all__ = ["SCHEMA", "SCOPES", "STATUSES", "Counted", "Guarantee", "best_first", "outward"]

Named = TypeVar("Named", Persons, Learnable)
#: Version of the JSON form.
SCHEMA = "holdfast-guarantee-1"
#: Best first: all neighbours; all, but only outside the invariants; only those that share them.
SCOPES = ("all", "subspace", "invariant-sharing")
#: Best first.
STATUSES = ("proved", "estimated")
#: The theorem behind δ(ε) by the loss law of integer Gaussian noise.
LOSS_LAW = "its loss law (Canonne–Kamath–Steinke 2020, Theorem 7)"
#: How JSON, which has no infinity, writes the ε of a void statement.
INFINITY = "infinity"
#: What a void statement says.
VOID: dict[str, Any] = {"epsilon": math.inf, "delta": 0.0, "numerical_delta": 0.0, "rho": None, "mu": None} | {
    "orders": "all",
    "losses": (),
    "exact": False,
}


def _number(name: str, value: Any, infinite: bool = False) -> float:
    """Return a privacy parameter as a double, rounded up when the given number is not one."""
    if infinite and isinstance(value, (int, float)) and not isinstance(value, bool) and value == math.inf:
        return math.inf
    return outward(not_negative(name, value))


def _sentences(name: str, values: Any) -> tuple[str, ...]:
    result = tuple(listed(name, values, "a sequence of sentences"))
    for value in result:
        if not isinstance(value, str) or not value.strip():
            raise Refused(f"{name} must hold sentences, found an entry of type {type(value).__name__}")
    # Repetition tells the reader nothing new.
    return tuple(dict.fromkeys(result))


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """A privacy statement about one mechanism or one composition.

    Args:
        epsilon: the output's law changes by at most a factor e^epsilon, except for probability delta, between
            neighbouring data; inf is a *void* statement.
        delta: includes `numerical_delta`.
        rho: D_α ≤ α·rho at the orders named by `orders`.
        mu: no easier to tell apart than N(0, 1) from N(mu, 1).
        orders: "all" α > 1, or "integer" α ≥ 2 only (THEORY H6).
        neighbours: which changes in the data are hidden, and of how many records (`records`).
        scope: "all" neighbours; "subspace": all neighbours, for the part of the output orthogonal to the exact
            figures (SDP Def 5); "invariant-sharing": only neighbours that agree on every exact figure.
        status: "proved", or "estimated" where some part rests on an estimate.
        because: one sentence that names the theorem.
        unprotected: what is published exactly or not protected.
        numerical_delta: the part of delta that pays for numerical error.
        caveats: what else a reader must know.
        assumes: what is taken to hold for every possible dataset, beyond what the query itself makes true.
        exact: the value is attained, not only an upper bound.
        losses: where it is known that the output is a function of integer Gaussian noise added to the answers, the
            kinds of difference that decide: tuples of (|d_i|, σ_i², number of such outputs). δ(ε) then follows from
            their laws.
        unit: where persons are protected, the column that names them and how many records of each are kept.
        columns: whether somebody can learn a column of the records, where a release knows its columns.

    Example:
        >>> import holdfast as hf
        >>> statement = hf.laplace(hf.histogram(3), epsilon=1).guarantee
        >>> statement.epsilon, statement.scope, statement.status, statement.exact
        (1.0, 'all', 'proved', True)
    """

    epsilon: float | None = None
    delta: float = 0.0
    rho: float | None = None
    neighbours: Neighbours
    scope: str = "all"
    status: str = "proved"
    because: str
    unprotected: tuple[str, ...] = ()
    numerical_delta: float = 0.0
    caveats: tuple[str, ...] = ()
    exact: bool = False
    mu: float | None = None
    orders: str = "all"
    losses: Losses = ()
    assumes: tuple[str, ...] = ()
    unit: Persons | None = None
    columns: tuple[Learnable, ...] = ()

    def __post_init__(self) -> None:
        def store(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        if self.epsilon is None and self.rho is None and self.mu is None:
            raise Refused("a guarantee must state epsilon, rho or mu, found none of them")
        if self.epsilon is not None:
            store("epsilon", _number("epsilon", self.epsilon, infinite=True))
        if self.rho is not None:
            store("rho", _number("rho", self.rho))
        if self.mu is not None:
            store("mu", _number("mu", self.mu))
        store("delta", _number("delta", self.delta))
        store("numerical_delta", _number("numerical_delta", self.numerical_delta))
        if self.delta > 1:
            raise Refused(f"delta must be at most 1, found {self.delta!r}")
        if self.numerical_delta > self.delta:
            raise Refused(
                f"numerical_delta is a part of delta and must be at most {self.delta!r}, found {self.numerical_delta!r}"
            )
        if self.epsilon is None and self.delta != 0:
            raise Refused(f"delta needs an epsilon beside it, found delta {self.delta!r} alone")
        if self.epsilon == math.inf and (self.rho is not None or self.mu is not None):
            raise Refused("a void guarantee (epsilon infinite) must not state rho or mu")
        store("neighbours", Neighbours.of(self.neighbours))
        one_of("scope", self.scope, SCOPES)
        one_of("status", self.status, STATUSES)
        one_of("orders", self.orders, ORDERS)
        if self.orders == "integer" and self.rho is None:
            raise Refused("orders 'integer' describes rho, but no rho is stated")
        _sentences("because", (self.because,))
        one_of("exact", self.exact, (True, False))
        store("unprotected", _sentences("unprotected", self.unprotected))
        store("caveats", _sentences("caveats", self.caveats))
        store("losses", checked_losses(self.losses))
        if self.losses and self.rho is None:
            raise Refused("losses belong to a rho, but no rho is stated")
        store("assumes", _sentences("assumes", self.assumes))

    @property
    def records(self) -> int:
        """How many records may change together."""
        return int(self.neighbours.records)

    @property
    def void(self) -> bool:
        """Whether nothing is promised."""
        return self.epsilon == math.inf

    @property
    def pure(self) -> bool:
        """Whether a finite epsilon is stated with delta 0."""
        return self.epsilon is not None and self.delta == 0 and not self.void

    @property
    def rank(self) -> tuple[Any, ...]:
        """A key that sorts the statements about one mechanism best first, void ones last."""
        return (
            self.void,
            STATUSES.index(self.status),
            SCOPES.index(self.scope),
            self.epsilon is None,
            math.inf if self.epsilon is None else self.epsilon,
            self.delta,
            math.inf if self.rho is None else self.rho,
            math.inf if self.mu is None else self.mu,
            self.records,
        )

    def at_delta(self, delta: Number) -> Guarantee:
        """Return the same statement with its smallest proved ε at this δ, `delta`.

        *Guarantee:* μ by Balle and Wang 2018, ρ by Canonne, Kamath and Steinke 2020 (at whole orders when only these
        are proved), `losses` by the loss law (the same paper), a stated (ε, δ₀) with δ₀ ≤ δ by definition.
        """
        limit = inward(probability("delta", delta))
        choices: list[tuple[float, float, str]] = []
        if self.epsilon is not None and self.delta <= limit:
            choices.append((self.epsilon, self.delta, ""))
        if self.mu is not None:
            choices.append((gaussian_epsilon(self.mu, limit), limit, "Balle–Wang 2018"))
        if self.rho is not None:
            choices.append((rho_to_epsilon(self.rho, limit, self.orders), limit, _conversion(self.orders)))
        if self.losses:
            choices.append((losses_epsilon(self.losses, limit), limit, LOSS_LAW))
        if not choices:
            raise Refused(f"delta must be at least {self.delta!r}, the delta of this statement, found {shown(delta)}")
        return _converted(self, min(choices))

    def at_epsilon(self, epsilon: Number) -> Guarantee:
        """Return the same statement with its smallest proved δ at this ε, `epsilon` (theorems as in `at_delta`)."""
        wanted = inward(not_negative("epsilon", epsilon))
        choices: list[tuple[float, float, str]] = []
        if self.epsilon is not None and self.epsilon <= wanted:
            choices.append((self.delta, self.epsilon, ""))
        if self.mu is not None:
            choices.append((gaussian_delta(self.mu, wanted), wanted, "Balle–Wang 2018"))
        if self.rho is not None:
            choices.append((rho_to_delta(self.rho, wanted, self.orders), wanted, _conversion(self.orders)))
        if self.losses:
            choices.append((losses_delta(self.losses, wanted), wanted, LOSS_LAW))
        if not choices:
            raise Refused(f"epsilon must be at least {self.epsilon!r}, that of this statement, found {shown(epsilon)}")
        small, reached, theorem = min(choices)
        return _converted(self, (reached, small, theorem))

    def __str__(self) -> str:
        return describe(self)

    def _repr_html_(self) -> str:
        from holdfast.privacy.odds import card_of  # only notebooks need it

        return card_of(self)

    def as_mapping(self) -> dict[str, Any]:
        """Return the statement as plain values that JSON can hold."""
        result: dict[str, Any] = {"schema": SCHEMA}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "neighbours":
                value = {"kind": value.kind, "records": value.records}
            elif field.name in ("losses", "unit", "columns") and not value:
                continue  # written only where it says something
            elif field.name == "unit":
                value = asdict(value)
            elif field.name == "columns":
                value = [asdict(row) for row in value]
            elif field.name == "losses":
                value = [[[size, str(sigma2), count] for size, sigma2, count in kind] for kind in value]
            elif isinstance(value, tuple):
                value = list(value)
            elif value == math.inf:
                value = INFINITY
            result[field.name] = value
        return result

    def to_json(self) -> str:
        """Return the statement as JSON text; `from_json` gives the same statement back, to the last bit."""
        return json.dumps(self.as_mapping(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes | Mapping[str, Any]) -> Guarantee:
        """Read a statement from JSON text or its mapping; unknown or missing keys are refused."""
        if not isinstance(text, (str, bytes, Mapping)):
            raise Refused(f"a guarantee must be JSON text or a mapping, found {type(text).__name__}")
        try:
            found = json.loads(text) if isinstance(text, (str, bytes)) else dict(text)
        except json.JSONDecodeError as error:
            raise Refused(f"a guarantee must be JSON text, but reading failed at character {error.pos}") from None
        if not isinstance(found, dict) or found.get("schema") != SCHEMA:
            raise Refused(f"a guarantee must be a JSON object with schema {SCHEMA!r}")
        found.pop("schema")
        names = {field.name for field in fields(cls)}
        for name in sorted(found.keys() - names):
            raise Refused(f"a guarantee has no key {name!r}")
        for name in sorted(names - found.keys() - {"losses", "unit", "columns"}):
            raise Refused(f"a guarantee needs the key {name!r}, which is missing")
        relation = found["neighbours"]
        if not isinstance(relation, dict) or relation.keys() != {"kind", "records"}:
            raise Refused("neighbours must be an object with the keys 'kind' and 'records'")
        found["neighbours"] = Neighbours(relation["kind"], records=whole("records", relation["records"], at_least=1))
        if found["epsilon"] == INFINITY:
            found["epsilon"] = math.inf
        found["losses"] = losses_from_plain(found.get("losses", ()))
        if found.get("unit") is not None:
            found["unit"] = _from_plain(Persons, found["unit"], (str, int))
        found["columns"] = tuple(_from_plain(Learnable, row, (str, bool, str)) for row in found.get("columns", ()))
        return cls(**found)


def _converted(statement: Guarantee, choice: tuple[float, float, str]) -> Guarantee:
    """A statement with the ε and δ that a theorem gives."""
    epsilon, delta, theorem = choice
    if math.isinf(epsilon):
        return replace(statement, **VOID)
    if not theorem:
        return replace(statement, epsilon=epsilon, delta=delta)
    return replace(
        statement,
        epsilon=epsilon,
        delta=delta,
        # Only the conversion from μ is tight; the numbers themselves are then attained too.
        exact=statement.exact and theorem.startswith("Balle"),
        because=f"{statement.because.rstrip('. ')}; converted to (ε, δ) by {theorem}",
    )


def _from_plain(kind: Callable[..., Named], plain: Any, types: tuple[type, ...]) -> Named:
    """Read a small value that `asdict` wrote."""
    names = tuple(field.name for field in fields(kind))  # type: ignore[arg-type]
    if not isinstance(plain, dict) or tuple(sorted(plain)) != tuple(sorted(names)):
        raise Refused(f"a guarantee needs objects with the keys {', '.join(names)} here")
    if any(type(plain[name]) is not known for name, known in zip(names, types, strict=True)):
        raise Refused(f"a guarantee has a value of the wrong type among {', '.join(names)}")
    return kind(**plain)


def _conversion(orders: str) -> str:
    whole_orders = " at whole orders" if orders == "integer" else ""
    return f"the conversion of Canonne–Kamath–Steinke 2020{whole_orders}"


#: Different statements, each with how often it is made.
Counted = Sequence[tuple[Guarantee, int]]


def best_first(guarantees: Iterable[Guarantee]) -> tuple[Guarantee, ...]:
    """Return the statements about one mechanism in order of preference, void ones last."""
    return tuple(sorted(guarantees, key=lambda guarantee: guarantee.rank))


@dataclass(frozen=True)
class Promise:
    """All statements about one mechanism, best first; void ones last.

    `refusal` says why nothing can be promised; it is empty when some statement holds. `is_base` marks the promise of
    independent noise that was neither conditioned nor moved.
    """

    statements: tuple[Guarantee, ...]
    refusal: str = ""
    is_base: bool = False

    @classmethod
    def of(cls, statements: Iterable[Guarantee], refusal: str = "") -> Promise:
        """Sort the statements; the refusal is kept only when all of them are void or there are none."""
        ordered = tuple(sorted(statements, key=lambda statement: statement.rank))
        holds = any(not statement.void for statement in ordered)
        return cls(ordered, "" if holds else refusal)

    @property
    def best(self) -> Guarantee:
        """The first statement; refused where none holds."""
        if self.refusal:
            raise Refused(self.refusal)
        return self.statements[0]

    def assuming(self, sentences: tuple[str, ...]) -> Promise:
        """The same statements, each with what it assumes of every possible dataset."""
        if not sentences:
            return self
        return replace(self, statements=tuple(replace(each, assumes=sentences) for each in self.statements))
