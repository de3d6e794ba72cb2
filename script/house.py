"""Print the figures of the house: how long rooms and things are, how they are called, and whether imports go one way.

Run: script/house [--all] [--walks]
It reads files as text and needs nothing but Python. Every room has a budget of lines; what exceeds one, or another
limit, is named, and the program ends with 1. `--all` names every folder with its sentence. `--walks` adds what is seen
by running: how many files a release goes through, and what public parameters are typed as (needs script/bootstrap).
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"

#: The most lines that each room may have: whoever needs more shortens something else first.
BUDGET = {
    "__init__": 200,
    "arguments": 310,
    "arrays": 260,
    "auditing": 2_050,
    "beliefs": 600,
    "cli": 1_720,
    "compiler": 280,
    "constraints": 3_350,
    "disclosure": 1_005,
    "domains": 950,
    "evidence": 100,
    "exact": 1_100,
    "exchange": 480,
    "given": 3_140,
    "mechanism": 3_560,
    "mending": 3_510,
    "noise": 2_760,
    "onto": 4_130,
    "page": 1_250,
    "papers": 2_950,
    "pictures": 720,
    "privacy": 4_165,
    "progress": 200,
    "proving": 350,
    "queries": 4_460,
    "randomness": 350,
    "refinement": 960,
    "release": 24_350,
    "rooms": 50,
    "subspace": 1_800,
    "system": 240,
    "together": 1_240,
    "trees": 8_600,
    "version": 50,
    "workers": 50,
}

MODULES_IN_A_FOLDER = 13
LINES_OF_A_MODULE = 500
MEDIAN_LINES = 200
LINES_OF_A_CLASS = 250
LINES_OF_A_FUNCTION = 80
PARAMETERS = 12

#: A sentence above a constant.
EXPLAINED = re.compile(r"^#: .*\n(?:#:.*\n)*[A-Z]\w*(?:,.*)?\b.*=", re.MULTILINE)
PYTHON = ROOT / ".venv" / "bin" / "python"
PARAMETERS_OF_FUNCTIONS = """
import inspect, holdfast as hf
public = [getattr(hf, name) for name in hf.__all__]
signatures = [inspect.signature(each) for each in public if inspect.isfunction(each)]
typed = ["Any" in str(each.annotation) for signature in signatures for each in signature.parameters.values()]
print(f"{sum(typed)} of {len(typed)}")
"""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file: its dotted name, its path, its text and its tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        """How many lines it has."""
        return len(self.text.splitlines())

    @property
    def is_front(self) -> bool:
        """Whether it is the front of a folder."""
        return self.path.name == "__init__.py"

    def statements(self) -> Iterator[ast.stmt]:
        """Every statement, at any depth: what stands inside expressions imports and defines nothing."""
        waiting: list[ast.AST] = [self.tree]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.stmt):
                yield node
            for name in ("body", "orelse", "handlers", "finalbody", "cases"):
                inner = getattr(node, name, ())
                waiting += inner if isinstance(inner, list) else ()


def modules(source: Path = SOURCE) -> list[Module]:
    """Every module under a folder."""
    found = []
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        found.append(Module(name, path, text, ast.parse(text)))
    return found


def imports(module: Module, names: set[str]) -> Iterator[str]:
    """The modules of the house that a module imports, wherever in it the import stands."""
    for node in module.statements():
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in names)
        elif isinstance(node, ast.ImportFrom) and node.module in names:
            for each in node.names:
                inner = f"{node.module}.{each.name}"
                yield inner if inner in names else str(node.module)


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that import each other, by Tarjan's algorithm without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    found = []
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(sorted(graph[root])))]
        index[root] = low[root] = len(index)
        path.append(root)
        while work:
            node, rest = work[-1]
            step = next(rest, None)
            if step is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = path[path.index(node) :]
                    del path[path.index(node) :]
                    if len(group) > 1 or node in graph[node]:
                        found.append(sorted(group))
            elif step not in index:
                index[step] = low[step] = len(index)
                path.append(step)
                work.append((step, iter(sorted(graph[step]))))
            elif step in path:
                low[node] = min(low[node], index[step])
    return found


def folders(house: list[Module]) -> dict[Path, int]:
    """How many modules each folder holds, its front left out."""
    counts: Counter[Path] = Counter(module.path.parent for module in house if not module.is_front)
    return dict(sorted(counts.items()))


def room(module: Module) -> str:
    """The room of a module: the first folder below the package, or its file."""
    return [*module.name.split("."), "__init__"][1]


def sizes(house: list[Module]) -> Counter[str]:
    """The lines of each room."""
    counts: Counter[str] = Counter()
    for module in house:
        counts[room(module)] += module.lines
    return counts


def figures(house: list[Module]) -> Iterator[tuple[str, int]]:
    """What is read from the files."""
    names = Counter(module.path.stem for module in house if not module.is_front)
    yield "statements", sum(not is_text(each) for module in house for each in module.statements())
    yield "constants that are explained", sum(len(EXPLAINED.findall(module.text)) for module in house)
    yield "module names used twice", sum(count > 1 for count in names.values())
    yield "words of docs", sum(len(path.read_text("utf-8").split()) for path in markdown(ROOT / "docs"))
    yield "lines of tests", sum(len(path.read_text("utf-8").splitlines()) for path in (ROOT / "tests").rglob("*.py"))


def is_text(node: ast.stmt) -> bool:
    """Whether a statement is a docstring, or three dots."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def markdown(folder: Path) -> list[Path]:
    """The pages in a folder, without those of a built site."""
    return [path for path in folder.rglob("*.md") if "_build" not in path.parts]


