"""Faults of data sets that falsify rewards or held-out accuracy: repeats, contradictions, overlap."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rolewise.config import canonical_json
from rolewise.errors import DataError
from rolewise.tasks.code_compare import same_output
from rolewise.tasks.math_text import compare_plain
from rolewise.tasks.problem import Problem

_QUOTES = re.compile(r"""["`$]|(?<!\b[a-z])'""")
# Neither a decimal point, nor a factorial: `n!`, `5!`, `(n)!`.
_MARKS = re.compile(r"(?<!\d)[.,;:?]|[.,;:?](?!\d)|(?<!\d)(?<!\))(?<!\b[a-z])!")
_NEEDLESS_BLANK = re.compile(r"(?<!\w) | (?!\w)")


@dataclass(frozen=True)
class Dropped:
    """A row that was left out, and why."""

    id: str
    reason: str


def normalise(text: str) -> str:
    """Equal for texts that differ in case, blanks and sentence marks only.

    Signs of formulas (also `f'` and `n!`) and marks between digits stay, and so does one blank
    between words: `1.5`, `15` and `1 5` are different.
    """
    words = " ".join(_MARKS.sub(" ", _QUOTES.sub("", text.casefold())).split())
    return _NEEDLESS_BLANK.sub("", words)


def distinct(problems: Sequence[Problem]) -> tuple[list[Problem], list[Dropped]]:
    """The first of each question; a question with contradicting truths is dropped altogether."""
    same: dict[str, list[Problem]] = defaultdict(list)
    for problem in problems:
        same[normalise(problem.prompt)].append(problem)
    dropped, kept = [], []
    for group in same.values():
        if _contradict(group):
            dropped += [Dropped(p.id, "the same question has another truth") for p in group]
        else:
            kept.append(group[0])
            dropped += [Dropped(p.id, f"repeats {group[0].id}") for p in group[1:]]
    return kept, dropped


def without_overlap(
    train: Sequence[Problem], validation: Sequence[Problem]
) -> tuple[list[Problem], list[Dropped]]:
    """Training problems whose question is not held out, and the others."""
    held_out = {normalise(p.prompt): p.id for p in validation}
    kept, dropped = [], []
    for problem in train:
        twin = held_out.get(normalise(problem.prompt))
        if twin is None:
            kept.append(problem)
        else:
            dropped.append(Dropped(problem.id, f"repeats {twin} of the validation problems"))
    return kept, dropped


def assert_sound(train: Sequence[Problem], validation: Sequence[Problem], source: str) -> None:
    """A DataError unless ids and questions are distinct within and across the two parts."""
    both = [*train, *validation]
    for what, values in (
        ("id", [p.id for p in both]),
        ("question", [normalise(p.prompt) for p in both]),
    ):
        seen: set[str] = set()
        for value in values:
            if value in seen:
                raise DataError(
                    f"{source}: the {what} '{value[:80]}' occurs twice in the prepared problems; "
                    "the source must give distinct problems"
                )
            seen.add(value)


def same_truth(a: str, b: str) -> bool:
    """Whether two true answers are one in two spellings, as far as text and plain numbers tell."""
    return compare_plain(a, b, exact=False) is True


def _contradict(group: Sequence[Problem]) -> bool:
    truths = [p.answer for p in group if p.answer is not None]
    if not all(same_truth(truth, truths[0]) for truth in truths):
        return True
    outputs: dict[str, Any] = {}
    for problem in group:
        for test in problem.tests:
            call = canonical_json([problem.fn_name, test.input])
            if not _same_result(problem, outputs.setdefault(call, test.output), test.output):
                return True
    return False


def _same_result(problem: Problem, a: Any, b: Any) -> bool:
    if problem.fn_name is None:
        return same_output(*(text.encode("utf-8", "surrogatepass") for text in (a, b)), None)
    return canonical_json(a) == canonical_json(b)
