"""Single values as names, where Python and not the engine reads them: the same texts that the engine writes."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from holdfast.arguments import LARGEST, Refused


def text_of(value: Any) -> str | None:
    """Write a value: whole numbers without a fraction, nothing for empty texts and missing numbers."""
    if value is None or value == "" or value != value:  # a number that is none differs from itself
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (float, Decimal)):
        whole = math.isfinite(value) and -LARGEST <= value <= LARGEST and value == int(value)
        return str(int(value)) if whole else repr(value) if isinstance(value, float) else format(value, "f")
    if isinstance(value, datetime):
        text = value.isoformat(" ")
        return text.rstrip("0") if value.microsecond and value.tzinfo is None else text
    if isinstance(value, (bytes, memoryview, dict, list, tuple, set)):
        raise Refused(
            f"a column of the records holds values of the type {type(value).__name__}; texts, whole numbers or dates "
            "are needed"
        )
    return value.isoformat() if isinstance(value, date) else str(value)
