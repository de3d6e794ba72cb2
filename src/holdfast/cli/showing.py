"""What the command prints: tables and sentences for people, JSON for scripts; colours only on a terminal."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from pathlib import Path
from textwrap import wrap
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from holdfast.arguments import Refused

#: Width of what is printed where nobody watches, so that files do not depend on a terminal.
PIPED_WIDTH = 120


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False, emoji=False)


def _told(console: Console, words: str) -> None:
    """Print sentences, all lines indented."""
    lines = wrap(words, console.width - 3, break_on_hyphens=False) or [""]
    console.print("\n".join(f"  {escape(line)}" for line in lines))


def data(content: Any) -> None:
    print(json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False, default=str))


def told(json: bool, quiet: bool, content: Callable[[], Any], shown: str | Callable[[], None]) -> None:
    """Answer in JSON, or for people, by a sentence or by what prints it."""
    if json:
        data(content())
    elif not quiet:
        print(shown) if isinstance(shown, str) else shown()


def refuse_existing(path: Path | None, option: str) -> None:
    """Refuse a file that is there already, before work is done for it; `option` names another one."""
    if path is not None and os.path.lexists(path):
        raise Refused(f"{str(path)!r} exists already: name another file with {option}")


def write_new(path: Path, text: str, option: str) -> None:
    """Write a file that is not there yet; `option` names another one."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise Refused(f"{str(path)!r} exists already: name another file with {option}") from None
    except OSError as error:
        raise Refused(f"{str(path)!r} cannot be written: {error.strerror}") from None


def written(text: str, output: Path | None) -> None:
    """Write a new file, or print what it would hold."""
    if output is None:
        print(text, end="")
    else:
        write_new(output, text, "--output")
        print(f"holdfast: wrote {output}", file=sys.stderr)


def aside(words: list[str]) -> None:
    """Print on a terminal what only the curator may know, and never anywhere else."""
    for each in words:
        if sys.stderr.isatty():
            print(f"holdfast: {each} (only you are told)", file=sys.stderr)


def notes(words: list[str]) -> None:
    """Print what whoever runs the command should know, beside its answer."""
    for each in words:
        print(f"holdfast: {each}", file=sys.stderr)


def sections(found: dict[str, list[str]]) -> None:
    """Print headings with sentences."""
    console = _console()
    for i, (heading, sentences) in enumerate(found.items()):
        console.print(("" if i == 0 else "\n") + f"[bold]{escape(heading)}[/bold]")
        for words in sentences:
            _told(console, words)


def plan(found: Any) -> None:
    """Print a plan."""
    from holdfast.privacy.words import describe
    from holdfast.release.job.methods import evidence
    from holdfast.release.standalone_verifier.facts import SHARED
    from holdfast.release.table.wording import LEARN, as_sentence, sentence_about, ways_in_words

    console, job = _console(), found.job
    console.print(f"[bold]{escape(job.title)}[/bold]")
    for table in found.tables:
        made = f"method {table.method}, computed by {ways_in_words(table.ways)}"
        console.print(f"\n{escape(sentence_about(table.name, f'{table.kind}, {made}'))}")
        console.print(_levels(table))
        measured = f"; measured on {table.errors.tables:,} simulated tables" if table.errors.tables else ""
        _told(console, f"Errors {table.errors.basis}{measured}.")
        for words in evidence(table.mechanism):
            _told(console, f"{words[0].upper()}{words[1:]}.")
        if len(table.comparison) > 1:
            console.print(_comparison(table))
    console.print(f"\n[bold]{LEARN}[/bold]")
    console.print(_learnable(job.guarantee))
    console.print("\n[bold]What it promises[/bold]")
    for statement in job.guarantees:
        _told(console, describe(statement, columns=False, figures=statement is not job.guarantee))
    for table in found.tables:
        if table.protects is not None:
            console.print(_protects(table, several=len(found.tables) > 1))
    if found.unprotected or found.disclosed:
        console.print("\n[bold]What stays unprotected[/bold]")
        for words in (*(as_sentence(each, job.tables) for each in found.unprotected), *found.disclosed):
            _told(console, words)
    console.print("\n[bold]What was spent[/bold]")
    for words in found.spending:
        _told(console, words)
    console.print("\n[bold]To know[/bold]")
    for words in (each for each in job.caveats if each != SHARED):
        _told(console, f"{words[0].upper()}{words[1:]}.")
    seconds = "cannot be told" if found.seconds is None else f"about {max(found.seconds, 0.1):.1f} s"
    _told(
        console,
        f"Drawing takes {seconds} here for {found.timed}, and memory about "
        f"{found.bytes / 2**20:.0f} MiB; both beside counting the records.",
    )
    for share in found.shares:
        _told(console, f"{str(share)[0].upper()}{str(share)[1:]}.")
    if found.bytes_per_record:
        more = found.bytes_per_record * 10**6 / 2**20
        _told(
            console,
            f"Choosing the records of each person takes about {more:.0f} MiB more for every million records, or disk "
            "where memory ends.",
        )


