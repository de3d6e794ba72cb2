"""Reading YAML safely with the line of every key, and the error that says where, what was found and what is allowed."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path, PurePath
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from holdfast.arguments import Refused, shown

#: A key of a mapping or the number of an entry of a list, from the top down.
Place = tuple[str | int, ...]
#: A spec is a page or two; more is a mistake (a data file, say).
MOST_BYTES = 1_000_000
#: What the words of the YAML reader usually mean.
HINTS = {
    "mapping values are not allowed": "a text with a colon in it needs quotes",
    "'\\t'": "indent with spaces, not tabs",
    "expected ',' or": "a bracket or brace is not closed",
    "duplicate key": "write every key once",
}
#: Entries of a long list that a message shows.
_SHOWN = 12


class SpecError(Refused):
    """Something in a spec cannot be used: where it is, what was found, what is allowed, and the nearest valid name."""

    def __init__(
        self,
        message: str,
        *,
        line: int | None = None,
        key: str | None = None,
        found: Any = None,
        allowed: tuple[str, ...] = (),
        nearest: str | None = None,
    ) -> None:
        super().__init__(message)
        self.line, self.key, self.found, self.allowed, self.nearest = line, key, found, allowed, nearest
        where = re.findall("[a-z]+", ".".join((key or "").split(".")[:2]))  # names of one's own stand further in
        self.code = "-".join(["HF-SPEC", *where]).upper()

    def as_mapping(self) -> dict[str, Any]:
        return {
            "message": str(self),
            "line": self.line,
            "key": self.key,
            "found": None if self.found is None else str(self.found),
            "allowed": list(self.allowed),
            "nearest": self.nearest,
        }


@dataclass(frozen=True)
class Places:
    """The line of every key and entry of one YAML file, or of a mapping, which has no lines."""

    file: Path
    lines: dict[Place, int | None] = field(default_factory=dict)

    def line(self, place: Place) -> int | None:
        """The line of a place, or of the nearest place around it that was written; None where there are no lines."""
        for end in range(len(place), -1, -1):
            if place[:end] in self.lines:
                return self.lines[place[:end]]
        return None

    def resolve(self, text: str) -> Path:
        """Return a path that is written in the file, relative to its folder, as an absolute one."""
        try:
            return Path(self.file.parent, Path(text).expanduser()).absolute()
        except RuntimeError:
            raise self.error((), f"{text!r} names the home of a user who is not here: write the whole path") from None

    def error(self, place: Place, sentence: str, found: Any = None, allowed: Iterable[Any] = ()) -> SpecError:
        """Make the error for a place; `sentence` says what is wrong, the allowed values are added to it."""
        options = tuple(str(option) for option in allowed)
        nearest = None
        if options and found is not None:
            bare = {option.removeprefix("{").removesuffix(": ...}"): option for option in options}
            nearest = next((bare[near] for near in difflib.get_close_matches(str(found), bare, n=1)), None)
        text = sentence
        if options:
            more = f" and {len(options) - _SHOWN} more" if len(options) > _SHOWN else ""
            text += f"; allowed: {', '.join(options[:_SHOWN])}{more}"
        if nearest is not None:
            text += f"; did you mean {nearest!r}?"
        line, key = self.line(place), key_of(place)
        where = self.file.name if line is None else f"{self.file.name}, line {line}"
        message = f"{where}: {key}: {text}" if key else f"{where}: {text}"
        return SpecError(message, line=line, key=key or None, found=found, allowed=options, nearest=nearest)


@dataclass(frozen=True)
class At:
    """A place of a spec, to which a refusal is bound: `raise at["shares"].refuse("...")`.

    `outside` are keys that belong here and are written at the top of the spec instead.
    """

    places: Places
    place: Place = ()
    outside: frozenset[str | int] = frozenset()

    def __getitem__(self, step: str | int) -> At:
        return At(self.places, (step,) if step in self.outside else (*self.place, step))

    @property
    def written(self) -> bool:
        """Whether the file has this place, as it does not where a short form stands."""
        return self.place in self.places.lines

    def refuse(self, sentence: str, found: Any = None, allowed: Iterable[Any] = ()) -> SpecError:
        """Make the error for this place; what is allowed is added to the sentence."""
        return self.places.error(self.place, sentence, found, allowed)


def key_of(place: Place) -> str:
    """Write a place as a reader would: tables[0].hold[2].exact."""
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def read_yaml(path: Path) -> tuple[Any, Places]:
    """Return the content of a YAML file as plain values, and the line of everything in it."""
    return parsed(_text(path, Places(path)), Places(path))


def parsed(text: str, places: Places) -> tuple[Any, Places]:
    """Return the content of a YAML text as plain values, and the line of everything in it."""
    try:
        reader = YAML(typ="safe", pure=True)
        node = reader.compose(text)
        if node is None:
            raise places.error((), "the spec is empty; `holdfast init` writes one to start from")
        _number(node, (), places, set())
        content = reader.constructor.construct_document(node)
    except MarkedYAMLError as error:
        raise _malformed(places, error) from None
    except RecursionError:
        raise places.error((), "a spec is not nested this deeply: is this another file?") from None
    except (YAMLError, ValueError, TypeError) as error:  # a type error comes from keys that are mappings
        if isinstance(error, SpecError):
            raise
        raise places.error((), "this is not YAML: a value cannot be read") from None
    whole_characters(content, places)
    if not isinstance(content, dict):
        raise places.error(
            (), "a spec is a mapping of keys such as title, data and privacy", found=type(content).__name__
        )
    return content, places


def whole_characters(value: Any, places: Places, place: Place = ()) -> None:
    """Refuse texts with half a character in them (a lone surrogate), which no file can hold."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            whole_characters(key, places, place)
            whole_characters(each, places, (*place, str(key)))
    elif isinstance(value, (list, tuple)):
        for number, each in enumerate(value):
            whole_characters(each, places, (*place, number))
    elif isinstance(value, str) and any("\ud800" <= each <= "\udfff" for each in value):
        raise places.error(place, f"must be text, found half a character in {value!a}")


