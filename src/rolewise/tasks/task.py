"""A task as workflows and graders see it: prompts, answer extraction and a grader."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rolewise.config import Config
from rolewise.errors import ConfigError
from rolewise.tasks.grade import Grader
from rolewise.tasks.problem import Problem
from rolewise.tasks.prompts import Prompts


@dataclass(frozen=True)
class Task:
    """One task with its prompt set and grader (see `workflows.base.TaskView`)."""

    name: str
    prompts: Prompts
    grader: Grader

    def ask(self, template: str, problem: Problem, **variables: Any) -> str:
        """The rendered prompt; templates see `problem`, `hint` and their own variables."""
        return self.prompts.render(template, **({"problem": problem, "hint": ""} | variables))

    def extract(self, text: str) -> str | None:
        """The answer that would be graded."""
        return self.grader.extract(text)


def open_task(config: Config, name: str, prompts: Path | None = None) -> Task:
    """The task called `name`; use its `grader` as a context manager before grading.

    `prompts` is the folder of a workflow's own templates.
    """
    from rolewise.workflows.base import load_object

    built_in = {
        "Math": "rolewise.tasks.math_grader:MathGrader",
        "Code": "rolewise.tasks.code_grader:CodeGrader",
    }
    path = (built_in | config.extensions.tasks).get(name)
    if path is None:
        raise ConfigError([f"task '{name}' is unknown; add it to extensions.tasks"])
    return Task(name, Prompts(config.prompts, name, own=prompts), load_object(path)(config))
