"""Releases that were changed by somebody who renews every hash, and what both verifiers say of them."""

import contextlib
import csv
import hashlib
import itertools
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

from holdfast.arguments import Refused
from holdfast.release.certificate.certificate import seal_of
from holdfast.release.certificate.verify import verify
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.ledger.store import SCHEMA, TABLE, VERSION, VERSIONS
from holdfast.release.standalone_verifier.sums import Areas
from holdfast.release.standalone_verifier.verify import checks
from holdfast.release.storage.files import sha256_of
from holdfast.release.storage.tables import read_parquet, write_table

#: Checks that need packages: what statements add up to, what the ledger says, and what is in Parquet files.
BEYOND = ("budget", "ledger", "copies")


def certificate_of(folder):
    return json.loads((folder / "certificate.json").read_text())


def sealed(folder, certificate):
    """Write a certificate with hashes, sizes and seal as they should be."""
    for file in certificate["files"]:
        path = folder / file["name"]
        if path.is_file():
            file.update(bytes=path.stat().st_size, sha256=sha256_of(path))
    certificate["seal"] = seal_of(certificate)
    (folder / "certificate.json").unlink()
    (folder / "certificate.json").write_text(json.dumps(certificate))


def forged(folder, change, prefix=""):
    """Change the columns of a table in both of its files, and renew the certificate."""
    parquet, text = folder / f"{prefix}table.parquet", folder / f"{prefix}table.csv"
    columns = read_parquet(parquet)
    change(columns)
    parquet.unlink()
    text.unlink()
    write_table(columns, parquet, text)
    sealed(folder, certificate_of(folder))


def columns_of(path):
    head, *rows = rows_of(path)
    return dict(zip(head, ([text or None for text in column] for column in zip(*rows, strict=True)), strict=True))


def domain_hash(table, columns):
    """The hash of the names of rows, as whoever forges them can make it."""
    digest = hashlib.sha256()
    for name in table["columns"]:
        words = [name, columns[name][: table["outputs"]]]
        digest.update(json.dumps(words, ensure_ascii=False, separators=(",", ":")).encode())
    return f"sha256:{digest.hexdigest()}"


def leaves(found, path=()):
    """Every value in some JSON that is no mapping and no list, by its path."""
    if isinstance(found, dict):
        for key, value in found.items():
            yield from leaves(value, (*path, key))
    elif isinstance(found, list):
        for place, value in enumerate(found):
            yield from leaves(value, (*path, place))
    else:
        yield path, found


def replaced(certificate, path, value):
    place = certificate
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value


def other(value, source):
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + source.choice((-1, 1, 7))
    if isinstance(value, float):
        return value * 0.5
    if isinstance(value, str):
        return f"{value}x" if not value.lstrip("-").isdigit() else str(int(value) + 1)
    return "nothing"


def at_random(folder, source: random.Random):
    """Change one thing of a release, some of them cleverly; return what in words."""
    names = sorted(path.name for path in folder.iterdir())
    certified = ("leaf", "leaf", "value", "value", "low", "twice", "words")
    what = source.choice((*certified, "byte", "remove", "add", "link", "pipe", "grow"))
    if what == "leaf":
        certificate = certificate_of(folder)
        path, value = source.choice([each for each in leaves(certificate) if each[0][0] != "seal"])
        replaced(certificate, path, other(value, source))
        sealed(folder, certificate)
        return f"leaf {path}"
    if what in ("value", "low"):
        prefix = source.choice([name for name in names if name.endswith("table.csv")]).removesuffix("table.csv")
        row = source.randrange(len(read_parquet(folder / f"{prefix}table.parquet")[what]))
        forged(folder, lambda columns: columns[what].__setitem__(row, columns[what][row] + 1000), prefix)
        return f"{what} of row {row} in {prefix}table"
    name = source.choice(names)
    path = folder / name
    if what == "byte":
        content = bytearray(path.read_bytes())
        content[source.randrange(len(content))] ^= 1 << source.randrange(8)
        path.write_bytes(content)
    elif what == "remove":
        path.unlink()
    elif what == "add":
        (folder / f"{name}.txt").write_text("more")
    elif what == "link":
        moved = folder.with_name(f"{folder.name}-{name}")
        moved.write_bytes(path.read_bytes())
        path.unlink()
        path.symlink_to(moved)
    elif what == "pipe":
        path.unlink()
        os.mkfifo(path)
    elif what == "grow":
        os.truncate(path, 1 << 40)
    elif what == "twice":
        name, text = "certificate.json", (folder / "certificate.json").read_text()
        (folder / name).write_text(text.replace("{", '{"title": "Other",', 1))
    else:
        certificate = certificate_of(folder)
        certificate["caveats"] = ["nothing"]
        sealed(folder, certificate)
        name = "caveats"
    return f"{what} {name}"


