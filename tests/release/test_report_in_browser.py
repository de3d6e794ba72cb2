"""The report in a real browser: nothing on the console, nothing requested; it opens, filters, sorts and prints."""

import pytest

import browser
import released
from holdfast.release.certificate.load import load
from holdfast.release.run import release

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(browser.binary() is None, reason="there is no Chromium here: apt-get install chromium"),
]
TROUBLE = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
ROWS = "[...document.querySelectorAll('.figures tbody tr')]"
NAMES = f"{ROWS}.filter(row => row.checkVisibility()).map(row => row.cells[0].textContent)"


@pytest.fixture(scope="module")
def opened():
    with browser.Browser() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("report")
    return release(released.job(place, "moved", ("method: onto", "method: given-then-onto")))


def typed(page, words):
    """Type into the filter and wait until it has worked."""
    page(f"document.querySelector('.bar input').value = '{words}'")
    page("document.querySelector('.bar input').dispatchEvent(new Event('input'))")
    page("new Promise(done => setTimeout(done, 250))")


@pytest.mark.parametrize(("width", "dark"), [(390, True), (820, False), (1280, False)])
def test_it_opens_in_silence_and_fits(opened, folder, width, dark):
    page = opened.page(folder / "report.html", width, dark=dark)
    assert page.seen(*TROUBLE) == []
    assert [each["request"]["url"] for each in page.seen("Network.requestWillBeSent")] == [page.address]
    assert page("document.documentElement.scrollWidth") == width
    ground, ink = page("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
    assert (sum(map(int, ground[4:-1].split(","))) < sum(map(int, ink[4:-1].split(",")))) == dark
    page("document.querySelectorAll('.tree details').forEach(each => each.open = true)")
    values = "[...document.querySelectorAll('.tree summary > span:nth-child(2), .tree tbody td:nth-child(2)')]"
    ends = page(f"{values}.map(each => Math.round(each.getBoundingClientRect().right))")
    assert max(ends) - min(ends) <= 1  # one column of values, however deep


def test_it_opens_closes_filters_and_sorts(opened, folder):
    page = opened.page(folder / "report.html")
    assert page(NAMES) == []  # the city is open, its boroughs are not
    page("document.querySelectorAll('.bar button')[0].click()")
    assert page(NAMES) == ["N1", "N2", "S1", "S2", "S3"]
    typed(page, "s2")
    assert page(NAMES) == ["S2"]
    assert page("document.querySelector('.bar output').textContent") == "1 found"
    typed(page, "south")
    assert page(NAMES) == ["S1", "S2", "S3"]
    typed(page, "")
    loaded = load(folder)
    value = dict(zip(loaded.to_frame("polars")["zone"].to_list(), loaded.values.tolist(), strict=True))
    rising = sorted(["S1", "S2", "S3"], key=lambda zone: value[zone])
    for order in (rising, sorted(rising, key=lambda zone: -value[zone])):
        page("document.querySelectorAll('.heading button')[1].click()")
        shown = [value[name] for name in page(NAMES) if name.startswith("S")]
        assert shown == [value[zone] for zone in order]
    assert page("document.querySelectorAll('.heading button')[1].ariaLabel") == "value, sorted down"
    page("document.querySelectorAll('.bar button')[1].click()")
    assert page(NAMES) == []
    assert page.seen(*TROUBLE) == []


def test_the_filter_looks_at_names_and_not_at_values(opened, folder):
    page = opened.page(folder / "report.html")
    page("document.querySelectorAll('.figures tbody td').forEach(each => each.textContent = '2')")
    typed(page, "s12")  # the name of a row and the beginning of its value
    assert page(NAMES) == []
    typed(page, "2")
    assert page(NAMES) == ["N2", "S2"]


def test_it_prints_all_of_a_small_table_on_both_papers(opened, folder):
    page = opened.page(folder / "report.html", dark=True)
    for size in ((8.27, 11.69), (8.5, 11)):
        printed = page.pdf(*size)
        assert printed.startswith(b"%PDF")
        assert 2 <= printed.count(b"/Type /Page\n") <= 8
    page.send("Emulation.setEmulatedMedia", media="print")
    assert page(NAMES) == ["N1", "N2", "S1", "S2", "S3"]  # what is closed on the screen is open on paper
    assert page("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert page("getComputedStyle(document.querySelector('thead')).display") == "table-header-group"


def test_it_reads_without_its_script(opened, folder, tmp_path):
    text = (folder / "report.html").read_text()
    start = text.index("<script>")
    (tmp_path / "plain.html").write_text(text[:start] + text[text.index("</script>", start) :])
    page = opened.page(tmp_path / "plain.html")
    assert page("document.querySelectorAll('input, button').length") == 0
    page("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert page(NAMES) == ["N1", "N2", "S1", "S2", "S3"]


def test_a_foreign_script_does_not_run(opened, folder, tmp_path):
    text = (folder / "report.html").read_text()
    (tmp_path / "foreign.html").write_text(text.replace("</main>", "<script>window.taken = 1</script></main>"))
    page = opened.page(tmp_path / "foreign.html")
    assert page("window.taken === undefined")
    assert any("Content Security Policy" in each["entry"]["text"] for each in page.seen("Log.entryAdded"))


def test_a_page_of_fifty_thousand_rows(opened, tmp_path):
    rows = [(f"County {i // 250}", f"{i:06d}") for i in range(49_700)]
    adds_up = ("consistent, nonnegative, {between: {high: 100000, at: [zone]}}", "consistent")
    given = ("method: onto", "method: given")
    folder = release(released.job(tmp_path, "moved", adds_up, given, records={}, zones=rows))
    page = opened.page(folder / "report.html")
    assert page("document.documentElement.scrollHeight") > 1000
    assert len((folder / "report.html").read_bytes()) <= 3e6
    known = load(folder).table().estimate({"zone": ["000001", "000002", "049699"]}, confidence=0.9)
    answer = page("holdfast.estimate({zone: ['000001', '000002', '049699']}, 0.9)")
    assert (answer["value"], answer["low"], answer["high"]) == (known.value, known.low, known.high)
    assert answer["standard_error"] == pytest.approx(known.standard_error, rel=1e-9)
    assert "The first 5,000 of 49,900 rows" in page("document.body.innerText")
    typed(page, "001234")
    assert page(NAMES) == ["001234"]
    assert page.seen(*TROUBLE) == []
