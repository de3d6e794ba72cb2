"""Pages filled in from templates of a room: every text is escaped, and a policy allows nothing but what is in them."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template, select_autoescape
from markupsafe import Markup


@cache
def text_of(room: str, name: str) -> str:
    """The text of a file among the templates of a room."""
    return resources.files(room).joinpath("templates", name).read_text(encoding="utf-8")


def policy_of(style: str, script: str | None = None, *more: str) -> str:
    """The content security policy of a page with this style and script, by their hashes, and what else it needs."""
    scripts = () if script is None else (f"script-src '{_hashed(script)}'",)
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src '{_hashed(style)}'",
            *scripts,
            *more,
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def filled(room: str, name: str, **values: Any) -> str:
    """Fill in a template of a room; `svg` writes a picture."""
    return template(room, name).render(svg=lambda picture: Markup(str(picture)), **values)


def _hashed(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def template(room: str, name: str) -> Template:
    """A template of a room, in which every text is escaped."""
    environment = Environment(
        loader=PackageLoader(room),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)
