"""The report: complete, readable without a network, safe whatever the names contain, and true to the certificate."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

import released
from holdfast.arguments import Refused
from holdfast.pictures import number
from holdfast.privacy.odds import in_words
from holdfast.privacy.words import describe, grounds
from holdfast.randomness import seeded
from holdfast.release.certificate.load import load
from holdfast.release.certificate.verify import verify
from holdfast.release.job.job import Job
from holdfast.release.job.table import errors_by_size, spread_counts
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.report import figures
from holdfast.release.report.label import treated
from holdfast.release.run import release
from holdfast.release.spec.spec import read_spec

#: Elements without an end.
VOID = {"meta", "link", "br", "hr", "img"}
SELF_CLOSED = {"rect", "circle", "line", "path", "polyline"}


class Outline(HTMLParser):
    """Collects elements and text, tables as lists of rows, and checks that every element is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.elements, self.text, self.tables = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag not in VOID | SELF_CLOSED:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert tag in SELF_CLOSED or self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data
        if not {"style", "script"} & set(self.open):
            self.text.append(data)

    def table(self, *head):
        """The rows below the first table with these headings."""
        return next(rows[1:] for rows in self.tables if tuple(rows[0]) == head)


def outline(folder):
    parsed = Outline()
    parsed.feed((folder / "report.html").read_text())
    parsed.close()
    assert parsed.open == []
    return parsed


def amount(text):
    return float(text.replace(",", "").replace("−", "-"))


def without_spaces(text):
    return " ".join(text.split())


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    return {
        kind: release(released.job(folder / kind, kind)) for kind in ("hierarchy", "several", "moved", "contingency")
    }


@pytest.mark.parametrize("kind", ["hierarchy", "several", "moved", "contingency"])
def test_the_page_says_what_is_certified(folders, kind):
    page = outline(folders[kind])
    text = without_spaces(" ".join(page.text))
    certificate = load(folders[kind]).certificate
    told = [words for words in certificate.unprotected if words.startswith("published exactly:")]
    assert all(text.lower().count(words) == 1 for words in told)
    first, *others = certificate.statements
    assert grounds(first) in text
    assert text.count(in_words(first)) == 1
    for statement in others:
        assert describe(statement, columns=False) in text
    first = certificate.statements[0].columns
    assert len(first) > 1
    letters = "".join(text.split())  # some words of an answer stand out
    assert all("".join(f"{row.column}{row.answer}".split()) in letters for row in first)
    for sentence in certificate.unprotected:
        assert sentence in text
    for sentence in treated(certificate):
        assert f"{sentence[0].upper()}{sentence[1:]}." in text
    for file in certificate.files:
        assert (file.sha256 in text) == (file.name != "report.html")
    assert [check.sentence in text for check in verify(folders[kind]).checks].count(False) == 0
    assert text.count("Table ") >= (len(certificate.tables) if kind == "several" else 0)
    for table in certificate.tables:
        assert table.interval.sentence in text
        for column in () if table.protects is None else table.protects.columns:
            assert column.in_words.removeprefix(f"{column.column}: ") in text
        for each in table.holds.exact:
            assert each.figure in text


@pytest.mark.parametrize("kind", ["hierarchy", "several", "moved"])
def test_the_errors_and_the_methods_on_the_page_are_those_of_the_certificate(folders, kind):
    page = outline(folders[kind])
    head = ("level", "figures", "mean absolute error", "width of 95 in 100", "noise")
    shown = [rows[1:] for rows in page.tables if tuple(rows[0]) == head]
    tables = load(folders[kind]).certificate.tables
    assert len(shown) == len(tables)
    for rows, table in zip(shown, tables, strict=True):
        for row, level in zip(rows, table.noise_by_level, strict=True):
            assert row[0] == level.level
            assert amount(row[1]) == level.figures
            if level.exact:
                assert row[2:] == ["exact", "0", "none"]
            else:
                expected = [level.expected_absolute_error, level.interval_width]
                assert [amount(each) for each in row[2:4]] == pytest.approx(expected, rel=0.005)
                assert row[4] == level.in_words


@pytest.mark.slow
def test_methods_shares_and_odds_on_the_page_follow_from_the_certificate(tmp_path):
    shares = ("root: city", "root: city, shares: {city: 1, borough: 2, zone: 5}")
    folder = release(released.job(tmp_path, "moved", shares, ("method: onto", "method: auto")))
    certificate = load(folder).certificate
    (table,) = certificate.tables
    page = outline(folder)
    rows = page.table("method", "mean error over levels", "error bars", "")
    assert [row[0] for row in rows] == [each.method for each in table.compared]
    assert [row[0] for row in rows if "chosen" in row[3]] == [table.method]
    for row, each in zip(rows, table.compared, strict=True):
        if each.refused is None:
            assert amount(row[1]) == pytest.approx(each.expected_absolute_error, rel=0.005)
        else:
            assert each.refused in row[3]
    text = (folder / "report.html").read_text()
    assert "Shares of the budget: city 12.5 percent; borough 25 percent; zone 62.5 percent." in text
    # ε = 1: e/(1 + e) = 0.7311, and μ = 2Φ⁻¹(0.7311) = 1.2325; both are rounded up.
    assert "is right in at most 74 of 100 cases" in text
    assert "<i>ε</i> = 1</span>" in text
    assert "<i>μ</i> = 1.24</span>" in text


