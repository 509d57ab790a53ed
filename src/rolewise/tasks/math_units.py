r"""Units behind a number: `14\text{ cm}`, `60 mph`, `\$5`, `45^\circ`, `12\text{ square units}`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from rolewise.tasks.math_numbers import plain_number

# name: (dimension, power of it, size in the dimension's base unit). Single letters and units that
# mean two things (pound, ounce) are dimensions of their own or need \text{}.
_TABLE: dict[str, tuple[str, int, str]] = {
    "mm": ("length", 1, "1/1000"), "millimeter": ("length", 1, "1/1000"),
    "cm": ("length", 1, "1/100"), "centimeter": ("length", 1, "1/100"),
    "dm": ("length", 1, "1/10"), "m": ("length", 1, "1"), "meter": ("length", 1, "1"),
    "km": ("length", 1, "1000"), "kilometer": ("length", 1, "1000"),
    "inch": ("length", 1, "254/10000"), "in": ("length", 1, "254/10000"),
    "ft": ("length", 1, "3048/10000"), "foot": ("length", 1, "3048/10000"),
    "yard": ("length", 1, "9144/10000"), "yd": ("length", 1, "9144/10000"),
    "mile": ("length", 1, "1609344/1000"), "mi": ("length", 1, "1609344/1000"),
    "s": ("time", 1, "1"), "sec": ("time", 1, "1"), "second": ("time", 1, "1"),
    "min": ("time", 1, "60"), "minute": ("time", 1, "60"), "h": ("time", 1, "3600"),
    "hr": ("time", 1, "3600"), "hour": ("time", 1, "3600"), "day": ("time", 1, "86400"),
    "week": ("time", 1, "604800"), "month": ("month", 1, "1"), "year": ("month", 1, "12"),
    "yr": ("month", 1, "12"), "mg": ("mass", 1, "1/1000"), "g": ("mass", 1, "1"),
    "gram": ("mass", 1, "1"), "kg": ("mass", 1, "1000"), "kilogram": ("mass", 1, "1000"),
    "lb": ("pound", 1, "1"), "pound": ("pound", 1, "1"), "oz": ("ounce", 1, "1"),
    "ounce": ("ounce", 1, "1"), "ml": ("length", 3, "1/1000000"),
    "milliliter": ("length", 3, "1/1000000"), "l": ("length", 3, "1/1000"),
    "liter": ("length", 3, "1/1000"), "gallon": ("gallon", 1, "1"), "dollar": ("dollar", 1, "1"),
    "usd": ("dollar", 1, "1"), "cent": ("dollar", 1, "1/100"), "euro": ("euro", 1, "1"),
    "degree": ("angle", 1, "1"), "deg": ("angle", 1, "1"), "radian": ("radian", 1, "1"),
    "rad": ("radian", 1, "1"), "hz": ("time", -1, "1"),
}  # fmt: skip
_SPELLINGS = {"feet": "foot", "inches": "inch", "metre": "meter", "litre": "liter", "kph": "km/hour",
    "centimetre": "centimeter", "kilometre": "kilometer", "millimetre": "millimeter",
    "mph": "mile/hour", "kmh": "km/hour", "people": "person", "men": "man", "women": "woman",
    "children": "child"}  # fmt: skip
_POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_AFTER = {"squared": 2, "cubed": 3}
_GENERIC = {"unit", "th", "st", "nd", "rd"}
# Words that connect or qualify; text with one of them is no unit.
_LOGIC = {
    "or", "and", "if", "when", "where", "for", "only", "not", "no", "is", "are", "then", "with",
    "such", "that", "all", "any", "mod", "otherwise", "undefined", "none", "both", "either",
    "unless", "which", "exactly", "as", "does",
}  # fmt: skip
_BARE = "|".join(
    sorted((n + "s?" for n in [*_TABLE, *_SPELLINGS] if len(n) > 1), key=len, reverse=True)
)
_POWER = r"(?:\s*\^\s*(?:-?\d|\{\s*-?\d\s*\}))?"
_ATOM = (
    rf"(?:\\text\{{[^{{}}]*\}}|(?<![A-Za-z\\])(?:{_BARE})(?![A-Za-z])"
    rf"|(?:(?<=\s)|(?<=[/\s]))(?:[mgshlL])(?![A-Za-z])){_POWER}"
)
_UNIT = re.compile(
    rf"(?P<value>.*[^\s/])\s*(?P<unit>\^\\circ(?:\s*(?:\\text\{{\s*)?[CF](?:\s*\}})?)?"
    rf"|\^\s*(?:\{{\s*\\text\{{\s*(?:st|nd|rd|th)\s*\}}\s*\}}|\\text\{{\s*(?:st|nd|rd|th)\s*\}})"
    rf"|(?<![\\^_/]){_ATOM}(?:\s*(?:/|\\cdot|per)?\s*{_ATOM}){{0,3}})$"
)
# In a formula of angles a degree sign belongs to its last one.
_ANGLES = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc|circ)(?![A-Za-z])")
# Names that no product of letters in a formula looks like.
_PLAIN_NAME = re.compile(r"(?:[ckm]m|kg)(?![A-Za-z])|[A-Za-z]{3}")
_CURRENCY = re.compile(
    r"^(?P<sign>[-+]?)\s*\\text\{ (?P<unit>dollar|euro|pound) ?\}\s*(?P<value>.+)$"
)


@dataclass(frozen=True)
class Unit:
    """`dimensions` (sorted name and power) and the size in their base units."""

    dimensions: tuple[tuple[str, int], ...]
    size: Fraction


DEGREE = Unit((("angle", 1),), Fraction(1))
RADIAN = Unit((("radian", 1),), Fraction(1))


def split_unit(text: str) -> tuple[str, Unit | None]:
    """Value and unit of a tidied answer; the unit is None if there is none or it says nothing."""
    match = _CURRENCY.match(text)
    if match:
        return match["sign"] + match["value"], _read(match["unit"])
    best = None
    match = _UNIT.match(text)
    while match:
        words = re.sub(r"\\text\{|\}", " ", match["unit"])
        bare = "\\text" not in match["unit"] and "\\circ" not in match["unit"]
        if _LOGIC & set(re.findall(r"[a-z]+", words.lower())):
            break
        if bare and not _may_have_unit(match["value"], match["unit"]):
            break
        if match["unit"].startswith("^\\circ") and _ANGLES.search(match["value"]):
            break
        best = match["value"], match["unit"] + (" " + best[1] if best else "")
        match = _UNIT.match(match["value"])
    if best is None or not re.search(r"[\dA-Za-z]", best[0]):
        return text, None
    return best[0].strip(), _read(best[1])


def _may_have_unit(value: str, unit: str) -> bool:
    r"""Whether letters without `\text{}` behind `value` are a unit: `5 h`, not `2\pi h`."""
    if plain_number(value) is not None:
        return True
    letters = re.search(r"[A-Za-z]", re.sub(r"\\[A-Za-z]+", "", value))
    numeric = re.search(r"\d|\\pi", value) is not None and letters is None
    return numeric and _PLAIN_NAME.match(unit) is not None


def _read(text: str) -> Unit | None:
    """The unit that a phrase names; None for generic words (`units`)."""
    if re.fullmatch(r"\^\\circ\s*", text):
        return DEGREE
    temperature = re.fullmatch(r"\^\\circ\s*(?:\\text\{)?\s*([CF])\s*\}?", text)
    if temperature:
        return Unit(((temperature[1], 1),), Fraction(1))
    words = re.sub(r"\\text\{|\}(?!\^)|\\cdot", " ", text).replace("{", "").replace("}", "")
    words = re.sub(r"(?<=[A-Za-z])\.", "", words)
    powers: dict[str, int] = {}
    size, sign, raised = Fraction(1), 1, 1
    tokens = re.findall(r"/|[A-Za-z][A-Za-z'-]*|\^\s*-?\d|\S", words)
    names = [name for token in tokens for name in _names(token)]
    for i, name in enumerate(names):
        if name in ("/", "per"):
            sign = -1
        elif name in _POWERS and i + 1 < len(names):
            raised = _POWERS[name]
        elif name.startswith("^") or name in _AFTER:
            continue
        elif name not in _GENERIC:
            following = names[i + 1] if i + 1 < len(names) else ""
            if re.fullmatch(r"\^-?\d+", following):
                raised = int(following[1:])
            raised = _AFTER.get(following, raised)
            dimension, power, factor = _TABLE.get(name, (name, 1, "1"))
            powers[dimension] = powers.get(dimension, 0) + sign * raised * power
            size *= Fraction(factor) ** (sign * raised)
            raised = 1
    dimensions = tuple(sorted((name, power) for name, power in powers.items() if power))
    return Unit(dimensions, size) if dimensions else None


def _names(token: str) -> list[str]:
    """A word in lower case and singular; abbreviations of quotients are spelt out."""
    word = token.lower().replace(" ", "")
    for candidate in (word, word.removesuffix("s")):
        if candidate in _SPELLINGS:
            return re.findall(r"/|[a-z]+", _SPELLINGS[candidate])
        if candidate in _TABLE or candidate in _GENERIC or candidate in _POWERS:
            return [candidate]
    return [word.removesuffix("s") if len(word) > 3 else word]
