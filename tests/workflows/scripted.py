"""A task without prompts files and a script of replies, for tests of topologies."""

from __future__ import annotations

import re

from rolewise.tasks.problem import Problem
from rolewise.workflows.base import Call, Outcome, Reply, Topology

PROBLEM = Problem(id="p0", task="Math", prompt="1 + 1", answer="2")


class PlainTask:
    """Prompts that show which template was asked for, with which variables."""

    name = "Math"

    def ask(self, template, problem, **variables):
        shown = "; ".join(f"{k}={v}" for k, v in variables.items() if v != "")
        return f"<{template}> {problem.prompt} {shown}".strip()

    def extract(self, text):
        found = re.findall(r"\\boxed\{([^}]*)\}", text)
        return found[-1] if found else None


def play(
    topology: Topology, config, script: dict, problem=PROBLEM
) -> tuple[list[list[Call]], Outcome]:
    """Run a topology; `script` maps (role, slot, turn) or role to the reply. Returns waves and outcome."""
    coroutine = topology.run(problem, PlainTask(), config)
    waves = []
    try:
        calls = next(coroutine)
        while True:
            waves.append(calls)
            replies = [Reply(script.get(c.key, script.get(c.role, ""))) for c in calls]
            calls = coroutine.send(replies)
    except StopIteration as stop:
        return waves, stop.value


def keys(waves: list[list[Call]]) -> list[list[tuple[str, int, int]]]:
    """The calls of every wave by (role, slot, turn)."""
    return [[call.key for call in wave] for wave in waves]