def what_if(found: Any) -> None:
    """Print the errors at several budgets beside each other."""
    from holdfast.privacy.odds import amounts, in_hundred

    console = _console()
    console.print(f"[bold]{escape(found.title)}[/bold]: expected absolute error by {found.parameter}")
    shown = Table(box=None, padding=(0, 2, 0, 0))
    shown.add_column("level")
    for amount, _ in found.jobs:
        shown.add_column(f"{found.parameter} {amount:f}", justify="right")
    jobs = [job for _, job in found.jobs]
    several = len(jobs[0].tables) > 1
    for t, first in enumerate(jobs[0].tables):
        for k, level in enumerate(first.levels):
            errors = [job.tables[t].levels[k] for job in jobs]
            cells = ["exact" if each.exact else _short(each.errors[0]) for each in errors]
            shown.add_row(escape(f"{first.name}: {level.level}" if several else level.level), *cells)
        chosen = [job.tables[t].chosen for job in jobs]
        made = [f"{each.method}{'' if each.error_bars else ', no error bars'}" for each in chosen]
        shown.add_row(escape(f"{first.name}: method" if several else "method"), *made)
    shown.add_row("right guesses in 100 (a coin: 50)", *(str(in_hundred(job.guarantee)) for job in jobs))
    signs = [amounts(job.guarantee) for job in jobs]
    for k, (sign, _) in enumerate(signs[0]):
        shown.add_row(sign, *(each[k][1] for each in signs))
    console.print(shown)
    _told(console, found.spent)


def _learnable(statement: Any) -> Table:
    """Whether somebody can learn a column, row by row."""
    shown = Table(box=None, padding=(0, 2, 0, 2), show_header=False)
    for row in statement.columns:
        answer = escape(row.answer)
        shown.add_row(escape(row.column), answer if row.covered else f"[bold]{answer}[/bold]")
    return shown


def _protects(table: Any, *, several: bool) -> Table:
    """Records that must change together, column by column."""
    where = f" ({table.name})" if several else ""
    whom, alone = f"{table.protects.rows[0].whom}s", table.protects.rows[0].by_itself
    title = (
        f"\n{whom.capitalize()} that must change together before a value can become another, with all exact figures "
        f"kept{where}"
    )
    shown = Table(title=escape(title), title_justify="left", box=None, padding=(0, 2, 0, 0))
    for name in ("column", whom, "hidden with", alone.partition(" (")[0]):
        shown.add_column(name)
    for row in table.protects.rows:
        shown.add_row(*(escape(words) for words in row.in_columns))
    return shown


def _levels(table: Any) -> Table:
    shown = Table(box=None, padding=(0, 2, 0, 0))
    total = sum((Fraction(level.share) for level in table.levels if level.share is not None), Fraction(0))
    divided = total > 0
    for name, side in (
        ("level", "left"),
        ("figures", "right"),
        *((("share", "right"),) if divided else ()),
        ("noise", "left"),
        ("expected absolute error", "right"),
        ("95 % interval width", "right"),
    ):
        shown.add_column(name, justify=side)
    for level in table.levels:
        error, half = level.errors
        share = () if not divided else ("" if level.share is None else f"{float(Fraction(level.share) / total):.3g}",)
        known, noise = "exact" if level.exact else _short(error), escape(level.in_words)
        shown.add_row(escape(level.level), f"{level.figures:,}", *share, noise, known, _short(2 * half))
    return shown


