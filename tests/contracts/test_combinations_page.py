"""The generated page of combinations: every cell builds, and the page in the repository is up to date."""

from pathlib import Path

import pytest

import holdfast as hf
from holdfast import given, onto
from scripts import program


@pytest.fixture(scope="module")
def generator():
    return program("script/combinations.py")


@pytest.mark.slow
def test_the_page_says_what_the_library_does(generator):
    assert generator.PAGE.read_text(encoding="utf-8") == generator.page(), "run script/combinations.py"


@pytest.mark.slow
def test_every_cell_is_drawn_or_refused_with_a_sentence(generator):
    cells = list(generator.cells())
    assert len(cells) == 4 + 21 * 8
    for cell in cells:
        refused = cell.way.startswith("refused: ")
        assert cell.drawn != refused
        assert cell.guarantee, cell
    drawn = [cell for cell in cells if cell.drawn]
    assert len(drawn) > 70
    # A release needs both a way and a statement, and gets both or a refusal.
    for cell in cells:
        allowed = cell.drawn and not cell.guarantee.startswith("refused")
        if allowed:
            release = cell.built.release(cell.case.truth, rng=hf.seeded(5))
            assert release.values.shape == (cell.case.query.n,)
        elif "did not meet" not in cell.way:  # which takes thousands of steps to find, and was found above
            with pytest.raises(hf.Refused):
                cell.built.release(cell.case.truth, rng=hf.seeded(5))


@pytest.mark.parametrize("room", [given, onto], ids=["given", "onto"])
def test_every_way_is_listed(room):
    """A file with `accepts` that choose.py does not list would never be used."""
    folder = Path(room.__file__).parent
    files = {path.stem for path in folder.rglob("*.py") if "\ndef accepts(" in path.read_text(encoding="utf-8")}
    # a union is made of ways for its sides and accepts what they do; two baselines are one file
    plans = {"union", "topdown", "bluedown"} if room is onto else set()
    assert files | plans == {room.name_of(way) for way in room.ways()}


@pytest.mark.slow
def test_every_way_is_used_by_some_cell(generator):
    used = {name for cell in generator.cells() if cell.drawn for name in cell.way.split(", ")}
    listed = {way for room in (given, onto) for way in map(room.name_of, room.ways())}
    # `free` and `line` serve shares of larger problems; the laws of both are tested with the oracle. The page does not
    # ask for baselines by name, for margins in every area or linked tables, nor for levels that are not measured.
    assert listed - used <= {"free", "line", "areas", "linked", "topdown", "bluedown", "metropolis", "under_totals"}
