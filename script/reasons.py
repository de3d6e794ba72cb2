#!/usr/bin/env python3
"""Write docs/theory/reasons.md: every reason that a statement can give, and where the results it names are proved.

Reasons are read from the source itself (whatever is passed as `because`), results from the reasons' own words. A reason
that names no result, or a result that no page of docs/theory has, ends the script with its sentence. Beside each stand
the theorems of proofs/ that a machine has checked; docs/theory/proofs.md, written too, has what they state.
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
PAGE, PROOFS_PAGE = THEORY / "reasons.md", THEORY / "proofs.md"
PROOFS = ROOT / "proofs"
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
    "of whom the releases keep at most": ("THEORY.md", "A person with up to k records"),
}
#: Reasons why there is no statement, and words that only carry others on, name no result.
SILENT = ("no privacy statement is known", "one of the composed statements is void", "sum")

#: What is checked of continuous Gaussian noise.
CONTINUOUS = "continuous_moment continuous_gaussian continuous_to_dp"
RHO = "ρ and its (ε, δ), from what a shift does to the density; not μ"
#: Words of a reason, the theorems of proofs/ that it rests on, and what of the reason they do not cover.
CHECKED = {
    "at the lowest or highest table (THEORY H1)": (
        "tree_price_exact tree_price_several one_cell_price",
        "from below, measured leaves",
    ),
    "the prices of its records added up": ("tree_price_several several_records", "from below, measured leaves"),
    "conditioning on equalities keeps pure ε": ("laplace_given_equalities laplace_given_invariants", "whole noise"),
    "on the lattice of the equalities keeps ρ": ("gaussian_given_equalities gaussian_given_invariants zcdp_to_dp", ""),
    "at most doubles pure ε": ("at_most_twice laplace_at_most_twice", ""),
    "max ‖Π_N d‖₁/λ over all neighbours": ("subspace_scope", "whole noise"),
    "supports are disjoint": ("supports_disjoint", ""),
    "conditioning Gaussian noise on equalities keeps μ": (CONTINUOUS, RHO),
    "independent Gaussian noise: μ": (CONTINUOUS, RHO),
    "Gaussian noise on N: μ": (CONTINUOUS, RHO),
    "given a union": ("disjoint_union union_is_a_mixture", "not the numbers of its sides"),
    "a function of the released values alone": ("post_processing random_post_processing zcdp_post_processing", ""),
    "orthogonal projection of a private answer": ("post_processing zcdp_post_processing", "whole noise"),
    "computed from the noisy answers and the exact figures alone": ("beside_published zcdp_beside_published", ""),
    "moving to the nearest allowed point is post-processing": ("imaging zcdp_imaging", ""),
    "orthogonal projection of the noise": ("laplace_subspace", "whole noise"),
    "independent integer Gaussian noise: ρ": ("integer_gaussian", "ρ, not δ(ε) by the loss law"),
    "independent Laplace noise": ("integer_laplace integer_laplace_exact", "whole noise"),
    "statements composed": ("basic_composition zcdp_composition", "ε, δ and ρ"),
    "by group privacy": ("group_privacy group_privacy_pure", "ε and δ"),
    "ε and δ add": ("basic_composition", ""),
    "ρ adds, order by order": ("zcdp_composition order_composition", "not ε·tanh(ε/2) for pure ε"),
    "a public coin chooses": ("mixture mixture_of_images", "ε and δ"),
    "one removed and one added": ("group_privacy group_privacy_pure", "ε and δ"),
    "on the lattice of what the exact figures leave open": ("lattice_gaussian zcdp_to_dp", ""),
}


@dataclass(frozen=True)
class Reason:
    """A sentence, the file that gives it, the results that it names with pages, the theorems checked for it."""

    sentence: str
    file: str
    results: tuple[tuple[str, str], ...]
    theorems: tuple[str, ...] = ()
    part: str = ""  # what of it the theorems are about, where not all


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
            if isinstance(node.value, ast.BinOp) and "BECAUSE" in ast.unparse(node.value):
                yield node.value
            for target in node.targets:
                key = target.slice if isinstance(target, ast.Subscript) else None
                named = isinstance(target, ast.Name) and target.id == "because"
                if named or (isinstance(key, ast.Constant) and key.value == "because"):
                    yield node.value


def _texts(node: ast.expr, constants: dict[str, ast.expr]) -> list[str]:
    """The texts that an expression can be, with PART for what is filled in."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _texts(node.left, constants), _texts(node.right, constants)
        return [first + second for first in left for second in right]
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
    return {
        path.name: path.read_text(encoding="utf-8")
        for path in sorted(THEORY.glob("*.md"))
        if path not in (PAGE, PROOFS_PAGE)
    }


