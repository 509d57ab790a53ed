"""Every role's own output judged for itself, never by the broadcast reward of its episode.

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

import pandas as pd

from rolewise.errors import DataError
from rolewise.records import TRAJECTORIES
from rolewise.tasks.grade import Grade, Grader
from rolewise.tasks.problem import Problem

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
    """
    must_answer = {main_role} | {call.role for call in calls if call.graded}
    judged: list[Judged] = []
    for i, call in enumerate(calls):
        answer = key = correct = None
        if call.kind == "answer":
            grade = _grade(grades[i], call)
            answer, key = grade.answer, answer_key(grade)
            correct = grade.correct if grade.format_ok or call.role in must_answer else None
        elif call.kind != "plan":
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


def regrade(
    calls: pd.DataFrame, problems: Sequence[Problem], grader: Grader, main_role: str
) -> pd.DataFrame:
    """Rows of `records.TRAJECTORIES` from rows without `answer`, `answer_key` and `role_correct`.

    Equal answers to a problem are graded once. A problem that `problems` lacks is a DataError.
    """
    by_id = {problem.id: problem for problem in problems}
    unknown = set(calls["problem"]) - set(by_id)
    if unknown:
        raise DataError(
            f"trajectories of {len(unknown)} problems that the data lacks, e.g. {min(unknown)}; the "
            "data changed since the evaluation, evaluate the cell again"
        )
    calls = calls.sort_values(["step", "problem", "sample", "call"], kind="stable")
    calls = calls.reset_index(drop=True)
    members = [
        RoleCall(
            row.role,
            row.slot,
            row.turn,
            row.text,
            None if pd.isna(row.parsed) else row.parsed,
            bool(row.fallback),
            bool(row.graded),
        )
        for row in calls.itertuples(index=False)
    ]
    grades = _grade_answers(members, [by_id[p] for p in calls["problem"]], grader)
    judged: dict[int, Judged] = {}
    for rows in calls.groupby(["step", "problem", "sample"], sort=False).indices.values():
        found = judge_calls([members[i] for i in rows], [grades[i] for i in rows], main_role)
        judged |= dict(zip(rows, found, strict=True))
    in_order = [judged[i] for i in range(len(calls))]
    return calls.assign(
        answer=pd.Series([j.answer for j in in_order], dtype=object),
        answer_key=pd.Series([j.key for j in in_order], dtype=object),
        role_correct=pd.Series([j.correct for j in in_order], dtype=object),
    )[list(TRAJECTORIES)]


def _grade_answers(
    calls: Sequence[RoleCall], problems: Sequence[Problem], grader: Grader
) -> list[Grade | None]:
    first: dict[tuple[str, str | None], int] = {}
    same: list[int | None] = []
    for i, (call, problem) in enumerate(zip(calls, problems, strict=True)):
        if call.kind != "answer":
            same.append(None)
            continue
        same.append(first.setdefault((problem.id, grader.extract(call.text)), i))
    graded = grader.grade_many([(problems[i], calls[i].text) for i in first.values()])
    by_row = dict(zip(first.values(), graded, strict=True))
    return [None if i is None else by_row[i] for i in same]
