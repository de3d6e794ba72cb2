"""Pages of the project: the code in them, and where their links lead."""

import html
import re
from pathlib import Path
from urllib.parse import unquote, urldefrag

from scripts import ROOT, program

running = program("script/run_pages.py")
LINK = re.compile(r"(?<!`)\[[^\]\n]*(?:\n[^\]\n]*)?\]\((?P<to>[^)\s]+)\)")
ADDRESS, PLACE = re.compile(r'\b(?:href|src)="([^"]*)"'), re.compile(r'\bid="([^"]*)"')
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """The blocks of Python in a page, given from the project's root."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [block.code for block in running.blocks(text) if block.kind == "python"]


def every_page():
    """README, changes, and all pages of docs and benchmarks with the notebooks."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md"]
    return [*found, *running.of_site()]


def links(path):
    """Where the links of a page lead, without those that leave the project."""
    text = FENCED.sub("", running.text_of(path))
    return [to for to in (each["to"] for each in LINK.finditer(text)) if not re.match(r"[a-z]+:", to)]


def anchors(path):
    """The headings of a page, as links name them (GitHub's rule)."""
    lines = re.findall(r"^#+ (.+)$", FENCED.sub("", running.text_of(path)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


def target(path, to):
    """The file and the heading to which a link of a page leads."""
    file, _, heading = to.partition("#")
    return (Path(path.parent, file).resolve() if file else path), heading


def built(site):
    """The pages of a site that was built, by their path in it; what the theme is made of is none."""
    found = {path.relative_to(site).as_posix(): path for path in sorted(Path(site).rglob("*.html"))}
    return {name: path for name, path in found.items() if not name.startswith("_static/")}


def broken_links(site):
    """The links of a built site that lead to no file of it, or to no place in the page."""
    texts = {path.resolve(): path.read_text(encoding="utf-8") for path in site.values()}
    places = {path: set(PLACE.findall(text)) for path, text in texts.items()}
    broken = []
    for name, path in site.items():
        for to in dict.fromkeys(ADDRESS.findall(texts[path.resolve()])):
            address, place = urldefrag(html.unescape(to))
            if re.match(r"[a-z]+:|//", address) or to in ("", "#"):
                continue
            file = (path.parent / unquote(address.partition("?")[0])).resolve() if address else path.resolve()
            if not file.exists() or (place and file in places and unquote(place) not in places[file]):
                broken.append(f"{name}: {to}")
    return broken
