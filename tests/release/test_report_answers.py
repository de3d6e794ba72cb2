"""The report answers questions in a real browser, and its numbers are those of Python."""

import json
import shutil
import subprocess
import tarfile
from functools import cache
from urllib.parse import quote

import numpy as np
import pytest

import asking
import browser
import released
from holdfast.release.certificate.load import load
from holdfast.release.certificate.naming import weights_of
from holdfast.release.job.job import Job
from holdfast.release.report import asked
from holdfast.release.report.page import site
from holdfast.release.run import release
from holdfast.release.spec.spec import read_spec

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(browser.binary() is None, reason="there is no Chromium here: apt-get install chromium"),
]
#: What looks for barriers in a page.
AXE = "axe-core@4.14.0"
#: Numbers of an answer; what JSON cannot say goes as text, and a refusal is null.
ASK = """(cases) => cases.map(([name, ...rest]) => {
  try {
    const found = holdfast[name](...rest);
    const { value, low, high, standard_error: error } = found;
    return [value, low, high, error].map((each) => each === null ? null : String(each));
  } catch (refusal) { return null; }
})"""


@pytest.fixture(scope="module")
def opened():
    with browser.Browser() as found:
        yield found


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Every kind, released when it is first asked for."""
    place = tmp_path_factory.mktemp("asked")
    return cache(lambda kind: asking.folder(place / kind.replace(" ", "-"), kind))


def numbers(answer):
    return None if answer is None else [None if each is None else float(each) for each in answer]


def compared(page, cases, expected):
    """Each answer is the one that is expected, up to 1e-9 of it."""
    found = [numbers(each) for each in page(f"({ASK})({json.dumps(cases)})")]
    assert len(found) == len(expected)
    for case, mine, other in zip(cases, found, expected, strict=True):
        assert (mine is None) == (other is None), (case, mine, other)
        if other is not None:
            assert mine == [None if each is None else pytest.approx(each, rel=1e-9, abs=1e-9) for each in other], case


def named(folder):
    """The tables of a release, with the name by which the page is asked for each."""
    tables = load(folder).tables
    return [(None if len(tables) == 1 else name, table) for name, table in tables.items()]


KNOWN = [*asking.KINDS, "areas", "linked"]


@pytest.mark.parametrize("kind", KNOWN)
def test_sums_have_the_numbers_of_python(opened, folders, kind):
    page, cases, expected = opened.page(folders(kind) / "report.html"), [], []
    for name, table in named(folders(kind)):
        for where in asking.questions(table):
            for confidence in (0.95, 0.8, 0.99 if kind in asking.SIMULATED else 0.999):
                cases.append(["estimate", where, confidence, *([name] if name else [])])
                expected.append(asking.answered(lambda: table.estimate(where, confidence=confidence)))  # noqa: B023
    assert sum(each is not None for each in expected) > len(expected) / 2
    compared(page, cases, expected)


@pytest.mark.parametrize("kind", ["noise", "hierarchy by onto", "cube", "not measured", "hierarchy by onto, Gaussian"])
def test_sums_with_any_weights_have_the_numbers_of_python(opened, folders, kind):
    """Weights that are no multiples of each other: a normal part is added to the law, on a circle that holds it."""
    page, table = opened.page(folders(kind) / "report.html"), load(folders(kind)).table()
    cases, expected, rng = [], [], np.random.default_rng(3)
    for confidence in (0.8, 0.95, 0.999):
        weights = np.round(rng.normal(size=table.values.size), 3)
        cases.append(["estimate", weights.tolist(), confidence])
        expected.append(asking.answered(lambda: table.estimate(weights=weights, confidence=confidence)))  # noqa: B023
    compared(page, cases, expected)


def test_sums_that_python_simulates_are_told_from_those_of_the_same_law(opened, folders):
    """Where noise is wide, Python measures sums given that a tree adds up; the page has their law, and says so."""
    page, table = opened.page(folders("wide") / "report.html"), load(folders("wide")).table()
    weights = np.where(np.arange(table.values.size) >= 3, np.sqrt(np.arange(table.values.size)), 0).tolist()
    asks = [{"zone": "N1"}, {"zone": ["N1", "S1"]}, {"borough": "North"}, {"zone": ["S1", "S2", "S3"]}, weights]
    told = []
    for ask in asks:
        found = page(f"holdfast.estimate({json.dumps(ask)}, 0.9)")
        known = table.estimate(**{"weights" if ask is weights else "where": ask}, confidence=0.9)
        told.append(found["simulated"])
        assert found["standard_error"] == pytest.approx(known.standard_error, rel=1e-9)
        ratio = (found["high"] - found["low"]) / (known.high - known.low)
        assert (0.9 < ratio < 1.1) if found["simulated"] else ratio == pytest.approx(1, rel=1e-9), (
            ask,
            ratio,
            found,
            known,
        )
    assert told == [True, False, True, True, True]
    first, second = {"zone": "N1"}, {"zone": ["S1", "S2"]}
    found, known = page(f"holdfast.ratio({json.dumps(first)}, {json.dumps(second)})"), table.ratio(first, second)
    ends = (-np.inf, np.inf) if found["low"] is None else (found["low"], found["high"])  # JSON has no infinite ones
    assert ends == pytest.approx((known.low, known.high), rel=1e-9)
    ask = quote(json.dumps({"table": "table", "ask": "sum", "a": {"zone": ["N1"]}, "b": {}, "c": 0.9}))
    page(f"location.hash = 'q={ask}'; new Promise(done => setTimeout(done, 300))")
    assert "Python measures this error on simulated draws" in page("document.getElementById('answer').textContent")


def pairs(table, count=6):
    """Pairs of different questions that both have an answer."""
    some = [each for each in asking.questions(table) if asking.answered(lambda: table.estimate(each))]  # noqa: B023
    chosen = np.random.default_rng(1).choice(len(some), (count, 2))
    found = [(some[i], some[j]) for i, j in chosen.tolist()]
    return [(a, b) for a, b in found if (rows_of(table, a) != rows_of(table, b)).any()]


def rows_of(table, where):
    return weights_of(table.certificate, table.columns, where)


@pytest.mark.parametrize("kind", KNOWN)
def test_ratios_and_differences_have_the_numbers_of_python(opened, folders, kind):
    page, cases, expected = opened.page(folders(kind) / "report.html"), [], []
    for name, table in named(folders(kind)):
        for first, second in pairs(table):
            rest = [first, second, 0.9, *([name] if name else [])]
            apart = rows_of(table, first) - rows_of(table, second)
            cases += [["ratio", *rest], ["difference", *rest]]
            expected.append(asking.answered(lambda: table.ratio(first, second, 0.9)))  # noqa: B023
            expected.append(asking.answered(lambda: table.estimate(weights=apart, confidence=0.9)))  # noqa: B023
    compared(page, cases, expected)


@pytest.mark.parametrize("kind", ["histogram", "hierarchy by onto", "hierarchy given", "categories given"])
def test_the_larger_one_is_wrong_as_often_as_intervals_tell(opened, folders, kind):
    """At a confidence a little below, the interval of the difference leaves 0 out; a little above, it does not."""
    page, table = opened.page(folders(kind) / "report.html"), load(folders(kind)).table()
    for first, second in pairs(table):
        found = page(f"holdfast.larger({json.dumps(first)}, {json.dumps(second)})")
        apart = rows_of(table, first) - rows_of(table, second)
        if not 1e-4 < found["wrong"] < 0.49:
            continue
        for confidence, out in ((1 - 2.02 * found["wrong"], True), (1 - 1.98 * found["wrong"], False)):
            known = table.estimate(weights=apart, confidence=confidence)
            assert (known.low > 0 or known.high < 0) == out
            assert not out or (known.low > 0) == (found["larger"] == "first")


def test_noise_says_nothing_against_what_is_certain(opened, folders):
    """A borough is never smaller than one of its zones, whatever the noise makes it look like."""
    page = opened.page(folders("hierarchy by onto") / "report.html")
    found = page("""(() => {
      const table = asked.table(), zone = tables.weightsOf(table, {zone: 'S1'}), centre = zone.map((each) => 90 * each);
      return comparing.larger({...table, centre}, {borough: 'South'}, {zone: 'S1'});
    })()""")
    assert found == {"larger": None, "wrong": 0.5}


def test_a_value_that_bounds_moved_says_which_to_use(opened, folders):
    page = opened.page(folders("hierarchy by onto") / "report.html")
    page("(() => { const table = asked.table(); table.centre[7] = -90; table.low[7] = 0; table.high[7] = 40; })()")
    ask = quote(json.dumps({"table": "table", "ask": "sum", "a": {"zone": ["S3"]}, "b": {}, "c": 0.95}))
    page(f"location.hash = 'q={ask}'; new Promise(done => setTimeout(done, 300))")
    said = page("document.getElementById('answer').textContent")
    assert "Bounds moved this value; without them it would be −90: of one figure believe the interval" in said


def test_ranks_hold_at_once_by_pairs(opened, folders):
    page, table = opened.page(folders("hierarchy by onto") / "report.html"), load(folders("hierarchy by onto")).table()
    zones = [{"zone": zone} for zone in ("N1", "N2", "S1", "S2", "S3")]
    found = page(f"holdfast.rank({json.dumps(zones)}, 0.95)")
    rows = [rows_of(table, zone) for zone in zones]
    for i, each in enumerate(found):
        apart = [table.estimate(weights=rows[i] - other, confidence=1 - 0.05 / 10) for other in rows]
        above, below = (sum(known.high < 0 for known in apart), sum(known.low > 0 for known in apart))
        assert (each["low"], each["high"]) == (1 + above, len(zones) - below)
        assert each["low"] <= each["rank"] <= each["high"]
    assert [(known.value, known.low, known.high) for known in table.rank(zones)] == [
        (each["rank"], each["low"], each["high"]) for each in found
    ]


def test_a_link_holds_the_question_and_the_form_answers_it(opened, folders):
    folder = folders("hierarchy by onto")
    known = load(folder).table().estimate({"zone": ["S1", "S2"]}, confidence=0.9)
    question = {"table": "table", "ask": "sum", "a": {"zone": ["S1", "S2"]}, "b": {}, "c": 0.9}
    address = f"{(folder / 'report.html').as_uri()}#q={quote(json.dumps(question))}"
    page = opened.page(address)
    said = page("document.querySelector('#answer .said').textContent")
    assert said.startswith(f"S1 + S2: {known.value:,.0f} ({known.low:,.0f} to {known.high:,.0f} at 90")
    assert "at least 90 hold the true figure" in page("document.getElementById('answer').textContent")
    page("document.getElementById('kind').value = 'each'")
    page("document.getElementById('kind').dispatchEvent(new Event('change'))")
    assert page("document.querySelectorAll('#answer li').length") == 2
    assert "Bonferroni" in page("document.getElementById('answer').textContent")
    linked = json.loads(page("decodeURIComponent(location.hash.slice(3))"))
    assert linked == question | {"ask": "each"}
    assert page.seen("Runtime.exceptionThrown", "Log.entryAdded") == []


def test_what_cannot_be_asked_is_refused_in_words(opened, folders):
    folder = folders("hierarchy by onto")
    page = opened.page(folder / "report.html")
    asks = {
        "estimate()": "say which rows",
        "estimate([1, 0])": "weights must be 8 numbers, one for each row",
        "estimate(Array(8).fill(NaN))": "weights must be 8 numbers",
        "estimate({zone: 'S1'}, '0.95')": "confidence must lie between 0 and 1",
        "estimate({__proto__: null, constructor: 'S1'})": "there is no column",
        "rank([{zone: 'S1'}])": "ranks are told of 2 to 40 sums",
        "rank(5)": "ranks are told of 2 to 40 sums",
        "rank()": "ranks are told of 2 to 40 sums",
        "ratio({zone: 'S1'}, {zone: 'N9'})": "has no value",
    }
    for ask, words in asks.items():
        assert words in page(
            f"(() => {{ try {{ return holdfast.{ask} }} catch (refusal) {{ return refusal.message }} }})()"
        )
    known, said = '{"table":"table","ask":"sum"', "This link holds no question about these figures."
    odd = (
        '{"table":"table","ask":"constructor"}',
        '{"table":"x","ask":"sum"}',
        f'{known},"a":"zone"}}',
        f'{known},"b":[1]}}',
    )
    for strange in (*odd, "[1", "null", "%00", ""):
        page = opened.page(f"{(folder / 'report.html').as_uri()}#q={quote(strange)}")
        assert page("document.getElementById('answer').textContent") == said
        assert page.seen("Runtime.exceptionThrown", "Log.entryAdded") == []
    self_share = {"table": "table", "ask": "share", "a": {"zone": ["S1"]}, "b": {"zone": ["S1"]}, "c": 0.95}
    page = opened.page(f"{(folder / 'report.html').as_uri()}#q={quote(json.dumps(self_share))}")
    assert "(1 to 1 at 95" in page("document.getElementById('answer').textContent")
    assert page.seen("Runtime.exceptionThrown", "Log.entryAdded") == []


def test_limits_that_are_certain_are_not_called_intervals(opened, folders):
    page = opened.page(folders("given with bounds") / "report.html")
    page("document.querySelector('#walk .pick').click()")
    assert "These limits are certain." in page("document.getElementById('answer').textContent")
    assert "bands limits that are certain" in page("document.getElementById('walk').textContent")


def test_rows_are_picked_by_name_by_paste_and_on_a_walk(opened, folders):
    page = opened.page(folders("hierarchy by onto") / "report.html")
    names = "[...document.querySelectorAll('#walk li .name')].map(each => each.textContent)"
    assert page(names) == ["North", "South"]  # the city alone would be one row
    page("document.querySelectorAll('#walk button.name')[1].click()")
    assert page(names) == ["S1", "S2", "S3"]
    page("document.querySelectorAll('#walk .pick')[2].click()")
    assert page("document.querySelector('#answer .said').textContent").startswith("S3: ")
    page("document.querySelectorAll('#pick-a textarea')[0].value = 'S1, N9'")
    page("document.querySelectorAll('#pick-a textarea')[0].dispatchEvent(new Event('change'))")
    assert "S3 + S1" in page("document.querySelector('#answer .said').textContent")
    assert page("document.querySelector('#answer .warning').textContent") == "Not a value of zone: N9"


REACHED = "[...document.querySelectorAll('a, button, input, select, textarea, summary, [tabindex]')]"
HERE = f"""(() => {{
  const here = document.activeElement, box = here.getBoundingClientRect();
  const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  const said = getComputedStyle(here).outlineStyle !== 'none' && inside ? 'seen' : here.outerHTML.slice(0, 200);
  return [{REACHED}.indexOf(here), said];
}})()"""
KEYS = {"Tab": 9, "Enter": 13, " ": 32}


def pressed(page, key):
    text = {"text": {"Enter": "\r"}.get(key, key)} if key != "Tab" else {}
    page.send("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=KEYS[key], **text)
    page.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=KEYS[key])


@pytest.mark.parametrize("kind", ["hierarchy by onto", "cube", "areas"])
def test_keys_alone_reach_everything_in_order_and_show_where_they_are(opened, folders, kind):
    page, order = opened.page(folders(kind) / "report.html"), []
    page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    for _ in range(200):
        pressed(page, "Tab")
        number, said = page(HERE)
        if number < 0:
            break
        assert said == "seen"
        order.append(number)
    shown = page(f"{REACHED}.map((each) => each.checkVisibility() && each.tabIndex >= 0 && !each.disabled)")
    assert order == [i for i, each in enumerate(shown) if each]  # each once, as they stand on the page


def test_a_question_is_asked_and_answered_by_keys_alone(opened, folders):
    page = opened.page(folders("hierarchy by onto") / "report.html")
    said = "document.querySelector('#answer .said')?.textContent"

    def reach(wanted):
        for _ in range(100):
            pressed(page, "Tab")
            if page(f"document.activeElement.matches({json.dumps(wanted)})"):
                return
        raise AssertionError(f"{wanted} is not reached")

    reach("#pick-a summary")
    pressed(page, "Enter")
    reach("#pick-a .picks input")
    pressed(page, " ")
    first = page(said)
    assert ": " in first
    reach("#walk .pick")
    reach("#walk .pick")  # the second row
    pressed(page, "Enter")
    assert page(said) != first
    assert page("document.getElementById('answer').getAttribute('aria-live')") == "polite"


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    """The script of axe-core, as npm has it."""
    if shutil.which("npm") is None:
        pytest.skip("there is no npm here, which brings axe-core")
    place = tmp_path_factory.mktemp("axe")
    packed = subprocess.run(["npm", "pack", AXE], cwd=place, capture_output=True, check=False, timeout=120)
    if packed.returncode:
        pytest.skip(f"npm could not bring {AXE}")
    with tarfile.open(next(place.glob("*.tgz"))) as found:
        return found.extractfile("package/axe.min.js").read().decode()


@pytest.mark.parametrize("kind", ["hierarchy by onto", "cube", "several tables", "areas"])
@pytest.mark.parametrize(("width", "dark"), [(360, True), (800, False), (1400, False)])
def test_axe_finds_no_violation(opened, folders, axe, kind, width, dark):
    page = opened.page(folders(kind) / "report.html", width, dark=dark)
    page("document.querySelectorAll('details').forEach(each => each.open = true)")
    page("new Promise(done => setTimeout(done, 100))")
    page("document.querySelector('#walk .pick').click()")
    page(f"{axe};0")
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
    assert page(f"axe.run({{runOnly: {tags}}}).then(found => found.violations.map(each => each.id))") == []
    assert page("document.documentElement.scrollWidth") == width


def test_months_are_a_line_whose_words_have_one_size_on_every_screen(opened, tmp_path):
    path = released.written(tmp_path, "histogram", records={})
    months = ", ".join(f'"2026-{month:02d}"' for month in range(1, 13))
    path.write_text(path.read_text().replace("age: [child, adult, old]", f"age: [{months}]"), encoding="utf-8")
    folder = release(Job.from_spec(read_spec(path)))
    for width in (360, 800, 1400):
        page = opened.page(folder / "report.html", width)
        line = page("document.querySelector('#walk .line').getAttribute('d')")
        assert line.count("L") == 11
        assert page("document.querySelector('#walk svg').getScreenCTM().a") == pytest.approx(1, abs=0.01)
        assert page("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize(("width", "dark"), [(360, True), (1400, False)])
def test_axe_finds_no_violation_in_the_index_of_a_site(opened, folders, axe, tmp_path, width, dark):
    index = site([folders(kind) for kind in ("hierarchy by onto", "cube")], tmp_path / "site")
    page = opened.page(index, width, dark=dark)
    page(f"{axe};0")
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
    assert page(f"axe.run({{runOnly: {tags}}}).then(found => found.violations.map(each => each.id))") == []
    assert page("document.documentElement.scrollWidth") == width


def test_no_label_becomes_a_script_or_an_element(opened, tmp_path):
    rng = np.random.default_rng(7)
    pieces = ["<script>window.taken=1</script>", "</script>", "<!--", "]]>", "${1}", "`", '"', "\\", "'", "&lt;"]
    pieces += ["\u2028", "é", "<img src=x>", "x", "\u202eשלום", "👩‍👩‍👧", "long" * 75]
    labels = [f"{i}" + "".join(rng.choice(pieces, 4)) for i in range(40)]
    path = released.written(tmp_path, "histogram", records={})
    written = json.dumps(labels).replace(json.dumps("👩")[1:-1], "👩").replace(json.dumps("👧")[1:-1], "👧")
    path.write_text(path.read_text().replace("age: [child, adult, old]", f"age: {written}"), encoding="utf-8")
    page = opened.page(release(Job.from_spec(read_spec(path))) / "report.html", 360)
    assert page("document.documentElement.scrollWidth") == 360
    assert page("window.taken === undefined && !document.querySelector('main img')")
    assert page("JSON.parse(document.getElementById('data').textContent)[0].names.age.texts") == labels
    table = load(tmp_path / "out").table()
    for label in labels[:5]:
        known = table.estimate({"age": label})
        assert page(f"holdfast.estimate({json.dumps({'age': label})}).low") == known.low
    page("document.querySelector('#walk .pick').click()")
    assert page.seen("Runtime.exceptionThrown", "Log.entryAdded") == []


def test_names_are_pasted_as_they_are_or_as_a_line_of_a_table(opened, tmp_path):
    path, labels = (
        released.written(tmp_path, "histogram", records={}),
        ["1,000", 'Z, "1"', "semi;colon", "plain", "other"],
    )
    path.write_text(
        path.read_text().replace("age: [child, adult, old]", f"age: {json.dumps(labels)}"), encoding="utf-8"
    )
    page = opened.page(release(Job.from_spec(read_spec(path))) / "report.html")
    page("document.querySelector('#pick-a details').open = true")
    pasted = {
        "1,000": ["1,000"],
        'Z, "1"\nplain': ['Z, "1"', "plain"],
        '"Z, ""1""";"semi;colon", other': ['Z, "1"', "semi;colon", "other"],
        "plain\tother": ["plain", "other"],
    }
    for text, names in pasted.items():
        page("document.querySelectorAll('#pick-a input:checked').forEach((each) => each.click())")
        page(f"document.querySelector('#pick-a textarea').value = {json.dumps(text)}")
        page("document.querySelector('#pick-a textarea').dispatchEvent(new Event('change'))")
        assert page("document.querySelector('#answer .warning')?.textContent ?? ''") == ""
        picked = page(
            "[...document.querySelectorAll('#pick-a input:checked')].map((each) => each.parentNode.textContent.trim())"
        )
        assert sorted(picked) == sorted(names)


