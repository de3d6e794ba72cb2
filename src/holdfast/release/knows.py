"""What an adversary with some knowledge would learn from a table of a job: a file of worlds, read and put to the test.

The file is YAML: `worlds` lists the datasets that are thought possible, each with its `cells` (counts of all cells of
the table, in the order of its public file), its `odds` (1 where left out) and whether it has the `secret`; `table`
names the table where there are several. It holds guesses, never the confidential data.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from holdfast.arguments import Refused, positive, whole_numbers
from holdfast.refinement import Gain, knowledge_gain
from holdfast.release.job.job import Job
from holdfast.release.job.table import Table


def gain(job: Job, file: Path) -> tuple[str, Gain]:
    """The table that a file speaks of, and what its adversary gains from it."""
    content = _content(file)
    table = _table(job, content.get("table"))
    worlds = content.get("worlds")
    if not isinstance(worlds, list) or len(worlds) < 2:
        raise Refused(f"{str(file)!r} must list two or more worlds under 'worlds', each with its cells and its secret")
    odds: dict[tuple[int, ...], Fraction] = {}
    secret = set()
    for number, world in enumerate(worlds, 1):
        truth, weight, has_it = _world(table, world, number)
        if truth in odds:
            raise Refused(f"world {number} of {str(file)!r} is listed before: give each table once, with its odds")
        odds[truth] = weight
        if has_it:
            secret.add(truth)
    total = sum(odds.values(), Fraction(0))
    return table.name, knowledge_gain(table.mechanism, {x: w / total for x, w in odds.items()}, secret)


def _content(file: Path) -> dict[str, Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        content = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refused(f"{str(file)!r} cannot be read: {error.strerror}") from None
    except (YAMLError, UnicodeDecodeError):
        raise Refused(f"{str(file)!r} is no YAML") from None
    if not isinstance(content, dict):
        raise Refused(f"{str(file)!r} must map names to values: worlds, and table where there are several")
    return content


def _table(job: Job, name: Any) -> Table:
    if name is None and len(job.tables) == 1:
        return job.tables[0]
    for table in job.tables:
        if table.name == name:
            return table
    raise Refused(f"table must be one of {', '.join(table.name for table in job.tables)}, found {name!r}")


def _world(table: Table, world: Any, number: int) -> tuple[tuple[int, ...], Fraction, bool]:
    if not isinstance(world, dict) or "cells" not in world or not isinstance(world.get("secret"), bool):
        raise Refused(f"world {number} must have 'cells', a list of counts, and 'secret', true or false")
    query = table.layout.query
    cells = whole_numbers(f"cells of world {number}", world["cells"], (query.cells or 0,))
    truth = tuple(int(value) for value in query.answer(cells))
    return truth, positive(f"odds of world {number}", world.get("odds", 1)), world["secret"]
