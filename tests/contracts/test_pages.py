"""The code that stands in pages runs as it stands, block after block."""

import pytest

from pages import blocks

#: Pages whose code needs nothing but the library.
PAGES = {
    "README.md": 3,
    "docs/how-to/census.md": 2,
    "docs/how-to/noise-made-for-exact-figures.md": 1,
    "docs/how-to/refine.md": 2,
    "docs/how-to/report.md": 1,
    "docs/how-to/what-totals-give-away.md": 2,
}


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page):
    sources = blocks(page)
    assert len(sources) == PAGES[page]
    names = {"__name__": "page"}
    for number, source in enumerate(sources, 1):
        exec(compile(source, f"{page}, block {number}", "exec"), names)
