"""The certificate of a release: what it promises, what must hold in it, and which files belong to it.

It is made from public things alone: the spec, the domain, the mechanisms and the released files. `seal` is the hash of
everything else in it, against accidents; the ledger keeps the hash of the whole file, against everybody who cannot
write there, and `ledger` is the place of the charge in the ledger's chain, so that a ledger which was rolled back
contradicts what was published.
"""

from __future__ import annotations

import errno
import json
import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError

from holdfast.arguments import Refused
from holdfast.release.facts import HASH, Model, Number, Software, Statement, TableCertificate
from holdfast.release.standalone_verifier.ed25519 import NONCE
from holdfast.release.standalone_verifier.facts import UNSTATED
from holdfast.release.standalone_verifier.reading import json_of, seal_of
from holdfast.release.storage.files import CERTIFICATE, read_plain

Parameter = Literal["epsilon", "delta", "rho"]

#: Version of the JSON form, and the name of its file.
SCHEMA: Final = "holdfast-certificate-1"
FILE = CERTIFICATE
#: The data dictionary beside it.
PACKAGE = "datapackage.json"
#: A plain name, or a part of a table in a folder of its own.
PART_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[0-9]{5,}[.][a-z]+)?$"


class PublicFile(Model):
    """A public file that the release was made with."""

    name: str
    sha256: Annotated[str, Field(pattern=HASH)]


class ReleasedFile(Model):
    """One file of the release."""

    name: Annotated[str, Field(pattern=PART_NAME)]
    bytes: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, Field(pattern=HASH)]


class LedgerHead(Model):
    """The row of the charge in the ledger, and its hash, which stands for all rows up to there."""

    row: Annotated[int, Field(ge=1)]
    hash: Annotated[str, Field(pattern=HASH)]


class Commitment(Model):
    """What was fixed before the draw, the opening and the code that draws, by hashes; and the nonce given since."""

    opening: Annotated[str, Field(pattern=HASH)]
    code: Annotated[str, Field(pattern=HASH)]
    nonce: Annotated[str, Field(pattern=NONCE)]


class Drawn(Model):
    """A period that was published before, and the hash of its certificate."""

    period: str
    certificate: Annotated[str, Field(pattern=HASH)]


class SeriesPart(Model):
    """Which period of a series this is; the statements are about all of them together.

    `rows` and `weights` say how the noise of the periods hangs together, in steps of 2^-16: that of period t is integer
    Gaussian of variance σ²/w_t around −Σ L_ts n_s. `several`: periods in which a person counts at most. `drawn`: what
    was published before, in the order of the periods. `late`: published after later ones.
    """

    column: str
    periods: list[str]
    period: str
    several: Annotated[int, Field(ge=1)]
    rows: list[list[int]]
    weights: list[Annotated[int, Field(ge=1)]]
    drawn: list[Drawn]
    late: bool


class Certificate(Model):
    """The certificate of a release."""

    form: Literal["holdfast-certificate-1"] = Field(default=SCHEMA, alias="schema")
    release: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    title: str
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    software: Software
    spec_hash: Annotated[str, Field(pattern=HASH)]
    spec: dict[str, Any]
    public_files: list[PublicFile]
    unit: str
    protected: str
    asked: dict[Parameter, Number]
    statements: Annotated[list[Statement], Field(min_length=1)]
    unprotected: list[str]
    caveats: list[str]
    spent: list[str]
    tables: Annotated[list[TableCertificate], Field(min_length=1)]
    files: list[ReleasedFile]
    ledger: LedgerHead | None = None
    commitment: Commitment | None = None
    series: SeriesPart | None = None
    signed_by: Annotated[str, Field(pattern=HASH)] | None = None
    seal: Annotated[str, Field(pattern=HASH)] | None = None

    @property
    def curators(self) -> list[str]:
        return self.spec.get("about", {}).get("curators") or [UNSTATED]

    def as_mapping(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True)

    def sealed(self) -> Certificate:
        return self.model_copy(update={"seal": seal_of(self.as_mapping())})

    def to_json(self) -> str:
        return json.dumps(self.as_mapping(), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def read_certificate(folder: Path, text: bytes = b"") -> Certificate:
    """Read and check the certificate in a folder, or its text; refused with one sentence where it is not one."""
    path = folder / FILE
    try:
        found = json_of(text or read_plain(path))
    except FileNotFoundError:
        below = min(folder.glob(f"*/{FILE}"), default=None)
        what = "name the folder of a release" if below is None else f"name one of the releases in it, as {below.parent}"
        raise Refused(f"{folder} holds no {FILE}: {what}") from None
    except OSError as error:
        why = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise Refused(f"{path} cannot be read: {why}") from None
    except (ValueError, RecursionError):
        raise Refused(f"{path} is not JSON in which everything stands once: it is damaged, ask for it again") from None
    form = found.get("schema") if isinstance(found, dict) else None
    if isinstance(form, str) and form != SCHEMA and re.fullmatch(r"holdfast-certificate-[0-9]+", form):
        raise Refused(
            f"{path} was written by a newer holdfast (its form is {form}, known is {SCHEMA}): update holdfast"
        )
    if form != SCHEMA:
        raise Refused(f"{path} is not a certificate of the form {SCHEMA}")
    try:
        # JSON has no tuples, so the text is read again in the mode for JSON.
        certificate = Certificate.model_validate_json(json.dumps(found))
    except (ValidationError, Refused) as error:
        raise Refused(f"{path} is not a certificate of the form {SCHEMA}: {_first(error)}") from None
    if certificate.seal != seal_of(found):
        raise Refused(f"{path} was changed after it was sealed: ask for it again")
    return certificate


def _first(error: ValidationError | Refused) -> str:
    if isinstance(error, Refused):
        return str(error)
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"])) or "the whole"
    return f"{where}: {first['msg']}"


def schema() -> dict[str, Any]:
    found = Certificate.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}
