r"""Takes a tidied answer apart: lists, tuples, sets, relations, intervals, words, choices."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rolewise.tasks.math_text import closing, unbrace

_CONNECTIVES = r"\\text\{\s*(?:and|or|,\s*and|,\s*or)\s*\}|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])"
_COMMA = re.compile(rf",?\s*(?:{_CONNECTIVES})\s*,?|[,;]|\\text\{{\s*[,;]\s*\}}")
_RELATION = re.compile(
    r"(?P<le>\\le(?![A-Za-z]))|(?P<ge>\\ge(?![A-Za-z]))|(?P<ne>\\ne(?![A-Za-z]))"
    r"|(?P<eq>=|\\approx(?![A-Za-z])|\\equiv(?![A-Za-z]))|(?P<lt><)|(?P<gt>>)"
)
_COLON = re.compile(r":|\\text\{\s*to\s*\}|(?<=\d)\s+to\s+(?=\d)")
_UNION = re.compile(r"\\cup(?![A-Za-z])|\\text\{\s*or\s*\}|(?<![A-Za-z\\])or(?![A-Za-z])")
_ROW_END = re.compile(r"\\\\(?:\s*\[\s*-?[\d.]+\s*[a-z]{2}\s*\])?|\\cr(?![A-Za-z])")
_LETTER = r"[A-J]"
_CHOICE = re.compile(
    rf"(?:\\text\{{)?\s*(?:[Oo]ption|[Cc]hoice|[Aa]nswer)?\s*"
    rf"(?:\((?P<round>{_LETTER}|[a-e])\)(?=\s|$|\\text|\}})|(?P<marked>{_LETTER})\s*[.:)]|(?P<bare>{_LETTER})(?=\s*\}}?$))"
    rf"\s*(?P<rest>.*)$",
    re.DOTALL,
)
_OPERATOR = re.compile(r"[=<>^_/*+!|,)]|\\(?:times|cdot|cup|cap|in|le|ge|ne|pm)(?![A-Za-z])")
_LEAD = re.compile(
    r"^(?:\\text\{\s*)?(?:(?:so|thus|hence|therefore),?\s*)?(?:the\s+)?(?:final\s+)?(?:answer|result|solution)s?"
    r"(?:\s*(?:is|are|:|=))+\s*(?:\})?\s*(?P<rest>\S.*)$",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"(?:\\?[A-Za-z]+(?:_(?:\w|\{[^{}]*\}))?'*(?:\s*\([^()=]*\))?|\\text\{[^{}]*\}(?:_(?:\w|\{[^{}]*\}))?"
    r"|\|[^|]*\||\([A-Za-z](?:,\s*[A-Za-z])+\))"
)


@dataclass(frozen=True)
class Bracketed:
    """Items between brackets; `opening` and `ending` are one of ( [ { and ) ] }."""

    opening: str
    ending: str
    items: tuple[str, ...]


def split_top(text: str, separator: re.Pattern[str]) -> tuple[list[str], list[str]]:
    """The parts between matches of `separator` outside of brackets, and the matches' group names."""
    parts, kinds, start, i = [], [], 0, 0
    while i < len(text):
        match = separator.match(text, i)
        if match and match.end() > i:
            parts.append(text[start:i].strip())
            kinds.append(match.lastgroup or "")
            start = i = match.end()
        elif text[i] in "([{" or text.startswith("\\{", i):
            end = closing(text, i + (text[i] == "\\"))
            i = end + 1 if end > 0 else i + 1 + (text[i] == "\\")
        elif text[i] == "\\":
            i += max(1, len(re.match(r"\\(?:[A-Za-z]+|.|$)", text[i:], re.DOTALL)[0]))
        else:
            i += 1
    return [*parts, text[start:].strip()], kinds


def split_list(text: str) -> list[str]:
    """The members of `2, 3 and 5`; one member if it is no list."""
    parts, _ = split_top(text, _COMMA)
    members = [member for part in parts if part for member in expand_signs(part)]
    return members or [text]


def split_brackets(text: str) -> Bracketed | None:
    """Brackets around the whole of `text` with their items, None otherwise."""
    text = text.replace("\\langle", "(").replace("\\rangle", ")")
    if text.startswith("\\{") and text.endswith("\\}"):
        opening, inner, end = "{", text[2:-2], closing(text, 1)
    elif text[:1] in ("(", "[") and text[-1:] in (")", "]"):
        opening, inner, end = text[0], text[1:-1], closing(text, 0)
    else:
        return None
    if end != len(text) - 1:
        return None
    parts, _ = split_top(inner, _COMMA)
    items = tuple(part for part in parts if part)
    if len(items) < len(parts) and items:
        return None
    return Bracketed(opening, text[-1], items)


