"""The entry of a release for the OpenDP deployments registry, as a file of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

from holdfast.release.certificate.certificate import read_certificate


def registry_entry(folder: Path) -> str:
    """A draft of the entry, in the fields of the registry's schema, from the certificate alone."""
    certificate = read_certificate(folder)
    slug = re.sub(r"[^a-z0-9]+", "-", certificate.title.lower()).strip("-") or "release"
    deployment = certificate.deployment.model_dump(mode="json", by_alias=True)
    # The lowest tier: nobody but the curator has looked at what the entry says.
    entry = {"url_slug": slug, "status": "Draft", "tier": 3, "deployment": deployment}
    return json.dumps(entry, ensure_ascii=False, indent=1) + "\n"
