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

#: Words for what the kernel computes and for what then holds, by law and by what a statement covers.
SIZES = {"laplace": "Z.abs", "gaussian": "(fun z => z * z)%Z"}
WEIGHTS = {"laplace": "@laplace _", "gaussian": "gaussian_weight (@form _)"}
SCRIPT = """\
(* {title} *)
From Holdfast Require Import Certificates.

(* {figures} figures; the rate of each is its number over {denominator} ({meaning}). *)
Definition rates := [{rates}]%Z.
(* What one record adds: places and entries. *)
Definition columns := map (line {figures}) [{columns}]%Z.
(* Sums that the noise is drawn given, and those that the rule may read. *)
Definition rows := map (line {figures}) [{rows}]%Z.
Definition read := map (line {figures}) [{read}]%Z.
Definition changes := {changes}.
Definition claimed := {check}.
Definition found := Eval vm_compute in claimed.
Print found.

Theorem certified {{B}} (rule : vec (ones {known}) -> vec (real_rates {denominator} rates) -> B) :
  {relation}
    (IZR (Zpos {above}) / IZR (Zpos {below})) ({made} ({weight}) rule).
Proof. apply ({theorem} (changes := changes)); [apply {changed} | vm_compute; reflexivity]. Qed.
Print Assumptions certified.
"""


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
    if "found = false" in printed:
        if claimed.sharing and claimed.records > 1:  # records that change together may cost less than each alone
            return Proof(
                False, f"not proved: {_words(claimed)} is below {claimed.records} times what one record costs", text
            )
        return Proof(False, f"refuted: {_words(claimed)} is below what a change costs", text)
    if not accepted or "found = true" not in printed:
        raise Refused(f"Coq does not accept the certificate's file: {printed.strip().splitlines()[-1]}")
    if others := assumed(printed):
        raise Refused(f"the theorems assume more than the real numbers: {', '.join(sorted(others))}")
    return Proof(True, f"proved by the kernel: {_words(claimed)}", text)


def _words(claimed: Claim) -> str:
    number = f"{'ε' if claimed.law == 'laplace' else 'ρ'} = {float(claimed.bound)!r}"
    records = "one record" if claimed.records == 1 else f"up to {claimed.records} records"
    shared = ", for data that share the exact figures" if claimed.sharing else ""
    return f"{number} for {records} {'replaced' if claimed.replaced else 'added or removed'}{shared}"


def written(claimed: Claim, title: str) -> str:
    """The claim in Coq's words."""
    laplace, figures = claimed.law == "laplace", len(claimed.rates)
    data = f"{claimed.denominator} rates"
    size, near = SIZES[claimed.law], "replace_one columns" if claimed.replaced else "add_remove columns"
    above, below = claimed.bound.numerator, claimed.bound.denominator
    if claimed.sharing and claimed.records > 1:
        theorem, check = "laplace_several", f"checked_several {data} changes {size} {claimed.records} {above} {below}"
        relation = f"pure (together {data} columns rows ({near}) read {claimed.records})"
    elif claimed.sharing:
        theorem, check = f"{claimed.law}_sharing", f"checked_sharing {data} rows {size} {above} {below} changes"
        relation = f"{'pure' if laplace else 'zcdp'} (sharing {data} columns rows ({near}) read)"
    else:
        theorem = f"{claimed.law}_certified"
        check = f"checked {data} rows {size} {claimed.records} {above} {below} changes"
        relation = f"pure (within ({near}) {claimed.records})" if laplace else f"zcdp ({near})"
    return SCRIPT.format(
        title=title,
        figures=figures,
        denominator=claimed.denominator,
        meaning="1/λ" if laplace else "1/2σ²",
        rates="; ".join(map(str, claimed.rates)),
        columns=_lines(claimed.columns),
        rows=_lines(claimed.rows),
        read=_lines(claimed.read),
        known="read" if claimed.sharing else "rows",
        made="reading columns rows" if claimed.sharing else "released columns",
        changes="differences columns" if claimed.replaced else "columns",
        check=check,
        relation=relation,
        above=above,
        below=below,
        weight=WEIGHTS[claimed.law],
        theorem=theorem,
        changed="replace_one_changed" if claimed.replaced else "add_remove_change",
    )


def _lines(lines: Iterable[Line]) -> str:
    return ";\n  ".join(f"[{'; '.join(f'({place}, {entry})' for place, entry in line)}]" for line in lines)