def test_a_tree_shows_every_figure_once_with_its_names(folders):
    page = outline(folders["hierarchy"])
    frame = load(folders["hierarchy"]).frame("polars")
    shown = [row for rows in page.tables if tuple(rows[0][:2]) == ("zone", "sex") for row in rows[1:]]
    lowest = [next(filter(None, names)) for names in frame.select("zone", "borough", "city").iter_rows()]
    expected = list(zip(lowest, frame["zone"], frame["sex"], frame["value"], strict=True))
    listed = [(name, sex or "all", value) for name, zone, sex, value in expected if zone or sex]
    assert sorted((row[0], row[1], amount(row[2])) for row in shown) == sorted(listed)
    beside = {name: value for name, zone, sex, value in expected if not (zone or sex)}
    text = page.text
    for name, value in beside.items():  # totals of places that open stand beside their names
        assert text[text.index(name, text.index("name")) + 1] == figures.written(value)


def test_totals_over_categories_stand_beside_their_place():
    names = {"city": ["C", "C", "C", "C"], "zone": ["", "", "Z", "Z"], "sex": ["", "F", "", "F"]}
    cells = [("9", "8 to 10"), ("5", "4 to 6"), ("3", "2 to 4"), ("1", "0 to 2")]
    parsed = Outline()
    parsed.feed(figures._tree(SimpleNamespace(places=["city", "zone"]), names, cells))
    assert parsed.open == []
    assert [rows[1:] for rows in parsed.tables] == [
        [["C", "F", "5", "4 to 6"]],
        [["Z", "all", "3", "2 to 4"], ["Z", "F", "1", "0 to 2"]],
    ]
    assert parsed.text[3:6] == ["C", "9", "8 to 10"]  # after the three titles


def test_a_cross_table_shows_figures_above_their_intervals(folders):
    page = outline(folders["contingency"])
    loaded = load(folders["contingency"])
    assert {row[2] for rows in page.tables if rows[0] == ["age", "value", "interval"] for row in rows[1:]} == {"exact"}
    rows = next(rows for rows in page.tables if rows[0] == ["", "age"])
    cells = loaded.frame("polars").filter(level="sex × age")
    assert rows[1] == ["sex", "child", "adult", "old"]
    expected = cells.select("value", "low", "high").iter_rows()
    for cell, (value, low, high) in zip((cell for row in rows[2:] for cell in row[1:]), expected, strict=True):
        assert cell == f"{figures.written(value)}{figures.written(low)} to {figures.written(high)}"


def test_lists_show_the_intervals_of_the_figures(folders):
    page = outline(folders["several"])
    sexes = load(folders["several"]).tables["sexes"]
    rows = page.table("sex", "value", "interval")
    for row, value, (low, high) in zip(rows, sexes.values, sexes.interval(), strict=True):
        assert amount(row[1]) == value
        assert [amount(end) for end in row[2].split(" to ")] == pytest.approx([low, high], abs=0.005)


