"""Print which functions of src/holdfast are entered by no page, notebook, example or quick benchmark, by room.

Run: script/reach [--all] [PROGRAM …]      --all names every such function; a PROGRAM is a page or a file of Python
Every program runs in a process of its own, in which each function notes that it was entered, also in the processes that
it starts. Compiled functions cannot; one counts as entered where an entered function names it.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import run_pages

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "holdfast"
COMPILED = ("compiled", "overload", "njit")
#: Benchmarks that take seconds, with their words.
BENCHMARKS = (
    "accuracy_one_count.py",
    "city_revision.py --tables 50",
    "census.py --blocks 200",
    "hard_tables.py --leaves 200",
    "margins_update.py --tables 1 --side 20",
    "mend.py",
    "nation_sums.py --blocks 2000 --sums 1 10",
    "pinned.py",
    "residual_planner.py",
)
#: Longer than this no program is waited for, in seconds.
PATIENCE = 1_800
#: Stands for `sitecustomize`: every function that is not compiled notes its place when it is first entered.
NOTING = r"""
import ast, builtins, os, re
from importlib.machinery import SourceFileLoader
file, seen = os.open(os.environ["REACHED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT), set()
def entered(place):
    if place not in seen:
        seen.add(place)
        os.write(file, place.encode())
builtins.entered_function = entered
make = SourceFileLoader.source_to_code
def noting(self, data, path, *rest, **words):
    if not str(path).startswith(os.environ["SOURCE"] + os.sep):
        return make(self, data, path, *rest, **words)
    tree = ast.parse(data, path)
    plain = re.findall(r"compiled\((\w+)", bytes(data).decode())
    def mark(body):
        for node in body:
            if isinstance(node, ast.ClassDef | ast.If):
                mark(node.body)
            elif isinstance(node, ast.FunctionDef) and node.name not in plain and not any(
                word in ast.unparse(each) for each in node.decorator_list for word in os.environ["COMPILED"].split()
            ):
                first = ast.get_docstring(node) is not None
                note = ast.parse(f"entered_function({f'{path}:{node.lineno}{chr(10)}'!r})").body[0]
                for part in ast.walk(note):
                    part.lineno = part.end_lineno = node.lineno
                    part.col_offset = part.end_col_offset = 0
                node.body.insert(first, note)
    mark(tree.body)
    return make(self, tree, path, *rest, **words)
SourceFileLoader.source_to_code = noting
"""


@dataclass(frozen=True)
class Function:
    """One function or method: its file, its name, where it begins, its lines, and whether it is compiled."""

    path: Path
    name: str
    line: int
    lines: int
    compiled: bool
    words: frozenset[str]

    @property
    def room(self) -> str:
        """The folder, or the file, of src/holdfast in which it stands."""
        parts = self.path.relative_to(SOURCE).parts
        return "/".join(parts[:2]) if parts[0] in ("release", "given", "trees") and len(parts) > 2 else parts[0]


def functions() -> Iterator[Function]:
    """Every function and method that has a body; what stands inside a function counts as its part."""
    for path in sorted(SOURCE.rglob("*.py")):
        waiting: list[tuple[str, ast.stmt]] = [("", node) for node in ast.parse(path.read_text("utf-8")).body]
        for owner, node in waiting:
            if isinstance(node, ast.ClassDef | ast.If):
                prefix = f"{owner}{node.name}." if isinstance(node, ast.ClassDef) else owner
                waiting += [(prefix, each) for each in node.body]
            elif isinstance(node, ast.FunctionDef) and not is_empty(node):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                compiled = any(word in ast.unparse(each) for each in node.decorator_list for word in COMPILED)
                words = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
                words |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
                lines = (node.end_lineno or first) - first + 1
                yield Function(path, owner + node.name, node.lineno, lines, compiled, frozenset(words))


def is_empty(node: ast.FunctionDef) -> bool:
    """Whether a function only declares something, as in a protocol."""
    body = node.body[ast.get_docstring(node) is not None :]
    return all(isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) for each in body)


def programs(folder: Path) -> Iterator[list[str]]:
    """What a reader can run: pages and notebooks, examples, quick benchmarks."""
    yield from ([str(path)] for path in run_pages.pages() if all(map(find_spec, run_pages.needs(path))))
    yield [str(ROOT / "examples" / "city.py")]
    for spec in sorted((ROOT / "examples").glob("*/spec.yaml")):
        place = folder / spec.parent.name
        if (spec.parent / "run.py").exists():
            yield [str(spec.parent / "run.py"), str(place)]
            continue
        subprocess.run(["cp", "-r", spec.parent, place], check=True)
        yield [str(ROOT / "examples" / "make_data.py"), place.name, str(place)]
        for verb, what in (("plan", "spec.yaml"), ("release", "spec.yaml"), ("verify", "release")):
            yield ["-m", "holdfast.cli", verb, str(place / what)]
    for words in BENCHMARKS:
        name, *rest = words.split()
        yield [str(ROOT / "benchmarks" / name), *rest]


def run(words: list[str], folder: Path) -> None:
    """Run one program, with every function noting that it was entered."""
    is_page = words[0].endswith((".md", ".ipynb"))
    command = [sys.executable, *([str(ROOT / "script" / "run_pages.py")] if is_page else []), *words]
    told = {"REACHED": str(folder / "reached"), "SOURCE": str(SOURCE), "COMPILED": " ".join(COMPILED)}
    told |= {"PYTHONPATH": str(folder / "hook"), "PYTHONPYCACHEPREFIX": str(folder / "code")}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | told
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
        )
        if done.returncode:
            print(f"ended with {done.returncode}: {' '.join(words)}\n{done.stderr[-400:]}", file=sys.stderr)
    except subprocess.TimeoutExpired:
        print(f"took more than {PATIENCE} s: {' '.join(words)}", file=sys.stderr)


def entered(house: list[Function], notes: set[str]) -> set[Function]:
    """The functions that were entered, with the compiled ones that these name, and that those name in turn."""
    compiled = defaultdict(list)
    for function in house:
        if function.compiled:
            compiled[function.name].append(function)
    waiting = [each for each in house if f"{each.path}:{each.line}" in notes]
    met = set(waiting)
    while waiting:
        for name in waiting.pop().words & compiled.keys():
            new = set(compiled[name]) - met
            met |= new
            waiting += new
    return met


def main(words: list[str]) -> int:
    """Run the programs, and print the lines that none enters."""
    given = [[str(Path(word).resolve())] for word in words if not word.startswith("--")]
    with tempfile.TemporaryDirectory(prefix="reach-") as name:
        folder = Path(name)
        (folder / "hook").mkdir()
        (folder / "hook" / "sitecustomize.py").write_text(NOTING, encoding="utf-8")
        (folder / "reached").touch()
        for program in given or programs(folder):
            run(program, folder)
        notes = set((folder / "reached").read_text(encoding="utf-8").splitlines())
    house = list(functions())
    left = set(house) - entered(house, notes)
    for room in sorted({each.room for each in house}):
        whole = sum(each.lines for each in house if each.room == room)
        alone = sorted((each for each in left if each.room == room), key=lambda each: (each.path, each.line))
        print(f"{room:32} {sum(each.lines for each in alone):6} of {whole:6} lines are not entered")
        for each in alone if "--all" in words else ():
            print(f"    {each.path.relative_to(SOURCE)}:{each.line} {each.name}, {each.lines}")
    print(f"{'together':32} {sum(each.lines for each in left):6} of {sum(each.lines for each in house):6}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
