"""What a certificate says in two places must be the same: statements, levels, exact figures, and the spec."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from holdfast.release.standalone_verifier.reading import Json

Findings = Iterator[str]
#: How a figure that nothing protects is known, as the list of such figures says it.
PUBLISHED, FOLLOWS = "published exactly", "follows from exact figures"
#: Sums of statements are rounded outwards, each by a double at most.
ROUNDED = 1e-9


def facts(certificate: Json) -> Findings:
    tables, asked = certificate["tables"], certificate["spec"]["tables"]
    for what, names in (("table", [table["name"] for table in tables]), ("file", names_in(certificate["files"]))):
        if len(set(names)) < len(names):
            yield f"a {what} is listed twice"
    if len(asked) != len(tables):
        yield "the published spec has other tables"
    if certificate["title"] != certificate["deployment"]["basic"]["name"]:
        yield "the release has another title for the registry"
    yield from statements(certificate)
    yield from unprotected(certificate)
    yield from columns(certificate)
    for table, spec in zip(tables, asked, strict=True):
        yield from levels(table)
        rules = {each["rule"] for each in spec.get("hold", [])}
        for rule in ("consistent", "nonnegative"):
            if rule in rules and not table["holds"][rule]:
                yield f"the spec asks the table {table['name']} to be {rule}, and the certificate does not"
        if "exact" in rules and not table["holds"]["exact"]:
            yield f"the spec asks for exact figures of {table['name']}, and the certificate has none"


def names_in(files: Sequence[Json]) -> list[str]:
    return [file["name"] for file in files]


def statements(certificate: Json) -> Findings:
    """Find a statement that cannot be what the tables promise together, or what was asked."""
    best = certificate["statements"][0]
    stated = {name: best[name] for name in ("epsilon", "delta", "rho") if best[name] and best[name] != "infinity"}
    if certificate["deployment"]["privacy_loss"]["privacy_parameters"] != stated:
        yield "the parameters for the registry are not those of the first statement"
    asked, spec = certificate["asked"], certificate["spec"]["privacy"]
    for name in asked:
        if spec.get(name) is not None and Fraction(str(spec[name])) != Fraction(asked[name]):
            yield f"the spec asks for another {name} than the certificate"
    parts = [table["statements"][0] for table in certificate["tables"]]
    if best["neighbours"] not in [part["neighbours"] for part in parts]:
        yield "the certificate speaks of other changes of the data than its tables"
    if best["status"] == "proved" and any(part["status"] != "proved" for part in parts):
        yield "the certificate calls proved what is estimated for a table"
    for name in ("epsilon", "rho"):
        own, total = [part[name] for part in parts], best[name]
        if total is None or not all(isinstance(number, (int, float)) for number in (total, *own)):
            continue
        least, most = max(own), math.fsum(own)
        if not least * (1 - ROUNDED) <= total <= most * (1 + ROUNDED):
            yield f"the {name} of the tables is not that of the certificate"
        if name == "epsilon" and not best["delta"] and total < most * (1 - ROUNDED):
            yield f"the {name} of the tables is not that of the certificate"


def unprotected(certificate: Json) -> Findings:
    """Find lists of what is not protected that were emptied in one place."""
    words = certificate["unprotected"]
    if certificate["deployment"]["dp_variant"]["unprotected_quantities"] != ("; ".join(words) or "none"):
        yield "what is not protected is another thing for the registry"
    if not words and any(table["unprotected"] for table in certificate["tables"]):
        yield "the certificate says in words that everything is protected, and lists figures that are not"
    of_tables = [statement for table in certificate["tables"] for statement in table["statements"]]
    for statement in (*certificate["statements"], *of_tables):
        if statement["scope"] != "all" and not statement["unprotected"]:
            yield "a statement about some changes alone says that everything is protected"
    for table in certificate["tables"]:
        listed: Counter[Any] = Counter()
        rows: list[Any] = []
        for each in table["unprotected"]:
            listed[each["why"], each["level"]] += each["figures"]
            rows += each["rows"]
            if each["rows"] and sum(last - first + 1 for first, last in each["rows"]) != each["figures"]:
                yield f"{each['level']} has another number of figures that are not protected"
        for level in table["noise_by_level"]:
            for why, count in ((PUBLISHED, level["published"]), (FOLLOWS, level["follows"])):
                if listed[why, level["level"]] != count:
                    yield f"{level['level']} has another number of figures that are {why}"


def columns(certificate: Json) -> Findings:
    """Find columns that are said to be covered though more records must change together than the statement is about."""
    best = certificate["statements"][0]
    covered = {row["column"]: row["covered"] for row in best.get("columns", [])}
    if not covered:
        yield "the first statement does not say which columns it covers"
    each = best["unit"]["records"] if best.get("unit") else 1
    for table in certificate["tables"] if best["scope"] == "invariant-sharing" else []:
        for row in table["protects"]["columns"] if table["protects"] else []:
            beyond = row["undecided"] or (row["records"] or math.inf) * each > best["neighbours"]["records"]
            if beyond and covered.get(row["column"], True):
                yield f"the column {row['column']} is said to be covered, and the statement is about fewer records"


def levels(table: Json) -> Findings:
    """Find levels that are told twice, or that have another number of figures than the table."""
    names = [level["level"] for level in table["noise_by_level"]]
    if len(set(names)) < len(names):
        yield f"a level of the table {table['name']} is told twice"
    if sum(level["figures"] for level in table["noise_by_level"]) != table["rows"]:
        yield f"the levels of the table {table['name']} do not have its figures"
    for level in table["noise_by_level"]:
        if level["noise"] and sum(noise["figures"] for noise in level["noise"]) != level["figures"]:
            yield f"the noise of {level['level']} is that of another number of figures"
        for noise in level["noise"]:
            if noise["law"] is not None:
                scale = noise["scale"] if noise["law"] == "laplace" else noise["scale"] ** 2
                if not math.isclose(scale, Fraction(noise["parameter"]), rel_tol=ROUNDED):
                    yield f"the scale of the noise of {level['level']} is not its parameter"


def accepted(certificate: Json) -> Findings:
    """Find errors that are larger than the spec accepts, that nobody looked at, or that are not those of the plan."""
    for table, spec in zip(certificate["tables"], certificate["spec"]["tables"], strict=True):
        wanted = [(one["error"], one.get("confidence")) for one in (spec.get("accept") or {}).values()]
        stated = [(one["error"], one["confidence"]) for one in table["accepted"]]
        numbers = [
            [tuple(None if each is None else Fraction(str(each)) for each in pair) for pair in pairs]
            for pairs in (wanted, stated)
        ]
        if numbers[0] != numbers[1]:
            yield f"the errors of {table['name']} that were put to the test are not those that the spec accepts"
        planned = {level["level"]: level["expected_absolute_error"] for level in table["noise_by_level"]}
        for one in table["accepted"]:
            reached, mean = one["reached"], planned.get(one["level"])
            if one["level"] not in planned:
                yield f"there is no level {one['level']} whose errors could be accepted"
            elif Fraction(reached) > Fraction(one["error"]):
                yield f"the errors of {one['level']} are larger than accepted"
            elif one["confidence"] is None and (mean is None or not math.isclose(reached, mean, rel_tol=ROUNDED)):
                yield f"the mean error of {one['level']} is not the one that the plan had"
