"""A draft: the spec of a file with what was moved on the page, as the text of a spec that keeps its comments."""

from __future__ import annotations

import copy
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import AliasEvent

from holdfast.arguments import Refused
from holdfast.page.planning import nested
from holdfast.release.spec.places import Places, parsed, read_yaml
from holdfast.release.spec.rules import WORDS
from holdfast.release.spec.spec import BESIDE, Spec, checked
from holdfast.release.spec.table import BEST, METHODS

#: What a budget can be: which numbers it has.
KINDS = {"epsilon": ("epsilon",), "epsilon-delta": ("epsilon", "delta"), "rho": ("rho",)}
#: Shares that stay as the file has them.
FILE = "file"
#: The longest text of a rule or a number, and how many tables, rules and levels the page sends at most.
LONGEST, MOST = 2_000, 200
#: How deep a rule is at most: sides of lists of sums of weighted cells.
DEEPEST = 12


@dataclass(frozen=True)
class Base:
    """A spec as it stands in its file: as plain values, and with its comments."""

    path: Path
    content: Mapping[str, Any]
    document: CommentedMap

    @classmethod
    def read(cls, path: Path) -> Base:
        """Read a file; refused where it is not a spec."""
        content, places = read_yaml(path.absolute())
        spec = checked(content, places)
        if any(table.added for table in spec.tables):
            raise spec.at.refuse("the planner shows tables of counts alone: holdfast plan shows sums and means too")
        return cls(path.absolute(), content, _writer().load(path.read_text(encoding="utf-8")))

    @property
    def tables(self) -> list[Mapping[str, Any]]:
        """Every table as it is written, with what stands beside the only one."""
        if "tables" in self.content:
            return list(self.content["tables"])
        beside = {key: self.content[key] for key in BESIDE if key in self.content}
        return [{**self.content["table"], **beside}]

    @property
    def fields(self) -> dict[str, Any]:
        """What the page shows at first: the budget, and the moving parts of every table."""
        privacy = self.content["privacy"]
        kind = "rho" if "rho" in privacy else "epsilon-delta" if "delta" in privacy else "epsilon"
        budget = {name: _shown(privacy.get(name)) for name in ("epsilon", "delta", "rho")}
        return {"budget": {"kind": kind, **budget}, "tables": [_fields_of(table) for table in self.tables]}


@dataclass(frozen=True)
class Draft:
    """A changed spec: its text and what it says."""

    text: str
    spec: Spec


def draft(base: Base, fields: Any) -> Draft:
    """Apply what was moved on the page; refused, with the sentence of the library, where that makes no spec."""
    writer, content = _writer(), copy.deepcopy(base.document)
    moved = _mapping(fields, "the page")
    _move_budget(content["privacy"], _mapping(moved.get("budget"), "budget"))
    tables, written = _list(moved.get("tables"), "tables"), base.tables
    if len(tables) != len(written):
        raise Refused(f"the spec has {len(written)} tables, and the page sent {len(tables)}: reload it")
    for i, (table, before) in enumerate(zip(tables, written, strict=True)):
        inner = content["table"] if "table" in content else content["tables"][i]
        outer = content if "table" in content else inner
        _move_table(inner, outer, before, _mapping(table, "a table"))
    out = io.StringIO()
    writer.dump(content, out)
    plain, places = parsed(out.getvalue(), Places(base.path))
    return Draft(out.getvalue(), checked(plain, places))


def _fields_of(table: Mapping[str, Any]) -> dict[str, Any]:
    hold = _as_list(table.get("hold"))
    exact = [one for rule in hold if _is_exact(rule) for one in _as_list(rule["exact"])]
    others = [rule for rule in hold if rule not in WORDS and not _is_exact(rule)]
    others += [{"exact": [one]} for one in exact if not isinstance(one, (str, int))]
    shares, guess = table.get("shares"), table.get("guess")
    return {
        "method": table.get("method", "auto"),
        "shares": _shares_of(shares, "hierarchy" in table and "cube" in table),
        "guess": "" if guess is None else _shown(guess),
        "words": [word for word in WORDS if word in hold],
        "exact": [str(one) for one in exact if isinstance(one, (str, int))],
        "others": [_one_line(rule) for rule in others],
    }


def _shares_of(shares: Any, areas: bool) -> Any:
    """Shares as the page has them: None, best, one for each level, or as in the file where levels have margins."""
    if not isinstance(shares, Mapping):
        return shares
    if areas:
        return FILE
    return {str(level): _shown(share) for level, share in shares.items()}


def _move_shares(inner: CommentedMap, shares: Any) -> None:
    """Write other shares; what goes with the best ones alone goes with them."""
    inner.pop("shares", None)
    if shares == BEST:
        inner["shares"] = BEST
        return
    for name in ("weights", "minimise"):
        inner.pop(name, None)
    if shares is not None:
        each = {_text(name): _number("a share", share) for name, share in _mapping(shares, "shares").items()}
        written = nested(each, "hierarchy" in inner and "cube" in inner)
        inner["shares"] = _flow(CommentedMap(written))


