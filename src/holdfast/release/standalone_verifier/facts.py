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
#: What a certificate about data that share exact figures says of the records.
SHARED = "the promise compares only data that agree in every exactly published figure"
#: Sums of statements are rounded outwards, each by a double at most.
ROUNDED = 1e-9
#: What stands in the fields that only the spec can fill, where it does not.
UNSTATED = "not stated"


def facts(certificate: Json) -> Findings:
    tables, asked = certificate["tables"], drawn(certificate["spec"])
    for what, names in (("table", [table["name"] for table in tables]), ("file", names_in(certificate["files"]))):
        if len(set(names)) < len(names):
            yield f"a {what} is listed twice"
    if len(asked) != len(tables):
        yield "the published spec has other tables"
    yield from statements(certificate)
    yield from unprotected(certificate)
    yield from columns(certificate)
    yield from twice(certificate)
    yield from series(certificate)
    for table, spec in zip(tables, asked, strict=True):
        yield from levels(table)
        rules = {each["rule"] for each in spec.get("hold", [])}
        below = table.get("sum_of") and Fraction(table["sum_of"]["low"]) < 0
        for rule in ("consistent", *([] if below else ["nonnegative"])):
            if rule in rules and not table["holds"][rule]:
                yield f"the spec asks the table {table['name']} to be {rule}, and the certificate does not"
        if "exact" in rules and not table["holds"]["exact"]:
            yield f"the spec asks for exact figures of {table['name']}, and the certificate has none"


def about_time(series: Json, unit: Json | None) -> list[str]:
    """Say what a reader must know of a table that is one period of a series."""
    count, several = len(series["periods"]), series["several"]
    whom = "one record of one period"
    if unit is not None:
        whom = (
            f"one {unit['column']!r} in at most {several} periods, with at most {unit['max_records']} records in each"
        )
    found = [f"this is one of {count} periods: the statements are about all of them together, and about {whom}"]
    if unit is not None and several < count:
        found.append(
            f"only the first {several} periods of a {unit['column']!r} count: the source must have the records of all "
            "earlier periods, as they were"
        )
    if series["late"]:
        found.append(
            "this period was published after later ones: the statements take for granted that its records were not "
            "chosen by what those published"
        )
    return found


def series(certificate: Json) -> Findings:
    """Find a period that does not fit its series, or noise that is too small for what all periods together promise."""
    told, spec, best = certificate.get("series"), certificate["spec"].get("time"), certificate["statements"][0]
    if (told is None) != (spec is None):
        yield "the spec and the certificate disagree on whether this is a series"
    if told is None or spec is None:
        return
    names, rows, weights = told["periods"], told["rows"], told["weights"]
    asked, unit = spec["periods"], certificate["spec"]["privacy"].get("unit")
    others = [each["period"] for each in told["drawn"]]
    if len(set(names)) < len(names) or (len(names) if isinstance(asked, int) else names) != asked:
        yield "the series has other periods than the spec asks for"
    if told["column"] != spec["column"] or len(set(others)) < len(others) or not {*others, told["period"]} <= {*names}:
        yield "a period of the series is not among its periods"
    if len(weights) != len(names) or [len(row) for row in rows] != list(range(len(names))):
        yield "the noise of the series is not that of so many periods"
        return
    if told["several"] != (1 if unit is None else min(unit.get("max_periods", len(names)), len(names))):
        yield "a person counts in another number of periods than the spec says"
    if not set(about_time(told, unit)) <= set(certificate["caveats"]):
        yield "a sentence on the series is not among the caveats"
    if told["period"] not in names or best["scope"] != "all" or best["rho"] is None or unit is not None:
        return
    most, growth = over_time(rows, weights, names.index(told["period"]))
    total = 0.0
    for table in certificate["tables"]:
        noise = [each for level in table["noise_by_level"] for each in level["noise"][:1] if each["law"]]
        total += sum(most * growth / (2 * float(Fraction(each["parameter"]))) for each in noise)
    if total > best["rho"] * (1 + 1e-4):
        yield "the noise of the series is too small for what all periods together promise"


def over_time(rows: Sequence[Sequence[int]], weights: Sequence[int], period: int) -> tuple[float, float]:
    """What a record of one period costs in all of them, times σ²; and the variance of a period's noise over σ²."""
    unit, count = float(1 << 16), len(weights)
    L = [[*(each / unit for each in row), 1.0] for row in rows]
    most = max(sum(weights[t] / unit * L[t][s] ** 2 for t in range(s, count)) for s in range(count))
    inverse = [0.0] * count  # the row of the period in L⁻¹
    for s in range(period, -1, -1):
        inverse[s] = float(s == period) - sum(inverse[t] * L[t][s] for t in range(s + 1, period + 1))
    return most, sum(each**2 * unit / weight for each, weight in zip(inverse, weights, strict=True))


