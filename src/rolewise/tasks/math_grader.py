"""Grades math outputs: the last box against the truth, exactly or up to equivalence."""

from __future__ import annotations

import threading
import weakref
from collections import Counter, OrderedDict
from collections.abc import Sequence

from rolewise.config import Config, Reward
from rolewise.tasks.boxed import last_box
from rolewise.tasks.grade import Grade
from rolewise.tasks.math_pool import MathPool
from rolewise.tasks.math_text import compare_plain
from rolewise.tasks.problem import Problem

CPU_LIMIT_S = 2.5
REMEMBERED = 100_000


class MathGrader:
    """`tasks.grade.Grader` of Math. Statuses: correct, wrong, no_answer, grader_timeout, grader_crash.

    `reward.math: exact` compares the tidied texts; `equivalent` compares values (see
    `math_equivalence`). Pairs of plain numbers are decided at once; only others reach worker
    processes, which start at the first such pair. A worker that hangs or crashes makes the answer
    not correct and is counted in `failures`, by status.
    """

    def __init__(self, config: Config):
        self._open(config.reward, workers=config.resources.threads, cpu_s=CPU_LIMIT_S)

    @classmethod
    def from_reward(
        cls, reward: Reward, workers: int = 1, cpu_s: float = CPU_LIMIT_S
    ) -> MathGrader:
        """A grader that needs no whole configuration; `cpu_s` limits each pair."""
        grader = cls.__new__(cls)
        grader._open(reward, workers, cpu_s)
        return grader

    def _open(self, reward: Reward, workers: int, cpu_s: float) -> None:
        self.failures: Counter[str] = Counter()
        self._exact = reward.math == "exact"
        self._pool = MathPool(workers, cpu_s)
        self._known: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._lock = threading.Lock()
        weakref.finalize(self, self._pool.close)

    def extract(self, text: str) -> str | None:
        """Content of the last complete box after any thinking."""
        return last_box(text)

    def grade_many(self, items: Sequence[tuple[Problem, str]]) -> list[Grade]:
        """One grade per item, in order; a Problem without an answer is a ValueError."""
        pairs = []
        for problem, text in items:
            if problem.answer is None:
                raise ValueError(f"problem {problem.id}: Math needs an answer")
            pairs.append((self.extract(text), problem.answer))
        statuses = self._judge({pair for pair in pairs if pair[0] is not None})
        return [_grade(answer, statuses.get((answer, truth))) for answer, truth in pairs]

    def _judge(self, pairs: set[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """Status of each distinct pair."""
        with self._lock:
            statuses = {pair: self._known[pair] for pair in pairs if pair in self._known}
            open_pairs = []
            for pair in sorted(pairs - statuses.keys()):
                verdict = compare_plain(*pair, exact=self._exact)
                if verdict is None:
                    open_pairs.append(pair)
                else:
                    statuses[pair] = "correct" if verdict else "wrong"
            statuses.update(zip(open_pairs, self._pool.judge(open_pairs), strict=True))
            self.failures.update(
                statuses[pair] for pair in open_pairs if statuses[pair].startswith("grader_")
            )
            self._remember({p: s for p, s in statuses.items() if s != "grader_crash"})
        return statuses

    def _remember(self, statuses: dict[tuple[str, str], str]) -> None:
        self._known.update(statuses)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    def __enter__(self) -> MathGrader:
        return self

    def __exit__(self, *exc: object) -> None:
        self._pool.close()


def _grade(answer: str | None, status: str | None) -> Grade:
    passed = int(status == "correct")
    return Grade(answer, status or "no_answer", passed, 1)
