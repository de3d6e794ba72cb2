"""Print the bill of materials (CycloneDX 1.5, JSON) of a folder of wheels: names, versions, licences, hashes.

    python script/bill.py FOLDER > holdfast.cdx.json

The standard library alone is used, so that it runs wherever the wheels are. Everything printed follows from the files:
the same folder gives the same bill.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from email.parser import HeaderParser
from pathlib import Path
from typing import Any


def component(wheel: Path) -> dict[str, Any]:
    """One wheel, by its own metadata."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        about = HeaderParser().parsestr(archive.read(name).decode("utf-8"))
    found = {
        "type": "library",
        "bom-ref": f"pkg:pypi/{about['Name'].lower().replace('_', '-')}@{about['Version']}",
        "name": about["Name"],
        "version": about["Version"],
        "purl": f"pkg:pypi/{about['Name'].lower().replace('_', '-')}@{about['Version']}",
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}],
        "properties": [{"name": "file", "value": wheel.name}],
    }
    licence = about["License-Expression"]
    named = (about["License"] or "").strip().splitlines()
    if licence:
        found["licenses"] = [{"expression": licence}]
    elif named and len(named[0]) < 60:
        found["licenses"] = [{"license": {"name": named[0]}}]
    return found


def bill(folder: Path) -> dict[str, Any]:
    """All wheels of a folder; holdfast is what the bill is about."""
    components = [component(wheel) for wheel in sorted(folder.glob("*.whl"))]
    if not components:
        raise SystemExit(f"script/bill.py: {folder} holds no wheel")
    own = next((each for each in components if each["name"] == "holdfast"), None)
    rest = [each for each in components if each is not own]
    found: dict[str, Any] = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1}
    if own is not None:
        found["metadata"] = {"component": {**own, "type": "application"}}
        found["dependencies"] = [{"ref": own["bom-ref"], "dependsOn": [each["bom-ref"] for each in rest]}]
    return {**found, "components": rest}


if __name__ == "__main__":
    print(json.dumps(bill(Path(sys.argv[1])), ensure_ascii=False, indent=1))
