"""Charges of a ledger as events of dp_accounting, and such events as charges; both ways as JSON, library or not.

An event says what a statement says and nothing more: μ is Gaussian noise of multiplier 1/μ, ρ zero-concentrated loss,
(ε, δ) itself, for which dp_accounting 0.6 has no event: in a file it is `EpsilonDeltaDpEvent`. Where a record is
replaced, dp_accounting's accountants disagree on what a noise multiplier means (one takes half of it, the other not):
there μ goes out as ρ = μ²/2, and a multiplier comes in as the half.

Numbers are rounded so that an event never promises more than the statement, nor a statement more than its event. What
dp_accounting cannot say, exact figures and the scope of a statement, stands beside the events.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.arguments import Refused, one_of, shown
from holdfast.privacy import Guarantee
from holdfast.queries import Neighbours
from holdfast.release.ledger.ledger import Ledger, now

FORMAT = "holdfast-dp-events-1"
IMPORTED = "read from events of dp_accounting; what they claim was not checked"
#: What dp_accounting's relations are called here.
RELATIONS = {"add-remove": "ADD_OR_REMOVE_ONE", "replace-one": "REPLACE_ONE"}


def event_of(statements: Sequence[Guarantee]) -> dict[str, Any]:
    """The event of one table: by μ where that is stated, else by ρ, else by ε and δ."""
    for each in statements:
        if each.mu is not None and each.scope == statements[0].scope and each.mu > 0:
            if each.neighbours.kind != "add-remove":
                return {"type": "ZCDpEvent", "rho": math.nextafter(each.mu**2 / 2, math.inf), "xi": 0.0}
            return {"type": "GaussianDpEvent", "noise_multiplier": math.nextafter(1 / each.mu, 0)}
    for each in statements:
        if each.rho is not None and each.orders == "all" and each.scope == statements[0].scope:
            return {"type": "ZCDpEvent", "rho": each.rho, "xi": 0.0}
    first = statements[0]
    if first.epsilon is None:
        raise Refused("a charge states μ or ρ at whole orders only, which no event says: give it an ε and a δ")
    if first.void:
        return {"type": "NonPrivateDpEvent"}
    return {"type": "EpsilonDeltaDpEvent", "epsilon": first.epsilon, "delta": first.delta}


def exported(ledger: Ledger, dataset: str, unit: str = "record") -> str:
    """Every charge on a dataset as one composed event, in JSON."""
    entries = ledger.entries(dataset, unit)
    if not entries:
        raise Refused(f"the ledger has no charge on {dataset!r} per {unit}: there is nothing to export")
    parts = [part for entry in entries for part in entry.parts]
    relations = {(part[0].neighbours.kind, part[0].records) for part in parts}
    if len(relations) > 1:
        told = " and ".join(f"{kind} of {records}" for kind, records in sorted(relations))
        raise Refused(f"charges on {dataset!r} are about different neighbours, {told}: events cannot be composed")
    ((kind, records),) = relations
    narrow = sorted({part[0].scope for part in parts} - {"all"})
    found = {
        "format": FORMAT,
        "dataset": dataset,
        "unit": unit,
        "neighbours": kind,
        "records": records,
        "relation": RELATIONS[kind],
        "limits": [
            f"a statement of scope {scope} is about less than all neighbours or all of the output" for scope in narrow
        ],
        "event": {"type": "ComposedDpEvent", "events": [event_of(part) for part in parts]},
        "releases": [{"when": entry.when, "title": entry.title, "release": entry.release} for entry in entries],
    }
    return json.dumps(found, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def guarantees_of(event: Mapping[str, Any], neighbours: Neighbours) -> list[Guarantee]:
    """What an event claims, one statement for each that it composes."""
    kind = event.get("type")
    times = 1 if neighbours.kind == "add-remove" else 2  # by the accountant that says more

    def claim(**numbers: Any) -> list[Guarantee]:
        because = f"{kind} of dp_accounting"
        return [Guarantee(neighbours=neighbours, because=because, caveats=(IMPORTED,), status="estimated", **numbers)]

    match kind:
        case "NoOpDpEvent":
            return []
        case "ComposedDpEvent":
            return [each for part in event["events"] for each in guarantees_of(part, neighbours)]
        case "SelfComposedDpEvent":
            return guarantees_of(event["event"], neighbours) * int(event["count"])
        case "GaussianDpEvent":
            return claim(mu=math.nextafter(times / _above(event, "noise_multiplier"), math.inf))
        case "LaplaceDpEvent":
            return claim(epsilon=math.nextafter(times / _above(event, "noise_multiplier"), math.inf))
        case "ZCDpEvent" if not event.get("xi"):
            return claim(rho=_above(event, "rho"))
        case "EpsilonDeltaDpEvent":
            return claim(epsilon=_above(event, "epsilon"), delta=float(event.get("delta") or 0.0))
    raise Refused(
        f"an event of type {kind!r} cannot be charged: give the (ε, δ) that its own accountant states for it, as "
        "EpsilonDeltaDpEvent"
    )


def _above(event: Mapping[str, Any], name: str) -> float:
    value = event.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise Refused(f"{name} of {event.get('type')} must be a number above 0, found {shown(value)}")
    return float(value)


def imported(path: Path, ledger: Ledger, dataset: str, unit: str, title: str) -> list[Guarantee]:
    """Charge a ledger with the events of a file; return what was charged."""
    try:
        content = path.read_bytes()
        found = json.loads(content)
    except OSError as error:
        raise Refused(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except ValueError:
        raise Refused(f"{str(path)!r} is not JSON") from None
    if not isinstance(found, Mapping) or found.get("format") != FORMAT or not isinstance(found.get("event"), Mapping):
        raise Refused(f"{str(path)!r} is no file of events of the form {FORMAT}")
    kind = one_of("neighbours of the events", found.get("neighbours"), RELATIONS)
    claims = guarantees_of(found["event"], Neighbours(kind, records=int(found.get("records", 1))))
    if not claims:
        raise Refused(f"{str(path)!r} holds no event that costs anything")
    mark = hashlib.sha256(content).hexdigest()
    ledger.charge(
        dataset,
        unit,
        [[claim] for claim in claims],
        release=f"events-{mark[:12]}",
        title=title,
        spec_hash=f"sha256:{mark}",
        when=now(),
    )
    return claims


def as_dp_event(event: Mapping[str, Any]) -> Any:
    """The event as an object of dp_accounting, which must be installed."""
    try:
        from dp_accounting import dp_event
    except ImportError:
        raise Refused("dp_accounting is not installed: pip install dp-accounting") from None
    fields = {name: value for name, value in event.items() if name != "type"}
    if event["type"] == "EpsilonDeltaDpEvent":
        if fields["delta"]:
            raise Refused("dp_accounting has no event for ε with δ: compose it with the ledger, or state ρ")
        # Every ε-private mechanism is a function of a randomised response (Kairouz, Oh, Viswanath 2015).
        chance = math.nextafter(2 / (1 + math.exp(fields["epsilon"])), 0)
        return dp_event.RandomizedResponseDpEvent(noise_parameter=chance, num_buckets=2)
    if "events" in fields:
        fields["events"] = [as_dp_event(each) for each in fields["events"]]
    if "event" in fields:
        fields["event"] = as_dp_event(fields["event"])
    return getattr(dp_event, str(event["type"]))(**fields)
