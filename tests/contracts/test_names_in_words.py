"""What pages and docstrings name is there: dotted names of the package, and files of the project."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

import pages
from scripts import ROOT

FOLDERS = ("src/holdfast", "tests", "script", "benchmarks", "examples", "proofs", "docs")
DOTTED = re.compile(r"(?<![\w./-])(?:holdfast|hf)(?:\.[A-Za-z_]\w*)+")
#: Files that are called after the package.
FILES = (".R", ".json")
#: A file with a folder before it, wherever it stands; or alone, in code.
FILE = re.compile(r"(?<![\w./:~$-])((?:[\w*-]+/)+[\w*-]+\.(?:py|md|v|svg|ipynb))\b|`([\w*-]+\.(?:py|v))`")
#: A file of every release, and the example of CONTRIBUTING.md.
ELSEWHERE = {"verify.py", "given/exact/pairs.py"}


def words():
    """Every page without its blocks of code, and every docstring and comment of the source and the tests."""
    for path in pages.every_page():
        yield path, pages.FENCED.sub("", pages.running.text_of(path))
    for folder in ("src", "tests", "script"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            comments = re.findall(r"^\s*#:? (.*)$", text, re.MULTILINE)
            owners = (ast.Module, ast.ClassDef, ast.FunctionDef)
            strings = [ast.get_docstring(node) for node in ast.walk(ast.parse(text)) if isinstance(node, owners)]
            yield path, "\n".join([*comments, *filter(None, strings)])


def is_there(dotted):
    """Whether a dotted name is a module, or a name in one."""
    parts = re.sub(r"^hf\.", "holdfast.", dotted).split(".")
    for split in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for name in parts[split:]:
            if not hasattr(thing, name):
                return name in getattr(thing, "__annotations__", ())
            thing = getattr(thing, name)
        return True
    return False


@cache
def every_file():
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts]
    return [path.relative_to(ROOT) for path in found]


def exists(name, page):
    """Whether a path, written from the root, from the package, from a folder of tests or from its page, is there."""
    if name in ELSEWHERE:
        return True
    if "/" not in name or "*" in name:
        return any(path.match(name) for path in every_file())
    starts = [ROOT, page.parent, *(ROOT / folder for folder in FOLDERS)]
    return any((start / name).exists() for start in starts) or any(path.match(name) for path in every_file())


@pytest.mark.slow
def test_every_dotted_name_is_there():
    named = {(path, name) for path, text in words() for name in DOTTED.findall(text) if not name.endswith(FILES)}
    assert len(named) > 150
    missing = sorted(f"{path.relative_to(ROOT)}: {name}" for path, name in named if not is_there(name))
    assert not missing


def test_every_file_that_is_named_is_there():
    named = {(path, one or other) for path, text in words() for one, other in FILE.findall(text)}
    assert len(named) > 150
    missing = sorted(f"{path.relative_to(ROOT)}: {name}" for path, name in named if not exists(name, path))
    assert not missing


@pytest.mark.parametrize("name", ["holdfast.subspace.gauge", "holdfast.release.verify.verify", "holdfast.nothing"])
def test_a_name_that_is_gone_is_found(name):
    assert not is_there(name)


@pytest.mark.parametrize(
    "name", ["given/prices/nothing.py", "docs/theory/nothing.md", "nothing.py", "tests/*/nothing_*.py"]
)
def test_a_file_that_is_gone_is_found(name):
    assert not exists(name, Path(ROOT / "README.md"))
