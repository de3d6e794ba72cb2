"""A release folder described in Croissant 1.0 (JSON-LD on schema.org's Dataset): its files with hashes, its columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from holdfast.arguments import Refused
from holdfast.release.certificate.certificate import PACKAGE, read_certificate

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
