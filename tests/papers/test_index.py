"""The index of the papers names every numbered result, and what it names is there: calls, items and tests."""

import pydoc
import re

import pytest

from holdfast.cli.command import app
from holdfast.papers import ITEMS, find
from scripts import ROOT

TEXT = (ROOT / "docs" / "papers" / "index.md").read_text(encoding="utf-8")
#: What the papers number, in the numbering of the conference versions.
NUMBERED = {
    "Two Views": {
        "Definition": {4, 5, 6, 8, 9},
        "Proposition": {1, 2, 7, 18},
        "Lemma": {10, 11, 13, 14, 15, 17},
        "Theorem": {12, 16},
        "Example": {3},
        "Table": {1, 2, 3},
        "Figure": {1, 2, 3},
        "Algorithm": {1},
        "equation": {1, 2},
    },
    "Subspace": {
        "Definition": {1, 2, 5, 6},
        "Proposition": {7, 9},
        "Lemma": {13, 16},
        "Theorem": {10, 12, 20, 22, 23},
        "Corollary": {8, 11, 14, 15, 17, 18, 19, 21},
        "Example": {3, 4},
        "Figure": {1, 2, 3},
        "Algorithm": {1, 2, 3, 4},
    },
    "Linear refinement": {
        "Definition": set(range(1, 8)),
        "Theorem": {1, 2, 3},
        "Example": {1},
        "equation": {*range(4, 12), *range(15, 19)},
    },
}
KINDS = {"Corollaries": "Corollary"} | {
    name: kind
    for kind in [
        "Definition",
        "Proposition",
        "Lemma",
        "Theorem",
        "Corollary",
        "Example",
        "Table",
        "Figure",
        "Algorithm",
        "equation",
    ]
    for name in (kind, kind + "s")
}


def rows(paper):
    lines = TEXT.split(f"### {paper}\n")[1].split("\n#")[0].splitlines()
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if line.startswith("| ")][1:]


def every():
    return [row for paper in NUMBERED for row in rows(paper)]


def numbers(text):
    found = {}
    for kind, listed in re.findall(rf"\b({'|'.join(KINDS)}) (\d+(?:–\d+)?(?:, \d+(?:–\d+)?)*)", text):
        for each in listed.split(", "):
            first, _, last = each.partition("–")
            found.setdefault(KINDS[kind], set()).update(range(int(first), int(last or first) + 1))
    return found


@pytest.mark.parametrize("paper", NUMBERED)
def test_every_numbered_result_is_in_the_index(paper):
    found = {}
    for result, *_ in rows(paper):
        for kind, which in numbers(result).items():
            assert not found.setdefault(kind, set()) & which, "named twice"
            found[kind] |= which
    assert found == NUMBERED[paper]


def test_calls_of_the_index_exist():
    verbs = {command.name or command.callback.__name__ for command in app.registered_commands}
    called = [name for row in every() for name in re.findall(r"`([^`]+)`", row[1])]
    assert len(called) > 60
    for name in called:
        if name.startswith("holdfast "):
            assert name.split()[1] in verbs, name
            continue
        place = re.match(r"[\w.]+", name)[0]
        for short, whole in (("hf", "holdfast"), ("mechanism", "holdfast.Mechanism")):
            place = re.sub(rf"^{short}\b", whole, place)
        thing = pydoc.locate(place)
        assert callable(thing) or isinstance(thing, property) or name == "mechanism.guarantee", name


def test_items_and_tests_of_the_index_exist():
    named = set()
    for *_, items, tests in every():
        named |= {find(name).name for name in re.findall(r"`([^`]+)`", items)}
        files = re.findall(r"`([^`]+)`", tests)
        assert files
        assert all((ROOT / file).is_file() for file in files), files
    assert named == {item.name for item in ITEMS}
