"""Trajectories regraded: each role's own answer, its key and whether its output is right."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from rolewise.errors import DataError
from rolewise.records import TRAJECTORIES
from rolewise.tasks.grade import Grade, Grader
from rolewise.tasks.problem import Problem
from rolewise.workflows.judging import Judged, RoleCall, judge_calls


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
