"""Print the limits that a user can meet, from the sentences above the constants.

Run: .venv/bin/python script/limits.py        prints the limits
     .venv/bin/python script/limits.py --all  prints every constant that has a sentence, by room
A constant's sentence is the comment `#: …` above it. A limit is a number beyond which the module that has it refuses:
it stands in the condition of an `if` that raises, or in what is raised.
"""

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "holdfast"
#: Values that take more characters are not shown: they are tables and sentences.
LONGEST = 60
#: What a value may consist of to be a number, or a pair of numbers.
NUMBERS = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.operator, ast.unaryop, ast.expr_context)


class Constant(NamedTuple):
    """A constant, or several that share a sentence."""

    module: str
    names: str
    value: str
    sentence: str
    is_limit: bool


def constants(path: Path) -> Iterator[Constant]:
    """The constants of one file that have a sentence."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    module = path.relative_to(SOURCE).with_suffix("").as_posix()
    tree = ast.parse(text) if "\n#: " in text else ast.Module([], [])
    refused = set(refusing(tree))
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        above = itertools.takewhile(lambda line: line.startswith("#:"), reversed(lines[: node.lineno - 1]))
        sentence = " ".join(line.removeprefix("#:").strip() for line in reversed(list(above)))
        names = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target).strip("()")
        if not sentence or names.startswith("_"):
            continue
        value = " ".join(ast.unparse(node.value).split())
        is_limit = is_number(node.value) and not refused.isdisjoint(names.split(", "))
        yield Constant(module, names, value if len(value) <= LONGEST else "", sentence, is_limit)


def refusing(tree: ast.Module) -> Iterator[str]:
    """The names in the conditions of every `if` that raises, and in what is raised."""
    for node in ast.walk(tree):
        decides = isinstance(node, ast.If) and any(isinstance(each, ast.Raise) for each in node.body)
        if decides or isinstance(node, ast.Raise):
            part = node.test if isinstance(node, ast.If) else node
            yield from (each.id for each in ast.walk(part) if isinstance(each, ast.Name))


def is_number(value: ast.expr) -> bool:
    """Whether a value is written as a number, or as several."""
    parts = list(ast.walk(value))
    return all(isinstance(part, NUMBERS) for part in parts) and not any(
        isinstance(part, ast.Constant) and isinstance(part.value, str | bool) for part in parts
    )


def every() -> list[Constant]:
    """Every constant of the source that has a sentence."""
    return [each for path in sorted(SOURCE.rglob("*.py")) for each in constants(path)]


if __name__ == "__main__":
    for each in every():
        if each.is_limit or "--all" in sys.argv[1:]:
            print(f"{each.module}\t{each.names}\t{each.value}\t{each.sentence}")
