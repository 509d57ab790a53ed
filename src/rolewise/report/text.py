"""Making text that a model wrote harmless: for script files and for terminals. Pure."""

from __future__ import annotations

import json
import math
import unicodedata
from typing import Any

_KEPT = {"\n", "\t"}


def script_json(value: Any) -> str:
    """`value` as JSON that no HTML or script parser can leave: plain ASCII without `<`, `>`, `&`.

    Non-finite numbers become null, since JSON has none.
    """
    text = json.dumps(_finite(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def visible(text: str) -> str:
    """`text` with every control, bidirectional, private and unassigned character written out as an escape.

    A terminal then shows exactly what was emitted: no colour, no cursor movement, no reordering.
    Line feeds and tabs stay.
    """
    return "".join(
        character if character in _KEPT or not _hidden(character) else _escape(character)
        for character in text
    )


def _hidden(character: str) -> bool:
    category = unicodedata.category(character)
    return category.startswith("C") or category in ("Zl", "Zp")


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def sparkline(values: list[float]) -> str:
    """One block character per value, scaled to the values' own range; gaps (NaN) are blanks."""
    blocks = "▁▂▃▄▅▆▇█"
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return ""
    low, span = min(known), max(known) - min(known) or 1.0
    return "".join(
        " " if math.isnan(value) else blocks[round((value - low) / span * (len(blocks) - 1))]
        for value in values
    )
