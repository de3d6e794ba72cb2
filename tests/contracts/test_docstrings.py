"""Docstrings of the public names: parameters, law, guarantee and an example each; the examples run."""

import doctest
import inspect
import pydoc
import re

import pytest

import holdfast as hf
from scripts import ROOT

NAMES = [name for name in hf.__all__ if name not in ("__version__", "beliefs")]
#: What draws or promises, and so has a law or a guarantee of its own.
LAWS = ["extend", "gaussian", "laplace", "seeded", "Keys", "Stream"]
GUARANTEES = [
    *["audit", "best_shares", "calibrate_refinement", "compose", "extend", "gaussian", "invariant", "job", "laplace"],
    *["query", "refine", "refinement_loss", "seeded"],
]


def section(text, name):
    found = re.search(rf"^{name}:\n((?:    .*\n|\n)+)", f"{text}\n", re.MULTILINE)
    return found[1] if found else ""


@pytest.mark.parametrize("name", NAMES)
def test_the_docstring_says_every_parameter(name):
    thing = getattr(hf, name)
    text = inspect.getdoc(thing)
    wanted = (
        [] if issubclass(thing if isinstance(thing, type) else int, Exception) else inspect.signature(thing).parameters
    )
    if inspect.isfunction(thing):
        said = re.findall(r"^    (\w+):", section(text, "Args"), re.MULTILINE)
        assert said == list(wanted)
    else:
        assert not [each for each in wanted if not re.search(rf"\b{each}\b", text)]


@pytest.mark.parametrize("name", LAWS)
def test_what_draws_says_its_law(name):
    assert section(inspect.getdoc(getattr(hf, name)), "Law")


@pytest.mark.parametrize("name", GUARANTEES)
def test_what_promises_says_its_guarantee(name):
    assert section(inspect.getdoc(getattr(hf, name)), "Guarantee")


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_docstring_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = doctest.DocTestFinder(recurse=False).find(getattr(hf, name), name, globs={})
    assert example.examples, f"{name} has no example"
    assert not doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example).failed


PAGES = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference").glob("python-*.md"))


def test_the_reference_has_every_public_name():
    said = set(re.findall(r":: holdfast\.(\w+)", PAGES))
    assert {*NAMES, "beliefs"} <= said


@pytest.mark.parametrize(
    "member",
    [
        f"{owner}.{name}"
        for owner, names in re.findall(r":: holdfast\.([\w.]+)(?:\(\))?\n   :members: (.+)", PAGES)
        for name in names.split(", ")
    ],
)
def test_what_the_reference_shows_of_a_class_says_every_parameter(member):
    owner, _, name = member.rpartition(".")
    holder = pydoc.locate(f"holdfast.{owner}")
    thing = inspect.getattr_static(holder, name)
    thing = getattr(thing, "__func__", thing)
    text = inspect.getdoc(thing)
    assert text
    if inspect.isfunction(thing):
        wanted = [each for each in inspect.signature(thing).parameters if each not in ("self", "cls")]
        assert not [each for each in wanted if not re.search(rf"\b{each}\b", text)]
