"""The auditor: it tries to refute what a mechanism promises, on made-up neighbouring data."""

from holdfast.auditing.auditor import audit
from holdfast.auditing.report import Audit, Finding

__all__ = ["Audit", "Finding", "audit"]
