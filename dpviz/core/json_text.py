"""JSON as every command prints it and every answer gives it: the same bytes."""

from __future__ import annotations

import json
import math
from typing import Any


def finite(value: Any) -> Any:
    """Return JSON data with NaN and infinities, which JSON lacks, as null."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def json_text(value: Any) -> str:
    """Return JSON data as text, indented by one, without NaN or infinities."""
    return json.dumps(finite(value), indent=1, allow_nan=False)


def strict_json(text: str) -> Any:
    """Return the data of a JSON text that somebody else wrote.

    Raises
    ------
    ValueError
        If it is no JSON, nests too deep, or holds NaN, an infinity or a whole number of thousands
        of digits.
    """
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
