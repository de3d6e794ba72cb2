"""Pages: their code runs as it stands, their links lead somewhere, and the site shows all of them."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

import pages
from scripts import ROOT

#: Pages that start a cluster are slow.
RUN = [
    pytest.param(str(path.relative_to(ROOT)), marks=[pytest.mark.slow] * bool(pages.running.needs(path)))
    for path in pages.running.pages()
]
#: Pictures that a page shows at least.
PICTURES = {"docs/gallery/index.md": 12}


@pytest.mark.parametrize("page", RUN)
def test_the_code_of_a_page_runs(page):
    text = pages.running.text_of(ROOT / page)
    needs = pages.running.needs(ROOT / page)
    if missing := [name for name in needs if find_spec(name) is None]:
        pytest.skip(f"{page} needs {', '.join(missing)}, which is not installed")
    if needs:  # such a page may change what others find in the process
        command = [sys.executable, ROOT / "script" / "run_pages.py", page]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    else:
        shown = pages.running.run(text, page)
        if page.endswith(".ipynb"):  # whoever opens it without running it sees what its cells show
            cells = [cell for cell in json.loads((ROOT / page).read_text())["cells"] if cell["cell_type"] == "code"]
            kept = [bool(cell["outputs"]) for cell in cells]
            assert kept == [bool(each.printed.strip() or each.html) for each in shown], "script/run_pages.py --keep"
        assert sum("hf-picture" in each.html for each in shown) >= PICTURES.get(page, 0)


def test_links_lead_to_files_and_headings_that_are_there():
    broken = []
    for path in pages.every_page():
        for to in pages.links(path):
            file, heading = pages.target(path, to)
            if not file.exists() or (heading and file.suffix == ".md" and heading not in pages.anchors(file)):
                broken.append(f"{path.relative_to(ROOT)}: {to}")
    assert not broken


def test_every_page_of_the_site_is_reached_from_its_index():
    seen, waiting = set(), [ROOT / "docs" / "index.md"]
    while waiting:
        path = waiting.pop()
        seen.add(path)
        waiting += [page for page in pages.running.toctree(path) if page not in seen]
    assert set(pages.running.of_site()) == seen


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_site_is_built_without_a_warning_and_its_links_lead_somewhere(tmp_path):
    """The words alone: the code of pages and notebooks runs in tests of its own, and in script/docs."""
    made = tmp_path / "site"
    build = "import gc, sys; gc.disable(); from sphinx.cmd.build import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", build, "-W", "--keep-going", "-E", "-q", "-d", tmp_path / "kept", "docs", made]
    words_alone = {**os.environ, "HOLDFAST_DOCS_RUN": "0"}
    told = subprocess.run(command, cwd=ROOT, env=words_alone, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert (made / "searchindex.js").exists()  # search needs no network
    assert len(pages.built(made)) > len(pages.running.of_site())
    assert not pages.broken_links(pages.built(made))


def test_a_link_of_the_site_that_leads_nowhere_is_found(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "a.html").write_text('<p id="here"></p><a href="below/b.html#there"></a><a href="#here"></a>')
    (tmp_path / "below" / "b.html").write_text('<p id="there"></p><a href="../a.html#gone"></a><img src="c.png?v=1">')
    assert pages.broken_links(pages.built(tmp_path)) == ["below/b.html: ../a.html#gone", "below/b.html: c.png?v=1"]


def test_the_first_page_fits_a_screen_or_two():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("```python\n1 / 0\n```\n", "division"),
        ("```python\nx = 1\n```\n\n<!-- hidden\nassert x == 2, x\n-->\n", "1"),
        ("```yaml\ndata: {source: trips.csv}\nprivacy: {epsilon: 1}\n```\n", "title"),
        ("```console\n$ holdfast plan nowhere.yaml\n```\n", "nowhere"),
        ("```console\n$ rm file\n```\n", "holdfast"),
    ],
)
def test_a_page_that_does_not_run_is_found(text, words):
    with pytest.raises(Exception, match=words):
        pages.running.run(text, "a page")


def test_results_stand_below_their_blocks_and_what_is_hidden_is_gone():
    text = "# A\n```python\nprint(1)\n2 + 2\n```\n<!-- hidden\nx = 5\n-->\nmore\n"
    made = pages.running.with_results(text, pages.running.run(text, "a page"))
    assert "1\n4\n" in made
    assert "hidden" not in made
    assert made.endswith("more\n")
