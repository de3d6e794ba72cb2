#!/usr/bin/env python3
"""Write docs/theory/reasons.md: every reason that a statement can give, and where the results it names are proved.

Reasons are read from the source itself (whatever is passed as `because`), results from the reasons' own words. A reason
that names no result, or a result that no page of docs/theory has, ends the script with its sentence.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE, THEORY = ROOT / "src" / "holdfast", ROOT / "docs" / "theory"
PAGE = THEORY / "reasons.md"
#: What stands for a part of a sentence that is filled in.
PART = "…"
#: Results of the literature, as reasons call them, and how pages of docs/theory do.
LITERATURE = {
    "Balle–Wang 2018": r"Balle(–| and |, )Wang 2018",
    "Canonne–Kamath–Steinke 2020": r"Canonne(–|, )Kamath(–|, | and )Steinke 2020",
    "Gopi–Lee–Liu 2022": r"Gopi–Lee–Liu 2022",
    "Bun–Steinke 2016": r"Bun(–| and |, )Steinke 2016",
    "Dong–Roth–Su 2022": r"Dong(–|, )Roth(–|, | and )Su 2022",
    "Mironov 2017": r"Mironov 2017",
}
#: Results that have a name instead of a number, with the page that has them and the words by which it can be told.
NAMED = {
    "group privacy": ("composition.md", "group privacy"),
    "one removed and one added": ("composition.md", "replace-one"),
    "basic composition": ("composition.md", "| pure ε | Σε |"),
    "statements composed": ("composition.md", "together"),
    "cost a δ of 1 or more": ("THEORY.md", "Numerical and Monte-Carlo error"),
    "of whom the releases keep at most": ("THEORY.md", "A person with up to k records"),
}
#: Reasons why there is no statement, and words that only carry others on, name no result.
SILENT = ("no privacy statement is known", "one of the composed statements is void", "sum")


@dataclass(frozen=True)
class Reason:
    """A sentence, the file that gives it, and the results that it names with their pages."""

    sentence: str
    file: str
    results: tuple[tuple[str, str], ...]


def sentences() -> Iterator[tuple[str, str]]:
    """Every text that is given as `because`, with its file; texts by name are looked up in the file."""
    for path in sorted(SOURCE.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if "because" not in source and "reasons" not in source:
            continue  # most files give none, and to read all of them takes seconds
        tree = ast.parse(source)
        constants = {
            target.id: node.value
            for node in [*ast.walk(tree), *tree.body]  # names of the file before those of its functions
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        found = [text for given in _given(tree) for text in _texts(given, constants)]
        for text in dict.fromkeys(found):
            if text and not text.startswith(SILENT):
                yield text, path.relative_to(ROOT).as_posix()


def _given(tree: ast.AST) -> Iterator[ast.expr]:
    """The expressions that become a reason."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "because":
            yield node.value
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "because":
                    yield value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            first = node.args[0] if node.args else None
            if node.func.attr == "setdefault" and isinstance(first, ast.Constant) and first.value == "because":
                yield node.args[1]
            elif node.func.attr == "append" and ast.unparse(node.func.value) == "reasons" and first is not None:
                yield first
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                key = target.slice if isinstance(target, ast.Subscript) else None
                named = isinstance(target, ast.Name) and target.id == "because"
                if named or (isinstance(key, ast.Constant) and key.value == "because"):
                    yield node.value


def _texts(node: ast.expr, constants: dict[str, ast.expr]) -> list[str]:
    """The texts that an expression can be, with PART for what is filled in."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        return ["".join(_piece(part, constants) for part in node.values)]
    if isinstance(node, ast.IfExp):
        return [*_texts(node.body, constants), *_texts(node.orelse, constants)]
    if isinstance(node, ast.Dict):
        return [text for value in node.values for text in _texts(value, constants)]
    if isinstance(node, ast.Subscript):
        return _texts(node.value, constants)
    if isinstance(node, ast.Name) and node.id in constants:
        return _texts(constants[node.id], constants)
    return []


def _piece(part: ast.expr, constants: dict[str, ast.expr]) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    inner = part.value if isinstance(part, ast.FormattedValue) else part
    known = _texts(inner, constants) if isinstance(inner, ast.Name) else []
    return known[0] if len(known) == 1 else PART


def results(sentence: str) -> list[tuple[str, str]]:
    """The results that a sentence names, each with the page of docs/theory that has it."""
    pages = _pages()
    found = [(f"THEORY H{n}", "THEORY.md", rf"\*\*H{n}\b") for n in re.findall(r"THEORY[^;)]*?\bH(\d+)", sentence)]
    found += [(f"THEORY §{n}", "THEORY.md", rf"^## {n}\. ") for n in re.findall(r"THEORY §(\d+)", sentence)]
    for page, number in re.findall(r"docs/theory/([\w-]+)(?:\.md)?(?:, (Proposition \d+))?", sentence):
        found.append((number or f"the page {page}", f"{page}.md", rf"{number or '^# '}"))
    for paper, kind, number in _of_papers(sentence):
        pattern = rf"\b{paper} [^;|]*?\b{kind}(?:s|mas)? (?:\d+(?:, | and ))*{number}\b"
        page = next((page for page in ("THEORY.md", *pages) if re.search(pattern, pages.get(page, ""))), "")
        found.append((f"{paper} {kind} {number}", page, pattern))
    for name, pattern in LITERATURE.items():
        if name in sentence:
            page = next((page for page, text in pages.items() if re.search(pattern, text)), "")
            found.append((name, page, pattern))
    found += [(name, page, re.escape(words)) for name, (page, words) in NAMED.items() if name in sentence]
    for name, page, pattern in found:
        if not re.search(pattern, pages.get(page, ""), flags=re.MULTILINE):
            raise SystemExit(f"no page of docs/theory has {name}, which a reason names: {sentence!r}")
    return list(dict.fromkeys((name, page) for name, page, _ in found))


@cache
def _pages() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(THEORY.glob("*.md")) if path != PAGE}


def _of_papers(sentence: str) -> Iterator[tuple[str, str, str]]:
    """The numbered results of the three papers that a sentence names: `SDP Thm 10, Cor 14` are two."""
    for paper, listed in re.findall(r"\b(TV|SDP|LR) ([^;:()]*)", sentence):
        for kind, numbers in re.findall(r"\b(Prop|Lemma|Thm|Cor|Def)s? (\d+(?:(?:, | and )\d+)*)", listed):
            for number in re.findall(r"\d+", numbers):
                yield paper, kind, number


@cache
def reasons() -> list[Reason]:
    """Every reason with its results; ends the program at one that names none."""
    made = []
    for sentence, file in sentences():
        carried = sentence.replace(PART, "").strip("; ")
        named = results(sentence)
        if not named and len(carried) > len(" converted to (ε, δ) by "):
            raise SystemExit(f"a reason in {file} names no result: {sentence!r}")
        if named:
            made.append(Reason(sentence, file, tuple(named)))
    return made


def page() -> str:
    """The page in Markdown."""
    lines = [
        "# Reasons",
        "",
        "Every statement says *because*. This page, written by `script/reasons.py` from the source, lists every reason",
        f"that one can give ({PART} stands for what is filled in), the results that it names, and the page that states",
        "or proves each. A test fails if a reason names no result, or one that no page has.",
        "",
        "| reason | given by | results |",
        "|---|---|---|",
    ]
    for reason in reasons():
        sentence = reason.sentence.replace("|", "\\|")
        named = ", ".join(f"[{name}]({where})" for name, where in reason.results)
        lines.append(f"| {sentence} | `{reason.file.removeprefix('src/holdfast/')}` | {named} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
