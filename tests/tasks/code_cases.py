"""Rows of tests/cases/code.jsonl, made runnable."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parents[1] / "cases" / "code.jsonl"


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in _FILE.read_text(encoding="utf-8").splitlines()]


def runnable(row: dict[str, Any]) -> dict[str, Any]:
    """The row with `@gen` inputs generated and each `@nonce` a fresh random text."""

    def fill(test: dict[str, Any]) -> dict[str, Any]:
        filled = dict(test)
        if filled.get("input") == "@gen":
            filled["input"] = eval(row["input_gen"])
        if filled["output"] == "@nonce":
            filled["output"] = secrets.token_hex(20)
        return filled

    return row | {"tests": [fill(test) for test in row["tests"]]}