def plain(value: Any, places: Places, place: Place = ()) -> Any:
    """Return a value of Python as YAML would have it, and note where everything in it is."""
    places.lines[place] = None
    if isinstance(value, Mapping):
        return {str(key): plain(each, places, (*place, str(key))) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each, places, (*place, i)) for i, each in enumerate(value)]
    if value is not None and not isinstance(value, (str, int, float, date, PurePath)):
        raise places.error(place, f"a spec holds texts, numbers, lists and mappings, found {shown(value)}")
    return str(value) if isinstance(value, PurePath) else value


def _text(path: Path, places: Places) -> str:
    try:
        size = path.stat().st_size
        if os.path.isdir(path):
            raise places.error((), "this is a folder; a spec is a YAML file")
        if not os.path.isfile(path):
            raise places.error((), "this is no plain file; a spec is a YAML file")
        if size > MOST_BYTES:
            raise places.error((), f"a spec has at most {MOST_BYTES} bytes; is this a data file?")
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        near = difflib.get_close_matches(path.name, _beside(path), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        message = f"there is no spec {str(path)!r}{hint}"
        raise SpecError(message, found=str(path), nearest=near[0] if near else None) from None
    except UnicodeDecodeError:
        raise places.error((), "the spec is not text in UTF-8") from None
    except OSError as error:
        raise SpecError(f"the spec {str(path)!r} cannot be read: {error.strerror}", found=str(path)) from None
    except ValueError as error:
        if isinstance(error, SpecError):
            raise
        raise SpecError(f"there is no spec {str(path)!r}: no file can have this name", found=str(path)) from None


def _beside(path: Path) -> list[str]:
    try:
        return [each.name for each in path.parent.iterdir() if each.suffix in (".yaml", ".yml")]
    except OSError:
        return []


def _number(node: Node, place: Place, places: Places, seen: set[int]) -> None:
    """Note the line of a node and of all below it."""
    if id(node) in seen:
        raise places.error(place, "anchors and aliases (& and *) are not used in a spec; write the value out")
    seen.add(id(node))
    places.lines.setdefault(place, node.start_mark.line + 1)
    if isinstance(node, MappingNode):
        for key, value in node.value:
            below = (*place, str(key.value))
            places.lines[below] = key.start_mark.line + 1
            _number(value, below, places, seen)
    elif isinstance(node, SequenceNode):
        for i, value in enumerate(node.value):
            _number(value, (*place, i), places, seen)


def _malformed(places: Places, error: MarkedYAMLError) -> SpecError:
    mark = error.problem_mark or error.context_mark
    line = None if mark is None else mark.line + 1
    problem = " ".join(str(error.problem or "it cannot be read").split())
    problem = problem.removesuffix(" with value").split(" with value ")[0]
    where = places.file.name if line is None else f"{places.file.name}, line {line}"
    hint = next((hint for words, hint in HINTS.items() if words in problem), None)
    return SpecError(f"{where}: this is not YAML: {problem}{'' if hint is None else f' ({hint})'}", line=line)
