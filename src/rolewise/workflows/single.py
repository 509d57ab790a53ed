"""Single: one generator call, the topology of the single-agent baseline."""

from rolewise.config import Config
from rolewise.tasks.problem import Problem
from rolewise.workflows.base import Call, Outcome, TaskView, Topology, Workflow, user


def single(problem: Problem, task: TaskView, config: Config) -> Workflow:
    """The generator answers; its answer is graded."""
    call = Call("generator", user(task.ask("generator", problem)))
    yield [call]
    return Outcome(graded=call.key)


SINGLE = Topology("Single", single, roles=("generator",), main_role="generator")
