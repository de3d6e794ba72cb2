"""Check a release with nothing but Python: python verify.py [FOLDER] [--key FILE]

Reads certificate.json, its signature and the CSV files, and needs no other package. It is written apart from the
verification of the library that made the release, so that a fault of one is seen by the other. What must hold is tested
exactly for whole numbers, and within 1e-9 of the size of the figures for real ones. Parquet files are checked by their
hashes alone. It ends with 0 where everything is as certified, with 5 where something is not, and with 3 where there is
no release.

Whoever changed a release could have changed this file too: its hash is in the certificate, and a copy that you trust
checks all releases of this form.
"""

from __future__ import annotations

import base64
import csv
import os
import re
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

from holdfast.release.stranger.ed25519 import is_signature
from holdfast.release.stranger.reading import Broken, Json, content_of, hash_of, json_of, names_of, seal_of
from holdfast.release.stranger.runs import Runs
from holdfast.release.stranger.table import Findings, Table

FORM, FILE, SIGNATURE = "holdfast-certificate-1", "certificate.json", "certificate.json.sig"
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[0-9]{5,}[.][a-z]+)?")


def trusted_of(path: str) -> tuple[set[str], set[str]]:
    """Read the fingerprints of public keys that are trusted, and of those that were revoked."""
    keys, revoked = set(), set()
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if words[:1] == ["holdfast-key"]:
                keys.add(hash_of(base64.b64decode(words[1], validate=True)))
            elif words[:1] == ["revoked"]:
                revoked.add(words[1])
    return keys, revoked


def signature_words(folder: str, certificate: Json, key: str | None) -> str:
    """Say who signed the certificate."""
    signer = certificate.get("signed_by")
    if signer is None:
        if key is not None:
            raise Broken("it is signed by nobody")
        return "signed by nobody, so that whoever could change it could have made it"
    found = json_of(content_of(os.path.join(folder, SIGNATURE)))
    try:
        public, signature = (base64.b64decode(found[name], validate=True) for name in ("key", "signature"))
        whole = set(found) == {"schema", "fingerprint", "key", "signature"} and found["fingerprint"] == signer
    except (KeyError, TypeError, ValueError):
        raise Broken("the signature cannot be read") from None
    signed = content_of(os.path.join(folder, FILE))
    form = found["schema"] == "holdfast-signature-1"
    if not (whole and form and hash_of(public) == signer and is_signature(public, signature, signed)):
        raise Broken("the signature is not one of this certificate")
    if key is None:
        return f"signed by {signer}; name the public key with --key to know whose that is"
    keys, revoked = trusted_of(key)
    if signer in revoked or signer not in keys:
        raise Broken(f"it is signed by a key that you do not trust, {signer}")
    return f"signed by {signer}, which you trust"


def certificate_of(folder: str) -> Json:
    """Read the certificate; broken where it is not as it was sealed."""
    found = json_of(content_of(os.path.join(folder, FILE)))
    if not isinstance(found, dict) or found.get("schema") != FORM:
        raise Broken(f"it is not a certificate of the form {FORM}")
    if found.get("seal") != seal_of(found):
        raise Broken("it was changed after it was sealed")
    return found


def files(folder: str, certificate: Json) -> Findings:
    """Check that every file is as certified, and that there is no other."""
    listed = {FILE} | ({SIGNATURE} if certificate.get("signed_by") is not None else set())
    for file in certificate["files"]:
        name = file["name"]
        if not PLAIN.fullmatch(name):
            yield "a file has a name that leads elsewhere"
            continue
        listed.add(name)
        try:
            content = content_of(os.path.join(folder, name), file["bytes"])
        except OSError:
            yield f"{name} is missing"
            continue
        if len(content) != file["bytes"] or hash_of(content) != file["sha256"]:
            yield f"{name} is not the file that was certified"
    for table in certificate["tables"]:
        for key in ("parquet", "csv", "measurements", "measurements_csv", "records", "records_csv"):
            for name in [] if table[key] is None else names_of(table[key], table.get("parts", 0)):
                if name not in listed:
                    yield f"{name} is not among the certified files"
    for name in sorted(entries(folder, {name.partition("/")[0] for name in listed if "/" in name}) - listed):
        yield f"{name} does not belong to the release"


def grown(folder: str, certificate: Json) -> bool:
    """Whether some file is larger than certified: it is not read, since it might never end."""
    paths = [(os.path.join(folder, file["name"]), file["bytes"]) for file in certificate["files"]]
    return any(os.path.lexists(path) and os.lstat(path).st_size > size for path, size in paths)


