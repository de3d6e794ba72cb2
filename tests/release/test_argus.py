"""Jobs over files of τ-ARGUS: a hierarchy of codes is a domain, a table of counts a source."""

import numpy as np
import pytest

import holdfast as hf

RDA = (
    '<SEPARATOR> ","\nRegion\n  <RECODEABLE>\n  <TOTCODE> "Sum"\n  <HIERARCHICAL>\n  <HIERCODELIST> "r.hrc"\n'
    "Sex\n  <RECODEABLE>\nFreq\n  <FREQUENCY>\n"
)
TAB = "Sum,Total,30\nNr,Total,19\nGr,m,3\nGr,f,5\nGr,Total,8\nFr,m,11\nOs,m,4\nOs,f,7\nOs,Total,11\n"
SPEC = """
title: Persons
data: {source: t.tab, domain: r.hrc, values: {Sex: [m, f]}, columns: {level_2: Region}, count: Freq, name: x}
privacy: {unit: record, epsilon: 50}
table: {hierarchy: [level_1, level_2], root: all, categories: [Sex]}
hold: [consistent, nonnegative]
output: out
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "r.hrc").write_text("Nr\n@Gr\n@Fr\nOs\n")
    (tmp_path / "t.rda").write_text(RDA)
    (tmp_path / "t.tab").write_text(TAB)
    (tmp_path / "spec.yaml").write_text(SPEC)
    return tmp_path


def test_the_lowest_cells_are_counted_and_sums_are_left_out(folder) -> None:
    hf.job(folder / "spec.yaml").release()
    table = hf.load(folder / "out").table().frame()
    found = {(row["level_1"], row["level_2"], row["Sex"]): row["value"] for row in table.to_dicts()}
    leaves = {key: value for key, value in found.items() if key[1] not in (None, "") and key[2] not in (None, "")}
    assert {key[1:]: value for key, value in leaves.items() if isinstance(key[1], str)} == {
        ("Gr", "m"): 3, ("Gr", "f"): 5, ("Fr", "m"): 11, ("Fr", "f"): 0, ("Os", "m"): 4, ("Os", "f"): 7,
    }  # fmt: skip
    assert np.isclose(max(found.values()), 30)


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("r.hrc", "Nr\n@@Gr\n", "jumps from depth 1 to depth 3"),
        ("t.tab", "Gr,m\n", "line 1 of 't.tab' has 2 fields"),
        ("t.tab", "Gr,m,x\n", "row 1"),
        ("spec.yaml", SPEC.replace(" count: Freq,", ""), "data.count must name its column of counts"),
        ("spec.yaml", SPEC.replace("[level_1, level_2]", "[level_1, level_3]"), "has no column 'level_3'"),
    ],
)
def test_files_that_do_not_fit_are_refused_in_a_sentence(folder, file: str, text: str, words: str) -> None:
    (folder / file).write_text(text)
    with pytest.raises(hf.Refused, match=words):
        hf.job(folder / "spec.yaml").release()
    assert not (folder / "out").exists()
