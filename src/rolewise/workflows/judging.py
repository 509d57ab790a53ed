"""Every call of an episode judged for itself, never by the broadcast reward of its episode.

What a call did follows from what was parsed from it: a verdict judges the answer before it, a number
selects among the parallel answers before it, any other parsed value is a plan, and nothing parsed
means that the call answers the problem itself. So a workflow of one's own needs nothing extra.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rolewise.errors import DataError
from rolewise.tasks.grade import Grade

Kind = Literal["answer", "verdict", "selection", "plan"]
VERDICTS = {"Correct": True, "Incorrect": False}


@dataclass(frozen=True)
class RoleCall:
    """One call of an episode as its judge sees it; `parsed` as in `parsed_text`."""

    role: str
    slot: int
    turn: int
    text: str
    parsed: str | None = None
    fallback: bool = False
    graded: bool = False

    @property
    def kind(self) -> Kind:
        """What the call did."""
        return kind_of(self.parsed)


@dataclass(frozen=True)
class Judged:
    """A call's own answer, its key (equal answers, equal keys) and whether its output is right.

    `correct` is None for a role that gives no answer to be right or wrong.
    """

    answer: str | None
    key: str | None
    correct: bool | None


def kind_of(parsed: str | None) -> Kind:
    """What a call did, from the text of what was parsed from it."""
    if parsed is None:
        return "answer"
    if parsed in VERDICTS:
        return "verdict"
    return "selection" if parsed.isdecimal() else "plan"


def parsed_text(value: Any) -> str | None:
    """A parsed value as text: verdicts and selections as they are, plans as JSON, None as None."""
    if value is None or isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) else json.dumps(value, ensure_ascii=False)


def judge_calls(
    calls: Sequence[RoleCall], grades: Sequence[Grade | None], main_role: str
) -> list[Judged]:
    """Judge every call of one episode, in call order.

    `grades` holds the grade of the own text of each call of kind `answer`, None for the others.
    answer: its own grade; an output without an answer is wrong if the role has to answer (`main_role`
    and the graded role), otherwise not judged. verdict: whether it agrees with the grade of the last
    answer before it. selection: whether the selected candidate is right. plan: not judged. An output
    that could not be parsed is wrong even if the fallback was lucky: the merit is not the role's.
    Nothing was parsed of an episode that could not finish, one without a graded call, so that only the
    answers of `main_role` can be told apart from verdicts and plans in it.
    """
    finished = any(call.graded for call in calls)
    must_answer = {main_role} | {call.role for call in calls if call.graded}
    judged: list[Judged] = []
    for i, call in enumerate(calls):
        answer = key = correct = None
        known = finished or call.role == main_role
        if known and call.kind == "answer":
            grade = _grade(grades[i], call)
            answer, key = grade.answer, answer_key(grade)
            correct = grade.correct if grade.format_ok or call.role in must_answer else None
        elif known and call.kind != "plan":
            before = [
                (earlier, grades[j])
                for j, earlier in enumerate(calls[:i])
                if earlier.kind == "answer"
            ]
            correct = not call.fallback and _agrees(call, before)
        judged.append(Judged(answer, key, correct))
    return judged


def _agrees(call: RoleCall, before: list[tuple[RoleCall, Grade | None]]) -> bool:
    if not before:
        return False
    last, last_grade = before[-1]
    if call.kind == "verdict":
        return VERDICTS[call.parsed or ""] == _grade(last_grade, last).correct
    candidates = {
        earlier.slot: _grade(grade, earlier)
        for earlier, grade in before
        if (earlier.role, earlier.turn) == (last.role, last.turn)
    }
    chosen = candidates.get(int(call.parsed or 0) - 1)
    return chosen is not None and chosen.correct


def _grade(grade: Grade | None, call: RoleCall) -> Grade:
    if grade is None:
        raise DataError(
            f"no grade for the answer of {call.role}, slot {call.slot}, turn {call.turn}"
        )
    return grade


def answer_key(grade: Grade) -> str | None:
    """Equal for answers that are the same: Code by test outputs, Math by text without blanks."""
    if grade.outputs is not None:
        return hashlib.sha256(grade.outputs.encode()).hexdigest()[:12]
    return None if grade.answer is None else "".join(grade.answer.split())
