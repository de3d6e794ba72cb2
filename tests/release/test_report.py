"""The report: complete, readable without a network, and safe whatever the names contain."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import released
from holdfast.arguments import Refused
from holdfast.release.certificate.load import load
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.report import SHOWN
from holdfast.release.run import release

#: Elements without an end.
VOID = {"meta", "link", "br", "hr", "img"}


class Outline(HTMLParser):
    """Collects elements and text, and checks that every element is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.elements, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def outline(folder):
    parsed = Outline()
    parsed.feed((folder / "report.html").read_text())
    parsed.close()
    assert parsed.open == []
    return parsed


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    return {kind: release(released.job(folder / kind, kind)) for kind in ("hierarchy", "several")}


@pytest.mark.parametrize("kind", ["hierarchy", "several"])
def test_the_page_says_what_is_certified(folders, kind):
    text = " ".join(outline(folders[kind]).text)
    certificate = load(folders[kind]).certificate
    for statement in certificate.statements:
        assert str(statement) in text
    for sentence in (*certificate.unprotected, *certificate.caveats):
        assert sentence in text
    for file in certificate.files:
        assert (file.sha256 in text) == (file.name != "report.html")
    for table in certificate.tables:
        assert f"Table {table.name}" in text
        assert table.interval.sentence in text


def test_the_page_shows_the_values_of_the_table(folders):
    page = (folders["hierarchy"] / "report.html").read_text()
    rows = re.findall(r'<td class="number">(.*?)</td><td class="number">(.*?)</td><td class="number">(.*?)</td>', page)
    assert [int(value) for value, _, _ in rows] == load(folders["hierarchy"]).values.tolist()
    assert "low" in re.findall("<th[^>]*>(.*?)</th>", page)
    assert "exact as in the data, and not protected: city" in page


@pytest.mark.parametrize("kind", ["hierarchy", "several"])
def test_the_page_loads_nothing_and_leads_nowhere(folders, kind):
    parsed = outline(folders[kind])
    assert not {"script", "link", "img", "iframe", "a", "form", "object"} & {tag for tag, _ in parsed.elements}
    assert not [name for _, attributes in parsed.elements for name in attributes if name.startswith("on")]
    assert not re.search(r"https?:|//|@import|url\(", (folders[kind] / "report.html").read_text())


def test_the_page_shows_the_intervals_of_the_figures(folders):
    page = (folders["several"] / "report.html").read_text()
    rows = re.findall(r'<td class="number">(.*?)</td><td class="number">(.*?)</td><td class="number">(.*?)</td>', page)
    tables = load(folders["several"]).tables.values()
    expected = np.concatenate([np.column_stack([table.values, table.interval()]) for table in tables])
    assert np.array(rows, dtype=float) == pytest.approx(expected, abs=0.005)
    assert "Intervals (low to high): each covers its true value" in page


def test_the_page_says_whom_it_protects_and_what_was_spent(tmp_path):
    more = "ledger: {file: book.sqlite, budget: {epsilon: 4}}"
    job = released.job(tmp_path, more=more, epsilon="1.5")
    text = " ".join(outline(release(job)).text)
    assert "The unit of protection is one record; neighbouring data differ in one record replaced by another." in text
    assert "This release was made with ε = 1.5 in total for all its tables." in text
    assert "ε = 1.5 was spent so far per record; its budget is ε = 4, of which ε = 2.5 is left." in text
    text = " ".join(outline(release(job, output=tmp_path / "again")).text)
    assert "ε = 3 was spent so far per record; its budget is ε = 4, of which ε = 1 is left." in text
    assert str(tmp_path) not in text


def test_a_ledger_that_cannot_be_read_again_costs_the_page_a_line_only(tmp_path, monkeypatch):
    def locked(*_):
        raise Refused("the ledger is being written")

    monkeypatch.setattr(Ledger, "beside", locked)
    text = " ".join(outline(release(released.job(tmp_path))).text)
    assert "The ledger could not be read again when this page was written." in text


def test_names_cannot_break_the_page(tmp_path):
    nasty = "<script>alert('1')</script> & <b>"
    folder = release(released.job(tmp_path, "histogram", ("title: Trips", f'title: "{nasty}"')))
    parsed = outline(folder)
    assert not {"script", "b"} & {tag for tag, _ in parsed.elements}
    assert nasty in parsed.text


def test_long_tables_are_cut_on_the_page_only(tmp_path):
    ages = ", ".join(f"a{i}" for i in range(SHOWN + 10))
    folder = release(released.job(tmp_path, "histogram", ("adult, old", f"adult, old, {ages}")))
    page = (folder / "report.html").read_text()
    assert page.count('<td class="number">') == 3 * SHOWN + 3  # and the sizes of three files
    assert f"The first {SHOWN} of {SHOWN + 13} rows; table.csv holds all." in page
    assert load(folder).values.size == SHOWN + 13
