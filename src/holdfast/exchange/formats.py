"""A release folder described in Croissant 1.0 (JSON-LD on schema.org's Dataset): its files with hashes, its columns."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.release.certificate.certificate import PACKAGE, Certificate, read_certificate
from holdfast.release.report.label import CHANGED, explain_folder
from holdfast.release.standalone_verifier.facts import UNSTATED
from holdfast.release.table.wording import as_sentence, ways_in_words, words_about

#: Methods whose values are a function of noisy measurements and of nothing else.
MOVES = ("onto", "topdown", "bluedown", "project")
#: The context that the specification of Croissant 1.0 gives, as far as it is used here.
_TERMS = (
    "citeAs column extract field fileObject fileProperty fileSet format includes isLiveDataset jsonPath key md5 "
    "parentField path recordSet references regex repeated replace separator source subField transform"
)
CONTEXT: dict[str, Any] = {name: f"cr:{name}" for name in _TERMS.split()} | {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
}
TYPES = {"string": "sc:Text", "integer": "sc:Integer", "number": "sc:Float"}


def croissant(folder: Path, licence: str | None = None) -> str:
    """Describe a release: its CSV files, their hashes and columns, and what is promised, from published files alone."""
    certificate = read_certificate(folder)
    resources = json.loads((folder / PACKAGE).read_text(encoding="utf-8"))["resources"]
    for table in certificate.tables:
        if table.parts:
            words = f"{table.name} lies in {table.parts} parts, and files are described one by one"
            raise Refused(f"{words}: {PACKAGE} describes all parts")
    described = {each["path"]: each for each in resources if isinstance(each["path"], str)}
    hashes = {file.name: file.sha256.removeprefix("sha256:") for file in certificate.files}
    files, records = [], []
    for path, resource in described.items():
        if path not in hashes:
            continue
        name = resource["name"]
        files.append(
            {
                "@type": "cr:FileObject",
                "@id": path,
                "name": path,
                "description": resource["title"],
                "contentUrl": path,
                "encodingFormat": "text/csv",
                "sha256": hashes[path],
            }
        )
        fields = [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{field['name']}",
                "name": field["name"],
                "description": field["description"],
                "dataType": TYPES[field["type"]],
                "source": {"fileObject": {"@id": path}, "extract": {"column": field["name"]}},
            }
            for field in resource["schema"]["fields"]
        ]
        records.append({"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields})
    found = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": certificate.title,
        "description": f"{certificate.statements[0]} {' '.join(certificate.caveats)}".strip(),
        "datePublished": certificate.date,
        "version": "1.0.0",
        "url": f"urn:sha256:{(certificate.seal or '').removeprefix('sha256:')}",
        **({"license": licence} if licence else {}),
        "distribution": files,
        "recordSet": records,
    }
    return json.dumps(found, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


# --- the entry of a release for the OpenDP deployments registry, as a file of its own --------------------------------


def registry_entry(folder: Path) -> str:
    """A draft of the entry, in the fields of the registry's schema, from the certificate alone."""
    certificate = read_certificate(folder)
    slug = re.sub(r"[^a-z0-9]+", "-", certificate.title.lower()).strip("-") or "release"
    entry = {"url_slug": slug, "status": "Draft", "tier": 3, "deployment": deployment(certificate)}  # the lowest tier
    return json.dumps(entry, ensure_ascii=False, indent=1) + "\n"


def trust_model(certificate: Certificate) -> tuple[str, str]:
    """Who is trusted with what, in a word of the registry and in a sentence."""
    if "distributed" in certificate.spec:
        return "Federated", "Agents share a secret; the promise holds against outsiders, not against an agent."
    return "Central", "One curator sees all records and adds the noise."


def deployment(certificate: Certificate) -> dict[str, Any]:
    """What the registry asks about a release, as far as its certificate tells."""
    best, tables, about = certificate.statements[0], certificate.tables, certificate.spec.get("about", {})
    amounts = {"epsilon": best.epsilon, "delta": best.delta, "rho": best.rho}
    stated = {name: value for name, value in amounts.items() if value and value != math.inf}
    moved = [table.name for table in tables if table.method in (*MOVES, "given-then-onto")]
    metric = f"{'symmetric' if best.neighbours.adds else 'change-one'} distance of at most {best.records}"
    counted = ", ".join(f"{table.name} ({table.kind}, {table.rows} figures)" for table in tables)
    made = "; ".join(
        words_about(table.name, f"{table.mechanism}, computed by {ways_in_words(table.ways)}") for table in tables
    )
    kind = "Approximate" if "epsilon" in stated else "Zero-concentrated"
    treated = " ".join(as_sentence(words, tables) for words in certificate.caveats)
    model, details = trust_model(certificate)
    return {
        "basic": {
            "name": certificate.title,
            "data_curators": certificate.curators,
            "description": f"Tables of counts: {counted}",
            "intended_use": about.get("intended_use") or UNSTATED,
            "data_product_type": "Summary statistics",
            "data_product_region": about.get("region") or UNSTATED,
            "publication_date": certificate.date,
        },
        "dp_variant": {
            "variant_name": f"{'Pure' if best.pure else kind} DP",
            "data_domain": f"counts over the keys of a public domain file; scope of the statement: {best.scope}",
            "unprotected_quantities": "; ".join(certificate.unprotected) or "none",
        },
        "privacy_loss": {
            "privacy_unit": "Record-level" if certificate.unit == "record" else "Person-level",
            "privacy_unit_details": f"Unit: {certificate.unit}. Neighbouring data: {best.neighbours} ({metric}).",
            "privacy_parameters": stated,
            "privacy_parameters_details": str(best),
        },
        "deployment_model": {"model_name": model, "model_name_details": details}
        | {"release_type": "One release", "data_source_type": "Static", "access_type": "Non-interactive"},
        "accounting": {
            "post_processing": (
                f"{', '.join(moved)}: noisy answers moved to a near table in which everything holds"
                if moved
                else "none: what must hold was part of the law of the noise, or nothing had to hold"
            ),
            "composition": best.because,
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": treated,
            "mechanisms": f"{made}. Made by holdfast {certificate.software.version}.",
        },
    }


