"""The page of trust: the modules, proofs and tests it names are there, and the core is small."""

import ast
import io
import re
import tokenize

import pytest

import pages
from scripts import ROOT

PAGE = ROOT / "docs" / "theory" / "trust.md"
SOURCE = ROOT / "src" / "holdfast"
#: Lines of code that one person can read.
MOST_LINES = 8_000
SILENT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def rows():
    """The cells of every row, table after table."""
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("|---"):
            found.append([])
        elif line.startswith("|") and not line.startswith("| what |"):
            found[-1].append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def modules(cell):
    return re.findall(r"`([\w/.]+)`", cell)


def lines_of_code(text):
    """Lines with something on them, without comments and docstrings."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            lines.difference_update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def test_every_row_has_modules_a_proof_and_a_test():
    core, besides = rows()
    assert {row[0] for row in core} >= {
        "noise",
        "sampler",
        "sensitivity",
        "prices",
        "composition",
        "rounding",
        "ledger",
    }
    for _, named, proof, tests in core + besides:
        assert modules(named)
        assert all((SOURCE / module).exists() for module in modules(named)), named
        links = [pages.target(PAGE, to)[0] for to in re.findall(r"\]\(([^)]+)\)", proof)]
        assert links
        assert all(page.exists() for page in links)
        assert modules(tests)
        assert all((ROOT / test).is_file() for test in modules(tests)), tests


def test_the_core_is_small_enough_to_be_read():
    core, _ = rows()
    files = [SOURCE / module for row in core for module in modules(row[1])]
    assert len(set(files)) == len(files)
    counted = {file.stem: lines_of_code(file.read_text(encoding="utf-8")) for file in files}
    assert 4_000 < sum(counted.values()) <= MOST_LINES, counted


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("x = 1\n\n# a comment\ny = 2\n", 2),
        ('"""Words."""\n\n\ndef f():\n    """More."""\n    return (\n        1\n    )\n', 4),
    ],
)
def test_lines_of_code_are_counted(text, lines):
    assert lines_of_code(text) == lines
