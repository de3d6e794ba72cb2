"""Exact totals over the categories of a hierarchy: drawn and moved whole, upper levels as sums, said in the plan."""

import subprocess
import sys

import pytest

import holdfast as hf
import released
from holdfast.release.certificate.verify import verify
from holdfast.release.plan import plan
from holdfast.release.run import release

SPEC = """
table: {hierarchy: [borough, zone], root: city, categories: [sex]}
hold: [consistent, nonnegative, {exact: EXACT}]
method: METHOD
accept_disclosure: true
"""


def job(folder, monkeypatch, exact="[{of: borough, by: []}]", method="auto", **others):
    monkeypatch.setitem(released.SPECS, "totals", SPEC.replace("EXACT", exact).replace("METHOD", method))
    return released.job(folder, "totals", **others)


@pytest.mark.parametrize("method", ["auto", "given", "onto", "given-then-onto"])
@pytest.mark.parametrize("exact", ["[{of: borough, by: []}]", "[{of: city, by: []}, {of: borough, by: []}]"])
def test_totals_are_exact_in_a_whole_table_that_verifies(tmp_path, monkeypatch, exact, method):
    made = job(tmp_path, monkeypatch, exact, method)
    assert set(made.tables[0].mechanism.method.split(", ")) == {"under_totals"}
    folder = release(made)
    assert verify(folder).ok
    alone = subprocess.run(
        [sys.executable, "-I", str(folder / "verify.py")], capture_output=True, text=True, check=False
    )
    assert alone.returncode == 0, alone.stdout
    frame = hf.load(folder).table().frame("polars")
    divided = frame.filter((frame["level"] == "borough") & frame["sex"].is_not_null())
    found = {name: divided.filter(divided["borough"] == name)["value"].sum() for name in ("North", "South")}
    assert found == {"North": 53, "South": 217}


def test_levels_above_are_not_measured_unless_shares_say_so(tmp_path, monkeypatch):
    made = job(tmp_path / "one", monkeypatch)
    assert made.tables[0].problem.shares == {"city": 0, "borough": 1, "zone": 1}
    assert any("no noisy answer is taken at the level 'city'" in words for words in made.caveats)
    changes = ("categories: [sex]", "categories: [sex], shares: {city: 1, borough: 1, zone: 1}")
    monkeypatch.setitem(released.SPECS, "totals", SPEC.replace("EXACT", "[{of: borough, by: []}]"))
    measured = released.job(tmp_path / "two", "totals", changes, ("METHOD", "onto"))
    assert measured.tables[0].mechanism.method == "program"
    assert min(measured.tables[0].problem.shares.values()) == 1


def test_the_plan_says_what_an_exact_level_means(tmp_path, monkeypatch):
    words = "borough is exact for each sex; totals alone are {of: borough, by: []}."
    assert words in plan(job(tmp_path / "one", monkeypatch, "[borough]", "given-then-onto")).disclosed
    assert words not in plan(job(tmp_path / "two", monkeypatch, method="given-then-onto")).disclosed
