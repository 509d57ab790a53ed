"""DAPO-Math-17k in its processed form (`open-r1/DAPO-Math-17k-Processed`): question and answer."""

from __future__ import annotations

from typing import Any

from rolewise.errors import DataError
from rolewise.tasks.datasets.hygiene import same_truth
from rolewise.tasks.problem import Problem


def to_problem(row: dict[str, Any], number: int) -> Problem | str:
    """The problem of a row, or why the row has none.

    The truth stands in `solution`; `reward_model.ground_truth` says the same or the row is suspect.
    """
    try:
        prompt, answer = row["prompt"], row["solution"]
    except KeyError as error:
        raise DataError(
            f"row {number}: column {error} is missing; expected prompt, solution"
        ) from None
    if not isinstance(prompt, str) or not prompt.strip():
        return "no question"
    if answer is None or not str(answer).strip():
        return "no answer"
    other = (row.get("reward_model") or {}).get("ground_truth")
    if other is not None and not same_truth(str(other).strip(), str(answer).strip()):
        return "solution and reward_model.ground_truth differ"
    return Problem(
        id=f"dapo-{number:05d}", task="Math", prompt=prompt.strip(), answer=str(answer).strip()
    )
