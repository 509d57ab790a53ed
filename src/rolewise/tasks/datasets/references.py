"""Verification of hidden tests by the stored reference solutions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from rolewise.config import Config
from rolewise.tasks.code_grader import CodeGrader
from rolewise.tasks.datasets.hygiene import Dropped
from rolewise.tasks.problem import Problem


def verified(
    config: Config, problems: Sequence[Problem], keep: str
) -> tuple[list[Problem], list[Dropped]]:
    """Problems whose tests their reference solution passes, each test run by itself.

    `keep` says what becomes of a problem that fails some: with `tests` it keeps the tests that pass,
    with `problems` it is dropped. A problem without any passing test is always dropped, one without
    a reference is kept as it is: nothing speaks against it.
    """
    items = [
        (dataclasses.replace(problem, tests=(test,)), problem.meta["reference"])
        for problem in problems
        if "reference" in problem.meta
        for test in problem.tests
    ]
    with CodeGrader(config) as grader:
        grades = iter(grader.grade_many(items))
    kept, dropped = [], []
    for problem in problems:
        if "reference" not in problem.meta:
            kept.append(problem)
            continue
        passed = tuple(test for test in problem.tests if next(grades).correct)
        if passed and (keep == "tests" or passed == problem.tests):
            kept.append(dataclasses.replace(problem, tests=passed))
        if passed != problem.tests:
            failed = len(problem.tests) - len(passed)
            whole = "" if passed and keep == "tests" else "; the problem is dropped"
            dropped.append(
                Dropped(
                    problem.id, f"its reference fails {failed} of {len(problem.tests)} tests{whole}"
                )
            )
    return kept, dropped
