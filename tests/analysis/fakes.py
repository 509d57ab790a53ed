"""A grader without worker processes: `[7]` is the answer 7, judged against `Problem.answer`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from rolewise.tasks.grade import Grade


@dataclass
class BracketGrader:
    graded: list[str] = field(default_factory=list)

    def extract(self, text):
        found = re.findall(r"\[(\w+)\]", text)
        return found[-1] if found else None

    def grade_many(self, items):
        self.graded += [text for _, text in items]
        return [self._grade(problem, text) for problem, text in items]

    def _grade(self, problem, text):
        answer = self.extract(text)
        right = answer == problem.answer
        outputs = None if problem.task == "Math" or answer is None else f"prints {answer}"
        return Grade(answer, "correct" if right else "wrong", int(right), 1, outputs)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None
