"""A certificate written as a theorem and proved by Coq's kernel: `holdfast prove FOLDER`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.arguments import Refused
from holdfast.proving.claims import Claim, Line, claim
from holdfast.proving.kernel import assumed, checked
from holdfast.release.certificate.certificate import read_certificate

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
