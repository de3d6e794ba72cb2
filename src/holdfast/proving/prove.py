"""A certificate written as a theorem and proved by Coq's kernel: `holdfast prove FOLDER`."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.arguments import Refused
from holdfast.release.certificate.certificate import read_certificate
from holdfast.system import users_folder

if TYPE_CHECKING:
    from holdfast.release.certificate.certificate import Certificate
    from holdfast.release.facts import Level, Statement, TableCertificate


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


#: The first words of a reason, the noise it is about, and whether that is drawn given the sums.
REASONS = {
    "conditioning on equalities keeps pure ε": ("laplace", True),
    "independent Laplace noise": ("laplace", False),
    "integer Gaussian noise on the lattice of the equalities keeps ρ": ("gaussian", True),
    "independent integer Gaussian noise": ("gaussian", False),
}
#: The first words where exact figures are read beside independent noise, of whichever law.
BESIDE = "all that is published is computed from the noisy answers and the exact figures alone"
#: What may follow them: a rule applied to what was drawn, and another number made from ρ.
FOLLOWS = ("moving to the nearest allowed point is post-processing", "ε is converted from ρ")
#: Products that the kernel computes in a few seconds.
PRODUCTS = 20_000_000
#: What a table of a spec may say for a record to add 1 to one cell and to all above it, or to one cell of each margin.
SAID = {
    *("name", "hierarchy", "root", "match", "categories", "histogram", "cube", "margins", "measure"),
    *("shares", "share", "guess", "hold", "method", "numbers", "minimise", "weights"),
}

#: Why a table with exact figures must be listed.
ANY_SIZE = ", and the theorem for tables of any size is not about data that share exact figures"
#: Places and their entries: a column or a row.
Line = tuple[tuple[int, int], ...]


class NotCovered(Refused):
    """No theorem of proofs/ is about this certificate."""

    def __init__(self, why: str) -> None:
        super().__init__(f"not covered: {why}")


@dataclass(frozen=True)
class Claim:
    """A statement about a table: rates over a denominator, what records add, who are neighbours, the number.

    Figures are in `levels`, each with its number of figures and their rate. What a record adds is listed in `columns`,
    with the level of every figure in `depths`, or it is one figure of each level at most. `rows` are the sums that the
    noise is drawn given, `read` those that whatever is made of the draw may read.
    """

    law: str
    levels: tuple[tuple[int, int], ...]
    denominator: int
    depths: tuple[int, ...]
    columns: tuple[Line, ...]
    rows: tuple[Line, ...]
    read: tuple[Line, ...]
    replaced: bool
    records: int
    sharing: bool
    bound: Fraction


def claim(certificate: Certificate) -> Claim:
    """What the certificate of one table claims; refused where no theorem is about it."""
    if len(certificate.tables) != 1:
        raise NotCovered(f"{len(certificate.tables)} tables, and one is")
    table, statement = certificate.tables[0], certificate.statements[0]
    law, given = _noise_of(statement)
    if Fraction(table.grid) != 1 or table.kind not in ("hierarchy", "histogram", "cube", "areas"):
        raise NotCovered(f"a table of the kind {table.kind}, in steps of {table.grid}")
    if unknown := sorted(set(certificate.spec["tables"][0]) - SAID):
        raise NotCovered(f"{unknown[0]} in the spec")
    holds, number = table.holds, statement.epsilon if law == "laplace" else statement.rho
    if holds.impossible or holds.orders or holds.linear or holds.either or holds.bounds:
        raise NotCovered("bounds, impossible cells and other rules beside sums and non-negativity")
    if number is None or (law == "laplace" and statement.delta != 0):
        raise NotCovered("a statement that is not made of " + ("ε alone" if law == "laplace" else "ρ"))
    measured = [level for level in table.measured if any(noise.law for noise in level.noise)]  # the others cost nothing
    scales = [_scale(level, law) for level in measured]
    rates = [1 / scale if law == "laplace" else 1 / (2 * scale) for scale in scales]
    denominator = lcm(*(rate.denominator for rate in rates))
    sharing, replaced = statement.scope == "invariant-sharing", statement.neighbours.kind == "replace-one"
    try:
        depths, columns, rows, read = _listed(table, given, replaced)
    except NotCovered:
        if sharing or holds.exact:
            raise
        depths, columns, rows, read = (), (), (), ()
    return Claim(
        law,
        tuple((level.figures, int(rate * denominator)) for level, rate in zip(measured, rates, strict=True)),
        denominator,
        depths,
        columns,
        rows,
        read,
        replaced,
        statement.neighbours.records,
        sharing,
        Fraction(number),
    )


def _noise_of(statement: Statement) -> tuple[str, bool]:
    """The law of the noise and whether it is drawn given the sums, from the words of the reason."""
    first, *others = statement.because.split("; ")
    known = next((noise for words, noise in REASONS.items() if first.startswith(words)), None)
    if first.startswith(BESIDE):
        known = ("laplace" if statement.rho is None else "gaussian"), False
    if known is None or statement.scope == "subspace" or statement.status != "proved" or statement.numerical_delta:
        raise NotCovered(f"{statement.scope}, {statement.because}")
    if unknown := [other for other in others if not other.startswith(FOLLOWS)]:
        raise NotCovered(unknown[0])
    return known


def _scale(level: Level, law: str) -> Fraction:
    """The exact parameter of a level's noise."""
    noise = level.noise[0]
    if len(level.noise) != 1 or noise.law != law or not noise.whole or noise.parameter is None:
        raise NotCovered(f"the noise of {level.level}: {level.in_words}")
    return Fraction(noise.parameter)


