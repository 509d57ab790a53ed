"""What each topology asks for, what it grades and how it falls back."""

import pytest

from rolewise.errors import ConfigError
from rolewise.workflows.base import Topology, load_object, topology
from rolewise.workflows.eval_opt import EVAL_OPT
from rolewise.workflows.orch_workers import ORCH_WORKERS
from rolewise.workflows.single import SINGLE
from rolewise.workflows.voting import VOTING
from tests.configs import config
from tests.workflows.scripted import keys, play


def box(value):
    return f"\\boxed{{{value}}}"


def test_single_grades_its_one_call():
    waves, outcome = play(SINGLE, config(), {"generator": box(2)})
    assert keys(waves) == [[("generator", 0, 0)]]
    assert outcome.graded == ("generator", 0, 0)


def test_voting_runs_generators_at_once_and_grades_the_selected_one():
    script = {("generator", k, 0): box(k) for k in range(3)} | {"aggregator": box(2)}
    waves, outcome = play(VOTING, config(), script)
    assert keys(waves) == [[("generator", k, 0) for k in range(3)], [("aggregator", 0, 0)]]
    assert outcome.graded == ("generator", 1, 0)
    assert vars(outcome.parsed["aggregator", 0, 0]) == {"value": 2, "fallback": False}
    assert all(box(k) in waves[1][0].messages[0].content for k in range(3))


@pytest.mark.parametrize(
    ("answers", "graded"), [(("7", "8", "8"), 1), (("7", "8", "9"), 0), (("", "8", "8"), 1)]
)
def test_an_unparsable_selection_falls_back_to_the_majority_then_the_first(answers, graded):
    script = {("generator", k, 0): box(a) if a else "?" for k, a in enumerate(answers)}
    _, outcome = play(VOTING, config(), script | {"aggregator": "none of them"})
    assert outcome.graded == ("generator", graded, 0)
    assert outcome.parsed["aggregator", 0, 0].fallback


def test_votes_and_hints_are_configured():
    settings = {"workflow.votes": 2, "workflow.slot_hints": ["slowly", "quickly"]}
    waves, _ = play(VOTING, config(settings=settings), {"aggregator": box(1)})
    contents = [call.messages[0].content for call in waves[0]]
    assert len(contents) == 2 and "slowly" in contents[0] and "quickly" in contents[1]


def test_eval_opt_stops_when_the_evaluator_is_satisfied():
    waves, outcome = play(EVAL_OPT, config(), {"generator": box(2), "evaluator": box("Correct")})
    assert keys(waves) == [[("generator", 0, 0)], [("evaluator", 0, 0)]]
    assert outcome.graded == ("generator", 0, 0)


def test_eval_opt_refines_until_the_limit_and_the_last_evaluation_changes_nothing():
    script = {("generator", 0, t): box(t) for t in range(3)} | {"evaluator": box("Incorrect")}
    waves, outcome = play(EVAL_OPT, config(), script)
    assert [wave[0] for wave in keys(waves)] == [
        ("generator", 0, 0),
        ("evaluator", 0, 0),
        ("generator", 0, 1),
        ("evaluator", 0, 1),
        ("generator", 0, 2),
        ("evaluator", 0, 2),
    ]
    assert outcome.graded == ("generator", 0, 2)


def test_an_unparsable_verdict_means_not_satisfied_and_is_flagged():
    waves, outcome = play(EVAL_OPT, config(), {"generator": box(2), "evaluator": "looks fine"})
    assert len(waves) == 6
    assert vars(outcome.parsed["evaluator", 0, 0]) == {"value": "Incorrect", "fallback": True}


def test_shared_history_alternates_and_drops_nothing():
    script = {("generator", 0, t): box(t) for t in range(3)} | {"evaluator": box("Incorrect")}
    waves, _ = play(EVAL_OPT, config(), script)
    last = waves[-1][0].messages
    assert [m.role for m in last] == ["user", "assistant"] * 5 + ["user"]
    assert [m.content for m in last if m.role == "assistant"] == [
        box(0), box("Incorrect"), box(1), box("Incorrect"), box(2),
    ]  # fmt: skip


def test_last_history_shows_one_exchange():
    script = {("generator", 0, t): box(t) for t in range(3)} | {"evaluator": box("Incorrect")}
    waves, _ = play(EVAL_OPT, config(settings={"workflow.history": "last"}), script)
    assert all(len(wave[0].messages) == 1 for wave in waves)
    refinement = waves[4][0].messages[0].content
    assert box(1) in refinement and box(0) not in refinement


def test_every_strategy_gets_a_worker_and_the_synthesizer_is_graded():
    script = {"orchestrator": "STRATEGY 1: add\nSTRATEGY 2: count", "worker": box(2)}
    waves, outcome = play(ORCH_WORKERS, config(), script | {"synthesizer": box(2)})
    assert keys(waves) == [
        [("orchestrator", 0, 0)],
        [("worker", 0, 0), ("worker", 1, 0)],
        [("synthesizer", 0, 0)],
    ]
    assert "strategy=add" in waves[1][0].messages[0].content
    assert outcome.graded == ("synthesizer", 0, 0)
    assert outcome.parsed["orchestrator", 0, 0].value == {1: "add", 2: "count"}


def test_no_usable_strategy_means_one_worker_on_the_plain_problem():
    waves, outcome = play(ORCH_WORKERS, config(), {"orchestrator": "Just do it."})
    assert keys(waves)[1] == [("worker", 0, 0)]
    assert outcome.parsed["orchestrator", 0, 0].fallback


def test_workflows_are_found_by_name_or_import_path():
    found = topology(config(), "Voting")
    assert found is VOTING
    own = config(settings={"extensions.workflows": {"Mine": "rolewise.workflows.single:SINGLE"}})
    assert isinstance(topology(own, "Mine"), Topology)
    with pytest.raises(ConfigError, match="unknown"):
        topology(config(), "Debate")
    with pytest.raises(ConfigError, match="not a Topology"):
        topology(config(settings={"extensions.workflows": {"X": "json:dumps"}}), "X")
    with pytest.raises(ConfigError, match="cannot import"):
        load_object("no.such.module:thing")
