"""Figures as tables write them: separators from all values of a column, the marks of offices, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import holdfast as hf
from holdfast.mending.written import read_column, read_marks

READ = {
    "German": (["1.204", "700", "505"], "de", [1204, 700, 505]),
    "German, by itself": (["1.204.300", "700"], None, [1204300, 700]),
    "German decimals": (["1.204,5", "3", "-7,25"], None, [1204.5, 3, -7.25]),
    "French": (["1\u202f204", "700", "505"], None, [1204, 700, 505]),
    "French decimals": (["1 204,5", "700", "0,25"], None, [1204.5, 700, 0.25]),
    "Swiss": (["1’204", "700 r"], "ch", [1204, 700]),
    "English": (["1,204", "3.5", "12,000"], None, [1204, 3.5, 12000]),
    "exponents": (["1e3", "2.5e-1", ".5"], None, [1000, 0.25, 0.5]),
    "a share": (["0.125", "0.875"], None, [0.125, 0.875]),
    "an account": (["(5)", "7"], {"( )": "negative"}, [-5, 7]),
    "a sign of typographers": (["−5", "+7"], None, [-5, 7]),
    "another decimal sign": (["1,204", "7"], {"decimal": ","}, [1.204, 7]),
}
REFUSED = {
    "two readings": (["1.204", "700", "505"], None, "'1.204' in row 1 is 1.204 or 1204"),
    "two readings, English": (["10", "1,234"], None, "'1,234' in row 2 is 1.234 or 1234"),
    "two ways": (["1,204.5", "3,5"], None, "row 2 of 'value' holds '3,5', which is written in another way"),
    "not as the country writes": (["1,204.5"], "de", "written in another way"),
    "a dash": (["5", "–"], None, "it means 'zero'; pass marks={'–': 'zero'}, or marks='de'"),
    "brackets": (["5", "(3)"], None, "below zero in accounts"),
    "another mark": (["5", "#"], None, "marks={'#': 'unknown'}"),
    "a country": (["5"], "dee", "did you mean 'de'"),
    "a meaning": (["5"], {"#": "supressed"}, "did you mean 'suppressed'"),
}


@pytest.mark.parametrize("name", READ)
def test_a_column_tells_its_separators(name: str) -> None:
    texts, marks, wanted = READ[name]
    found = read_column(np.array(texts, dtype=object), "value", read_marks(marks))
    assert found.figures.tolist() == wanted


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_be_read_in_two_ways_or_in_none_is_refused(name: str) -> None:
    texts, marks, words = REFUSED[name]
    with pytest.raises(hf.Refused) as refusal:
        read_column(np.array(texts, dtype=object), "value", read_marks(marks))
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_marks_of_official_tables_have_their_meaning() -> None:
    texts = ["12,5", "–", ".", "/", "x", "…", "(4,5)", "0,0", "7,1 r"]
    area = ["Total", *"abcdefgh"]
    mended = hf.mend({"area": area, "value": texts}, ["consistent", "nonnegative"], marks="de")
    assert mended.status[1] == "exact"
    assert mended.values[1] == 0
    assert mended.status[2:6] == ["filled"] * 4
    assert mended.status[8] in ("published", "moved")
    said = "; ".join(mended.notes)
    for words in ("'–': exactly zero", "'/': unreliable", "'x': suppressed", "'…': later", "'( )': uncertain"):
        assert words in said
    # an uncertain figure moves nine times as far as another one
    plain = {"area": ["Total", "a", "b"], "value": ["200", "(100)", "80"]}
    assert hf.mend(plain, "consistent", marks="de").values.tolist() == [198, 116, 82]
    other = hf.mend({"area": ["Total", "a"], "value": ["5", "–"]}, "consistent", marks=["de", {"–": "unknown"}])
    assert other.values.tolist() == [5, 5]


def test_a_german_file_is_mended_by_the_command(tmp_path) -> None:
    from typer.testing import CliRunner

    from holdfast.cli.command import app

    path = tmp_path / "t.csv"
    path.write_text("Gebiet;Wert\nInsgesamt;1.204\nA;700\nB;505\nC;–\n")
    refused = CliRunner().invoke(app, ["mend", str(path)])
    assert refused.exit_code == 3
    ended = CliRunner().invoke(app, ["mend", str(path), "--marks", "de"])
    assert ended.exit_code == 0, ended.output
    lines = (tmp_path / "t-mended" / "table.csv").read_text().splitlines()
    assert lines[4].split(",")[1] == "0"
    assert int(lines[1].split(",")[1]) == sum(int(line.split(",")[1]) for line in lines[2:])
