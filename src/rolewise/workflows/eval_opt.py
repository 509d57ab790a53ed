"""Eval-Opt: a generator answers, an evaluator judges, the generator may revise."""

from rolewise.config import Config
from rolewise.tasks.parsing import parse_verdict
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


def eval_opt(problem: Problem, task: TaskView, config: Config) -> Workflow:
    """The last generator turn is graded; an unparsable verdict means not satisfied.

    At most `max_iterations` evaluator turns with a refinement between them, so the last evaluation
    changes nothing. With `history: shared` both roles see the whole conversation in alternating
    user and assistant turns; with `last` only the problem, the last answer and the last critique.
    """
    shared = config.workflow.history == "shared"
    talk = user(task.ask("generator", problem))
    generator = Call("generator", talk)
    [answer] = yield [generator]
    parsed = {}
    limit = config.workflow.max_iterations[problem.task]
    for turn in range(limit):
        if shared:
            talk = (*talk, Message("assistant", answer.text), *user(task.ask("evaluator", problem)))
        else:
            talk = user(task.ask("evaluator_last", problem, answer=answer.text))
        evaluator = Call("evaluator", talk, turn=turn)
        [critique] = yield [evaluator]
        verdict = parse_verdict(critique.text)
        parsed[evaluator.key] = Parsed(verdict or "Incorrect", fallback=verdict is None)
        if verdict == "Correct" or turn == limit - 1:
            break
        if shared:
            talk = (*talk, Message("assistant", critique.text), *user(task.ask("refine", problem)))
        else:
            talk = user(
                task.ask("refine_last", problem, answer=answer.text, critique=critique.text)
            )
        generator = Call("generator", talk, turn=turn + 1)
        [answer] = yield [generator]
    return Outcome(generator.key, parsed)


EVAL_OPT = Topology("Eval-Opt", eval_opt, roles=("generator", "evaluator"), main_role="generator")
