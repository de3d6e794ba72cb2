"""The site: Sphinx reads these pages, runs their code and prints below each block what it shows (script/docs)."""

import os
import re
import sys
from functools import cache
from pathlib import Path

from sphinx.search.en import SearchEnglish

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "script"))
sys.path.insert(0, str(HERE.parent / "src"))

import run_pages as pages  # noqa: E402

import holdfast  # noqa: E402

project, author, version = "holdfast", "the authors of holdfast", holdfast.__version__
project_copyright = "the authors of holdfast; Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown", ".ipynb": "markdown"}
exclude_patterns = ["_build"]
default_role = "code"
nitpicky = False

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["myst.header"]  # pages made by scripts begin tables of their own under level 2

autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_custom_sections = ["Law", "Guarantee"]

html_theme = "pydata_sphinx_theme"
html_title = "holdfast"
html_static_path = ["_static"]
html_css_files = ["holdfast.css"]
html_show_sourcelink = False
html_sidebars = {"gallery/index": [], "known-limits": [], "papers/index": [], "index": []}
html_copy_source = False
html_show_search_summary = False  # a page of the disk may not fetch others
SearchEnglish.stem = cache(SearchEnglish.stem)  # the same words come again and again
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

#: `HOLDFAST_DOCS_RUN=0 script/docs` builds without running any code: to look at the words alone.
RUN = os.environ.get("HOLDFAST_DOCS_RUN", "1") != "0"

#: |x| would be a substitution, 2**62 the beginning of bold text.
SIGNS = re.compile(r"\||(?<=\d)\*(?=\*)|(?<=\*)\*(?=\d)")


def run_page(app, name, source):
    """A notebook becomes a page, the code of a page runs, and an index gets its tree of contents."""
    path = Path(app.env.doc2path(name))
    text = pages.markdown_of(source[0]) if path.suffix == ".ipynb" else source[0]
    if RUN and pages.blocks(text) and not pages.NEEDS.search(text):
        text = pages.with_results(text, pages.run(text, name))
    below = pages.toctree(path)
    if below:
        entries = "\n".join(str(each.relative_to(path.parent).with_suffix("")) for each in below)
        text += f"\n\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n"
    source[0] = text


def plain_docstring(*told):
    """Signs of the mathematics that reStructuredText would take for its own are escaped, outside of code."""
    lines = told[-1]
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = re.split(r"(`[^`]*`)", line)
            lines[i] = "".join(part if part.startswith("`") else SIGNS.sub(r"\\\g<0>", part) for part in parts)


def setup(app):
    """What happens while the site is made."""
    app.connect("source-read", run_page)
    app.connect("autodoc-process-docstring", plain_docstring, priority=400)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
