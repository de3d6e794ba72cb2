"""What the verb `mend` does: read its options, mend, write the folder, say what was found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.arguments import Refused
from holdfast.cli import showing
from holdfast.progress import command


def mend(
    table: Path,
    domain: list[str] | None,
    hold: str,
    exact: list[str] | None,
    errors: str | None,
    value: str | None,
    norm: str,
    output: Path | None,
    json: bool,
    quiet: bool,
) -> None:
    """Mend a table and write its folder."""
    wanted: list[Any] = [word.strip() for word in hold.split(",") if word.strip()]
    wanted += [{"exact": dict([_pair("--exact", entry)])} for entry in exact or ()]
    folder = output or table.with_name(f"{table.stem}-mended")
    if folder.exists():  # before any work is done for it
        raise Refused(f"{str(folder)!r} exists already: name another folder for the mended table")
    with command(quiet=quiet or json) as step:
        step("mending")
        from holdfast.mending import mend as mended

        found = mended(table, wanted, _errors(errors), domain=_domain(domain), value=value, norm=norm)
        step("writing")
        found.write(folder)
    if json:
        showing.data({"folder": str(folder), **found.as_mapping()})
    elif not quiet:
        for sentence in str(found).splitlines():
            showing.sentence(sentence)
        for contradiction in found.contradictions[:5]:
            showing.sentence(f"  {contradiction}")
        showing.sentence(f"written into {folder}; read {folder / 'report.html'}")


def _pair(option: str, text: str) -> tuple[str, str]:
    name, between, rest = text.partition("=")
    if not between or not name.strip():
        raise Refused(f"{option} must be written COLUMN=LABEL, found {text!r}")
    return name.strip(), rest.strip()


def _domain(entries: list[str] | None) -> Any:
    """Files by column; one file without a column is for the one whose labels it shares."""
    if not entries:
        return None
    alone = [entry for entry in entries if "=" not in entry]
    if len(alone) == len(entries) == 1:
        return Path(alone[0])
    if alone:
        raise Refused(f"several domains must each name their column, as in region={alone[0]}")
    found: dict[str, Any] = {}
    for entry in entries:
        column, file = _pair("--domain", entry)
        one = Path(file) if file else None
        found[column] = [*_several(found[column]), one] if column in found else one
    return found


def _several(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]


def _errors(text: str | None) -> Any:
    """A column of standard errors, one number for all, or a law with its size."""
    if text is None:
        return None
    name, between, size = text.partition("=")
    if between:
        number = _number(size)
        return {name.strip().replace("-", "_"): size.strip() if number is None else number}
    number = _number(text)
    return text if number is None else number


def _number(text: str) -> float | int | None:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None
