"""Names that are loaded when they are first used: who reads a certificate need not load what draws tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


class Later:
    """A module that is loaded when something of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


#: What takes long to load and few calls need.
linalg: Any = Later("scipy.linalg")
sparse_linalg: Any = Later("scipy.sparse.linalg")
csgraph: Any = Later("scipy.sparse.csgraph")
special: Any = Later("scipy.special")


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
