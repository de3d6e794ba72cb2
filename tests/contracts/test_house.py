"""The figures of the house, and the pages that are made from the source and the lock."""

import ast
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
@pytest.mark.parametrize("name", ["limits", "licences"])
def test_the_pages_of_limits_and_of_licences_are_up_to_date(name):
    made = program(f"script/{name}.py")
    assert made.PAGE.read_text(encoding="utf-8") == made.page(), f"run script/{name}.py"


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
    """Only what is shown while one waits, what a plan measures and how long an audit tries look at a clock."""
    named = {module.name for module in modules if {"time", "timeit"} & set(clocks(module))}
    assert named <= {
        "holdfast.progress",
        "holdfast.release.plan",
        "holdfast.auditing.sampling",
        "holdfast.papers.running",
    }
    assert not [module.name for module in modules if '"time_limit"' in module.text]


def clocks(module):
    for node in module.statements():
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


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


#: What still exceeds a limit; nothing may be added.
LEFT: set[str] = set()