def _comparison(table: Any) -> Table:
    shown = Table(title="Methods at the same total guarantee", title_justify="left", box=None, padding=(0, 2, 0, 0))
    shown.add_column("method")
    shown.add_column("mean error over levels", justify="right")
    shown.add_column("")
    several = len({each.noise for each in table.comparison}) > 1
    alike: dict[str, list[str]] = {}  # methods that are refused for one reason share a row
    for each in table.comparison:
        alike.setdefault(each.refused or f"{each.method} {each.noise}", []).append(each.method)
    for each in table.comparison:
        if each.refused and each.method != alike[each.refused][0]:
            continue
        name = ", ".join(dict.fromkeys(alike[each.refused])) if each.refused else each.method
        name = f"{name} ({each.noise})" if several else name
        if each.basis is None:
            shown.add_row(name, "-", escape(f"refused: {each.refused}" if each.error_bars is None else each.refused))
        else:
            bars = "error bars" if each.error_bars else "no error bars"
            marked = f"{bars}, chosen" if each.chosen else bars
            shown.add_row(name, _short(each.expected_absolute_error), marked)
    return shown


def _short(number: float | None) -> str:
    if number is None or math.isinf(number):
        return "unknown"
    return f"{number:,.3g}" if number < 1000 else f"{number:,.0f}"


def verdict(found: Any) -> None:
    """Print what was checked."""
    console, colours = _console(), {"holds": "green", "none": "yellow", "BROKEN": "red"}
    for check in found.checks:
        mark = f"[{colours[check.mark]}]{check.mark:6}[/]"
        console.print(f"{mark}  {escape(check.name)}: {escape(check.sentence)}")
    if found.ok:
        console.print("holdfast prove FOLDER has its number proved by a kernel, where a theorem is about it.")
    console.print("Everything is as certified." if found.ok else "This release is not as certified.")


def charges(entries: list[Any]) -> None:
    """Print the charges of a ledger."""
    shown = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("when", "dataset", "unit", "title", "charge", "state"):
        shown.add_column(name)
    for entry in entries:
        words = "; ".join(amount(statement.as_mapping()) for statement in entry.statements[:1])
        about = (escape(text) for text in (entry.dataset, entry.unit, entry.title))
        shown.add_row(entry.when, *about, words, entry.state)
    _console().print(shown)


def accounts(rows: list[dict[str, Any]]) -> None:
    """Print what was spent and what is left."""
    shown = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("dataset", "unit", "spent", "budget", "left"):
        shown.add_column(name)
    for row in rows:
        spent = row["trouble"] or ("nothing" if row["spent"] is None else amount(row["spent"]))
        budget, left = (_numbers(row[key], _down) for key in ("budget", "remaining"))
        shown.add_row(escape(row["dataset"]), escape(row["unit"]), escape(spent), budget or "none set", left or "-")
    console = _console()
    console.print(shown)
    for row in rows:
        for words in [*(row["spent"] or {}).get("caveats", ()), *row["beside"]]:
            console.print(f"{escape(row['dataset'])}: {escape(words)}.")


def amount(statement: dict[str, Any]) -> str:
    from holdfast.privacy.words import figure

    spent = {name: statement[name] for name in ("epsilon", "delta", "rho") if statement[name]}
    return _numbers(spent, lambda value: figure(float(value))) or "nothing"


def _numbers(found: dict[str, Any] | None, written: Callable[[Any], str]) -> str:
    return ", ".join(f"{name} {written(value)}" for name, value in (found or {}).items())


def _down(value: Any) -> str:
    """Write what is left with six digits, never more than there is."""
    return f"{Context(prec=6, rounding=ROUND_FLOOR).create_decimal(Decimal(str(value))).normalize():f}"
