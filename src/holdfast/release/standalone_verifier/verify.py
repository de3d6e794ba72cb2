"""Check a release with nothing but Python: python verify.py [FOLDER] [--key FILE] [--officer FILE]

Reads certificate.json, its signature and the CSV files, and needs no other package. It shares nothing with the code
that makes releases; `holdfast verify` runs it, and looks at Parquet files, the budget and the ledger besides. What must
hold is tested exactly for whole numbers, and within 1e-9 of the size of the figures for real ones. Parquet files are
checked by their hashes alone. It ends with 0 where everything is as certified, with 5 where something is not, and with
3 where there is no release.

Whoever changed a release could have changed this file too: its hash is in the certificate, and a copy that you trust
checks all releases of this form.
"""

from __future__ import annotations

import base64
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator
from typing import Any

from holdfast.release.standalone_verifier.ed25519 import is_signature, nonce_words
from holdfast.release.standalone_verifier.facts import facts
from holdfast.release.standalone_verifier.reading import (
    Broken,
    Json,
    content_of,
    hash_of,
    hash_of_file,
    json_of,
    seal_of,
)
from holdfast.release.standalone_verifier.table import UNREADABLE, asked, files_of, is_plain, table_checks

FORM, FILE, SIGNATURE = "holdfast-certificate-1", "certificate.json", "certificate.json.sig"
NOBODY = "signed by nobody, so that whoever could change it could have made it"
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[0-9]{5,}[.][a-z]+)?")


def trusted_of(path: str) -> tuple[dict[str, bytes], set[str]]:
    """Read the public keys that are trusted, by their fingerprints, and those of keys that were revoked."""
    keys, revoked = {}, set()
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if words[:1] == ["holdfast-key"]:
                public = base64.b64decode(words[1], validate=True)
                keys[hash_of(public)] = public
            elif words[:1] == ["revoked"]:
                revoked.add(words[1])
    return keys, revoked


def signature_words(path: str, signer: str | None, content: bytes, key: str | None) -> str:
    """Say who signed some bytes, by the signature in a file."""
    if signer is None:
        if key is not None:
            raise Broken(f"it is {NOBODY}")
        return NOBODY
    try:
        found = json_of(content_of(path))
        public, signature = (base64.b64decode(found[name], validate=True) for name in ("key", "signature"))
        whole = set(found) == {"schema", "fingerprint", "key", "signature"} and found["fingerprint"] == signer
    except (OSError, KeyError, TypeError, ValueError):
        raise Broken("the signature is missing, or cannot be read") from None
    form = found["schema"] == "holdfast-signature-1"
    if not (whole and form and hash_of(public) == signer and is_signature(public, signature, content)):
        raise Broken("the signature is not one of what it stands beside")
    if key is None:
        return f"signed by {signer}; name the public key with --key to know whose that is"
    keys, revoked = trusted_of(key)
    if signer in revoked:
        raise Broken(f"it is signed by a key that was revoked, {signer}")
    if signer not in keys:
        raise Broken(f"it is signed by a key that you do not trust, {signer}")
    return f"signed by {signer}, which you trust"


def certificate_of(content: bytes) -> Json:
    """Read the certificate; broken where it is not as it was sealed."""
    found = json_of(content)
    if not isinstance(found, dict) or found.get("schema") != FORM:
        raise Broken(f"it is not a certificate of the form {FORM}")
    if found.get("seal") != seal_of(found):
        raise Broken("it was changed after it was sealed")
    return found


def files(folder: str, certificate: Json) -> Iterator[str]:
    """Check that every file is as certified, and that there is no other."""
    listed = {FILE} | ({SIGNATURE} if certificate["signed_by"] is not None else set())
    for file in certificate["files"]:
        name = file["name"]
        listed.add(name)
        if not PLAIN.fullmatch(name):
            yield "a file has a name that leads elsewhere"
        elif not os.path.isfile(os.path.join(folder, name)) or os.path.islink(os.path.join(folder, name)):
            yield f"{name} is missing"
        elif not is_plain(folder, name, file["bytes"]) or hash_of_file(folder, name) != (file["bytes"], file["sha256"]):
            yield f"{name} is not the file that was certified"
    for table in certificate["tables"]:
        for name in files_of(table):
            if name not in listed:
                yield f"{name} belongs to the table {table['name']} but is not among the certified files"
    for name in sorted(entries(folder, {name.partition("/")[0] for name in listed if "/" in name}) - listed):
        yield f"{'the hidden file ' if name.startswith('.') else ''}{name} does not belong to the release"