@pytest.mark.parametrize("kind", ["hierarchy", "several"])
def test_the_page_loads_nothing_and_allows_only_itself(folders, kind):
    parsed = outline(folders[kind])
    page = (folders[kind] / "report.html").read_text()
    assert not {"link", "img", "iframe", "object"} & {tag for tag, _ in parsed.elements}
    assert not [name for tag, attributes in parsed.elements if tag == "form" for name in attributes if name == "action"]
    assert all(attributes["href"].startswith("#") for tag, attributes in parsed.elements if tag == "a")
    assert not [
        name for _, attributes in parsed.elements for name in attributes if name.startswith("on") or name == "style"
    ]
    told = re.sub(r"sha256-[A-Za-z0-9+/=]+", "", page.replace("http://www.w3.org/2000/svg", ""))
    assert not re.search(r"https?:|//|@import|url\(", told)
    policy = next(
        each["content"] for tag, each in parsed.elements if each.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; ")
    assert "form-action 'none'" in policy
    for part in ("style", "script"):
        (content,) = re.findall(f"<{part}>(.*?)</{part}>", page, re.DOTALL)
        assert f"{part}-src 'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'" in policy


@pytest.mark.parametrize("kind", ["hierarchy", "contingency"])
def test_the_page_can_be_heard(folders, kind):
    elements = outline(folders[kind]).elements
    assert {"header", "nav", "main", "footer", "h1"} <= {tag for tag, _ in elements}
    ids = [each["id"] for _, each in elements if "id" in each]
    assert len(ids) == len(set(ids))
    for tag, each in elements:
        if tag == "section":
            assert each["aria-labelledby"] in ids
        if tag == "a":
            assert each["href"][1:] in ids
        if tag == "svg":
            assert each["role"] == "img"
            assert len(each["aria-label"]) > 20
        if tag == "th":
            assert each["scope"] in ("row", "col", "colgroup")


def test_the_page_says_whom_it_protects_and_what_was_spent(tmp_path):
    more = "ledger: {file: book.sqlite, budget: {epsilon: 4}}"
    job = released.job(tmp_path, more=more, epsilon="1.5")
    text = " ".join(outline(release(job)).text)
    assert "One record. The promise compares data that hold it with data that hold any other in its place" in text
    assert text.index("Can somebody learn it?") < text.index("What this is") < text.index("How strongly")
    assert "This release was made with ε = 1.5 in total for all its tables." in text
    assert "ε = 1.5 was spent so far per record; its budget is ε = 4, of which ε = 2.5 is left." in text
    text = " ".join(outline(release(job, output=tmp_path / "again")).text)
    assert "ε = 3 was spent so far per record; its budget is ε = 4, of which ε = 1 is left." in text
    assert str(tmp_path) not in text


def test_the_spec_can_keep_what_was_spent_out_of_the_page(tmp_path):
    more = "ledger: {file: book.sqlite, budget: {epsilon: 4}, in_report: false}"
    text = " ".join(outline(release(released.job(tmp_path, more=more))).text)
    assert "spent" not in text
    assert "made with ε = 1 in total" in text


def test_a_ledger_that_cannot_be_read_again_costs_the_page_a_line_only(tmp_path, monkeypatch):
    def locked(*_):
        raise Refused("the ledger is being written")

    monkeypatch.setattr(Ledger, "around", locked)
    text = " ".join(outline(release(released.job(tmp_path))).text)
    assert "The ledger could not be read again when this page was written." in text


def test_names_cannot_break_the_page(tmp_path):
    nasty = "<script>alert('1')</script> & <b> </style> {{ 1 }}"
    values = f'age: ["{nasty}", adult, old]'
    path = released.written(tmp_path, "histogram", records={})
    path.write_text(
        path.read_text().replace("title: Trips", f'title: "{nasty}"').replace("age: [child, adult, old]", values)
    )
    parsed = outline(release(Job.from_spec(read_spec(path))))
    assert "b" not in {tag for tag, _ in parsed.elements}
    scripts = [each for tag, each in parsed.elements if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}]
    assert parsed.table("age", "value", "interval")[0][0] == nasty
    assert nasty in parsed.text


def test_long_tables_are_cut_on_the_page_only(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "SHOWN", 50)
    monkeypatch.setattr(figures, "PART", 20)
    ages = ", ".join(f"a{i}" for i in range(60))
    folder = release(released.job(tmp_path, "histogram", ("adult, old", f"adult, old, {ages}")))
    parsed = outline(folder)
    parts = [rows[1:] for rows in parsed.tables if tuple(rows[0]) == ("age", "value", "interval")]
    assert [len(rows) for rows in parts] == [20, 20, 10]
    assert "The first 50 of 63 rows, upper levels first; table.csv holds all." in without_spaces(" ".join(parsed.text))
    shown = [amount(row[1]) for rows in parts for row in rows]
    assert shown == load(folder).values[:50].tolist()


@pytest.mark.every_table
def test_errors_against_sizes_are_those_of_simulated_releases(tmp_path):
    job = released.job(tmp_path, "moved", ("root: city", "root: city, guess: 3"))
    (table,) = job.tables
    found, counts = errors_by_size(table), spread_counts(table)
    zones = np.flatnonzero(table.layout.level_of == 2)
    drawn = table.mechanism.simulate(counts, 5_000, seeded(8)) - counts
    bins = np.digitize(counts[zones], [1, 10**0.5, 10, 10**1.5, 100])
    assert found.level == "zone"
    assert len(found.size) == np.unique(bins).size > 1
    for each, (size, absolute, bias) in zip(np.unique(bins), found.rows, strict=True):
        alike = drawn[:, zones[bins == each]]
        assert size == counts[zones][bins == each].mean()
        assert absolute == pytest.approx(np.abs(alike).mean(), rel=0.25)
        assert bias == pytest.approx(alike.mean(), abs=0.35)
    assert found.bias[0] > 0.3  # the nearest table without negative counts is too large where counts are small


def test_errors_that_do_not_depend_on_the_data_are_not_drawn_against_sizes(tmp_path):
    assert errors_by_size(released.job(tmp_path, "contingency").tables[0]) is None
    assert number(1234567) == "1,234,567"
    assert number(-0.12345) == "−0.123"
    assert number(float("inf")) == "unknown"


def test_the_page_says_that_records_are_synthetic(tmp_path):
    folder = release(released.job(tmp_path, "moved", ("output: out", "output: {folder: out, records: true}")))
    text = without_spaces(" ".join(outline(folder).text))
    assert "records.csv holds synthetic records: one row for every one that the table counts" in text
