"""The report answers questions in a real browser, and its numbers are those of Python."""

import json
from functools import cache

import pytest

import asking
import browser
from holdfast.release.certificate.load import load

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(browser.binary() is None, reason="there is no Chromium here: apt-get install chromium"),
]
#: Numbers of an answer; what JSON cannot say goes as text, and a refusal is null.
ASK = """(cases) => cases.map(([name, ...rest]) => {
  try {
    const found = holdfast[name](...rest);
    const { value, low, high, standard_error: error } = found;
    return [value, low, high, error].map((each) => each === null ? null : String(each));
  } catch (refusal) { return null; }
})"""


@pytest.fixture(scope="module")
def opened():
    with browser.Browser() as found:
        yield found


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Every kind, released when it is first asked for."""
    place = tmp_path_factory.mktemp("asked")
    return cache(lambda kind: asking.folder(place / kind.replace(" ", "-"), kind))


def numbers(answer):
    return None if answer is None else [None if each is None else float(each) for each in answer]


def compared(page, cases, expected):
    """Each answer is the one that is expected, up to 1e-9 of it."""
    found = [numbers(each) for each in page(f"({ASK})({json.dumps(cases)})")]
    assert len(found) == len(expected)
    for case, mine, other in zip(cases, found, expected, strict=True):
        assert (mine is None) == (other is None), (case, mine, other)
        if other is not None:
            assert mine == [None if each is None else pytest.approx(each, rel=1e-9, abs=1e-9) for each in other], case


def named(folder):
    """The tables of a release, with the name by which the page is asked for each."""
    tables = load(folder).tables
    return [(None if len(tables) == 1 else name, table) for name, table in tables.items()]


KNOWN = [*asking.KINDS, "areas", "linked"]


@pytest.mark.parametrize("kind", KNOWN)
def test_sums_have_the_numbers_of_python(opened, folders, kind):
    page, cases, expected = opened.page(folders(kind) / "report.html"), [], []
    for name, table in named(folders(kind)):
        for where in asking.questions(table):
            for confidence in (0.95, 0.8, 0.999):
                cases.append(["estimate", where, confidence, *([name] if name else [])])
                expected.append(asking.answered(lambda: table.estimate(where, confidence=confidence)))  # noqa: B023
    assert sum(each is not None for each in expected) > len(expected) / 2
    compared(page, cases, expected)
