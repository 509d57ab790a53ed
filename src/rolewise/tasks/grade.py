"""What a grader says of one output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rolewise.config import Reward
from rolewise.tasks.problem import Problem


@dataclass(frozen=True)
class Grade:
    """Verdict on one output. `answer` is what was parsed (box content or program), None if nothing.

    `passed` of `total` tests (Math: 0 or 1 of 1). `outputs` identifies the behaviour of a program on
    the tests (equal text = same outputs), for agreement between wrong answers; Math leaves it None.
    """

    answer: str | None
    status: str
    passed: int
    total: int
    outputs: str | None = None

    @property
    def correct(self) -> bool:
        """Math: the answer is right; Code: all hidden tests pass."""
        return self.total > 0 and self.passed == self.total

    @property
    def format_ok(self) -> bool:
        """Whether an answer could be parsed at all."""
        return self.answer is not None


class Grader(Protocol):
    """Grades outputs of one task; owns worker processes, hence a context manager."""

    def grade_many(self, items: Sequence[tuple[Problem, str]]) -> list[Grade]:
        """Grades in the order of `items` (problem, full output text); never raises on content."""

    def extract(self, text: str) -> str | None:
        """The answer that would be graded, None if there is none; no worker involved."""

    def __enter__(self) -> Grader: ...

    def __exit__(self, *exc: object) -> None: ...


def reward_of(task: str, grade: Grade, reward: Reward) -> float:
    """Outcome reward (paper A.7): Math 1, 0 or the format penalty; Code the share of tests passed."""
    if task == "Math":
        return 1.0 if grade.correct else (0.0 if grade.format_ok else reward.format_penalty)
    if reward.code == "all_pass":
        return float(grade.correct)
    return grade.passed / grade.total if grade.total else 0.0
