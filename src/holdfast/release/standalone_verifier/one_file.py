"""The rule book as one file: the modules of this room behind each other, without what they import of it."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

NAME = "verify.py"
_PARTS = ("ed25519", "reading", "commitment", "sums", "rules", "table", "facts", "verify")
_OWN = re.compile(r"^from holdfast\.\S+ import (\([^)]*\)|[^(\n]*)\n", re.MULTILINE)
_FUTURE = "from __future__ import annotations\n"


@cache
def one_file() -> str:
    """Return the file that is put into every release."""
    room = resources.files("holdfast.release.standalone_verifier")
    texts = [room.joinpath(f"{part}.py").read_text(encoding="utf-8") for part in _PARTS]
    head, _, body = texts[-1].partition(_FUTURE)
    parts = [_OWN.sub("", text.partition(_FUTURE)[2]) for text in texts[:-1]]
    return head + _FUTURE + "".join([*parts, _OWN.sub("", body)])
