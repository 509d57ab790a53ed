import numpy as np
import pandas as pd
import pytest

from rolewise.analysis import shapes
from rolewise.analysis.signatures import (
    Checkpoint,
    bigrams,
    hedging_pattern,
    jaccard,
    role_signatures,
    signatures,
    slot_table,
)
from rolewise.config import Signatures
from rolewise.records import TRAJECTORIES
from rolewise.workflows.eval_opt import EVAL_OPT
from rolewise.workflows.orch_workers import ORCH_WORKERS
from rolewise.workflows.shapes import has_code_block
from rolewise.workflows.voting import VOTING

LIMITS = Signatures(
    bootstrap=300, terse_aggregator_tokens=5, terse_evaluator_tokens=5, code_block_lines=2
)
CODE = "```python\nn = int(input())\nprint(n)\n```"


def call(problem="p0", role="generator", text="", **values):
    blank = {
        "step": 0, "checkpoint": "base", "sample": 0, "slot": 0, "turn": 0, "call": 0, "prompt": "",
        "tokens": len(text.split()), "distinct_tokens": len(set(text.split())), "prompt_tokens": 1,
        "finish_reason": "stop", "entropy": 0.5, "logprob": -1.0, "parsed": None, "fallback": False,
        "answer": None, "answer_key": None, "role_correct": None, "graded": False, "correct": False,
        "reward": 0.0,
    }  # fmt: skip
    return blank | {"problem": problem, "role": role, "text": text} | values


def checkpoint(*calls):
    return Checkpoint.of(pd.DataFrame(list(calls))[list(TRAJECTORIES)], LIMITS)


def measured(now, base=None, topology=VOTING):
    found = signatures(now, base or now, topology, LIMITS, most_strategies=3)
    return {(s.role, s.metric): s.interval for s in found}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (CODE, True),
        ("```\na = 1\nb = 2\n```", True),
        ("```python\na = 1\nb = 2", True),
        ("```python\na = 1\n\n```", False),
        ("```json\n{\n}\n```", False),
        ("a = 1\nb = 2\nprint(a)", False),
    ],
)
def test_a_python_block_is_a_fence_with_enough_lines(text, found):
    assert has_code_block(text, 2) is found


def test_terse_is_a_short_parsed_pick_or_an_unfenced_short_verdict():
    now = checkpoint(
        call(role="aggregator", text=r"\boxed{2}", parsed="2"),
        call(role="aggregator", text=r"I choose this one because \boxed{2}", parsed="2"),
        call(role="aggregator", text="two", parsed="1", fallback=True),
        call(role="evaluator", text=r"\boxed{Correct}", parsed="Correct"),
        call(role="evaluator", text="```x``` ok", parsed="Correct"),
        call(role="generator", text=r"\boxed{2}"),
    )
    assert now.roles["aggregator"]["terse"].tolist() == [1, 0, 0]
    assert now.roles["evaluator"]["terse"].tolist() == [1, 0]
    assert now.roles["generator"]["terse"].tolist() == [0]
    assert now.roles["aggregator"]["boxed"].tolist() == [1, 1, 0]


def test_a_shape_holds_length_quantiles_and_rates_of_the_sample_first():
    calls = [call(f"p{i}", text="w " * (i + 1)) for i in range(10)]
    calls[0]["finish_reason"] = "length"
    now = checkpoint(*calls)
    shape = now.shapes["generator"]
    assert shape.shape == (301, 6)
    assert shape[0] == pytest.approx([5, 9, 0, 0, 0, 0.1])
    assert np.quantile(shape[1:, 0], 0.5) == pytest.approx(5, abs=1)


def test_capture_is_0_for_the_unmoved_and_1_on_arrival():
    base = checkpoint(
        *(call(f"p{i}", "evaluator", "ok then", parsed="Correct") for i in range(8)),
        *(call(f"p{i}", "generator", CODE + " x" * i) for i in range(8)),
    )

    def score(now):
        return measured(now, base, EVAL_OPT)["evaluator", "capture_by_generator"]

    assert score(base).value == pytest.approx(0)
    arrived = checkpoint(
        *(call(f"p{i}", "evaluator", CODE + " x" * i, parsed="Correct") for i in range(8)),
        *(call(f"p{i}", "generator", CODE + " x" * i) for i in range(8)),
    )
    found = score(arrived)
    assert found.value == pytest.approx(1)
    assert 0.9 < found.lo <= found.hi < 1.1
    half = checkpoint(
        *(
            call(f"p{i}", "evaluator", CODE + " x" * i if i % 2 else "ok then", parsed="Correct")
            for i in range(8)
        ),
        *(call(f"p{i}", "generator", CODE + " x" * i) for i in range(8)),
    )
    found = score(half)
    assert 0.3 < found.value < 0.9 and found.lo < found.value < found.hi


def test_the_capture_formula_by_hand():
    now, a, b = (np.tile(row, (3, 1)).astype(float) for row in ([2, 0], [0, 0], [4, 2]))
    # scaled by (2, 1): moved (1, 0), apart (2, 2): 2 / 8
    found = shapes.capture_score(now, a, b, np.array([2.0, 1.0]), n=10)
    assert found.value == pytest.approx(0.25)
    # a component that never varies is left out: 1 * 2 / 4
    found = shapes.capture_score(now, a, b, np.array([2.0, 0.0]), n=10)
    assert found.value == pytest.approx(0.5)


