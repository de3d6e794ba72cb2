"""Names that are loaded when they are first used: who reads a certificate need not load what draws tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_demand(room: str, places: Mapping[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """The `__getattr__` of a room, which fetches each name from the module below it that is said to hold it."""
    place_of = {name: place for place, names in places.items() for name in names}

    def fetch(name: str) -> Any:
        if name not in place_of:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        module = import_module(f"{room}.{place_of[name]}")
        value = module if name == place_of[name] else getattr(module, name)
        setattr(sys.modules[room], name, value)
        return value

    return fetch
