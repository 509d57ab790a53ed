import pandas as pd
import pytest

from rolewise.analysis.regrade import regrade
from rolewise.errors import DataError
from rolewise.records import CALLS, TRAJECTORIES
from rolewise.tasks.problem import Problem
from rolewise.workflows.judging import RoleCall, judge_calls, parsed_text
from tests.analysis.fakes import BracketGrader

PROBLEM = Problem("p1", "Math", "?", answer="7")


def judge(*calls: RoleCall, main_role: str = "generator", problem: Problem = PROBLEM):
    with BracketGrader() as grader:
        grades = [
            grader.grade_many([(problem, call.text)])[0] if call.kind == "answer" else None
            for call in calls
        ]
    return judge_calls(calls, grades, main_role)


def verdicts(*calls: RoleCall, **options):
    return [judged.correct for judged in judge(*calls, **options)]


def test_an_evaluator_is_right_when_it_agrees_with_the_grade_of_the_answer_before_it():
    assert verdicts(
        RoleCall("generator", 0, 0, "[8]"),
        RoleCall("evaluator", 0, 0, "no", parsed="Incorrect"),
        RoleCall("generator", 0, 1, "[7]", graded=True),
        RoleCall("evaluator", 0, 1, "no", parsed="Incorrect"),
    ) == [False, True, True, False]


def test_an_unparsable_verdict_is_wrong_even_if_the_fallback_agrees():
    assert verdicts(
        RoleCall("generator", 0, 0, "[8]", graded=True),
        RoleCall("evaluator", 0, 0, "?", parsed="Incorrect", fallback=True),
    ) == [False, False]


def test_only_answers_of_the_main_role_are_judged_in_an_episode_that_could_not_finish():
    assert verdicts(
        RoleCall("generator", 0, 0, "[7]"),
        RoleCall("evaluator", 0, 0, "[Correct]"),
        RoleCall("generator", 0, 1, "[8]"),
    ) == [True, None, False]


def test_an_aggregator_is_right_when_its_candidate_is():
    candidates = [
        RoleCall("generator", 0, 0, "[1]"),
        RoleCall("generator", 1, 0, "[7]", graded=True),
        RoleCall("generator", 2, 0, "[1]"),
    ]

    def pick(parsed, fallback=False):
        choice = RoleCall("aggregator", 0, 0, "", parsed=parsed, fallback=fallback)
        return verdicts(*candidates, choice)[-1]

    assert pick("2") is True
    assert pick("1") is False
    assert pick("4") is False
    assert pick("2", fallback=True) is False


def test_workers_and_synthesizer_answer_for_themselves_and_the_plan_is_not_judged():
    calls = [
        RoleCall("orchestrator", 0, 0, "[7]", parsed='{"1": "count"}'),
        RoleCall("worker", 0, 0, "[7]"),
        RoleCall("worker", 1, 0, "no answer"),
        RoleCall("synthesizer", 0, 0, "[6]", graded=True),
    ]
    judged = judge(*calls, main_role="worker")
    assert [j.correct for j in judged] == [None, True, False, False]
    assert [j.answer for j in judged] == [None, "7", None, "6"]


def test_a_role_of_ones_own_is_judged_only_if_it_answers():
    calls = [
        RoleCall("debater", 0, 0, "[7]"),
        RoleCall("critic", 0, 0, "nice"),
        RoleCall("critic", 0, 1, "I say [5]"),
        RoleCall("debater", 0, 1, "hm", graded=True),
    ]
    assert verdicts(*calls, main_role="debater") == [True, None, False, False]


def test_code_answers_are_equal_when_their_outputs_are():
    code = Problem("c", "Code", "?", answer="7")
    a, b, c = judge(
        RoleCall("generator", 0, 0, "[5]"),
        RoleCall("generator", 1, 0, "other text [5]"),
        RoleCall("generator", 2, 0, "[6]"),
        problem=code,
    )
    assert a.key == b.key != c.key


def test_parsed_values_become_text_and_keep_their_kind():
    values = (None, "Correct", 2, {1: "a"})
    calls = [RoleCall("r", 0, 0, "", parsed=parsed_text(v)) for v in values]
    assert [call.kind for call in calls] == ["answer", "verdict", "selection", "plan"]


def rows(*texts: str, problem: str = "p1") -> pd.DataFrame:
    base = dict.fromkeys(CALLS, 0) | {
        "problem": problem, "role": "generator", "parsed": None, "fallback": False,
        "graded": False, "checkpoint": "base",
    }  # fmt: skip
    return pd.DataFrame(
        [base | {"call": i, "slot": i, "text": text} for i, text in enumerate(texts)]
    )


def test_equal_answers_are_graded_once_and_every_row_is_kept_in_call_order():
    grader = BracketGrader()
    shuffled = rows("so [7]", "it is [7]", "[8]", "none").iloc[[2, 0, 3, 1]]
    found = regrade(shuffled, [PROBLEM], grader, "generator")
    assert list(found) == list(TRAJECTORIES)
    assert list(found["text"]) == ["so [7]", "it is [7]", "[8]", "none"]
    assert list(found["role_correct"]) == [True, True, False, False]
    assert list(found["answer"]) == ["7", "7", "8", None]
    assert grader.graded == ["so [7]", "[8]", "none"]


def test_trajectories_of_an_unknown_problem_are_an_error():
    with pytest.raises(DataError, match="p9"):
        regrade(rows("[7]", problem="p9"), [PROBLEM], BracketGrader(), "generator")