def test_roles_that_look_alike_have_no_capture_score():
    same = checkpoint(
        *(
            call(f"p{i}", role, "w " * (i + 1))
            for i in range(8)
            for role in ("worker", "synthesizer")
        )
    )
    assert measured(same, topology=ORCH_WORKERS)["synthesizer", "capture_by_worker"].value is None


def voting(problem, keys, right, correct):
    calls = [
        call(problem, text=f"so [{key}]", slot=k, answer=key, answer_key=key, role_correct=ok,
             correct=correct)
        for k, (key, ok) in enumerate(zip(keys, right, strict=True))
    ]  # fmt: skip
    pick = call(problem, "aggregator", r"\boxed{1}", parsed="1", role_correct=correct, call=3)
    return [*calls, pick | {"correct": correct}]


def test_oracle_selection_error_and_wrong_agreement_by_hand():
    now = checkpoint(
        *voting("p0", ["1", "1", "2"], [False] * 3, False),
        *voting("p1", ["3", None, "4"], [False] * 3, False),
        *voting("p2", ["5", None, None], [False] * 3, False),
        *voting("p3", ["7", "7", "8"], [True, True, False], True),
        *voting("p4", ["7", "8", "8"], [True, False, False], False),
    )
    found = measured(now)
    assert found["generator", "oracle"].value == pytest.approx(2 / 5)
    assert found["all", "selection_error"].value == pytest.approx(1 / 2)
    assert found["all", "selection_error"].n == 2
    # p0: 1 of 3 pairs agrees, p1: 0 of 1; p2 has no pair, in p3 and p4 a slot is right
    assert found["generator", "wrong_agreement"].value == pytest.approx((1 / 3 + 0) / 2)
    assert found["generator", "wrong_agreement"].n == 2
    assert found["generator", "role_accuracy"].value == pytest.approx(3 / 15)
    assert found["aggregator", "role_accuracy"].value == pytest.approx(1 / 5)


def test_agreement_is_compared_with_the_base_model_on_the_same_problems():
    base = checkpoint(*voting("p0", ["1", "2", "3"], [False] * 3, False))
    now = checkpoint(*voting("p0", ["1", "1", "1"], [False] * 3, False))
    assert measured(now, base)["generator", "wrong_agreement_gain"].value == 1


def test_only_the_last_turn_of_parallel_calls_counts():
    calls = [call(slot=k, turn=t, role_correct=t == 0) for t in (0, 1) for k in (0, 1)]
    table = slot_table(checkpoint(*calls).roles["generator"])
    assert table["oracle"].tolist() == [0]


def test_the_verdict_table_leaves_unparsed_verdicts_out():
    def verdict(i, parsed, agrees, **more):
        return call(f"p{i}", "evaluator", "v", parsed=parsed, role_correct=agrees, **more)

    found = measured(
        checkpoint(
            verdict(0, "Correct", True),
            verdict(1, "Correct", False),
            verdict(2, "Incorrect", True),
            verdict(3, "Incorrect", True),
            verdict(4, "Incorrect", False, fallback=True),
        ),
        topology=EVAL_OPT,
    )
    assert found["evaluator", "verdict_accepts_right"].value == pytest.approx(0.25)
    assert found["evaluator", "verdict_accepts_wrong"].value == pytest.approx(0.25)
    assert found["evaluator", "verdict_rejects_wrong"].value == pytest.approx(0.5)
    assert found["evaluator", "verdict_rejects_right"].value == 0
    assert found["evaluator", "parse_fallback"].value == pytest.approx(0.2)


def test_strategies_are_counted_and_compared_by_their_words():
    plan = "STRATEGY 1: add the left\nSTRATEGY 2: add the right"
    same = "STRATEGY 1: add\nSTRATEGY 2: add"
    found = measured(
        checkpoint(
            call("p0", "orchestrator", plan, parsed="{...}"),
            call("p1", "orchestrator", same, parsed="{...}"),
            call("p2", "orchestrator", "no plan", parsed="{}", fallback=True),
        ),
        topology=ORCH_WORKERS,
    )
    assert found["orchestrator", "strategies"].value == pytest.approx(4 / 3)
    # 2 of 4 words shared, then all: distances 1/2 and 0
    assert found["orchestrator", "strategy_diversity"].value == pytest.approx(0.25)
    assert ("orchestrator", "role_accuracy") not in found


def test_hedging_counts_whole_phrases_in_any_case():
    pattern = hedging_pattern(["maybe", "not sure"])
    assert pattern.search("Maybe 7") and pattern.search("I am NOT SURE.")
    assert not pattern.search("maybelline")
    assert not hedging_pattern([]).search("maybe")


def test_rates_weigh_problems_by_their_calls():
    found = role_signatures(
        checkpoint(
            call("p0", text="a a b", tokens=3, distinct_tokens=2, logprob=-3.0),
            call("p1", text="maybe", tokens=1, distinct_tokens=1, logprob=-1.0),
            call("p1", text="b", tokens=1, distinct_tokens=1, logprob=-0.5),
        ),
        "generator",
        LIMITS.model_copy(update={"hedging_phrases": ["maybe"]}),
    )
    values = {s.metric: s.interval.value for s in found}
    assert values["hedging"] == pytest.approx(1 / 3)
    assert values["distinct"] == pytest.approx(4 / 5)
    assert values["mean_logprob"] == pytest.approx(-4.5 / 5)


def test_similarity_is_the_jaccard_index_of_word_pairs():
    assert jaccard(bigrams("a b c"), bigrams("a b d")) == pytest.approx(1 / 5)
    assert jaccard(bigrams("a"), bigrams("a")) == 1