def entries(folder: str, folders: set[str]) -> set[str]:
    """List what lies in a release: files, and what lies in its folders of parts; links are not followed."""
    found = set()
    for entry in os.scandir(folder):
        parts = entry.name in folders and entry.is_dir(follow_symlinks=False)
        found.update({f"{entry.name}/{each}" for each in os.listdir(entry.path)} if parts else {entry.name})
    return found


#: The name of a check, what holds, and what is wrong where something is.
Check = tuple[str, str, str | None]


def checked(name: str, words: str, findings: Callable[[], Any]) -> Check:
    """Check one thing."""
    try:
        return name, words, next(iter(findings() or ()), None)
    except Broken as wrong:
        return name, words, str(wrong)
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, ArithmeticError, csv.Error) as error:
        return name, words, f"it cannot be read ({type(error).__name__})"


def table_checks(folder: str, told: Json) -> Iterator[Check]:
    """Check one table."""
    tables: list[Table] = []
    name, kind = told["name"], Runs if told.get("runs") else Table
    yield checked(f"{name}: rows", "those of the certified domain", lambda: tables.append(kind(folder, told)))
    for table in tables:
        consistent = table.holds["consistent"]
        yield checked(f"{name}: sums", "everything adds up", table.sums if consistent else tuple)
        yield checked(f"{name}: rules", "everything that must hold, holds", table.holding)
        yield checked(f"{name}: exact figures", "they are counts that agree with each other", table.exact)
        yield checked(f"{name}: further rows", "every one is a sum of others", table.further)
        yield checked(f"{name}: intervals", "they can be what they are said to be", table.intervals)
        yield checked(f"{name}: other files", "they belong to the table", table.beside)


def accepted(certificate: Json) -> Findings:
    """Find errors that are larger than the spec accepts, or that nobody looked at."""
    for told, asked in zip(certificate["tables"], certificate["spec"]["tables"], strict=True):
        wanted = [(one["error"], one.get("confidence")) for one in (asked.get("accept") or {}).values()]
        stated = [(one["error"], one["confidence"]) for one in told.get("accepted", [])]
        numbers = [
            [tuple(None if each is None else Fraction(str(each)) for each in pair) for pair in pairs]
            for pairs in (wanted, stated)
        ]
        if numbers[0] != numbers[1]:
            yield f"other errors of {told['name']} were put to the test than the spec accepts"
        for one in told.get("accepted", []):
            if Fraction(one["reached"]) > Fraction(one["error"]):
                yield f"the errors of {one['level']} are larger than accepted"


def signature_check(folder: str, certificate: Json, key: str | None) -> Check:
    """Check who signed the release."""
    said: list[str] = []
    name, _, wrong = checked("signature", "", lambda: said.append(signature_words(folder, certificate, key)))
    return name, "".join(said), wrong


def checks(folder: str, key: str | None) -> Iterator[Check]:
    """Check everything."""
    kept: list[Json] = []
    yield checked("certificate", "as it was sealed", lambda: kept.append(certificate_of(folder)))
    for certificate in kept:
        yield checked("files", "every file is as certified, and there is no other", partial(files, folder, certificate))
        yield signature_check(folder, certificate, key)
        yield checked("accepted errors", "none is larger than the spec accepts", partial(accepted, certificate))
        for told in () if grown(folder, certificate) else certificate["tables"]:
            yield from table_checks(folder, told)


def shown(text: str) -> str:
    """Show signs that a terminal would obey: whoever made a file has given it its name."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def main(words: list[str]) -> int:
    """Check the folder that is named, or the one in which this file lies."""
    key = None
    if "--key" in words:
        place = words.index("--key")
        key, words = (words[place + 1 : place + 2] or [""])[0], words[:place] + words[place + 2 :]
    folder = words[0] if words else os.path.dirname(os.path.abspath(__file__))
    if not os.path.lexists(os.path.join(folder, FILE)):
        print(f"{folder} holds no {FILE}: name the folder of a release", file=sys.stderr)
        return 3
    wrong = 0
    for name, holds, found in checks(folder, key):
        wrong += found is not None
        print(shown(f"{'BROKEN' if found else 'holds '}  {name}: {found or holds}"))
    print("This release is not as certified." if wrong else "Everything is as certified.")
    return 5 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
