"""The opening of a witnessed draw: all that was fixed before it, in one file that is as confidential as the records.

Its hash stands in the ledger before there is a nonce, and in the certificate. The secret in it, 32 random bytes, lets
the hash tell nothing about the rest, and makes the words of the draw together with the nonce.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import re
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import Base64Bytes, Field, ValidationError

from holdfast.arguments import Refused
from holdfast.arrays import Array
from holdfast.randomness import Keys, Stream
from holdfast.release.facts.table import Model, Software
from holdfast.release.job.job import Job
from holdfast.release.job.table import Table
from holdfast.release.run import Run
from holdfast.release.spec.origin import Origin
from holdfast.release.spec.places import Places
from holdfast.release.spec.spec import checked
from holdfast.release.standalone_verifier.reading import hash_of, json_of
from holdfast.release.storage.files import read_plain
from holdfast.release.table.public import ENDS
from holdfast.system import BYTES

#: Version of the JSON form of an opening, the end of its name, and the bytes of its secret.
SCHEMA: Final = "holdfast-opening-1"
SUFFIX, SECRET = ".opening", 32


class Opening(Model):
    """What was fixed: the release, its spec and public files, how records become rows, the true answers, a secret.

    Answers stand table by table, in the order of its rows.
    """

    form: Literal["holdfast-opening-1"] = Field(default=SCHEMA, alias="schema")
    release: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    spec: dict[str, Any]
    files: dict[str, Base64Bytes]
    assumes: list[str]
    told: list[str]
    answers: list[list[Annotated[int, Field(ge=-(2**63), lt=2**63)]] | list[float]]
    secret: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

    @classmethod
    def of(cls, run: Run, answers: list[Array]) -> Opening:
        """The opening of an attempt, with a fresh secret."""
        spec, origin = run.job.spec, run.job.origin
        made = cls(
            release=run.identity,
            spec=json.loads(json.dumps(spec.plain_values, default=str)),
            files={name: base64.b64encode(read_plain(spec.resolve(name).resolve())) for name in run.job.public_files},
            assumes=list(origin.assumes),
            told=list(origin.told),
            answers=[each.tolist() for each in answers],
            secret=secrets.token_bytes(SECRET).hex(),
        )
        if made.public_files != run.job.public_files:
            raise Refused("a public file was changed while it was read: try again")
        if checked(made.spec, Places(spec.path)).hash != spec.hash:
            raise Refused("the spec holds values that a file cannot keep: write it in YAML, with texts and numbers")
        return made

    @property
    def text(self) -> str:
        return self.model_dump_json(by_alias=True) + "\n"

    @property
    def public_files(self) -> dict[str, str]:
        return {name: hashlib.sha256(content).hexdigest() for name, content in self.files.items()}

    @property
    def origin(self) -> Origin:
        return Origin(tuple(self.assumes), tuple(self.told))

    @property
    def truths(self) -> list[Array]:
        return [np.array(each) for each in self.answers]

    def stream(self, commitment: str, nonce: str, table: Table) -> Stream:
        """The words of the draw of a table: nobody can know them before the nonce, or choose them with it."""
        return Keys.of(bytes.fromhex(self.secret)).at("witnessed", commitment, nonce, table.name)

    @contextmanager
    def job(self) -> Iterator[Job]:
        """Build the job again, from what is in the opening alone."""
        with tempfile.TemporaryDirectory() as folder:
            files = {}
            for number, (name, content) in enumerate(self.files.items()):
                files[name] = Path(folder, f"{number}{next((end for end in ENDS if name.endswith(end)), '')}")
                files[name].write_bytes(content)
            spec = checked(self.spec, Unpacked(Path(folder, "spec.yaml"), {}, files))
            yield Job.from_spec(spec).reading(self.origin)


@dataclass(frozen=True)
class Unpacked(Places):
    """The places of a spec whose public files were unpacked; it names no other file of the machine."""

    files: Mapping[str, Path] = field(default_factory=dict)

    def resolve(self, text: str) -> Path:
        return self.files.get(text, self.file.with_name("absent"))


def opening_of(folder: Path) -> Path:
    """Where the opening of a release lies: beside its folder."""
    return folder.with_name(f"{folder.name}{SUFFIX}")


def read_opening(path: Path) -> tuple[Opening, str]:
    """Read an opening and its hash; refused with one sentence, which shows nothing of it, where it is none."""
    try:
        content = read_plain(path)
        found = json_of(content)
    except OSError as error:
        raise Refused(f"the opening {str(path)!r} cannot be read: {error.strerror or 'it is a link'}") from None
    except (ValueError, RecursionError):
        raise Refused(f"{str(path)!r} is no opening of a release: it is damaged, or another file") from None
    form = found.get("schema") if isinstance(found, dict) else None
    if isinstance(form, str) and form != SCHEMA and re.fullmatch(r"holdfast-opening-[0-9]+", form):
        raise Refused(f"{str(path)!r} was written by a newer holdfast (its form is {form}): update holdfast")
    try:
        return Opening.model_validate_json(content), hash_of(content)
    except ValidationError:
        raise Refused(f"{str(path)!r} is no opening of a release: it is damaged, or another file") from None


def write_opening(opening: Opening, place: Path, path: Path) -> str:
    """Write an opening for its owner alone, whole or not at all, durably; return its hash."""
    content, partial = opening.text.encode(), place / "opening"
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BYTES, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
    return hash_of(content)


@cache
def code_hash() -> str:
    """The hash of whatever decides which table a draw is: the files of holdfast, its packages, and the processor."""
    folder = Path(str(resources.files("holdfast")))
    files = {path.relative_to(folder).as_posix(): hash_of(path.read_bytes()) for path in sorted(folder.rglob("*.py"))}
    simd = np.show_config(mode="dicts")["SIMD Extensions"]
    around = [files, Software().model_dump(), platform.machine(), simd]
    return hash_of(json.dumps(around, sort_keys=True).encode())
