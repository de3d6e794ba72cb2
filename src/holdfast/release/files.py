"""Files that survive a power cut, and their hashes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

#: Bytes read at a time.
CHUNK = 1 << 20


def sync_file(path: Path) -> None:
    """Wait until the content of a file is on the disk."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system has such a thing."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Write a new text file in UTF-8 and wait until it is on the disk."""
    with path.open("x", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as "sha256:<hex>"."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"
