"""Whether the output of a program is the expected one. Pure; linear in the size of the output."""

from __future__ import annotations

import json
import math
import re
from typing import Any

_DECIMAL = re.compile(rb"([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,6}))?")
_INTEGER = re.compile(rb"[+-]?\d+")
_DEPTH = 64


def output_lines(output: bytes) -> list[list[bytes]]:
    """The words of each line, split at ASCII blanks, without the blank lines at the end."""
    lines = [line.split() for line in output.split(b"\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def same_output(actual: bytes, expected: bytes, tolerance: float | None) -> bool:
    """Same lines of equal words (see `same_word`); blanks within a line do not count."""
    if actual == expected:
        return True
    left, right = output_lines(actual), output_lines(expected)
    return len(left) == len(right) and all(
        len(a) == len(b) and all(map(lambda x, y: same_word(x, y, tolerance), a, b))
        for a, b in zip(left, right, strict=True)
    )


def same_word(actual: bytes, expected: bytes, tolerance: float | None) -> bool:
    """Equal text, or the same number where the expected one is no integer (1.5 = 1.50).

    With a tolerance, finite numbers may differ by that much, absolutely or relatively, unless both
    are integers.
    """
    if actual == expected:
        return True
    keys = decimal_key(actual), decimal_key(expected)
    if None in keys:
        return False
    exact = _INTEGER.fullmatch(expected) is not None
    if tolerance is None:
        return not exact and keys[0] == keys[1]
    if keys[0] == keys[1]:
        return True
    whole = exact and _INTEGER.fullmatch(actual) is not None
    return not whole and close(float(actual), float(expected), tolerance)


def close(actual: float, expected: float, tolerance: float) -> bool:
    """Both finite and within the tolerance, absolute or relative to the expected value."""
    if not (math.isfinite(actual) and math.isfinite(expected)):
        return False
    return abs(actual - expected) <= tolerance * max(1.0, abs(expected))


def decimal_key(word: bytes) -> tuple[bool, bytes, int] | None:
    """A decimal literal as (negative, significant digits, exponent), None if it is none.

    Two literals have equal keys exactly when they are the same number; nothing is expanded.
    """
    match = _DECIMAL.fullmatch(word)
    if match is None or not (match[2] or match[3]):
        return None
    digits = match[2] + (match[3] or b"")
    exponent = int(match[4] or 0) - len(match[3] or b"")
    significant = digits.strip(b"0")
    if not significant:
        return (False, b"", 0)
    exponent += len(digits) - len(digits.rstrip(b"0"))
    return (match[1] == b"-", significant, exponent)


def decode_value(line: bytes) -> Any:
    """The value of a result line: a one-element list as `candidate.encode` made it.

    ValueError for anything else, also for lines that a program forged.
    """
    try:
        content = json.loads(line)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not (isinstance(content, list) and len(content) == 1):
        raise ValueError("not a result")
    return content[0]


def same_value(actual: Any, expected: Any, tolerance: float | None, depth: int = 0) -> bool:
    """Whether an encoded returned value equals the expected JSON value, as Python's `==` says.

    Tuples count as lists and keys of mappings as their JSON text, since the expected value is
    JSON; sets, generators and other objects equal nothing.
    """
    if depth > _DEPTH:
        return False
    kind, value = _untag(actual)
    if isinstance(expected, list):
        return (
            kind in ("list", "tuple")
            and len(value) == len(expected)
            and all(
                same_value(a, b, tolerance, depth + 1) for a, b in zip(value, expected, strict=True)
            )
        )
    if isinstance(expected, dict):
        if kind != "dict" or len(value) != len(expected):
            return False
        entries = {_key_text(key): item for key, item in value}
        return entries.keys() == expected.keys() and all(
            same_value(entries[key], expected[key], tolerance, depth + 1) for key in expected
        )
    if kind != "plain" or isinstance(value, str) != isinstance(expected, str):
        return False
    if value is None or expected is None or isinstance(value, str):
        return value == expected
    return _same_number(value, expected, tolerance)


def _same_number(value: float, expected: float, tolerance: float | None) -> bool:
    if value == expected or (_is_nan(value) and _is_nan(expected)):
        return True
    if tolerance is None or (isinstance(value, int) and isinstance(expected, int)):
        return False
    try:
        return close(float(value), float(expected), tolerance)
    except OverflowError:
        return False


def _is_nan(number: float) -> bool:
    return isinstance(number, float) and math.isnan(number)


def _untag(value: Any) -> tuple[str, Any]:
    """(kind, content) of an encoded value; forged tags are of kind `other`."""
    if isinstance(value, list):
        return "list", value
    if not isinstance(value, dict):
        return "plain", value
    tag, content = value.get(""), value.get("v")
    if tag == "tuple" and isinstance(content, list):
        return "tuple", content
    if tag == "dict" and isinstance(content, list):
        if all(isinstance(pair, list) and len(pair) == 2 for pair in content):
            return "dict", content
    elif tag == "int" and isinstance(content, str):
        try:
            return "plain", int(content, 16)
        except ValueError:
            return "other", None
    elif tag == "float" and content in ("inf", "-inf", "nan"):
        return "plain", float(content)
    return "other", None


def _key_text(key: Any) -> str | None:
    """The text that JSON writes for a key, None where it has none."""
    kind, value = _untag(key)
    if kind != "plain":
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 53:
        return hex(value)
    return json.dumps(value)