def walks() -> Iterator[tuple[str, str]]:
    """What is seen by running README's ten lines and the release of the city, and by asking public functions."""
    ten_lines = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)[0]
    yield "README's ten lines", _walked(ten_lines)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "city"
        shutil.copytree(ROOT / "examples" / "city", place)
        subprocess.run([PYTHON, ROOT / "examples" / "make_data.py", "city", place], check=True, capture_output=True)
        released = f"import holdfast as hf\nhf.job({str(place / 'spec.yaml')!r}).release(output={{!r}})\n"
        first, second = (released.format(str(place / name)) for name in ("first", "second"))
        yield "release of the city", _walked(second, warm=first)
    yield "public parameters, typed Any", _asked(PARAMETERS_OF_FUNCTIONS)


def _walked(statement: str, warm: str = "") -> str:
    """The first line that script/walk.py prints; what is loaded on demand is loaded before."""
    words = [PYTHON, ROOT / "script" / "walk.py", f"{warm or statement}\n# walk\n{statement}"]
    lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    return next(line for line in lines if re.fullmatch(r"\d+ files, \d+ steps, \d+ returns", line))


def _asked(program: str) -> str:
    return subprocess.run([PYTHON, "-c", program], check=True, capture_output=True, text=True).stdout.strip()


def long_things(house: list[Module]) -> Iterator[str]:
    """Classes and functions beyond their limits."""
    for module in house:
        for node in module.statements():
            if isinstance(node, ast.ClassDef | Function):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                limit = LINES_OF_A_CLASS if isinstance(node, ast.ClassDef) else LINES_OF_A_FUNCTION
                if lines > limit:
                    yield f"{module.name}.{node.name}: {lines} lines"
            if isinstance(node, Function) and len(parameters(node)) > PARAMETERS:
                yield f"{module.name}.{node.name}: {len(parameters(node))} parameters"


def parameters(node: Function) -> list[ast.arg]:
    """The named parameters of a function, `self` and `cls` left out."""
    listed = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [each for each in listed if each.arg not in ("self", "cls")]


def objections(house: list[Module]) -> list[str]:
    """Everything that exceeds a limit, one line each."""
    names = {module.name for module in house}
    graph = {module.name: set(imports(module, names)) - {module.name} for module in house}
    beyond = [f"circle: {' – '.join(group)}" for group in circles(graph)]
    beyond += [
        f"{path.relative_to(SOURCE)}: {count} modules"
        for path, count in folders(house).items()
        if count > MODULES_IN_A_FOLDER
    ]
    beyond += [
        f"{name}: {lines} lines (at most {BUDGET.get(name, 0)})"
        for name, lines in sizes(house).items()
        if lines > BUDGET.get(name, 0)
    ]
    beyond += [f"{module.name}: {module.lines} lines" for module in house if module.lines > LINES_OF_A_MODULE]
    beyond += [
        f"{module.name}: no sentence" for module in house if module.is_front and not ast.get_docstring(module.tree)
    ]
    return beyond + list(long_things(house))


def main() -> int:
    """Print the figures, then what exceeds a limit."""
    house = modules()
    counts = folders(house)
    middle = median(module.lines for module in house if not module.is_front)
    fullest = max(counts, key=lambda path: counts[path])
    print(f"modules            {sum(counts.values())} in {len(counts)} folders")
    print(
        f"fullest folder     {counts[fullest]} modules in {fullest.relative_to(SOURCE)} (at most {MODULES_IN_A_FOLDER})"
    )
    print(f"lines              {sum(module.lines for module in house)}, median {middle:g} (below {MEDIAN_LINES})")
    for name, lines in sizes(house).items():
        print(f"    {name:14} {lines:6} of {BUDGET.get(name, 0)}")
    for what, figure in (*figures(house), *(walks() if "--walks" in sys.argv[1:] else ())):
        print(f"{what:30} {figure}")
    if "--all" in sys.argv[1:]:
        for module in (each for each in house if each.is_front):
            sentence = (ast.get_docstring(module.tree) or "").splitlines()[0]
            print(f"{module.name:34} {counts.get(module.path.parent, 0):3}  {sentence}")
    found = objections(house)
    print(f"beyond a limit     {len(found)}")
    for line in found:
        print(f"  {line}")
    return 1 if found or middle >= MEDIAN_LINES else 0


if __name__ == "__main__":
    sys.exit(main())