def _of_papers(sentence: str) -> Iterator[tuple[str, str, str]]:
    """The numbered results of the three papers that a sentence names: `SDP Thm 10, Cor 14` are two."""
    for paper, listed in re.findall(r"\b(TV|SDP|LR) ((?:(?!\b(?:TV|SDP|LR)\b)[^;:()])*)", sentence):
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
            checked, part = next((of for words, of in CHECKED.items() if words in sentence), ("", ""))
            made.append(Reason(sentence, file, tuple(named), tuple(checked.split()), part))
    return made


@cache
def theorems() -> dict[str, tuple[str, str]]:
    """Every theorem of proofs/: its file and what it states, in Coq's words."""
    stated = r"^Theorem ([\w']+)(.*?\.)\n(?=Proof)"
    return {
        name: (path.name, name + rest)
        for path in sorted(PROOFS.glob("*.v"))
        for name, rest in re.findall(stated, path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    }


def page() -> str:
    """The page in Markdown."""
    lines = [
        "# Reasons",
        "",
        "Every statement says *because*. This page, written by `script/reasons.py` from the source, lists every reason",
        f"that one can give ({PART} stands for what is filled in) and the pages that prove it.",
        "A test fails if a reason names no result, or one that no page has. The last column names the theorems that",
        "[a machine has checked](proofs.md), and of what, where that is not all.",
        "",
        "| reason | given by | proved in | checked by Coq |",
        "|---|---|---|---|",
    ]
    for reason in reasons():
        sentence = reason.sentence.replace("|", "\\|")
        pages = dict.fromkeys(where for _, where in reason.results)
        named = ", ".join(f"[{where.removesuffix('.md')}]({where})" for where in pages)
        missing = [name for name in reason.theorems if name not in theorems()]
        if missing:
            raise SystemExit(f"no file of proofs/ has {', '.join(missing)}, named beside {reason.sentence!r}")
        checked = ", ".join(f"`{name}`" for name in reason.theorems)
        checked += f" ({reason.part})" if reason.part else ""
        lines.append(f"| {sentence} | `{reason.file.removeprefix('src/holdfast/')}` | {named} | {checked or 'no'} |")
    return "\n".join(lines) + "\n"


def proofs_page() -> str:
    """What every file of proofs/ is about, by its first sentence, and the names of its theorems."""
    lines = [
        "# Proofs that a machine has checked",
        "",
        "Coq's kernel checks the theorems of `proofs/` (`script/prove`), from the axioms of the real numbers alone.",
        "Laws are weights on countable outputs: all but `Continuous.v` is about whole noise. Written by",
        "`script/reasons.py`; every file begins with what it proves, in words.",
        "",
        "| file | about | theorems |",
        "|---|---|---|",
    ]
    for path in sorted(PROOFS.glob("*.v")):
        words = re.match(r"\(\*\*\s*(.*?)\n\n", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        if words is None:
            raise SystemExit(f"{path.name} does not begin with what it proves")
        named = ", ".join(f"`{name}`" for name, (file, _) in theorems().items() if file == path.name)
        lines.append(f"| {path.name} | {' '.join(words[1].split())} | {named} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    PROOFS_PAGE.write_text(proofs_page(), encoding="utf-8")
