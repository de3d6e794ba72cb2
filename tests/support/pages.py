"""Code that stands in pages of the project."""

import re

from scripts import ROOT


def blocks(page):
    """The blocks of Python in a page, given from the project's root."""
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
