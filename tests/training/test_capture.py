"""Capture during training: a role that takes on another's shape rings, with the step of the loop."""

import json
import math

import numpy as np
import pytest

from rolewise.analysis.shapes import capture_score
from rolewise.config import Alarms, Signatures
from rolewise.errors import StateError
from rolewise.sampling.base import Completion
from rolewise.sampling.episodes import CallRecord, Episode
from rolewise.tasks.problem import Problem
from rolewise.training.capture import SHAPE, capture, shape_rates
from rolewise.training.metrics import raise_alarms
from rolewise.workflows.base import Call, Outcome, Parsed
from tests.study import tiny_study
from tests.training.test_loop import CELLS, run, state_of

LIMITS = Signatures(terse_aggregator_tokens=5, terse_evaluator_tokens=5, code_block_lines=2)
PROGRAM = "```python\nn = int(input())\nprint(n)\n```"


def episode(texts, parsed=None):
    """An episode of one call per role, a token per character."""
    calls = [
        CallRecord(
            Call(role, ()), "", (), Completion(tuple(range(len(t))), np.zeros(len(t)), "stop"), t
        )
        for role, t in texts.items()
    ]
    values = {(role, 0, 0): value for role, value in (parsed or {}).items()}
    outcome = Outcome(graded=calls[0].call.key, parsed=values)
    return Episode(Problem("p", "Code", ""), 0, calls, outcome)


def rows(episodes):
    """Metrics of every role, as far as capture reads them."""
    rates = shape_rates(episodes, LIMITS)
    found = {}
    for role in rates.keys() - {"all"}:
        lengths = [len(c.completion.ids) for e in episodes for c in e.calls if c.call.role == role]
        found[role] = rates[role] | {
            "role": role, "rows": len(lengths), "truncated": 0.0,
            "length_mean": np.mean(lengths), "length_std": np.std(lengths),
            "length_q50": np.quantile(lengths, 0.5), "length_q90": np.quantile(lengths, 0.9),
        }  # fmt: skip
    return found


def step(writes_programs):
    """Eight episodes in which the first `writes_programs` evaluators write programs of their own."""
    return rows(
        [
            episode(
                {
                    "generator": PROGRAM + "#" * i,
                    "evaluator": PROGRAM + "#" * i if i < writes_programs else "ok",
                },
                {"evaluator": Parsed("Correct")},
            )
            for i in range(8)
        ]
    )


def alarms(now, first):
    calm = {"perplexity": 1.0, "chi2_update": 0.0, "entropy": 1.0, "length_mean": 1.0}
    value = capture(now, first)
    return raise_alarms(calm, calm | {"capture": value}, Alarms())


def test_a_role_that_drifts_to_anothers_base_shape_rings_on_the_way():
    first = step(0)
    course = [capture(step(n)["evaluator"], first) for n in range(9)]
    assert course[0] == 0 and course[-1] == pytest.approx(1)
    rung = [alarms(step(n)["evaluator"], first) for n in range(9)]
    assert rung[:2] == [[], []] and rung[-1] == ["capture"]
    assert [bool(names) for names in rung] == [value > 0.5 for value in course]
    assert capture(step(8)["generator"], first) == 0


def test_the_value_is_the_capture_score_of_the_study():
    first, now = step(0), step(3)["evaluator"]
    shapes = [
        [row[name] for name in SHAPE] for row in (now, first["evaluator"], first["generator"])
    ]
    lengths = [len(PROGRAM) + i for i in range(8)] + [2] * 8
    solves = [1.0] * 8 + [0.0] * 8
    scale = [np.std(lengths)] * 2 + [0.0, np.std(solves), np.std(solves), 0.0]
    expected = capture_score(*(np.tile(s, (3, 1)) for s in shapes), np.array(scale), n=8)
    assert capture(now, first) == pytest.approx(expected.value)


def test_there_is_no_capture_without_a_distinct_role():
    first = step(0)
    assert math.isnan(capture(step(8)["evaluator"], {"evaluator": first["evaluator"]}))
    alike = {"worker": first["generator"], "evaluator": first["generator"] | {"role": "evaluator"}}
    assert math.isnan(capture(step(8)["evaluator"], alike))
    assert alarms(step(8)["evaluator"], alike) == []


def test_one_longer_call_does_not_make_a_role_distinct():
    usual = step(8)["generator"] | {"length_mean": 20.0, "length_std": 0.0, "rows": 10}
    usual |= {"length_q50": 20.0, "length_q90": 20.0}
    longer = {"role": "evaluator", "length_mean": 21.1, "length_std": 3.14, "length_q90": 31.0}
    first = {"generator": usual, "evaluator": usual | longer}
    assert math.isnan(capture(usual, first))


def test_calls_without_a_completion_have_no_shape():
    counted = shape_rates([episode({"generator": PROGRAM}), episode({"generator": ""})], LIMITS)
    assert counted["all"] == counted["generator"] == {"boxed": 0, "code_block": 1, "terse": 0}


def test_the_first_step_of_a_training_is_the_base(tmp_path):
    config = tiny_study(tmp_path, {"training.steps": 2})
    run(config, CELLS[0])
    logged = state_of(config, CELLS[0]).rows("metrics")
    first = {row["role"]: row for row in logged if row["step"] == 1 and row["role"] != "all"}
    for row in logged:
        if row["role"] == "all":
            assert math.isnan(row["capture"])
        else:
            assert json.dumps(row["capture"]) == json.dumps(capture(row, first))
            assert row["step"] == 2 or row["capture"] == 0 or math.isnan(row["capture"])


def test_a_log_of_another_version_is_refused_before_training_on(tmp_path):
    run(tiny_study(tmp_path, {"training.steps": 2}), CELLS[0])
    longer = tiny_study(tmp_path)
    log = state_of(longer, CELLS[0]).path / "metrics.jsonl"
    log.write_text(log.read_text().replace('"capture"', '"seizure"'))
    with pytest.raises(StateError, match="another version"):
        run(longer, CELLS[0])
