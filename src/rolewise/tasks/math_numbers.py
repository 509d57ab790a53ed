r"""Plain numbers written out: integers, decimals, fractions, mixed numbers, powers of ten, percent."""

from __future__ import annotations

import re
from fractions import Fraction

# Bounded: Python refuses to read integers of more than 4,300 digits.
_DIGITS = r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3}){1,300}|[0-9]{1,1000})"
_DECIMAL = rf"(?:{_DIGITS}(?:\.[0-9]{{0,1000}})?|\.[0-9]{{1,1000}})"
_SIGN = r"(?P<sign>[-+]?)\s*"
_FRACTION = (
    rf"(?:\\frac\s*\{{\s*(?P<up>[-+]?\s*{_DECIMAL})\s*\}}\s*\{{\s*(?P<down>[-+]?\s*{_DECIMAL})\s*\}}"
    rf"|(?P<over>{_DECIMAL})\s*/\s*(?P<under>{_DECIMAL}))"
)
_NUMBER = re.compile(
    rf"{_SIGN}(?:(?:(?P<whole>[0-9]{{1,100}})(?:\s+|(?=\\frac)))?{_FRACTION}"
    rf"|(?P<decimal>{_DECIMAL})(?:[eE](?P<e>[-+]?[0-9]{{1,3}})"
    rf"|\s*(?:\\times|\\cdot)\s*10\s*\^\s*(?:\{{\s*(?P<power>[-+]?\s*[0-9]{{1,3}})\s*\}}|(?P<digit>[0-9])))?"
    rf"|(?P<head>[0-9]{{0,100}})\.(?P<fixed>[0-9]{{0,100}})\\overline\s*\{{(?P<cycle>[0-9]{{1,100}})\}})"
    rf"\s*(?P<percent>\\%)?"
)
_SPACED = re.compile(r"[-+]? ?[0-9]{1,3}(?: [0-9]{3})+(?:\.[0-9]+)?")
_UNITS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SMALL = {word: i for i, word in enumerate(_UNITS)} | {
    word: 10 * i for i, word in enumerate(_TENS, 2)
}


def plain_number(text: str) -> Fraction | None:
    """The exact value of a tidied number, None if `text` is anything else or has no value."""
    if _SPACED.fullmatch(text):
        text = text.replace(" ", "")
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    value = _unsigned(match)
    if value is None:
        return None
    if match["percent"]:
        value /= 100
    return -value if match["sign"] == "-" else value


def _unsigned(match: re.Match[str]) -> Fraction | None:
    if match["decimal"] is not None:
        power = match["e"] or match["power"] or match["digit"] or "0"
        return _decimal(match["decimal"]) * Fraction(10) ** int(power.replace(" ", ""))
    if match["cycle"] is not None:
        fixed, cycle = match["fixed"], match["cycle"]
        digits = int((match["head"] or "0") + fixed)
        repeating = Fraction(int(cycle), 10 ** len(cycle) - 1)
        return (digits + repeating) / 10 ** len(fixed)
    up = _decimal(match["up"] or match["over"])
    down = _decimal(match["down"] or match["under"])
    if down == 0:
        return None
    if match["whole"] is None:
        return up / down
    # `2 -3/5` is a difference and `2 3.5/5` no mixed number.
    mixed = up >= 0 and down > 0 and up.denominator == down.denominator == 1
    return int(match["whole"]) + up / down if mixed else None


def _decimal(text: str) -> Fraction:
    return Fraction(text.replace(",", "").replace(" ", "").removesuffix("."))


def number_word(words: str) -> int | None:
    """The value of an English number word below one million, None for other words."""
    total, current, seen = 0, 0, False
    for word in re.split(r"[\s-]+", words.strip().lower()):
        if word == "and" and seen:
            continue
        if word in _SMALL:
            current += _SMALL[word]
        elif word == "hundred" and seen:
            current *= 100
        elif word == "thousand" and seen:
            total, current = total + current * 1000, 0
        else:
            return None
        seen = True
    return total + current