def drawn(spec: Json) -> list[Json]:
    """The tables that a spec asks for, one for each figure that is drawn: counts first, then sums."""
    found = []
    for table in spec["tables"]:
        figures = table.get("figures", ["count"])
        sums = [each for each in figures if isinstance(each, dict) and "mean" not in each]
        own, name = {key: table[key] for key in table if key != "figures"}, table.get("name", "table")
        found += [{**own, "name": name}] if "count" in figures else []
        for each in sums:
            column = each.get("sum", each.get("weight"))
            found.append({**own, "figure": each, "name": column if name == "table" else f"{name}-{column}"})
    return found


def told_of_sum(asked: Json) -> Json | None:
    """What a table adds up, as certificates say it."""
    figure = asked.get("figure")
    if figure is None:
        return None
    low, high, step = (str(Fraction(number)) for number in (*figure["between"], figure.get("step", 1)))
    column = figure.get("sum", figure.get("weight"))
    return {"column": column, "low": low, "high": high, "step": step, "weight": "weight" in figure}


def twice(certificate: Json) -> Findings:
    """Find what the spec says otherwise than the certificate, and sentences that do not follow."""
    best, spec, tables = certificate["statements"][0], certificate["spec"], certificate["tables"]
    unit, households = spec["privacy"].get("unit"), any(table["kind"] == "linked" for table in tables)
    both = {
        "title in the spec": (spec["title"], certificate["title"]),
        "sentence on who is protected": (certificate["protected"], protected(unit, households, best)),
        "kind of neighbours in the spec": (spec["privacy"].get("neighbours", "add-remove"), best["neighbours"]["kind"]),
        "unit in the spec": (certificate["unit"] == "record", unit is None),
    }
    for what, (one, other) in both.items():
        if one != other:
            yield f"the release has another {what}"
    exact = any(table["holds"]["exact"] for table in tables)
    told = [*about_records(spec, households, best["scope"], exact), *best["caveats"]]
    if not set(told) <= set(certificate["caveats"]):
        yield "a sentence that follows from the spec, or a statement, is not among the caveats"
    for table, asked in zip(tables, drawn(spec), strict=True):
        if told_of_sum(asked) != table.get("sum_of"):
            yield f"the table {table['name']} adds up something else than the spec asks for"
        chosen = [each["method"] for each in table["compared"] if each["chosen"]]
        allowed = ("auto", table["method"], "extend" if table["method"].startswith("extend-") else "auto")
        if chosen != [table["method"]] or asked.get("method", "auto") not in allowed:
            yield f"the table {table['name']} has another method than was chosen or asked for"
        if asked.get("name", table["name"]) != table["name"]:
            yield f"the spec has no table {table['name']}"


def kept_of(unit: Json) -> tuple[int, str]:
    """As how many records statements count a person, and what is kept of one, in words."""
    records, groups = int(unit.get("max_records") or 0), unit.get("max_groups")
    words = f"at most {records} record{'s are' if records > 1 else ' is'} kept"
    if groups is None:
        return records, words
    cells = f"at most {groups} cell{'s' if groups > 1 else ''} of a table"
    return 1, f"{cells}, each once, are counted" if not records else f"{words}, in {cells}"


def protected(unit: Json | None, households: bool, promised: Json) -> str:
    """Say whom a release protects, and against which changes."""
    records, adds = promised["neighbours"]["records"], promised["neighbours"]["kind"] == "add-remove"
    shared = " if both agree in every exact figure" if promised["scope"] == "invariant-sharing" else ""
    each = 1 if unit is None or households else kept_of(unit)[0]
    together, come = records // each, "come or go" if adds else "change"
    other = "do not" if adds else "hold any other in its place"
    whom, such, compared = "One record.", "", f"The promise compares data that hold it with data that {other}{shared}."
    if unit is not None:
        name = unit["column"]
        whom = f"One {name}, whatever their records."
        such = f" A {name} is one value of the column {name!r}; of each {kept_of(unit)[1]}."
        if households:
            whom, such = f"One {name} with everybody in it.", ""
    if together > 1:
        compared = (
            f"Beside exact figures one often cannot change alone: the promise is about up to {together} that {come} "
            "together."
        )
    elif each > 1:
        compared = f"The promise compares data that hold all these records with data that hold none of them{shared}."
    return f"{whom}{such} {compared}"


