"""Orch-Workers: an orchestrator plans, workers follow one strategy each, a synthesizer answers."""

from rolewise.config import Config
from rolewise.tasks.parsing import parse_strategies
from rolewise.tasks.problem import Problem
from rolewise.workflows.base import Call, Outcome, Parsed, TaskView, Topology, Workflow, user


def orch_workers(problem: Problem, task: TaskView, config: Config) -> Workflow:
    """The synthesizer's own text is graded; no usable strategy means one worker without one."""
    limit = config.workflow.workers
    orchestrator = Call("orchestrator", user(task.ask("orchestrator", problem, workers=limit)))
    [plan] = yield [orchestrator]
    found = parse_strategies(plan.text, limit)
    strategies = list(found.values()) or [""]
    workers = [
        Call("worker", user(task.ask("worker", problem, strategy=strategy)), slot=k)
        for k, strategy in enumerate(strategies)
    ]
    replies = yield workers
    answers = [
        {"strategy": strategy, "answer": reply.text}
        for strategy, reply in zip(strategies, replies, strict=True)
    ]
    synthesizer = Call("synthesizer", user(task.ask("synthesizer", problem, answers=answers)))
    yield [synthesizer]
    return Outcome(synthesizer.key, {orchestrator.key: Parsed(found, fallback=not found)})


ORCH_WORKERS = Topology(
    "Orch-Workers",
    orch_workers,
    roles=("orchestrator", "worker", "synthesizer"),
    main_role="worker",
    parallel="worker",
)
