import pandas as pd
import pytest

from rolewise.errors import RolewiseError
from rolewise.paper import figure_1
from rolewise.paper.study import Study
from rolewise.paper.style import styled
from rolewise.paper.topology import record
from rolewise.workflows.base import Call, Outcome, Topology, topology, user
from tests.configs import config


def edges(recording):
    """Pairs (source role, target role) of all texts that stand in prompts."""
    return {(key[0], item.call.role) for item in recording.calls for key in item.reads}


def test_voting_shows_every_candidate_to_the_aggregator():
    small = config(settings={"workflow.votes": 5})
    recording = record(topology(small, "Voting"), small, "Math")
    aggregator = recording.calls[-1]
    assert aggregator.call.role == "aggregator"
    assert aggregator.reads == tuple(("generator", k, 0) for k in range(5))
    assert [item.round for item in recording.calls] == [0, 0, 0, 0, 0, 1]
    assert recording.slots("generator") == 5


@pytest.mark.parametrize("task", ["Math", "Code"])
def test_eval_opt_runs_to_its_limit_of_turns(task):
    small = config()
    recording = record(topology(small, "Eval-Opt"), small, task)
    limit = small.workflow.max_iterations[task]
    assert recording.turns("evaluator") == limit
    assert recording.graded == ("generator", 0, limit - 1)
    assert {("generator", "evaluator"), ("evaluator", "generator")} <= edges(recording)


def test_orchestrated_workers_do_not_see_each_other():
    small = config(settings={"workflow.workers": 4})
    recording = record(topology(small, "Orch-Workers"), small, "Math")
    assert recording.slots("worker") == 4
    assert ("worker", "worker") not in edges(recording)
    assert ("worker", "synthesizer") in edges(recording)


def test_a_workflow_that_never_ends_is_refused():
    def endless(problem, task, config):
        turn = 0
        while True:
            yield [Call("generator", user("again"), turn=turn)]
            turn += 1

    shape = Topology("Endless", endless, roles=("generator",), main_role="generator")
    with pytest.raises(RolewiseError, match="Endless"):
        record(shape, config(), "Math")


def debate(problem, task, config):
    """Two debaters answer, then each reads the other; a judge reads both."""
    first = [Call("debater", user(task.ask("generator", problem)), slot=k) for k in range(2)]
    one, two = yield first
    second = [
        Call("debater", user(task.ask("refine", problem, other=text)), slot=k, turn=1)
        for k, text in enumerate((two.text, one.text))
    ]
    replies = yield second
    judge = Call("judge", user(task.ask("aggregator", problem, both=[r.text for r in replies])))
    yield [judge]
    return Outcome(graded=judge.key)


DEBATE = Topology(
    "Debate", debate, roles=("debater", "judge"), main_role="debater", parallel="debater"
)


def test_a_workflow_of_ones_own_is_recorded_like_the_built_in_ones():
    recording = record(DEBATE, config(), "Math")
    second = [item for item in recording.calls if item.call.turn == 1]
    assert [item.reads for item in second] == [(("debater", 1, 0),), (("debater", 0, 0),)]
    assert recording.graded == ("judge", 0, 0)


def test_the_topology_figure_draws_a_workflow_of_ones_own():
    settings = {
        "extensions.workflows": {"Debate": "tests.paper.test_topology:DEBATE"},
        "grid.workflows": ["Debate", "Voting"],
    }
    study = Study(config(settings=settings), pd.DataFrame())
    data = figure_1.data(study)
    with styled():
        figure = figure_1.draw(data, study)
    labels = {text.get_text() for axes in figure.axes for text in axes.texts}
    assert {"debater", "judge", "LoRA\ndebater", "LoRA\njudge", "LoRA\nshared"} <= labels
    debate = data[(data.workflow == "Debate") & (data.kind == "call")]
    assert set(debate[debate.policy == "IP"].adapter) == {"debater", "judge"}
    assert set(debate[debate.policy == "SP"].adapter) == {"shared"}
    assert {"Debate, IP", "Debate, SP"} <= {axes.get_title() for axes in figure.axes}


def test_the_problem_stands_in_every_prompt_that_the_figure_marks():
    study = Study(config(), pd.DataFrame())
    data = figure_1.data(study)
    marked = data[(data.kind == "problem") & (data.policy == "IP")]
    roles = {(row.workflow, row.target.split(":")[0]) for row in marked.itertuples()}
    assert {
        ("Voting", "aggregator"),
        ("Eval-Opt", "evaluator"),
        ("Orch-Workers", "worker"),
    } <= roles


def test_names_of_roles_fit_into_their_boxes():
    study = Study(config(), pd.DataFrame())
    with styled():
        figure = figure_1.draw(figure_1.data(study), study)
        figure.draw_without_rendering()
    texts = [(axes, text) for axes in figure.axes for text in axes.texts]
    [*widths] = [
        text.get_window_extent().transformed(axes.transData.inverted()).width
        for axes, text in texts
        if text.get_text() == "orchestrator"
    ]
    assert widths and max(widths) < 2 * (figure_1.HALF_WIDTH - 0.04)