def split_relation(text: str) -> tuple[list[str], list[str]]:
    """Sides and operators (eq, ne, lt, le, gt, ge) of a chain of relations."""
    return split_top(text, _RELATION)


def split_ratio(text: str) -> list[str]:
    """The parts of `a : b`, one part if it is no ratio."""
    return split_top(text.replace("\\colon", ":"), _COLON)[0]


def split_union(text: str) -> list[str]:
    """The members of a union or of alternatives."""
    return split_top(text, _UNION)[0]


def split_matrix(text: str) -> list[list[str]] | None:
    """The cells of a matrix that is the whole of `text`, None otherwise."""
    match = re.fullmatch(
        r"\\begin\{([pbB]?matrix|smallmatrix|array)\}(?:\{[^{}]*\})?(.*)\\end\{\1\}",
        text.removeprefix("(").removesuffix(")").removeprefix("[").removesuffix("]").strip(),
        re.DOTALL,
    )
    if match is None or "\\begin" in match[2]:
        return None
    rows = [row for row in _ROW_END.split(match[2]) if row.strip()]
    return [[cell.strip() for cell in row.split("&")] for row in rows]


def split_base(text: str) -> tuple[str, int] | None:
    """Digits and base of `2413_5`, None for anything else."""
    words = [
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
    ]
    match = re.fullmatch(
        r"\(?(?:\\text\{)?([0-9A-F]+)\}?\)?\s*_\s*\{?\s*\(?(?:\\text\{)?([0-9]{1,2}|[a-z]+)\}?\)?\s*\}?",
        text,
    )
    if match is None:
        return None
    base = (
        words.index(match[2]) + 2
        if match[2] in words
        else int(match[2])
        if match[2].isdigit()
        else 0
    )
    if not 2 <= base <= 36 or any(int(digit, 36) >= base for digit in match[1]):
        return None
    return match[1], base


def split_choice(text: str) -> tuple[str, str] | None:
    """Letter and remainder of a multiple-choice answer such as `C`, `(C) 14`, `C: a rhombus`."""
    match = _CHOICE.match(text)
    if match is None:
        return None
    letter = match["round"] or match["marked"] or match["bare"]
    rest = match["rest"].strip()
    if _OPERATOR.match(rest):
        return None
    if text.startswith("\\text{") and rest.endswith("}") and rest.count("{") < rest.count("}"):
        rest = rest[:-1].strip()
    return letter.upper(), rest


def expand_signs(text: str) -> list[str]:
    r"""`a \pm b` as its two values; other text as it is."""
    if "\\pm" not in text:
        text = re.sub(r"\\mp(?![A-Za-z])", r"\\pm", text)
    if len(re.findall(r"\\pm(?![A-Za-z])", text)) != 1:
        return [text]
    return [
        re.sub(r"\\mp(?![A-Za-z])", low, re.sub(r"\\pm(?![A-Za-z])", high, text))
        .strip()
        .removeprefix("+")
        .strip()
        for high, low in (("+", "-"), ("-", "+"))
    ]


def strip_lead(text: str) -> str:
    """`text` without a phrase like `the answer is` and without braces or `\\text{}` around it."""
    match = _LEAD.match(text)
    if match:
        text = match["rest"]
        if text.endswith("}") and text.count("{") < text.count("}"):
            text = text[:-1].strip()
    return unbrace(text)


def is_name(text: str) -> bool:
    """Whether a left side only names what follows: `x`, `f(x)`, `\\text{Area}`, `|AB|`."""
    return _NAME.fullmatch(text) is not None


def words_of(text: str) -> str | None:
    """Answer in words: lower case, blanks and punctuation dropped; None if it is a formula."""
    plain = re.sub(r"\\text\{([^{}]*)\}", r" \1 ", text).strip(" .!")
    if not re.fullmatch(r"[A-Za-z][A-Za-z' ,.-]*", plain) or not re.search("[A-Za-z]{2}", plain):
        return None
    letters = re.sub(r"[^a-z]", "", re.sub(r"\b(?:the|a|an)\b ", "", plain.lower() + " "))
    marked = "\\text{" in text and len(letters) > 1
    return letters if marked or len(letters) > 2 else None


def word_members(text: str) -> list[str]:
    """The words of `red, blue and green` without articles, sorted."""
    parts = re.split(
        r"[,;]|(?<![A-Za-z])and(?![A-Za-z])", text.replace("\\text{", " ").replace("}", " ")
    )
    return sorted(word for part in parts if (word := words_of(f"\\text{{{part}}}")))
