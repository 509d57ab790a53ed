"""Conversations of the scripted player in every workflow: what embedded models are trained on."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rolewise.config import Config, Workflow
from rolewise.models.player import Noise, Player
from rolewise.tasks.problem import Problem
from rolewise.tasks.prompts import ROOT, Prompts
from rolewise.workflows.base import Message, Reply, topology

WORKFLOWS = ("Single", "Eval-Opt", "Voting", "Orch-Workers")


@dataclass(frozen=True)
class Transcript:
    """A conversation that ends with an assistant turn; all assistant turns are learned."""

    messages: tuple[Message, ...]


@dataclass(frozen=True)
class Script:
    """A task's prompts as a workflow sees them; equal texts count as equal answers."""

    name: str
    prompts: Prompts

    def ask(self, template: str, problem: Problem, **variables: object) -> str:
        """The rendered prompt template."""
        return self.prompts.render(template, **({"problem": problem, "hint": ""} | variables))

    def extract(self, text: str) -> str | None:
        """The whole text."""
        return text


def transcripts(
    config: Config,
    problems: dict[str, Sequence[Problem]],
    noise: Noise,
    seed: int,
    prompt_root: Path = ROOT,
) -> Iterator[Transcript]:
    """An endless stream, tasks and workflows in turn, problems drawn at random.

    `problems` maps tasks to training problems whose `meta` has `solution` and `mistakes`. The model
    does not depend on the grid: all built-in workflows are played, mostly with the configured
    numbers of voters and kind of history, sometimes with others.
    """
    rng = random.Random(seed)
    scripts = {task: Script(task, Prompts(config.prompts, task, prompt_root)) for task in problems}
    while True:
        for task, script in scripts.items():
            for workflow in WORKFLOWS:
                problem = rng.choice(problems[task])
                own = config.model_copy(update={"workflow": _varied(config.workflow, rng)})
                yield from _episode(own, workflow, problem, script, Player(problem, noise, rng))


def _varied(workflow: Workflow, rng: random.Random) -> Workflow:
    changes = {}
    if rng.random() < 0.2:
        changes["votes"] = rng.randint(1, 5)
    if rng.random() < 0.1:
        changes["history"] = "last" if workflow.history == "shared" else "shared"
    return workflow.model_copy(update=changes)


def _episode(
    config: Config, workflow: str, problem: Problem, script: Script, player: Player
) -> list[Transcript]:
    """The episode's conversations; one that another continues is not listed again."""
    found: list[Transcript] = []
    run = topology(config, workflow).run(problem, script, config)
    calls = next(run)
    while True:
        replies = []
        for call in calls:
            text = player.reply(call)
            replies.append(Reply(text))
            whole = (*call.messages, Message("assistant", text))
            found = [t for t in found if t.messages != whole[: len(t.messages)]]
            # Voters see one prompt; learning from the first keeps the roles' shares alike.
            if call.role != "generator" or call.slot == 0:
                found.append(Transcript(whole))
        try:
            calls = run.send(replies)
        except StopIteration:
            return found
