"""Families of solutions: `2k\\pi, k \\in \\mathbb{Z}` is the same whatever its integer is called."""

from __future__ import annotations

import re

_Z = r"\\in\s*\\(?:mathbb|bold|mathbf)?\s*\{?\s*Z\s*\}?"
_WORDS = r"\\text\{\s*(?:is\s+)?(?:an?\s+|any\s+)?integers?\s*\}"
_LINK = (
    r"(?:[,;]|\\text\{[\s,]*(?:where|for|with|for all|for any|for every|and)\s*\}|\\forall|\(|\s)*"
)
_REMARK = re.compile(
    rf"^(?P<family>.+?){_LINK}(?<![A-Za-z\\])(?P<name>[A-Za-z])\s*(?:{_Z}|{_WORDS})\s*\)?$"
)


def share_parameter(answer: str, truth: str) -> tuple[str, str]:
    """Both tidied texts without their remark that a letter is any integer, which then has one name."""
    a, t = _REMARK.match(answer), _REMARK.match(truth)
    if a is None and t is None:
        return answer, truth
    family = a["family"] if a else answer
    if a and t and not _mentions(family, t["name"]):
        family = re.sub(_letter(a["name"]), t["name"], family)
    return family, t["family"] if t else truth


def _mentions(text: str, name: str) -> bool:
    return re.search(_letter(name), text) is not None


def _letter(name: str) -> str:
    return rf"(?<![\\A-Za-z]){name}(?![A-Za-z])"
