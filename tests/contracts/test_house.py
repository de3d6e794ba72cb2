"""The figures of the house, and the pages that are made from the source and the lock."""

import ast
import os
import subprocess
import sys
import tomllib
from importlib import metadata

import pytest
from packaging.specifiers import SpecifierSet

from scripts import ROOT, program


@pytest.fixture(scope="module")
def house():
    return program("script/house.py")


@pytest.fixture(scope="module")
def modules(house):
    return house.modules()


@pytest.mark.slow
def test_the_page_of_licences_is_up_to_date():
    made = program("script/licences.py")
    assert made.PAGE.read_text(encoding="utf-8") == made.page(), "run script/licences.py"


@pytest.mark.slow
def test_limits_are_the_numbers_beyond_which_something_is_refused():
    limits = {
        f"{each.module}.{each.names}": each.value for each in program("script/limits.py").every() if each.is_limit
    }
    assert limits["arguments.LARGEST"] == "2 ** 62"
    assert len(limits) > 30


def test_what_is_locked_runs_on_the_oldest_python_that_is_promised():
    promised = SpecifierSet(
        tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    )
    oldest = min(each.version for each in promised) + ".0"
    needs = {each.name: each.metadata["Requires-Python"] for each in metadata.distributions()}
    assert [name for name, asked in needs.items() if asked and oldest not in SpecifierSet(asked)] == []


@pytest.mark.slow
def test_nothing_new_exceeds_a_limit_of_the_house(house, modules):
    found = {line.partition(": ")[0] if not line.startswith("circle") else line for line in house.objections(modules)}
    assert found <= LEFT, found - LEFT


@pytest.mark.slow
def test_no_clock_decides_a_result(modules):
    """A clock is for what is shown while one waits, what a plan measures, and how long an audit or a release waits."""
    named = {module.name for module in modules if {"time", "timeit"} & set(clocks(module))}
    assert named <= {
        "holdfast.progress",
        "holdfast.system",  # it waits for a lock
        "holdfast.release.ends",
        "holdfast.release.plan",
        "holdfast.auditing.sampling",
        "holdfast.release.audit",
        "holdfast.papers.catalogue",
    }
    assert not [module.name for module in modules if '"time_limit"' in module.text]


def clocks(module):
    for node in module.statements():
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def test_every_room_has_a_budget_and_no_room_exceeds_it(house, modules):
    sizes = house.sizes(modules)
    assert set(sizes) == set(house.BUDGET)
    assert sum(sizes.values()) == sum(module.lines for module in modules)
    assert {name: lines for name, lines in sizes.items() if lines > house.BUDGET[name]} == {}


def test_a_room_beyond_its_budget_is_named(house, modules, monkeypatch):
    monkeypatch.setitem(house.BUDGET, "rooms", 1)
    assert [line for line in house.objections(modules) if line.startswith("rooms: ")]


def test_the_figures_count_what_they_say(house, tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "same.py").write_text('"""Words."""\n\n#: Why it is three.\nTHREE = 3\n\n#: No constant.\n')
    (tmp_path / "same.py").write_text("def f():\n    x = 1\n    return x\n")
    figures = dict(house.figures(house.modules(tmp_path)))
    assert figures["statements"] == 4
    assert figures["constants that are explained"] == 1
    assert figures["module names used twice"] == 1


def test_functions_note_that_they_are_entered(tmp_path):
    program("script/run_pages.py")
    reach = program("script/reach.py")
    made = {"hook/sitecustomize.py": reach.NOTING, "source/small.py": SMALL}
    for name, text in made.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    told = {"REACHED": "reached", "COMPILED": "compiled", "SOURCE": str(tmp_path / "source")}
    told["PYTHONPATH"] = os.pathsep.join(str(tmp_path / name) for name in ("hook", "source"))
    command = [sys.executable, "-c", "import small; small.one(); small.Kind().method()"]
    subprocess.run(command, cwd=tmp_path, env=os.environ | told, check=True)
    lines = [int(line.rpartition(":")[2]) for line in (tmp_path / "reached").read_text().splitlines()]
    entered = [SMALL.splitlines()[line - 1].strip() for line in lines]
    assert entered == ["def compiled(function):", "def one():", "def method(self):"]


def test_a_compiled_function_is_entered_where_an_entered_one_names_it():
    program("script/run_pages.py")
    reach = program("script/reach.py")

    def function(name, compiled, *words):
        return reach.Function(ROOT / "a.py", name, len(name), 1, compiled, frozenset(words))

    house = [function("a", False, "bb"), function("bb", True, "ccc"), function("ccc", True), function("dddd", True)]
    assert {each.name for each in reach.entered(house, {f"{ROOT / 'a.py'}:1"})} == {"a", "bb", "ccc"}


def test_circles_are_found(house):
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"e"}, "f": {"d"}}
    assert house.circles(graph) == [["a", "b", "c"], ["e"]]


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("def f(" + ", ".join(f"a{i}" for i in range(13)) + "): ...", "13 parameters"),
        ("def f():\n" + "    x = 1\n" * 81, "82 lines"),
        ("class C:\n" + "    x = 1\n" * 251, "252 lines"),
    ],
)
def test_long_things_are_named(house, source, named, tmp_path):
    (tmp_path / "long.py").write_text(source)
    assert any(named in line for line in house.long_things(house.modules(tmp_path)))


SMALL = '''"""A module."""

def compiled(function):
    return lambda: function()

def one():
    """Entered."""
    return fast()

def two(): return 2

@compiled
def fast(): return 1

class Kind:
    def method(self):
        return two
'''

#: What still exceeds a limit; nothing may be added.
LEFT: set[str] = set()
