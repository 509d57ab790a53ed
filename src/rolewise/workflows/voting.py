"""Voting: parallel generators and an aggregator that picks one candidate."""

from rolewise.config import Config
from rolewise.tasks.parsing import majority, parse_selection
from rolewise.tasks.problem import Problem
from rolewise.workflows.base import Call, Outcome, Parsed, TaskView, Topology, Workflow, user


def voting(problem: Problem, task: TaskView, config: Config) -> Workflow:
    """The selected candidate is graded, never the aggregator's own text.

    An unparsable selection falls back to the majority answer, then to candidate 1.
    """
    votes = config.workflow.votes
    hints = config.workflow.slot_hints or [""]
    generators = [
        Call("generator", user(task.ask("generator", problem, hint=hints[k % len(hints)])), slot=k)
        for k in range(votes)
    ]
    replies = yield generators
    candidates = [reply.text for reply in replies]
    aggregator = Call("aggregator", user(task.ask("aggregator", problem, candidates=candidates)))
    [reply] = yield [aggregator]
    choice = parse_selection(reply.text, len(candidates))
    if choice is None:
        picked = Parsed(majority([task.extract(text) for text in candidates]), fallback=True)
    else:
        picked = Parsed(choice - 1)
    graded = generators[picked.value].key
    return Outcome(graded, {aggregator.key: Parsed(picked.value + 1, picked.fallback)})


VOTING = Topology(
    "Voting", voting, roles=("generator", "aggregator"), main_role="generator", parallel="generator"
)
