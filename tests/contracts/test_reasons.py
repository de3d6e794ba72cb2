"""Every reason of a statement names a result that a page of docs/theory has, and the page of reasons lists it."""

from pathlib import Path

import pytest

import holdfast as hf
from scripts import program

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def generator():
    return program("script/reasons.py")


def test_the_page_lists_every_reason(generator):
    assert generator.PAGE.read_text(encoding="utf-8") == generator.page(), "run script/reasons.py"


def test_reasons_are_found_where_statements_are_made(generator):
    """What mechanisms say is among the sentences that were read from the source."""
    listed = [reason.sentence for reason in generator.reasons()]
    query = hf.histogram(3)
    total = hf.invariant([[1, 1, 1]])
    for mechanism in (
        hf.laplace(query, epsilon=1),
        hf.gaussian(query, rho=1, integer=False).given(hf.equals([[1, 1, 1]], [9])),
        hf.laplace(query, epsilon=1).given(hf.nonnegative()),
        hf.laplace(query, epsilon=1).given(hf.ordered([0, 1, 2])),
        hf.extend(query, total, law="gaussian", rho=1, neighbours="replace-one"),
    ):
        first = mechanism.guarantee.because.split("; converted")[0]
        assert any(first.startswith(sentence.split(generator.PART)[0]) for sentence in listed if sentence[0] != "…")


@pytest.mark.parametrize(
    "sentence", ["noise (THEORY H99)", "noise (THEORY §77)", "noise (TV Lemma 999)", "noise (docs/theory/nothing.md)"]
)
def test_results_that_no_page_has_are_told(generator, sentence):
    with pytest.raises(SystemExit, match="no page of docs/theory has"):
        generator.results(sentence)


def test_a_theorem_may_be_named_after_others(generator):
    assert [name for name, _ in generator.results("x (SDP Thm 10, Cor 14; THEORY §3)")] == [
        "THEORY §3",
        "SDP Thm 10",
        "SDP Cor 14",
    ]


def test_every_page_is_listed_once():
    """The table of contents names every page of docs/theory, once."""
    folder = ROOT / "docs" / "theory"
    contents = (folder / "index.md").read_text(encoding="utf-8")
    for page in folder.glob("*.md"):
        if page.name != "index.md":
            assert contents.count(f"]({page.name})") == 1, page.name
