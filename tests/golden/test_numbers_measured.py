"""Numbers of the page on methods: those of the accuracy study as its record has them, and what the library computes."""

import re
from functools import cache

import pytest

import holdfast as hf
from scripts import ROOT

PAGE = "docs/how-to/which-method.md"
ERRORS, BIAS = "mean absolute error by level", "bias by size of the true count"
#: What the page calls the methods of the record, where that is another name.
NAMES = {
    "given, then topdown": "given, topdown",
    "given, then onto": "given, onto",
    "given non-negativity, calibrated": "given nonnegative",
    "BlueDown": "bluedown",
    "TopDown": "topdown",
}
EVEN = ["laplace, ε = 1.0, split even", *(f"laplace, ε = 1.0, split leaves {k}" for k in ("1.5", "2", "4"))]


@cache
def record():
    """Rows of numbers by title and method."""
    found, title = {}, ""
    for line in (ROOT / "benchmarks" / "accuracy-results.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("|") and "±" in line:
            method, *cells = (cell.strip(" *") for cell in line.strip("|").split("|"))
            found[title, method.strip()] = [float(cell.partition("±")[0].strip("* ")) for cell in cells]
        elif ": " in line:
            title = line
    return found


def recorded(setting, method):
    (row,) = [row for (title, name), row in record().items() if name == method and title.startswith(setting)]
    return row


def tables():
    """Rows of the page's tables by their first cell, table after table."""
    found = []
    for line in (ROOT / PAGE).read_text(encoding="utf-8").splitlines():
        if line.startswith("|---"):
            found.append({})
        elif line.startswith("|") and found:
            first, *cells = (cell.strip(" *") for cell in line.strip("|").split("|"))
            found[-1].setdefault(first.strip(), cells)
    return found


def agree(cells, numbers):
    """Each cell is the number, rounded to the digits that it shows; the record itself has three."""
    assert len(cells) == len(numbers)
    for cell, number in zip(cells, numbers, strict=True):
        shown = re.match(r"[+−]?[\d.]+", cell)[0].replace("−", "-")
        digits = len(shown.partition(".")[2])
        assert float(shown) == pytest.approx(number, abs=0.5 * 10**-digits + 0.0006), (cells, numbers)


def table_with(row, width):
    (found,) = [table for table in tables() if row in table and len(table[row]) == width]
    return found


@pytest.mark.parametrize(("dataset", "levels"), [("city", 3), ("blocks", 5)])
def test_errors_of_each_method(dataset, levels):
    wanted = "given non-negativity, calibrated"
    rows = {
        name: cells
        for name, cells in table_with(wanted, levels).items()
        if NAMES.get(name, name) in ("given", "onto", *NAMES.values())
    }
    assert len(rows) == 7
    for name, cells in rows.items():
        agree(cells, recorded(f"{dataset}, {EVEN[0]}: {ERRORS}", NAMES.get(name, name)))


def test_bias_of_each_method():
    (rows,) = [table for table in tables() if table.get("given", [""])[0] == "0.00"]
    for name in ("given", "given, then topdown", "onto", "TopDown"):
        agree(rows[name], recorded(BLOCKS_BIAS, NAMES.get(name, name)))


def test_errors_of_each_split():
    rows = table_with("as the others", 6)
    for name, setting in zip(("as the others", "1.5 times", "twice", "four times"), EVEN, strict=True):
        mine, theirs = (recorded(f"city, {setting}: {ERRORS}", method) for method in ("given, topdown", "topdown"))
        agree(rows[name], [*mine, *theirs])
    even, twice = (recorded(f"city, {setting}: {ERRORS}", "given, topdown")[-1] for setting in (EVEN[0], EVEN[2]))
    assert twice / even == pytest.approx(2 / 3, abs=0.02)  # falls by a third


#: Settings of the record, and the method that the page recommends.
CITY, BLOCKS = (f"{case}, {EVEN[0]}: {ERRORS}" for case in ("city", "blocks"))
BLOCKS_BIAS = f"blocks, laplace, ε = 1.0, split even: {BIAS}"
CITY_RHO, CITY_DELTA, CITY_EXACT = (
    f"{case}, ε = 1.0, split even: {ERRORS}" for case in ("city, gaussian", "city, gaussian by δ", "city, exact total")
)
MINE, BLUE = "given, topdown", "bluedown"


def each(setting, methods, columns):
    return [(setting, method, column) for method in methods for column in columns]


#: Words around numbers, and for each number the setting, the method and the column of the record.
SENTENCES = [
    ("of a block falls from # to #,", each(BLOCKS, ["given", MINE], [4])),
    ("can only be too high (#)", [(BLOCKS_BIAS, MINE, 0)]),
    (
        "the smaller: # trips at a zone, where Gaussian noise at (1, 10⁻⁶) has #",
        [(CITY, MINE, 2), (CITY_DELTA, BLUE, 2)],
    ),
    ("equally good (# at a zone, ρ", each(CITY_RHO, [MINE], [2])),
    (
        "worse above (# at the city, where they have # and #)",
        each(CITY_RHO, ["topdown", MINE, BLUE], [0]),
    ),
    ("win: # and # at a zone, where `given` then `topdown` has #.", each(CITY_DELTA, ["onto", BLUE, MINE], [2])),
    ("records: # ± 0.07 at boroughs and # ± 0.01 at zones", each(CITY_EXACT, ["InfTDA"], [1, 2])),
    ("the same promise and has # and #.", each(CITY_EXACT, [MINE], [1, 2])),
    ("measurements: # ± 0.17 and # ± 0.03", each(CITY_RHO, ["mbi, 50,000 rounds"], [1, 2])),
    ("one table; # and # after its default", each(CITY_RHO, ["mbi"], [1, 2])),
    ("have #, # and", each(CITY_RHO, [BLUE, MINE], [1])),
    ("and #, # in under", each(CITY_RHO, [BLUE, MINE], [2])),
]


@pytest.mark.parametrize(("words", "places"), SENTENCES, ids=[words for words, _ in SENTENCES])
def test_numbers_of_a_sentence(words, places):
    text = " ".join((ROOT / PAGE).read_text(encoding="utf-8").split())
    (found,) = re.findall(re.escape(words).replace(r"\#", r"([\d.]*\d)"), text)
    found = (found,) if isinstance(found, str) else found
    agree(found, [recorded(setting, way)[column] for setting, way, column in places])


def test_the_rho_of_one_promise():
    """Independent noise has an exact statement at (ε, δ) that noise on a lattice lacks."""
    tree = hf.Hierarchy.from_parents([-1, 0, 1])
    at = {"epsilon": 1, "delta": 1e-6}
    base = hf.gaussian(hf.counts(tree), **at)
    given = base.given(hf.consistent(tree)).calibrated(**at)
    numbers = [f"{3 / (2 * made.base.law.variances[0]):.4f}" for made in (base, given)]
    text = " ".join((ROOT / PAGE).read_text(encoding="utf-8").split())
    assert "may use ρ = {} where `given` must stay at {}".format(*numbers) in text
    assert f"at a zone, ρ = {numbers[1]})" in text