# --- A released or mended table as SDMX-CSV 2.0: one observation per figure, with its state and its error as attributes
# Columns of labels become dimensions. A figure that was drawn or moved is an estimate (E), a filled one imputed (I), an
# exact one normal (A), by the code list for the state of observations (CL_OBS_STATUS). `_T` stands for a total.

#: What a state is called in CL_OBS_STATUS.
STATES = {"published": "A", "exact": "A", "moved": "E", "drawn": "E", "filled": "I"}
TOTAL = "_T"
#: Attributes: the state, the ends of the interval, how often it holds the true figure, and of sums their unit.
ATTRIBUTES = ("OBS_STATUS", "OBS_LOW", "OBS_HIGH", "OBS_CONFIDENCE", "UNIT_MEASURE")
#: Columns that SDMX-CSV begins with.
FIRST = ("STRUCTURE", "STRUCTURE_ID", "ACTION")


def sdmx_csv(
    dimensions: Mapping[str, Sequence[str | None]],
    values: Any,
    states: Sequence[str],
    ends: Any,
    *,
    flow: str,
    confidence: float,
    unit: str | None = None,
) -> str:
    """Write observations; `ends` are (n, 2), not finite where nothing is known; `flow` is AGENCY:ID(version)."""
    if not re.fullmatch(r"[A-Za-z][\w.-]*:[A-Za-z]\w*\([0-9.]+\)", flow):
        raise Refused(f"a dataflow is written AGENCY:ID(1.0), found {flow!r}")
    names = _identifiers(list(dimensions))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    measured = [] if unit is None else [unit]
    writer.writerow([*FIRST, *names, "OBS_VALUE", *ATTRIBUTES[: 4 + len(measured)]])
    columns = [
        [TOTAL if not label or label == "Total" else str(label) for label in found] for found in dimensions.values()
    ]
    rows = zip(zip(*columns, strict=True), np.asarray(values).tolist(), states, np.asarray(ends).tolist(), strict=True)
    for labels, value, state, (low, high) in rows:
        level = f"{confidence:g}" if np.isfinite(low) or np.isfinite(high) else ""
        writer.writerow(["dataflow", flow, "R", *labels, value, STATES[state], _end(low), _end(high), level, *measured])
    return text.getvalue()


def _end(value: float) -> str:
    if not np.isfinite(value):
        return ""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _identifiers(names: list[str]) -> list[str]:
    """Names of columns as identifiers of SDMX: capital letters, digits and underscores, each once."""
    taken = {*FIRST, "OBS_VALUE", *ATTRIBUTES}
    found = []
    for name in names:
        own = re.sub(r"\W+", "_", name).strip("_").upper() or "DIMENSION"
        own = own if own[0].isalpha() else f"D_{own}"
        while own in taken:
            own += "_"
        taken.add(own)
        found.append(own)
    return found


def of_release(folder: Any, name: str | None = None, agency: str = "HOLDFAST") -> str:
    """The table of a release folder as SDMX-CSV, from its published files alone."""
    from holdfast.release.certificate.load import load

    told = next((each for each in read_certificate(Path(folder)).tables if name in (None, each.name)), None)
    if told is not None and told.runs:
        raise Refused(
            f"SDMX-CSV is one text, and {told.name} has {told.rows:,} figures in parts: read what is wanted from "
            f"{told.parquet}, or release fewer"
        )
    table = load(folder).table(name)
    ends = table.interval(table.certificate.interval.confidence)
    states = np.where(ends[:, 0] == ends[:, 1], "exact", "drawn").tolist()
    labels = {
        column: [None if text is np.ma.masked else text for text in np.ma.asarray(found, dtype=object).tolist()]
        for column, found in table.names.items()
    }
    flow = f"{agency}:{_identifiers([table.certificate.name])[0]}(1.0)"
    of, level = table.certificate.sum_of, table.certificate.interval.confidence
    return sdmx_csv(labels, table.values, states, ends, flow=flow, confidence=level, unit=of.column if of else None)


def of_mended(mended: Any, agency: str = "HOLDFAST", confidence: float = 0.95) -> str:
    columns = mended.columns(confidence)
    own = {mended.name, "published", "moved", "status", "low", "high"}
    labels = {name: found for name, found in columns.items() if name not in own}
    none = np.full(mended.n, np.nan)
    ends = np.column_stack([columns.get("low", none), columns.get("high", none)])
    return sdmx_csv(labels, mended.values, mended.status, ends, flow=f"{agency}:MENDED(1.0)", confidence=confidence)


# --- A data protection impact assessment in Markdown, filled in as far as a release's certificate knows --------------
# Its parts are those of Article 35 (7) GDPR. What only the office can say is left open, as a line to fill in.

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
    about = certificate.spec.get("about", {})
    lines = [
        f"# Data protection impact assessment: {certificate.title}",
        "",
        *(f"- {each}" for each in said["What this is"]),
        "",
        "## What is processed, and what for",
        "",
        f"- Controller: {_stated('; '.join(certificate.curators))}",
        f"- Purpose: {_stated(about.get('intended_use', ''))}",
        f"- Region: {_stated(about.get('region', ''))}",
        f"- Who sees records: {trust_model(certificate)[1]}",
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