def in_categories(category: Any) -> str:
    """The value that such records are counted as, or those of columns."""
    if not isinstance(category, dict):
        return repr(category)
    return ", ".join(f"{value!r} in {column!r}" for column, value in category.items())


def about_records(spec: Json, households: bool, scope: str, exact: bool) -> list[str]:
    """Say how the records behind the tables were treated, as far as the published spec tells."""
    data, unit, sentences = spec.get("data", {}), spec["privacy"].get("unit"), []
    for name, what in (("nulls", "with a missing value"), ("outside", "outside the public domain")):
        rule = data.get(name, {"rule": "refuse"})
        if rule["rule"] == "refuse":
            sentences.append(f"one record {what} stops the release: that there is a release tells that there was none")
        elif rule["rule"] == "drop":
            sentences.append(f"records {what} are dropped; how many is not published")
        else:
            sentences.append(f"records {what} are counted as {in_categories(rule['category'])}")
    if unit is not None and households:
        sentences.append(
            f"a household is a value of {unit['column']!r} with at most {unit['max_records']} records, all in one "
            "place, and obeys every tie; one that does not stops the release: that there is a release tells that there "
            "was none"
        )
        sentences.append(
            "a person who comes, goes or answers otherwise makes one household another, which is hidden with at most "
            "twice the rho (or epsilon, where there is no delta) of a household that comes or goes"
        )
    elif unit is not None:
        of_groups = "" if unit.get("max_groups") is None else " or the cell"
        sentences.append(
            f"a person is a value of {unit['column']!r} (1, ' 1' and 1.0 are one); of each {kept_of(unit)[1]}, chosen "
            f"by a keyed hash of the person and the record{of_groups} alone; all figures, exact ones too, count what "
            "is kept"
        )
        added, shared = spec["privacy"].get("neighbours", "add-remove"), spec["privacy"].get("scope")
        if exact and added == "add-remove" and shared != "subspace":
            sentences.append(
                "where figures are exact, a person cannot come or go alone: the records that change are those of "
                "several persons, of whom some leave and others come, or whose records become others"
            )
    for figure in (each["figure"] for each in drawn(spec) if "figure" in each):
        told = told_of_sum({"figure": figure}) or {}
        sentences.append(
            f"every number in {told['column']!r} is brought between {told['low']} and {told['high']} and to a multiple "
            f"of {told['step']}, by itself, before it is added up"
        )
        if unit is not None and unit.get("max_groups") is not None:
            sentences[-1] += f", and so is the sum of what a {unit['column']} adds to a cell"
        if told["weight"]:
            sentences.append(
                f"the weights {told['column']!r} are taken as a part of each record: what they tell of other persons, "
                "where they were computed from their data, is outside the promise"
            )
    if scope == "invariant-sharing":
        sentences.append(SHARED)
    if len(drawn(spec)) > 1:
        sentences.append("all tables count the same records")
    return sentences


def names_in(files: Sequence[Json]) -> list[str]:
    return [file["name"] for file in files]


def statements(certificate: Json) -> Findings:
    """Find a statement that cannot be what the tables promise together, or what was asked."""
    best = certificate["statements"][0]
    asked, spec = certificate["asked"], certificate["spec"]["privacy"]
    for name in asked:
        if spec.get(name) is not None and Fraction(str(spec[name])) != Fraction(asked[name]):
            yield f"the spec asks for another {name} than the certificate"
    parts = [table["statements"][0] for table in certificate["tables"]]
    if best["neighbours"] not in [part["neighbours"] for part in parts]:
        yield "the certificate speaks of other changes of the data than its tables"
    if best["status"] == "proved" and any(part["status"] != "proved" for part in parts):
        yield "the certificate calls proved what is estimated for a table"
    reason = parts[0]["because"].rstrip(". ") if len(parts) == 1 else f"{len(parts)} statements composed: "
    if not best["because"].startswith(reason):
        yield "the reason of the first statement is not that of the tables"
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
    if not words and any(table["unprotected"] for table in certificate["tables"]):
        yield "the certificate says in words that everything is protected, and lists figures that are not"
    of_tables = [statement for table in certificate["tables"] for statement in table["statements"]]
    for statement in (*certificate["statements"], *of_tables):
        if statement["scope"] != "all" and not statement["unprotected"]:
            yield "a statement about some changes alone says that everything is protected"
    for name in ("unprotected", "assumes"):
        items = [item for table in certificate["tables"] for item in table["statements"][0][name]]
        if certificate["statements"][0][name] != list(dict.fromkeys(items)):
            yield "the first statement leaves out, or assumes, something else than the tables"
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