def entries(folder: str, folders: set[str]) -> set[str]:
    """List what lies in a release: files, and what lies in its folders of parts; links are not followed."""
    names: set[str] = set()
    for entry in os.scandir(folder):
        parts = entry.name in folders and entry.is_dir(follow_symlinks=False)
        names.update({f"{entry.name}/{each}" for each in os.listdir(entry.path)} if parts else {entry.name})
    return names


#: The name of a check, what holds, and what is wrong where something is.
Check = tuple[str, str, str | None]
#: What is checked of a release as a whole.
OF_ALL = {
    "files": "every file is as certified, and there is no other",
    "facts": "what the certificate says twice, it says alike",
}


def checked(name: str, words: str, findings: Callable[[], Any]) -> Check:
    try:
        return name, words, next(iter(findings() or ()), None)
    except Broken as wrong:
        return name, words, str(wrong)
    except UNREADABLE as error:
        return name, words, f"it cannot be read ({type(error).__name__})"


def rule_book(folder: str, certificate: Json, apart: Collection[str] = ()) -> Iterator[Check]:
    """Check everything that certificate and CSV files tell; of the tables `apart` nothing but the files."""
    yield checked("files", OF_ALL["files"], lambda: files(folder, certificate))
    yield checked("facts", OF_ALL["facts"], lambda: facts(certificate))
    sizes = {file["name"]: file["bytes"] for file in certificate["files"]}
    for told in certificate["tables"]:
        if told["name"] not in apart:
            yield from table_checks(folder, told, sizes)


def foretold(certificate: Json) -> list[tuple[str, str]]:
    """Everything that the rule book checks, by name, with what it says where it holds."""
    tables = [
        (f"{told['name']}: {name}", words) for told in certificate["tables"] for name, words in asked(told).items()
    ]
    return [*OF_ALL.items(), *tables]


def signature_check(folder: str, certificate: Json, content: bytes, key: str | None) -> Check:
    said: list[str] = []
    path, signer = os.path.join(folder, SIGNATURE), certificate.get("signed_by")
    name, _, wrong = checked("signature", "", lambda: said.append(signature_words(path, signer, content, key)))
    return name, "".join(said), wrong


def commitment_check(certificate: Json, officer: str | None) -> Iterator[Check]:
    """Check, of a witnessed release, what was fixed before its draw; `officer` is a file of keys that give nonces."""
    if certificate.get("commitment") is None:
        if officer is not None:
            yield "commitment", "", "nothing was fixed before the draw: this release is not witnessed"
        return

    def words() -> None:
        keys, revoked = ({}, set()) if officer is None else trusted_of(officer)
        trusted = {name: public for name, public in keys.items() if name not in revoked}
        said.append(nonce_words(certificate, None if officer is None else trusted))

    said: list[str] = []
    name, _, wrong = checked("commitment", "", words)
    yield name, "".join(said), wrong


def checks(folder: str, key: str | None, officer: str | None = None) -> Iterator[Check]:
    read: list[tuple[bytes, Json]] = []

    def once() -> None:
        content = content_of(os.path.join(folder, FILE))
        read.append((content, certificate_of(content)))

    yield checked("certificate", "as it was sealed", once)
    for content, certificate in read:
        yield signature_check(folder, certificate, content, key)
        try:
            yield from commitment_check(certificate, officer)
            yield from rule_book(folder, certificate)
        except UNREADABLE as error:
            yield "certificate", "", f"it is not of the form {FORM} ({type(error).__name__})"


def shown(text: str) -> str:
    """Show signs that a terminal would obey: whoever made a file has given it its name."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def main(words: list[str]) -> int:
    """Check the folder that is named, or the one in which this file lies."""
    named: dict[str, str] = {}
    for option in ("--key", "--officer"):
        if option in words:
            place = words.index(option)
            named[option], words = (words[place + 1 : place + 2] or [""])[0], words[:place] + words[place + 2 :]
    folder = words[0] if words else os.path.dirname(os.path.abspath(__file__))
    if not os.path.lexists(os.path.join(folder, FILE)):
        print(f"{folder} holds no {FILE}: name the folder of a release", file=sys.stderr)
        return 3
    wrong = 0
    for name, holds, broken in checks(folder, named.get("--key"), named.get("--officer")):
        wrong += broken is not None
        mark = "BROKEN" if broken else "none" if holds == NOBODY else "holds"  # nothing there to hold
        print(shown(f"{mark:6}  {name}: {broken or holds}"))
    print("This release is not as certified." if wrong else "Everything is as certified.")
    return 5 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
