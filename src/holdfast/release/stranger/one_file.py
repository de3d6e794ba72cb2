"""The checks of a stranger as one file: the modules of this room behind each other, without what they import of it."""

from __future__ import annotations

from functools import cache
from importlib import resources

NAME = "verify.py"
_PARTS = ("ed25519", "reading", "areas", "table", "runs", "verify")
_FUTURE = "from __future__ import annotations\n"


@cache
def one_file() -> str:
    """Return the file that is put into every release."""
    room = resources.files("holdfast.release.stranger")
    texts = [room.joinpath(f"{part}.py").read_text(encoding="utf-8") for part in _PARTS]
    head, _, body = texts[-1].partition(_FUTURE)
    parts = [_without_imports(text.partition(_FUTURE)[2]) for text in texts[:-1]]
    return head + _FUTURE + "".join([*parts, _without_imports(body)])


def _without_imports(text: str) -> str:
    """Leave out what is imported of this room: it stands above."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("from holdfast."))