def _move_budget(privacy: CommentedMap, budget: Mapping[str, Any]) -> None:
    kind = budget.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise Refused(f"the budget must be one of {', '.join(KINDS)}, found {str(kind)[:60]!r}")
    for name in ("epsilon", "delta", "rho"):
        if name in KINDS[kind]:
            _put(privacy, name, _number(name, budget.get(name)))
        else:
            privacy.pop(name, None)
    wanted = "gaussian" if kind == "rho" else "laplace" if kind == "epsilon" else None
    if privacy.get("noise") not in (None, wanted) and wanted is not None:
        privacy.pop("noise")  # the law of the file does not fit the budget of the page


def _move_table(inner: CommentedMap, outer: CommentedMap, before: Mapping[str, Any], table: Mapping[str, Any]) -> None:
    """Write what differs from the file, where the file has it."""
    now = _fields_of(before)
    method = table.get("method", "auto")
    if method not in METHODS:
        raise Refused(f"the method must be one of {', '.join(METHODS)}, found {str(method)[:60]!r}")
    if method != now["method"]:
        (inner if "method" in inner else outer)["method"] = method
    shares = table.get("shares")
    if shares != now["shares"]:
        _move_shares(inner, shares)
    guess = table.get("guess", "")
    if guess != now["guess"]:
        inner.pop("guess", None)
        if guess != "":
            inner["guess"] = _number("guess", guess)
    hold = _holds(table)
    if hold != _holds(now):
        place = inner if "hold" in inner else outer
        place["hold"] = _flow_each(hold)


def _holds(table: Mapping[str, Any]) -> list[Any]:
    words = _list(table.get("words"), "words")
    found: list[Any] = [word for word in WORDS if word in words]
    found += [_rule(_text(line)) for line in _list(table.get("others"), "rules") if _text(line).strip()]
    exact = [_text(one) for one in _list(table.get("exact"), "exact")]
    return [*found, {"exact": exact}] if exact else found


def _rule(text: str) -> Any:
    """Read a rule as the spec has it; whether it is one says the spec."""
    reader = YAML(typ="safe", pure=True)
    try:
        aliases = any(isinstance(event, AliasEvent) for event in reader.parse(text))
        rule = None if aliases else reader.load(text)
    except (YAMLError, ValueError, RecursionError):
        raise Refused(f"this rule is not YAML: {text[:60]!r}; write one such as {{between: {{high: 500}}}}") from None
    if aliases:  # a few of them stand for more than any memory holds
        raise Refused(f"a rule has no aliases (*), found {text[:60]!r}: write the value out")
    if not _plain(rule):
        raise Refused(f"a rule is made of names, numbers, lists and mappings, found {text[:60]!r}")
    return rule


def _plain(value: Any, depth: int = 0) -> bool:
    """Whether a value is made of names and numbers, and not deeper than any rule: one may hold itself."""
    if depth > DEEPEST:
        return False
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _plain(each, depth + 1) for key, each in value.items())
    if isinstance(value, list):
        return all(_plain(each, depth + 1) for each in value)
    return isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value))


# --- what the browser sends ------------------------------------------------------------------------------------------


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or len(value) > MOST:
        raise Refused(f"{name} must be a mapping with at most {MOST} keys: reload the page")
    return value


def _list(value: Any, name: str) -> Sequence[Any]:
    if not isinstance(value, list) or len(value) > MOST:
        raise Refused(f"{name} must be a list of at most {MOST} entries: reload the page")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > LONGEST or not value.isprintable():
        raise Refused(f"a text of the page must be one printable line of at most {LONGEST} characters: reload it")
    return value


def _number(name: str, value: Any) -> int | float:
    """Read a number as it was typed; whether it is in range says the spec."""
    text = str(value).strip() if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""
    try:
        found = Decimal(text) if len(text) <= 60 else None
    except InvalidOperation:
        found = None
    if found is None or not found.is_finite() or abs(found) > Decimal("1e300"):
        shown = repr(text[:60]) if text else "nothing"
        raise Refused(f"{name} must be a number, found {shown}")
    return int(found) if found == found.to_integral_value() and abs(found) < 2**53 else float(found)


# --- what the file has -----------------------------------------------------------------------------------------------


def _put(place: CommentedMap, name: str, value: int | float) -> None:
    """Change a number; one that means the same stays as it is written."""
    if name not in place or float(place[name]) != value:
        place[name] = value


def _shown(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _as_list(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def _is_exact(rule: Any) -> bool:
    return isinstance(rule, Mapping) and "exact" in rule


def _one_line(rule: Any) -> str:
    writer, out = YAML(typ="safe", pure=True), io.StringIO()
    writer.default_flow_style, writer.width = True, 10**6
    writer.dump(rule, out)
    return out.getvalue().strip().removesuffix("...").strip()


def _writer() -> YAML:
    """What reads and writes a spec so that it looks as it did."""
    writer = YAML()
    writer.preserve_quotes, writer.width = True, 10**6  # no line is broken anew
    writer.brace_single_entry_mapping_in_flow_sequence = True
    writer.indent(mapping=2, sequence=4, offset=2)
    return writer


def _flow(value: Any) -> Any:
    value.fa.set_flow_style()
    return value


def _flow_each(rules: Sequence[Any]) -> CommentedSeq:
    made = CommentedSeq()
    for rule in rules:
        made.append(_flow(CommentedMap(rule)) if isinstance(rule, Mapping) else rule)
    return made
