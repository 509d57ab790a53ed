"""What a workflow does, read off by running its coroutine against a recorder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rolewise.config import Config
from rolewise.errors import RolewiseError
from rolewise.tasks.problem import Problem
from rolewise.workflows.base import Call, Reply, Topology

LONGEST = 200
PROBLEM = "<problem>"


@dataclass(frozen=True)
class Recorded:
    """One call of an episode: `round` counts the workflow's yields; `reads` are the earlier calls
    whose text stands in its prompt, `problem` says whether the problem does."""

    call: Call
    round: int
    reads: tuple[tuple[str, int, int], ...]
    problem: bool


@dataclass(frozen=True)
class Recording:
    """All calls of an episode in order, and the key of the graded one."""

    calls: tuple[Recorded, ...]
    graded: tuple[str, int, int]

    def slots(self, role: str) -> int:
        """The largest number of parallel calls of `role`."""
        return 1 + max(r.call.slot for r in self.calls if r.call.role == role)

    def turns(self, role: str) -> int:
        """The largest number of successive calls of `role`."""
        return 1 + max(r.call.turn for r in self.calls if r.call.role == role)


class RecordingTask:
    """A task whose prompts are the variables they are filled with, so that text can be traced."""

    def __init__(self, name: str):
        self.name = name

    def ask(self, template: str, problem: Problem, **variables: Any) -> str:
        """The template's name and everything that would be filled in, the problem too."""
        return f"{template} {problem.prompt} {variables!r}"

    def extract(self, text: str) -> str | None:
        """The whole text."""
        return text


def _mark(call: Call) -> str:
    return f"<{call.role}:{call.slot}@{call.turn}>"


def _reply(call: Call, strategies: int) -> str:
    """A text that carries the call's mark, offers every strategy and never gives a verdict: roles
    that plan get their full width, roles that judge never stop early."""
    mark = _mark(call)
    return "\n".join([mark, *(f"STRATEGY {k}: {mark} {k}" for k in range(1, strategies + 1))])


def record(topology: Topology, config: Config, task: str) -> Recording:
    """The longest and widest episode of `topology` on a problem of `task`.

    A workflow that does not end within 200 calls is a RolewiseError.
    """
    problem = Problem(id="recorded", task=task, prompt=PROBLEM)
    running = topology.run(problem, RecordingTask(task), config)
    recorded: list[Recorded] = []
    try:
        calls = next(running)
        number = 0
        while True:
            recorded += [
                Recorded(call, number, _reads(call, recorded), PROBLEM in _text(call))
                for call in calls
            ]
            if len(recorded) > LONGEST:
                raise RolewiseError(
                    f"workflow '{topology.name}' made more than {LONGEST} calls in one episode; "
                    "bound its turns"
                )
            number += 1
            calls = running.send([Reply(_reply(call, config.workflow.workers)) for call in calls])
    except StopIteration as end:
        return Recording(tuple(recorded), end.value.graded)


def _reads(call: Call, earlier: list[Recorded]) -> tuple[tuple[str, int, int], ...]:
    text = _text(call)
    return tuple(r.call.key for r in earlier if _mark(r.call) in text)


def _text(call: Call) -> str:
    return "\n".join(message.content for message in call.messages)
