"""A release folder described in Croissant 1.0 (JSON-LD on schema.org's Dataset): its files with hashes, its columns."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.arguments import Refused
from holdfast.release.certificate.certificate import PACKAGE, read_certificate
from holdfast.release.report.label import CHANGED, explain_folder
from holdfast.release.standalone_verifier.facts import UNSTATED

#: The context that the specification of Croissant 1.0 gives, as far as it is used here.
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
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
        "datePublished": str(certificate.deployment.basic.publication_date),
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
    deployment = certificate.deployment.model_dump(mode="json", by_alias=True)
    # The lowest tier: nobody but the curator has looked at what the entry says.
    entry = {"url_slug": slug, "status": "Draft", "tier": 3, "deployment": deployment}
    return json.dumps(entry, ensure_ascii=False, indent=1) + "\n"


# --- A released or mended table as SDMX-CSV 2.0: one observation per figure, with its state and its error as attributes
# Columns of labels become dimensions. A figure that was drawn or moved is an estimate (E), a filled one imputed (I), an
# exact one normal (A), by the code list for the state of observations (CL_OBS_STATUS). `_T` stands for a total.

#: What a state is called in CL_OBS_STATUS.
STATES = {"published": "A", "exact": "A", "moved": "E", "drawn": "E", "filled": "I"}
TOTAL = "_T"
#: Attributes: the state, the ends of the interval, and how often it holds the true figure.
ATTRIBUTES = ("OBS_STATUS", "OBS_LOW", "OBS_HIGH", "OBS_CONFIDENCE")
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
) -> str:
    """Write observations; `ends` are (n, 2), not finite where nothing is known; `flow` is AGENCY:ID(version)."""
    if not re.fullmatch(r"[A-Za-z][\w.-]*:[A-Za-z]\w*\([0-9.]+\)", flow):
        raise Refused(f"a dataflow is written AGENCY:ID(1.0), found {flow!r}")
    names = _identifiers(list(dimensions))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*FIRST, *names, "OBS_VALUE", *ATTRIBUTES])
    columns = [
        [TOTAL if not label or label == "Total" else str(label) for label in found] for found in dimensions.values()
    ]
    rows = zip(zip(*columns, strict=True), np.asarray(values).tolist(), states, np.asarray(ends).tolist(), strict=True)
    for labels, value, state, (low, high) in rows:
        known = np.isfinite(low) or np.isfinite(high)
        level = f"{confidence:g}" if known else ""
        writer.writerow(["dataflow", flow, "R", *labels, value, STATES[state], _end(low), _end(high), level])
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
    from holdfast.release.certificate.certificate import read_certificate
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
    return sdmx_csv(labels, table.values, states, ends, flow=flow, confidence=table.certificate.interval.confidence)


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
