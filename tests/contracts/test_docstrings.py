"""Docstrings of the public names: parameters, law, guarantee and an example each; the examples run."""

import doctest
import inspect
import re

import pytest

import holdfast as hf

NAMES = [name for name in hf.__all__ if name not in ("__version__", "beliefs")]
#: What draws or promises, and so has a law or a guarantee of its own.
LAWS = ["extend", "gaussian", "laplace", "mixture", "project", "Projected", "seeded", "Keys", "Stream"]
GUARANTEES = [
    *["audit", "best_shares", "calibrate_refinement", "compose", "extend", "gaussian", "invariant", "job", "laplace"],
    *["mixture", "project", "Projected", "query", "refine", "refinement_loss", "seeded", "within"],
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


def test_the_reference_has_every_public_name():
    from scripts import ROOT

    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference").glob("python-*.md"))
    said = set(re.findall(r":: holdfast\.(\w+)", pages))
    assert {*NAMES, "beliefs"} <= said
