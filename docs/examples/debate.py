"""Debate: two debaters answer, each reads the other's answer and may revise, a judge picks one.

A workflow of one's own in one file, with one template beside it in `prompts/`. A configuration finds
it by its import path:

    extensions: {workflows: {Debate: "docs.examples.debate:DEBATE"}}
    grid: {workflows: [Debate]}
"""

from pathlib import Path

from rolewise.config import Config
from rolewise.tasks.parsing import majority, parse_selection
from rolewise.tasks.problem import Problem
from rolewise.workflows.base import (
    Call,
    Message,
    Outcome,
    Parsed,
    TaskView,
    Topology,
    Workflow,
    user,
)

DEBATERS = 2


def debate(problem: Problem, task: TaskView, config: Config) -> Workflow:
    """The debater that the judge picks is graded, by its answer after the rebuttal round.

    An unparsable choice falls back to the majority answer, then to the first debater.
    """
    opening = user(task.ask("generator", problem))
    first = yield [Call("debater", opening, slot=k) for k in range(DEBATERS)]

    rebuttals = []
    for k, own in enumerate(first):
        other = first[1 - k].text
        challenge = user(task.ask("rebuttal", problem, other=other))
        talk = (*opening, Message("assistant", own.text), *challenge)
        rebuttals.append(Call("debater", talk, slot=k, turn=1))
    final = yield rebuttals

    answers = [reply.text for reply in final]
    judge = Call("judge", user(task.ask("aggregator", problem, candidates=answers)))
    [verdict] = yield [judge]
    choice = parse_selection(verdict.text, DEBATERS)
    picked = majority([task.extract(text) for text in answers]) if choice is None else choice - 1
    parsed = {judge.key: Parsed(picked + 1, fallback=choice is None)}
    return Outcome(rebuttals[picked].key, parsed)


DEBATE = Topology(
    "Debate",
    debate,
    roles=("debater", "judge"),
    main_role="debater",
    parallel="debater",
    prompts=Path(__file__).with_name("prompts"),
)
