"""The planner in a real browser, by keyboard and by hand: what it shows is what the library computes."""

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

import browser
from holdfast.release.job.job import Job
from holdfast.release.plan import plan
from holdfast.release.spec.spec import read_spec
from jobs import ZONES, tree

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(browser.binary() is None, reason="there is no Chromium here: apt-get install chromium"),
]
TROUBLE = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
SPEC = tree(
    table="guess: 50, shares: {city: 0.2, borough: 0.3, zone: 0.5}",
    rest="hold: [consistent, nonnegative]\nmethod: onto",
)
FIGURES = (
    "Object.fromEntries([...document.querySelectorAll('.errors tr[data-level]')]"
    ".map(row => [row.dataset.level, Number(row.dataset.error)]))"
)
SHOWN = (
    "Object.fromEntries([...document.querySelectorAll('.errors tr[data-level]')]"
    ".map(row => [row.dataset.level, row.querySelector('strong').textContent]))"
)
NAMELESS = (
    "[...document.querySelectorAll('input, select, textarea, button')]"
    ".filter(each => !(each.labels?.length || each.ariaLabel || each.textContent.trim())).length"
)
REFUSED = "document.getElementById('refused')"


class Served:
    """A planner in a process of its own."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "zones.csv").write_text(ZONES)
        (folder / "spec.yaml").write_text(f"title: Test\noutput: out\n{SPEC}")
        command = [sys.executable, "-m", "holdfast.cli", "page", "spec.yaml", "--no-open"]
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.address = self.process.stdout.readline().split()[-1]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    found = Served(tmp_path_factory.mktemp("planner"))
    yield found
    found.process.kill()
    found.process.wait()
    found.process.stdout.close()


@pytest.fixture(scope="module")
def opened():
    with browser.Browser() as found:
        yield found


def until(page, condition, seconds=60):
    """Wait for something to become true in the page."""
    end = time.monotonic() + seconds
    while not page(condition):
        assert time.monotonic() < end, f"{condition}: {page('document.body.innerText')[:3000]}"
        time.sleep(0.05)


def measured(page):
    until(page, "document.getElementById('status')?.textContent.startsWith('Measured, as')")


def press(page, key, times=1):
    for _ in range(times):
        for kind in ("keyDown", "keyUp"):
            page.send("Input.dispatchKeyEvent", type=kind, key=key, code=key)


def typed(page, field, words):
    """Put words into a field and leave it, as a person does."""
    page(
        f"(() => {{ const box = document.getElementById('{field}'); box.focus(); box.value = '{words}';"
        "box.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )


def click(page, field):
    page(f"document.getElementById('{field}').click()")


def test_it_opens_in_silence_asks_nobody_else_and_fits(opened, served):
    for width, dark in ((390, True), (820, False), (1440, False)):
        page = opened.page(served.address, width, dark=dark)
        measured(page)
        assert page.seen(*TROUBLE) == []
        asked = {each["request"]["url"] for each in page.seen("Network.requestWillBeSent")}
        assert [address for address in asked if not address.startswith((served.address, "data:"))] == []
        assert page("document.documentElement.scrollWidth") == width
        assert page(NAMELESS) == 0


def test_a_slider_moved_by_keys_changes_the_figure_that_the_library_computes(opened, served):
    page = opened.page(served.address)
    measured(page)
    before, amount = page(FIGURES), page("document.getElementById('epsilon').value")
    page("document.getElementById('epsilon-slider').focus()")
    press(page, "ArrowRight", 12)
    until(page, f"document.getElementById('epsilon').value !== '{amount}'")
    until(page, f"document.querySelector('.errors tr[data-level=zone]').dataset.error !== '{before['zone']}'")
    measured(page)
    text = page("document.getElementById('spec').textContent")
    path = served.folder / "shown.yaml"
    path.write_text(text)
    job = Job.from_spec(read_spec(path))
    assert float(job.spec.privacy.epsilon) > 1.2
    assert page(FIGURES) == {level.level: level.expected_absolute_error for level in plan(job).tables[0].levels}
    click(page, "undo")
    until(page, f"document.getElementById('epsilon').value === '{amount}'")
    measured(page)
    assert page(FIGURES) == before
    assert page.seen(*TROUBLE) == []


def test_one_line_says_what_was_moved_and_what_that_did(opened, served):
    page, line = opened.page(served.address), "document.getElementById('changed').textContent"
    measured(page)
    assert page(line) == ""
    before = page(SHOWN)
    typed(page, "epsilon", "0.5")
    until(page, f"{line} !== ''")
    measured(page)
    errors = ", ".join(f"{level} {before[level]} → {error}" for level, error in page(SHOWN).items())
    assert page(line) == f"ε 1 → 0.5: {errors}"
    page("document.querySelector('input[value=nonnegative]').click()")
    until(page, f"{line}.startsWith('without nonnegative: ')")
    typed(page, "epsilon", "much")
    until(page, f"!{REFUSED}.hidden")
    assert page(line) == ""


def test_figures_follow_while_a_slider_is_dragged(opened, served):
    """An answer is shown although the slider has been moved on; slow answers must not wait for the end of it."""
    page = opened.page(served.address)
    measured(page)
    page(
        "const strip = document.getElementById('strip'); window.seen = [];"
        "new MutationObserver(() => seen.push(strip.firstChild.textContent)).observe(strip, {childList: true});"
        "const real = window.fetch;"
        "window.fetch = async (...sent) => { const found = await real(...sent);"
        "await new Promise((done) => setTimeout(done, 500)); return found; };"
        "document.getElementById('epsilon-slider').focus()"
    )
    moved = []
    for _ in range(2):
        press(page, "ArrowRight")
        moved.append("ε " + page("document.getElementById('epsilon').value"))
    until(page, f"seen.includes('{moved[1]}')")
    assert moved[0] != moved[1]
    assert page("seen")[:2] == moved


def test_an_error_that_is_wanted_moves_the_budget_and_the_split(opened, served):
    page = opened.page(served.address)
    measured(page)
    for follow, box in ((False, "wanted-0-2"), (True, "wanted-0-0")):
        if follow:
            page("document.getElementById('follow').checked = true")
        typed(page, box, "1.5")
        until(page, "document.getElementById('status').textContent.startsWith('Solving') === false")
        until(page, "!document.getElementById('epsilon').value.match(/^1$/)")
        until(page, "Number(document.querySelector('.errors tr[data-level=zone]').dataset.error) < 1.7")
    measured(page)
    found = page(FIGURES)
    assert max(found["zone"], found["city"]) == pytest.approx(1.5, abs=0.15)


def test_a_refusal_shows_its_sentence_and_goes_away(opened, served):
    page = opened.page(served.address)
    measured(page)
    typed(page, "epsilon", "-1")
    until(page, f"!{REFUSED}.hidden")
    assert "must be above 0, found -1" in page(f"{REFUSED}.textContent")
    assert page(f"{REFUSED}.getAttribute('role')") == "alert"
    click(page, "undo")
    until(page, f"{REFUSED}.hidden")
    typed(page, "others-0", "{between: {low: 9, high: 3}}")
    until(page, f"!{REFUSED}.hidden")
    assert "low must not exceed high" in page(f"{REFUSED}.textContent")


def test_best_is_what_the_spec_says_and_shares_begin_there(opened, served):
    page = opened.page(served.address)
    measured(page)
    page("document.querySelector('input[name=kind][value=rho]').click()")
    page("document.querySelector('input[name=split-0][value=best]').click()")
    until(page, "document.getElementById('spec').textContent.includes('shares: best')")
    assert page("getComputedStyle(document.querySelector('.slide.share')).display") == "none"
    until(page, "document.querySelector('.errors tr[data-level=zone]').dataset.share")
    found = page("document.querySelector('.errors tr[data-level=zone]').dataset.share")
    page("document.querySelector('input[name=split-0][value=shares]').click()")
    until(page, f"document.getElementById('share-0-2').value === '{found}'")
    until(page, f"document.getElementById('spec').textContent.includes('zone: {found}')")
    assert page(f"{REFUSED}.hidden")
    assert page.seen(*TROUBLE) == []


def test_all_of_it_is_reached_by_keys_and_named_for_who_cannot_see(opened, served):
    page = opened.page(served.address)
    measured(page)
    wanted = page(
        "[...document.querySelectorAll('input, select, textarea, button')].filter(each => !each.disabled &&"
        "each.offsetParent && (each.type !== 'radio' || each.checked)).map(each => each.id || each.name + each.value"
        "|| each.dataset.slides || each.className)"
    )
    reached, shown = [], []
    for _ in range(4 * len(wanted)):
        for kind in ("keyDown", "keyUp"):
            page.send("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        here, seen = page(
            "(() => { const each = document.activeElement; return [each.id || each.name + each.value ||"
            "each.dataset.slides || each.className, getComputedStyle(each).outlineStyle !== 'none' ||"
            "each.type === 'radio' || each === document.body]; })()"
        )
        reached.append(here)
        shown.append(seen)
        if "write" in reached:
            break
    assert [each for each in reached if each in wanted] == wanted  # in the order in which they stand
    assert all(shown)
    nodes = [node for node in page.send("Accessibility.getFullAXTree")["nodes"] if not node.get("ignored")]
    roles = [node["role"]["value"] for node in nodes]
    for role in ("main", "form", "banner", "slider", "textbox", "radiogroup"):
        assert role in roles, role
    assert {"alert", "status"} & set(roles)
    spoken = {"slider", "textbox", "radio", "checkbox", "combobox", "button", "table", "region", "image", "heading"}
    nameless = [node for node in nodes if node["role"]["value"] in spoken and not node.get("name", {}).get("value")]
    assert not nameless
    sizes = [p["value"]["value"] for n in nodes for p in n.get("properties", ()) if p["name"] == "level"]
    assert sizes[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(sizes))


def test_two_tabs_and_two_plans_do_not_disturb_each_other(opened, served):
    one, other = (opened.page(served.address) for _ in range(2))
    measured(one), measured(other)
    click(one, "keep")
    typed(one, "epsilon", "0.5")
    typed(other, "epsilon", "4")
    measured(one), measured(other)
    assert one(FIGURES)["zone"] > 4 * other(FIGURES)["zone"]
    assert "epsilon: 0.5" in one("document.getElementById('spec').textContent")
    shown = one("document.getElementById('compare').innerText")
    assert "kept plan" in shown
    assert "ε = 1" in shown
    assert "ε = 0.5" in shown


def test_the_spec_is_copied_as_it_is_shown(opened, served):
    page = opened.page(served.address)
    measured(page)
    typed(page, "epsilon", "0.7")
    measured(page)
    page("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    click(page, "copy")
    until(page, "document.getElementById('told').textContent !== ''")
    assert "epsilon: 0.7" in page("window.copied")
    assert page("window.copied") == page("document.getElementById('spec').textContent")


def test_it_asks_before_it_writes_over_a_file(opened, served):
    page = opened.page(served.address)
    measured(page)
    path = served.folder / "spec.yaml"
    before = path.read_text()
    typed(page, "epsilon", "0.7")
    measured(page)
    click(page, "write")
    until(page, "!document.getElementById('asked').hidden")
    click(page, "not-over")
    assert path.read_text() == before
    click(page, "write")
    until(page, "!document.getElementById('asked').hidden")
    click(page, "over")
    until(page, "document.getElementById('told').textContent.startsWith('Wrote spec.yaml')")
    assert "epsilon: 0.7" in path.read_text()
    path.write_text(before)


def test_other_pages_and_addresses_without_the_token_are_refused(opened, served, tmp_path):
    """A page of another port stands for one of the web: its requests carry another origin."""
    (tmp_path / "index.html").write_text("<title>elsewhere</title>")
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", tmp_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as foreign:
        try:
            page = opened.page(foreign.stdout.readline().split("(")[1].split(")")[0])
            for mode in ("cors", "no-cors"):
                ask = f"fetch('{served.address}plan', {{method: 'POST', body: '{{}}', mode: '{mode}'}})"
                assert page(ask + ".then(() => 'read', () => 'refused')") == "refused"
        finally:
            foreign.kill()
    without = served.address.rsplit("/", 2)[0]
    for address in (f"{without}/", f"{without}/another-token/"):
        page = opened.page(address)
        assert page("document.querySelectorAll('input').length") == 0
        (status,) = {each["response"]["status"] for each in page.seen("Network.responseReceived")[:1]}
        assert status in (403, 404)


def test_a_planner_that_was_killed_while_it_answers_is_missed(opened, tmp_path):
    mine = Served(tmp_path)
    try:
        page = opened.page(mine.address)
        measured(page)
        typed(page, "epsilon", "0.9")
        mine.process.kill()
        until(page, f"!{REFUSED}.hidden")
        assert "The planner does not answer" in page(f"{REFUSED}.textContent")
        assert page("document.getElementById('epsilon').value") == "0.9"
    finally:
        mine.process.kill()
        mine.process.wait()
        mine.process.stdout.close()


def test_a_planner_that_was_stopped_is_missed_and_nothing_is_lost(opened, served):
    """The last test of this file: it stops the planner."""
    page = opened.page(served.address)
    measured(page)
    os.kill(served.process.pid, signal.SIGINT)
    assert served.process.wait(20) == 0
    assert "the planner has stopped" in served.process.stdout.read()
    typed(page, "epsilon", "0.9")
    until(page, f"!{REFUSED}.hidden")
    assert "The planner does not answer" in page(f"{REFUSED}.textContent")
    assert "title: Test" in page("document.getElementById('spec').textContent")
    assert page("document.getElementById('epsilon').value") == "0.9"
    assert not Path(served.folder, "holdfast-ledger.sqlite").exists()
