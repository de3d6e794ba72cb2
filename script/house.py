"""Print the figures of the house: how many modules a folder holds, how long things are, and whether imports go one way.

Run: script/house [--all]
It reads the files under src/ as text and needs nothing but Python. The limits are those of CONTRIBUTING.md; what
exceeds one is named, and the program ends with 1. `--all` names every folder with its sentence.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

SOURCE = Path(__file__).resolve().parent.parent / "src"

MODULES_IN_A_FOLDER = 13
LINES_OF_A_MODULE = 400
MEDIAN_LINES = 140
LINES_OF_A_CLASS = 250
LINES_OF_A_FUNCTION = 80
PARAMETERS = 12

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
    found = [f"circle: {' – '.join(group)}" for group in circles(graph)]
    found += [
        f"{path.relative_to(SOURCE)}: {count} modules"
        for path, count in folders(house).items()
        if count > MODULES_IN_A_FOLDER
    ]
    found += [f"{module.name}: {module.lines} lines" for module in house if module.lines > LINES_OF_A_MODULE]
    found += [
        f"{module.name}: no sentence" for module in house if module.is_front and not ast.get_docstring(module.tree)
    ]
    return found + list(long_things(house))


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