def unnoticed(whole, path, source: random.Random):
    """Change the rows of a ledger as its owner can, in a copy; say what was not found, None where all was."""
    shutil.copy(whole.path, path)
    last = len(whole.rows())
    one, two = source.sample(range(1, last + 1), 2)
    column = source.choice(("at", "kind", "dataset", "unit", "key", "content", "hash"))
    turned = f"UPDATE {TABLE} SET number = -number WHERE number > {one}"
    what = source.choice(
        (
            [f"DELETE FROM {TABLE} WHERE number = {one}"],
            [f"DELETE FROM {TABLE} WHERE number >= {max(2, one)}"],
            [
                f"DELETE FROM {TABLE} WHERE number = {one}",
                turned,
                f"UPDATE {TABLE} SET number = -1 - number WHERE number < 0",
            ],
            [f"UPDATE {TABLE} SET number = {n} WHERE number = {m}" for n, m in ((-1, one), (one, two), (two, -1))],
            [f"UPDATE {TABLE} SET {column} = {column} || 'x' WHERE number = {one}"],
            [f"UPDATE {TABLE} SET content = replace(content, '0.001', '0.0001') WHERE kind = 'charge'"],
            [f"INSERT INTO {TABLE} SELECT {last + 1}, at, kind, '', '', 'x', content, hash FROM {TABLE} LIMIT 1"],
            [f"UPDATE {TABLE} SET hash = (SELECT hash FROM {TABLE} WHERE number = {one}) WHERE number = {two}"],
        )
    )
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        triggers = [words for words in SCHEMA.values() if words.startswith("CREATE TRIGGER")]
        for words in [f"DROP TRIGGER {made.split()[2]}" for made in triggers] + what + triggers:
            connection.execute(words)
        connection.execute(f"PRAGMA user_version = {source.choice((last, last - 1, one)) * VERSIONS + VERSION}")
    try:
        found = Ledger(path).verify()
    except Refused:
        return None
    if found == whole.rows()[: len(found)] and len(found) < last:  # cut off: certificates and a witness know
        return None
    return f"nobody finds {what}"


def broken(folder):
    """What is wrong, by the names of checks: as `holdfast verify` says, and as the file in the release does."""
    try:
        library = {check.name: check.sentence for check in verify(folder).differences}
    except ValueError as refusal:  # there is no certificate at all
        library = {"certificate": str(refusal)}
    try:
        alone = {name: wrong for name, _, wrong in checks(str(folder), None) if wrong is not None}
    except OSError as error:
        alone = {"certificate": str(error)}
    return library, alone


def disagree(library, alone):
    """Say what only one finds of what both can find; None where they agree."""
    if alone and not library:
        return f"only the standalone verifier finds {alone}"
    seen = {
        name: words
        for name, words in library.items()
        if not name.endswith(BEYOND) and "is not a certificate of the form" not in words
    }
    return f"only the library finds {seen}" if seen and not alone else None


def not_adding_up(names, values, places=()):
    """What does not add up by the names of rows, columns with the level first; None where everything does."""
    areas, start = Areas(len(places), consistent=True), 0
    inside = [column for name, column in names.items() if name not in places]
    paths = list(zip(*(names[place] for place in places), strict=True)) or [()] * len(values)
    for path, some in itertools.groupby(paths):
        end = start + sum(1 for _ in some)
        own = tuple(text for text in path if text is not None)
        areas.take([own], tuple(tuple(column[start:end]) for column in inside), values[start:end], start)
        start = end
    return areas.wrong or areas.between()


def run(folder, *words):
    """Run the verifier that lies in a release by itself; return its exit code and what it prints."""
    command = [sys.executable, "-I", str(Path(folder) / "verify.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]})
    return done.returncode, done.stdout + done.stderr


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))
