"""Workflows and tasks of one's own, tried out before data, models or trainings are made for them."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

from rolewise.config import Config, for_cell
from rolewise.errors import ConfigError, RolewiseError
from rolewise.grid import base_cells, trained_cells
from rolewise.paper.topology import record
from rolewise.tasks.problem import Problem
from rolewise.tasks.prompts import Prompts
from rolewise.workflows.base import TaskView, Topology, Workflow, load_object, topology


def check_extensions(config: Config) -> None:
    """ConfigError with every mistake of the extensions that loading and a scripted episode show."""
    problems: list[str] = []
    shapes = _workflows(config, problems)
    _check_graders(config, problems)
    if config.extensions.workflows or config.extensions.tasks:
        _rehearse(config, shapes, problems)
    if problems:
        raise ConfigError(list(dict.fromkeys(problems)))


def _workflows(config: Config, problems: list[str]) -> dict[str, Topology]:
    """The workflows of one's own that load and whose roles fit together."""
    found = {}
    for name in config.extensions.workflows:
        where = f"extensions.workflows.{name}"
        with _noting(problems, where):
            shape = topology(config, name)
            wrong = _wrong_roles(shape)
            problems += [f"{where}: {line}" for line in wrong]
            if not wrong:
                found[name] = shape
    return found


def _wrong_roles(shape: Topology) -> list[str]:
    if not isinstance(shape.roles, tuple):
        return [f"roles is {shape.roles!r}; make it a tuple of names, ('solver', 'critic')"]
    named = {"main_role": shape.main_role}
    if shape.parallel is not None:
        named["parallel"] = shape.parallel
    return [
        f"{key} '{role}' is not one of its roles, {', '.join(shape.roles)}"
        for key, role in named.items()
        if role not in shape.roles
    ]


def _check_graders(config: Config, problems: list[str]) -> None:
    for name, path in config.extensions.tasks.items():
        where = f"extensions.tasks.{name}"
        with _noting(problems, where):
            if not callable(load_object(path)):
                problems.append(f"{where}: {path} is not a grader class")


def _rehearse(config: Config, shapes: dict[str, Topology], problems: list[str]) -> None:
    """Run an episode of every cell that has a part of one's own, once for all policies and scales."""
    own = config.extensions
    cells = trained_cells(config) + base_cells(config)
    kinds = {(c.workflow, c.task, c.variant): c for c in cells}
    for (name, task, _), cell in kinds.items():
        if name in own.workflows and name not in shapes:
            continue
        if name in own.workflows or task in own.tasks:
            where = f"extensions.workflows.{name}" if name in shapes else f"extensions.tasks.{task}"
            with _noting(problems, where):
                shape = shapes.get(name) or topology(config, name)
                lines = _episode(shape, for_cell(config, cell), task)
                problems += [f"{where}: {line}" for line in lines]


def _episode(shape: Topology, config: Config, task: str) -> list[str]:
    """What is wrong with the longest scripted episode of `shape`, with the prompts it will have."""
    problems: list[str] = []
    prompts = Prompts(config.prompts, task, own=shape.prompts)

    def run(problem: Problem, view: TaskView, config: Config) -> Workflow:
        return shape.run(problem, _Rehearsal(view, prompts, problems), config)

    recording = None
    with _noting(problems, f"an episode of {task} fails"):
        recording = record(dataclasses.replace(shape, run=run), config, task)
    if recording is None:
        return problems
    roles = dict.fromkeys(item.call.role for item in recording.calls)
    problems += [
        f"it calls '{role}', which is not one of its roles, {', '.join(shape.roles)}"
        for role in roles
        if role not in shape.roles
    ]
    if recording.graded not in {item.call.key for item in recording.calls}:
        problems.append(f"it grades {recording.graded}, which is none of its calls")
    return problems


@dataclasses.dataclass(frozen=True)
class _Rehearsal:
    """A recorder's task that also fills in the real prompts, and notes those that it cannot."""

    view: TaskView
    prompts: Prompts
    problems: list[str]

    @property
    def name(self) -> str:
        return self.view.name

    def ask(self, template: str, problem: Problem, **variables: Any) -> str:
        with _noting(self.problems):
            self.prompts.render(template, **({"problem": problem, "hint": ""} | variables))
        return self.view.ask(template, problem, **variables)

    def extract(self, text: str) -> str | None:
        return self.view.extract(text)


@contextlib.contextmanager
def _noting(problems: list[str], where: str = "") -> Iterator[None]:
    """Turn what goes wrong inside into a line of `problems`."""
    lead = f"{where}: " if where else ""
    try:
        yield
    except RolewiseError as error:
        problems.append(lead + str(error).removeprefix(lead).removeprefix("extensions: "))
    except Exception as error:  # a module of one's own can fail in any way
        problems.append(f"{lead}{type(error).__name__}: {' '.join(str(error).split())}")
