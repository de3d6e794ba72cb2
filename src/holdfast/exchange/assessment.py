"""A data protection impact assessment in Markdown, filled in as far as a release's certificate knows.

Its parts are those of Article 35 (7) GDPR. What only the office can say is left open, as a line to fill in.
"""

from __future__ import annotations

from pathlib import Path

from holdfast.arguments import Refused
from holdfast.release.certificate.certificate import read_certificate
from holdfast.release.report.explain_folder import CHANGED, explain_folder
from holdfast.release.standalone_verifier.facts import UNSTATED

OPEN = "_To be filled in by the office:_"
#: Headings of explain under each part of the assessment; `None` stands for what only the office can say.
PARTS: dict[str, tuple[str | None, ...]] = {
    "Risks to the persons behind the records": (
        "Who is protected", "Can somebody learn it?", "What the release promises", "What is assumed of all data",
        "How many must change together", "What is given away", "What was spent", "What else holds",
    ),
    "Measures that meet them": (
        "How the records are treated", "How the noise is drawn", "What holds in every table", None,
    ),
    "How wrong the published figures are": ("How wrong the figures are",),
    "Evidence": ("What was checked", None),
    "What may be quoted": ("What may be quoted",),
}  # fmt: skip
#: What is left to the office under a part.
LEFT = {
    "Measures that meet them": "who may read the records, the ledger, the keys and openings; how they are kept",
    "Evidence": "who verified the folder against the ledger and the key, and when",
}


def assessment(folder: Path) -> str:
    """Write the assessment of a release that is as it was released, from its published files alone."""
    said = explain_folder(folder)
    if CHANGED in said:
        raise Refused(f"{folder} is not as it was released: holdfast verify {folder} says what differs")
    certificate = read_certificate(folder)
    basic, trust = certificate.deployment.basic, certificate.deployment.deployment_model
    lines = [
        f"# Data protection impact assessment: {certificate.title}",
        "",
        *(f"- {each}" for each in said["What this is"]),
        "",
        "## What is processed, and what for",
        "",
        f"- Controller: {_stated('; '.join(basic.data_curators))}",
        f"- Purpose: {_stated(basic.intended_use)}",
        f"- Region: {_stated(basic.data_product_region)}",
        f"- Who sees records: {trust.model_name_details}",
        f"- {OPEN} legal basis, recipients, how long records are kept",
        "",
        "## Necessity and proportionality",
        "",
        f"- {OPEN} why these tables, at this detail and with this budget, are needed",
    ]
    for part, headings in PARTS.items():
        lines += ["", f"## {part}"]
        for heading in headings:
            sentences = [f"{OPEN} {LEFT[part]}"] if heading is None else said.get(heading, [])
            title = [] if heading in (None, part) or not sentences else ["", f"### {heading}"]
            lines += [*title, "", *(f"- {each}" for each in sentences)] if sentences else []
    lines += ["", "## Opinion of the data protection officer", "", f"- {OPEN} name, date, opinion"]
    return "\n".join(lines) + "\n"


def _stated(words: str) -> str:
    return f"{OPEN} (the spec's `about` can say it)" if words in ("", UNSTATED) else words
