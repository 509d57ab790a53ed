r"""What the roles say: verdict, selection and strategies, read from their outputs.

Thinking is dropped first. Verdict and selection stand in the last complete box; blanks, text and
math wrappers, letter case and a trailing period are tolerated, nothing else: a verdict is one of two
words, a selection an unsigned integer in ASCII digits. Whatever breaks the format has no value, and
the caller's documented fallback applies.
"""

from __future__ import annotations

import re
from collections import Counter

from rolewise.tasks.boxed import answer_part, last_box

_WRAPPER = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|math(?:rm|bf|it|sf|tt)|mbox|boldsymbol|operatorname|emph)"
    r"(?![A-Za-z])"
)
_BLANK = re.compile(r"\\[ ,;:!]|~|\\q?quad(?![A-Za-z])")
_MATH = re.compile(r"\\[()\[\]]")
# Runs of blanks are possessive (`*+`): adjacent ones would share a long run in every possible way.
_HEADER = re.compile(
    r"""^[ \t>]*+(?:[-*+•◦‣▪●·–—][ \t]++|[0-9]{1,3}[.)][ \t]++)?(?:\#{1,6}[ \t]*+)?
        (?P<mark>[*_]{0,3})[ \t]*+strategy[ \t]++(?P<number>[0-9]{1,6})[ \t]*+
        (?P<end>[*_]{0,3})[ \t]*+:(?P<late>[*_]{0,3})""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_MISPLACED = re.compile(r"\bstrategy[ \t]++[0-9]++[ \t]*+[*_]{0,3}[ \t]*+:", re.IGNORECASE)


def parse_verdict(text: str) -> str | None:
    """`Correct` or `Incorrect`; None unless the last box holds exactly one of the two words."""
    words = {"correct": "Correct", "incorrect": "Incorrect"}
    return words.get(_boxed_word(text).lower())


def parse_selection(text: str, n: int) -> int | None:
    """The number in the last box, from 1 to `n`; None for anything else."""
    word = _boxed_word(text)
    if not re.fullmatch(r"[0-9]{1,9}", word):
        return None
    return int(word) if 1 <= int(word) <= n else None


def parse_strategies(text: str, limit: int, fewest: int = 1) -> dict[int, str]:
    """Number -> strategy text, in order of the numbers; empty if the plan cannot be used.

    A header `STRATEGY n:` opens a line, perhaps behind a bullet, a list number or a heading mark and
    in bold; its text runs to the next header. The numbers must be 1 to k without repetition, with
    k between `fewest` and `limit`, every text must say something, and no header may hide inside a text.
    """
    text = answer_part(text)
    headers = list(_HEADER.finditer(text))
    numbers = [int(header["number"]) for header in headers]
    if sorted(numbers) != list(range(1, len(numbers) + 1)) or not fewest <= len(numbers) <= limit:
        return {}
    ends = [header.start() for header in headers[1:]] + [len(text)]
    found = {}
    for number, header, end in zip(numbers, headers, ends, strict=True):
        body = text[header.end() : end].strip()
        mark = header["mark"]
        if mark and not header["end"] and not header["late"]:
            body = body.removesuffix(mark).rstrip()
        if not any(map(str.isalnum, body)) or _MISPLACED.search(body):
            return {}
        found[number] = body
    return dict(sorted(found.items()))


def majority(answers: list[str | None]) -> int:
    """0-based index of the most frequent answer's first occurrence.

    Ties go to the lowest index, None is no answer; 0 if there is no answer at all.
    """
    counts = Counter(answer for answer in answers if answer is not None)
    if not counts:
        return 0
    most = max(counts.values())
    return next(i for i, answer in enumerate(answers) if counts[answer] == most)


def _boxed_word(text: str) -> str:
    """Content of the last box without wrappers, outer blanks and a trailing period."""
    content = _MATH.sub("$", _BLANK.sub(" ", _WRAPPER.sub("", last_box(text) or "")))
    return content.strip(" \t\r\n{}$").removesuffix(".").strip(" \t\r\n{}$")