def _listed(
    table: TableCertificate, given: bool, replaced: bool
) -> tuple[tuple[int, ...], tuple[Line, ...], tuple[Line, ...], tuple[Line, ...]]:
    """The level of every measured figure, what records add, and sums; others are the sums of those below them."""
    sums, parents = table.holds.sums, dict[int, int]()
    if not isinstance(sums, list) or (table.kind == "hierarchy" and not table.holds.consistent):
        raise NotCovered("a table whose certificate does not list which rows add up" + ANY_SIZE)
    for parent, children in sums:
        for child in children:
            if child in parents or child <= parent:
                raise NotCovered("rows that are part of several sums")
            parents[child] = parent
    paths: list[list[int]] = []
    for row in range(table.outputs):  # what is above a row stands before it
        paths.append([row, *(paths[parents[row]] if row in parents else ())])
    depths, levels = tuple(len(path) - 1 for path in paths), table.measured
    if len(set(depths)) != len(levels) or any(depths.count(k) != level.figures for k, level in enumerate(levels)):
        raise NotCovered("levels that are not those of the rows that add up")
    kept = [k for k, level in enumerate(levels) if any(noise.law for noise in level.noise)]
    place = {row: i for i, row in enumerate(row for row in range(table.outputs) if depths[row] in kept)}
    below: dict[int, list[int]] = {row: [] for row in range(table.outputs)}  # measured figures of which it is the sum
    for row in reversed(range(table.outputs)):
        below[row] = [place[row]] if row in place else below[row]
        if row in parents and parents[row] not in place:
            below[parents[row]] += below[row]
    above = set(parents.values())
    if any(not below[row] for row in range(table.outputs) if row not in above):
        raise NotCovered("a lowest level that was not measured")
    columns = tuple(tuple((place[row], 1) for row in path if row in place) for path in paths if path[0] not in above)
    exact = tuple(
        tuple((each, 1) for row in rows for each in below[row]) for figure in table.holds.exact for rows in figure.rows
    )
    added = [
        ((place[parent], 1), *((each, -1) for child in children for each in below[child]))
        for parent, children in sums
        if parent in place
    ]
    changes = len(columns) ** (2 if replaced else 1)
    if changes * len(place) * (2 + given * len(added) + len(exact)) > PRODUCTS:
        raise NotCovered(f"{changes:,} changes of {len(place):,} figures are too many to compute{ANY_SIZE}")
    measured = tuple(kept.index(depths[row]) for row in place)
    return measured, columns, (*added, *exact) if given else (), exact