@pytest.mark.parametrize("column", ["constructor", "__proto__", "toString"])
def test_a_column_has_any_name(opened, tmp_path, column):
    path = released.written(tmp_path, "histogram", records={})
    for each in (path, tmp_path / "trips.csv"):
        each.write_text(each.read_text().replace("age", column), encoding="utf-8")
    page, table = opened.page(release(Job.from_spec(read_spec(path))) / "report.html"), load(tmp_path / "out").table()
    page("document.querySelectorAll('#walk .pick')[1].click()")
    assert page("document.querySelector('#answer .said').textContent").startswith("adult: ")
    page = opened.page(page("location.href"))  # the link that holds the question
    assert page("document.querySelector('#answer .said').textContent").startswith("adult: ")
    known = table.estimate({column: ["adult", "old"]}, confidence=0.9)
    assert page(f"holdfast.estimate({{['{column}']: ['adult', 'old']}}, 0.9).low") == pytest.approx(known.low, rel=1e-9)
    assert page.seen("Runtime.exceptionThrown", "Log.entryAdded") == []


def test_rows_of_a_table_too_large_for_the_page_come_from_its_file(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(asked, "HELD", 2)
    folder = release(released.job(tmp_path, "moved"))
    page, table = opened.page(folder / "report.html"), load(folder).table()
    assert not page("document.getElementById('rows-file').hidden")
    document = page.send("DOM.getDocument")["root"]["nodeId"]
    found = page.send("DOM.querySelector", nodeId=document, selector="#rows-file input")["nodeId"]
    page.send("DOM.setFileInputFiles", nodeId=found, files=[str(folder / "table.csv")])
    page("new Promise(done => setTimeout(done, 300))")
    assert not page("document.getElementById('asking').hidden")
    known = table.estimate({"zone": "S2"})
    answer = page("holdfast.estimate({zone: 'S2'})")
    assert (answer["value"], answer["low"], answer["high"]) == (known.value, known.low, known.high)
