"""Coq: where it is, the theorems of proofs/ compiled once for this user, and one file checked against them."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from holdfast.arguments import Refused
from holdfast.compiler import users_folder

MISSING = "prove needs Coq 8.16 or later: apt-get install coq (Debian, Ubuntu), or opam install coq"
#: The file of proofs/ that certificates rest on; what it needs is compiled with it.
NEEDED = "Certificates.v"
#: What Coq's real numbers assume; nothing else may be.
AXIOMS = {"sig_not_dec", "sig_forall_dec", "functional_extensionality_dep", "classic"}


def compiled() -> Path:
    """A folder with the theorems, in the package or beside its source, compiled by this Coq once."""
    if shutil.which("coqc") is None or shutil.which("coqdep") is None:
        raise Refused(MISSING)
    here = Path(__file__).resolve()
    folder = next((each for each in (here.parent, here.parents[3]) if (each / "proofs" / NEEDED).is_file()), None)
    if folder is None:
        raise Refused("prove finds no theorems: this installation of holdfast lacks the folder proofs")
    files, place = sorted((folder / "proofs").glob("*.v")), users_folder()
    if place is None:
        raise Refused("prove needs a folder that nobody else can write, for compiled theorems: set XDG_CACHE_HOME")
    version = _run("coqc", "--version", folder=folder).stdout
    digest = hashlib.sha256("\0".join([version, *(file.read_text(encoding="utf-8") for file in files)]).encode())
    kept = place / f"proofs-{digest.hexdigest()[:16]}"
    if kept.is_dir():
        return kept
    made = Path(tempfile.mkdtemp(dir=place))
    try:
        for file in files:
            shutil.copy(file, made)
        names = [file.name for file in files]
        order = _run("coqdep", "-R", ".", "Holdfast", "-sort", *names, folder=made).stdout.split()
        for name in order[: [Path(file).name for file in order].index(NEEDED) + 1]:
            done = _run("coqc", "-q", "-R", ".", "Holdfast", name, folder=made)
            if done.returncode:
                raise Refused(f"Coq does not accept {name} of the theorems: {done.stderr.strip().splitlines()[-1]}")
        os.replace(made, kept)  # whole or not at all; another process may have been first
    except OSError:
        if not kept.is_dir():
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return kept


def checked(text: str) -> tuple[bool, str]:
    """Whether Coq accepts a file, and what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "Certificate.v").write_text(text, encoding="utf-8")
        done = _run(
            "coqc", "-q", "-R", str(compiled()), "Holdfast", "-R", ".", "Made", "Certificate.v", folder=Path(folder)
        )
    return done.returncode == 0, done.stdout + done.stderr


def assumed(printed: str) -> set[str]:
    """The names that `Print Assumptions` listed, without the axioms of the real numbers; Coq may shorten them."""
    listed = printed.partition("Axioms:")[2].splitlines()
    names = {line.split()[0] for line in listed if line and not line[0].isspace()}
    return {name for name in names if name.rpartition(".")[2] not in AXIOMS}


def _run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