SCRIPT = """\
(* {title} *)
From Holdfast Require Import Certificates.

(* Levels: how many figures each has, and their rate (1/λ, or 1/2σ² of Gaussian noise) over {denominator}. *)
Definition levels := [{levels}].
{added}
Definition found := Eval vm_compute in claimed.
Print found.

Theorem certificate {{B}} {any}(rule : vec (ones read) -> vec (real_rates {denominator} rates) -> B) :{kept}
  holds {law} (neighbours {denominator} rates {kinds} rows read {neighbours})
    (IZR (Zpos {above}) / IZR (Zpos {below})) (released {adds} rows {law} rule).
Proof. apply {theorem}. vm_cast_no_check (eq_refl true). Qed.
Print Assumptions certificate.
"""
LISTED = """\
Definition rates := map (fun d => snd (nth d levels (0%N, 0%Z))) [{depths}]%nat.
(* What one record adds: places and entries. *)
Definition columns := map (line {figures}) [{columns}]%Z.
(* Sums that the noise is drawn given, and those that the rule may read. *)
Definition rows := map (line {figures}) [{rows}]%Z.
Definition read := map (line {figures}) [{read}]%Z.
Definition claimed := checked {denominator} rates columns rows read {neighbours} {law} {above} {below}."""
STRUCTURED = """\
Definition rates := rates_of levels.
(* A record counts in at most one figure of every level, and in the only one; it keeps all sums given or read. *)
Definition claimed := affordable {denominator} levels {replaced} {records} {law} {above} {below}."""
KEPT = """
  (forall c, change (marks levels) kind {replaced} c -> keeps rows c && keeps read c = true)%bool ->"""


@dataclass(frozen=True)
class Proof:
    """What the kernel said of a certificate, and the file that it was asked about."""

    proved: bool
    sentence: str
    text: str

    def as_mapping(self) -> dict[str, Any]:
        """As plain values."""
        return {"proved": self.proved, "sentence": self.sentence}


def prove(folder: Path) -> Proof:
    """Prove the first statement of a released folder; refused where no theorem is about it or Coq is missing."""
    certificate = read_certificate(folder)
    claimed = claim(certificate)
    text = written(claimed, f"holdfast: the certificate of release {certificate.release}")
    accepted, printed = checked(text)
    number = f"{'ε' if claimed.law == 'laplace' else 'ρ'} = {float(claimed.bound)!r}"
    records = "one record" if claimed.records == 1 else f"up to {claimed.records} records"
    shared = ", for data that share the exact figures" if claimed.sharing else ""
    words = f"{number} for {records} {'replaced' if claimed.replaced else 'added or removed'}{shared}"
    if "found = false" in printed:
        if not claimed.columns:
            return Proof(False, f"not proved: {words} is below what all levels add up to", text)
        if claimed.sharing and claimed.records > 1:  # records that change together may cost less than each alone
            return Proof(False, f"not proved: {words} is below {claimed.records} times what one record costs", text)
        return Proof(False, f"refuted: {words} is below what a change costs", text)
    if not accepted or "found = true" not in printed:
        raise Refused(f"Coq does not accept the certificate's file: {printed.strip().splitlines()[-1]}")
    if others := assumed(printed):
        raise Refused(f"the theorems assume more than the real numbers: {', '.join(sorted(others))}")
    return Proof(True, f"proved by the kernel: {words}", text)


def written(claimed: Claim, title: str) -> str:
    """The claim in Coq's words."""
    replaced, listed = str(claimed.replaced).lower(), bool(claimed.columns)
    words = {
        "title": title,
        "denominator": claimed.denominator,
        "levels": "; ".join(f"({figures}%N, {rate}%Z)" for figures, rate in claimed.levels),
        "law": {"laplace": "laplacian", "gaussian": "gaussian"}[claimed.law],
        "replaced": replaced,
        "records": claimed.records,
        "neighbours": f"{replaced} {str(not claimed.sharing).lower()} {claimed.records}",
        "above": claimed.bound.numerator,
        "below": claimed.bound.denominator,
        "theorem": "certified" if listed else "structured",
        "adds": "(listed columns)" if listed else "(marks levels)",
        "kinds": "(listed columns) (among columns)" if listed else "(marks levels) kind",
        "any": "" if listed else "kind rows read ",
        "figures": len(claimed.depths),
        "depths": "; ".join(map(str, claimed.depths)),
        "columns": _lines(claimed.columns),
        "rows": _lines(claimed.rows),
        "read": _lines(claimed.read),
    }
    kept = "" if listed else KEPT.format(**words)
    return SCRIPT.format(**words, added=(LISTED if listed else STRUCTURED).format(**words), kept=kept)


def _lines(lines: Iterable[Line]) -> str:
    return ";\n  ".join(f"[{'; '.join(f'({place}, {entry})' for place, entry in line)}]" for line in lines)
