"""Rows as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any


def csv_bytes(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """UTF-8 CSV; floats with 10 significant digits, None as an empty field."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
    return text.getvalue().encode("utf-8")


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return f"{value:.10g}" if isinstance(value, float) else value
