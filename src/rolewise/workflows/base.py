"""A workflow: a coroutine that yields calls, receives replies and returns an outcome.

It knows nothing of models, batching or training. `yield [Call(...), ...]` runs all calls of a list
at once and gives back their replies in the same order.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rolewise.config import Config
from rolewise.errors import ConfigError
from rolewise.tasks.problem import Problem


@dataclass(frozen=True)
class Message:
    """One chat message; `role` is user or assistant."""

    role: str
    content: str


@dataclass(frozen=True)
class Call:
    """A request to one role. `slot` counts parallel calls of a role, `turn` successive ones."""

    role: str
    messages: tuple[Message, ...]
    slot: int = 0
    turn: int = 0

    @property
    def key(self) -> tuple[str, int, int]:
        """Identifies the call within its episode."""
        return (self.role, self.slot, self.turn)


@dataclass(frozen=True)
class Reply:
    """What came back: the completion's text, thinking stripped."""

    text: str


@dataclass(frozen=True)
class Parsed:
    """A value parsed from a role's output, and whether the documented fallback had to be used."""

    value: Any
    fallback: bool = False


@dataclass
class Outcome:
    """End of an episode: the call whose output is graded, and what was parsed from which call."""

    graded: tuple[str, int, int]
    parsed: dict[tuple[str, int, int], Parsed] = field(default_factory=dict)


class TaskView(Protocol):
    """What a workflow may ask of its task."""

    name: str

    def ask(self, template: str, problem: Problem, **variables: Any) -> str:
        """The rendered prompt template of a role."""

    def extract(self, text: str) -> str | None:
        """The answer in a role's output."""


Workflow = Generator[list[Call], Sequence[Reply], Outcome]


@dataclass(frozen=True)
class Topology:
    """A workflow function with its roles in order of first call; `main_role` solves the problem.

    `parallel` is the role that occupies parallel slots, None if there is none. `prompts` is a folder
    of templates of the workflow's own, `<set>/<task>/<template>.j2`; they win over workflow/prompts.
    """

    name: str
    run: Callable[[Problem, TaskView, Config], Workflow]
    roles: tuple[str, ...]
    main_role: str
    parallel: str | None = None
    prompts: Path | None = None


def user(text: str) -> tuple[Message, ...]:
    """A conversation of one user message."""
    return (Message("user", text),)


def topology(config: Config, name: str) -> Topology:
    """The workflow called `name`: built in, or from `extensions.workflows`."""
    built_in = {
        "Single": "rolewise.workflows.single:SINGLE",
        "Eval-Opt": "rolewise.workflows.eval_opt:EVAL_OPT",
        "Voting": "rolewise.workflows.voting:VOTING",
        "Orch-Workers": "rolewise.workflows.orch_workers:ORCH_WORKERS",
    }
    path = (built_in | config.extensions.workflows).get(name)
    if path is None:
        raise ConfigError([f"workflow '{name}' is unknown; add it to extensions.workflows"])
    found = load_object(path)
    if not isinstance(found, Topology):
        raise ConfigError([f"extensions.workflows.{name}: {path} is not a Topology"])
    return found


def load_object(path: str) -> Any:
    """The object at `package.module:object`; modules of the current folder are found too."""
    module, _, attribute = path.partition(":")
    # An installed command, unlike `python -m`, does not look into the folder it runs in.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError([f"extensions: cannot import '{path}': {error}"]) from error
