"""Each bad table is refused in one sentence that names what is wrong and what to do."""

from __future__ import annotations

import pytest

import holdfast as hf
from holdfast.mending.published import argus_hierarchy as hierarchy
from holdfast.mending.published import argus_table as table

GOOD = {"area": ["Total", "a", "b"], "value": [10, 4, 7]}

BAD = {
    "no total": ({"area": ["a", "b"], "value": [4, 7]}, {}, "no column of the table holds a total"),
    "two totals": ({"area": ["Total", "All", "a"], "value": [4, 7, 3]}, {}, "two totals, 'Total' and 'All'"),
    "twice": ({"area": ["Total", "a", "a"], "value": [4, 7, 3]}, {}, "'a' occurs twice, in rows 2 and 3"),
    "unknown level": (GOOD, {"domain": {"area": {"Total": ["a", "c"]}}}, "labels of unknown level, 'b'"),
    "part of itself": (GOOD, {"domain": {"area": {"a": ["b"], "b": ["a"]}}}, "part of itself"),
    "two parents": (GOOD, {"domain": {"area": {"Total": ["a"], "b": ["a"]}}}, "in a list"),
    "unknown column": (GOOD, {"domain": {"region": {"x": ["y"]}}}, "neither a column nor a label"),
    "no numbers": ({"area": ["Total", "a"], "value": ["many", "few"]}, {}, "no column of numbers"),
    "a word": ({"area": ["Total", "a", "b"], "value": ["10", "4", "few"]}, {}, "row 3 of 'value' holds 'few'"),
    "thousands": ({"area": ["Total", "a", "b"], "value": ["10", "4", "1,234"]}, {}, "can be read in two ways"),
    "two columns of numbers": ({**GOOD, "year": [2020, 2020, 2020], "x": [1, 2, 3]}, {"value": "sum"}, "must name a"),
    "all missing": ({"area": ["Total", "a"], "value": [None, float("nan")]}, {"value": "value"}, "every figure"),
    "cell key": (GOOD, {"errors": {"cell_key": {-1: 0.3, 0: 0.5, 1: 0.3}}}, "must sum to 1, but"),
    "unknown law": (GOOD, {"errors": {"rouding": 5}}, "did you mean 'rounding'"),
    "not rounded": (GOOD, {"errors": {"rounding": 5}}, "multiples of 5, but the one of row 2 is not"),
    "negative error": ({**GOOD, "se": [1, -1, 1]}, {"errors": "se"}, "the one of row 2 is not"),
    "no such column": (GOOD, {"errors": "se"}, "errors names the column 'se'"),
    "hold": (GOOD, {"hold": ["consistnt"]}, "did you mean 'consistent'"),
    "exact label": (GOOD, {"hold": ["consistent", {"exact": {"area": "c"}}]}, "no label of column 'area'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_one_sentence(name: str) -> None:
    frame, options, words = BAD[name]
    wanted = {"hold": ["consistent", "nonnegative"], **options}
    with pytest.raises(hf.Refused) as refusal:
        hf.mend(frame, wanted.pop("hold"), wanted.pop("errors", None), **wanted)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_contradictory_exact_figures_are_named_by_a_smallest_set() -> None:
    frame = {"area": ["Total", "a", "b", "c", "aa", "ab"], "value": [10, 4, 5, 2, 1, 3]}
    domain = {"area": {"Total": ["a", "b", "c"], "a": ["aa", "ab"]}}
    exact = {"exact": {"area": ["Total", "a", "b", "c", "aa", "ab"]}}
    with pytest.raises(hf.Refused) as refusal:
        hf.mend(frame, ["consistent", exact], domain=domain)
    assert str(refusal.value).endswith("Total = 10; a = 4; b = 5; c = 2")


def test_known_values_may_replace_published_ones() -> None:
    mended = hf.mend(GOOD, ["consistent", {"exact": {"area": "Total", "value": 12}}])
    assert mended.values.tolist() == [12, 4, 8] or mended.values.tolist() == [12, 5, 7]


def test_mixed_separators_name_the_line(tmp_path) -> None:
    path = tmp_path / "mixed.csv"
    path.write_text("area;sex;value\nTotal;T;4\na,T,4\n")
    with pytest.raises(hf.Refused, match=r"line 3 of 'mixed.csv' has 1 fields where the header has 3"):
        hf.mend(path, "consistent")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\n@@b\n", "line 2 of 'x.hrc' jumps from depth 1 to depth 3: 'b'"),
        ("a\n@b\na\n", "code 'a' stands on lines 1 and 3"),
        ("", "holds no code"),
        ("@a\n", "jumps from depth 0 to depth 2"),
    ],
)
def test_a_hierarchy_with_a_jump_in_depth_is_refused(tmp_path, text: str, words: str) -> None:
    path = tmp_path / "x.hrc"
    path.write_text(text)
    with pytest.raises(hf.Refused, match=words):
        hierarchy(path)


def test_a_table_of_argus_is_read_with_its_hierarchy(tmp_path) -> None:
    (tmp_path / "t.rda").write_text(
        '<SEPARATOR> ","\nRegion\n  <RECODEABLE>\n  <TOTCODE> "Sum of all"\n  <HIERARCHICAL>\n'
        '  <HIERCODELIST> "r.hrc"\n  <HIERLEADSTRING> "@"\nFreq\n  <FREQUENCY>\nStatus\n  <STATUS>\n  <SAFE> "S"\n'
        '  <UNSAFE> "U"\n'
    )
    (tmp_path / "r.hrc").write_text("Nr\n@Gr\n@Fr\nOs\n")
    (tmp_path / "t.tab").write_text('"Sum of all",30,S\nNr,21,S\nGr,8,S\nFr,12,U\nOs,11,S\n')
    mended = hf.mend(tmp_path / "t.tab", ["consistent", "nonnegative"])
    total, north, gr, fr, os_ = mended.values.tolist()
    assert total == north + os_
    assert north == gr + fr
    assert mended.status[3] == "filled"
    (tmp_path / "t.tab").write_text("Nr,21\n")
    with pytest.raises(hf.Refused, match=r"line 1 of 't.tab' has 2 fields where"):
        table(tmp_path / "t.tab")
