"""The auditor: it tries to refute what a mechanism promises, on made-up neighbouring data."""

from holdfast.auditing.auditor import Audit, Finding, audit
from holdfast.auditing.gallery import GALLERY, Broken

audit.gallery = GALLERY  # type: ignore[attr-defined]

__all__ = ["Audit", "Broken", "Finding", "audit"]
