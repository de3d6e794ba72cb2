"""A small site of reproductions: plain pages that need no script and no network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, Template, select_autoescape
from markupsafe import Markup

from holdfast.arguments import Refused
from holdfast.papers.catalogue import ITEMS, Paper
from holdfast.papers.reproduction import Reproduction
from holdfast.version import __version__


def pages(found: Sequence[Reproduction], data: str) -> dict[str, str]:
    """The pages by their file names; `data` says where the data came from."""
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    about = {
        "style": Markup(style),
        "policy": f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        "svg": lambda picture: Markup(str(picture)),
    }
    papers: dict[Paper, list[Reproduction]] = {}
    for each in found:
        paper = next(item.paper for item in ITEMS if item.name == each.name)
        papers.setdefault(paper, []).append(each)
    seconds = sum(each.seconds for each in found)
    index = _template("index.html").render(
        papers=papers.items(), data=data, version=__version__, seconds=seconds, **about
    )
    made = {f"{each.name}.html": _template("item.html").render(item=each, **about) for each in found}
    return {"index.html": index, **made}


def write(folder: Path, found: Sequence[Reproduction], data: str) -> Path:
    """Write the site into a folder that is made where there is none; return its first page."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in pages(found, data).items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Refused(f"{str(folder)!r} cannot be written: {error.strerror}; name another folder") from None
    return folder / "index.html"


def _style() -> str:
    return resources.files("holdfast.papers").joinpath("templates", "papers.css").read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("holdfast.papers"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _template(name: str) -> Template:
    return _environment().get_template(name)
