import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rolewise.tasks.parsing import majority, parse_selection, parse_strategies, parse_verdict

CASES = [json.loads(line) for line in Path("tests/cases/parsing.jsonl").read_text().splitlines()]


def _parse(case):
    if case["kind"] == "evaluator":
        return parse_verdict(case["output"])
    if case["kind"] == "aggregator":
        return parse_selection(case["output"], case["n_candidates"])
    asked = case["n_strategies"]
    found = parse_strategies(case["output"], asked, fewest=asked)
    return {str(number): text for number, text in found.items()} or None


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case_has_its_value(case):
    value = _parse(case)
    assert value == case["expected"]["value"], case["why"]
    assert value not in case.get("must_not", ())


@pytest.mark.parametrize(
    ("output", "verdict"),
    [
        (r"\boxed{\textbf{correct.}}", "Correct"),
        (r"$\boxed{\ Incorrect~}$", "Incorrect"),
        (r"\boxed{Correct!}", None),
        (r"\boxed{Correct, Incorrect}", None),
        (r"<think>\boxed{Correct}</think> \boxed{Incorrect}", "Incorrect"),
        (r"<think>\boxed{Correct}", None),
    ],
)
def test_verdict_is_one_of_two_words(output, verdict):
    assert parse_verdict(output) == verdict


@pytest.mark.parametrize(
    ("output", "choice"),
    [
        (r"\boxed{$2$}", 2),
        (r"\boxed{{2}}", 2),
        (r"\boxed{\(2\)}", 2),
        (r"\boxed{\[ \text{2}. \]}", 2),
        (r"\boxed{1\(2\)}", None),
        (r"\boxed{(2)}", None),
        (r"\boxed{02}", 2),
        (r"\boxed{0}", None),
        (r"\boxed{4}", None),
        (r"\boxed{+2}", None),
        (r"\boxed{1, 2}", None),
        (r"\boxed{Candidate 2}", None),
        (r"\boxed{" + "9" * 5000 + "}", None),
    ],
)
def test_selection_is_an_unsigned_integer_in_range(output, choice):
    assert parse_selection(output, 3) == choice


@pytest.mark.parametrize(
    ("output", "strategies"),
    [
        ("STRATEGY 1: Alone.", {1: "Alone."}),
        ("STRATEGY 1: A.\nSTRATEGY 2: B.", {1: "A.", 2: "B."}),
        ("### Strategy 1: A.\n1. STRATEGY 2: B.", {1: "A.", 2: "B."}),
        ("**STRATEGY 1: A.**\n__Strategy 2__: B.", {1: "A.", 2: "B."}),
        ("– STRATEGY 1: A.\n— STRATEGY 2: B.", {1: "A.", 2: "B."}),
        ("◦ STRATEGY 1: A.\n· **STRATEGY 2:** B.", {1: "A.", 2: "B."}),
        ("–STRATEGY 1: A.", {}),
        ("a – STRATEGY 1: A.", {}),
        ("> - \t ##  ** strategy \t 1 \t ** \t : A.", {1: "A."}),
        ("STRATEGY 1: A.\nSTRATEGY 3: C.", {}),
        ("STRATEGY 2: B.", {}),
        ("STRATEGY 0: A.\nSTRATEGY 1: B.", {}),
        ("STRATEGY 1: A.\nSTRATEGY 2: B.\nSTRATEGY 3: C.\nSTRATEGY 4: D.", {}),
        ("STRATEGY 1: **\nSTRATEGY 2: B.", {}),
        ("STRATEGY 1: 2?", {1: "2?"}),
        ("STRATEGY 1: as in strategy 2: no.", {}),
        ("<think>\nSTRATEGY 1: A.\n</think>\nSTRATEGY 1: B.", {1: "B."}),
        ("STRATEGY " + "1" * 5000 + ": A.", {}),
    ],
)
def test_up_to_three_strategies_numbered_from_one(output, strategies):
    assert parse_strategies(output, 3) == strategies


@pytest.mark.parametrize("unit", [" ", "\t", "> ", "- ", "# ", "* ", "1. ", "strategy 1 ", "1"])
@pytest.mark.parametrize(
    "start", ["", "- ", "#", "1. ", "strategy", "strategy 1", "STRATEGY 1: strategy 1"]
)
def test_long_runs_cost_linear_time(start, unit):
    text = start + unit * (60_000 // len(unit)) + "x"
    began = time.process_time()
    assert parse_strategies(text, 3) in ({}, {1: text.partition(":")[2].strip()})
    assert parse_verdict(rf"\boxed{{{text}}}") is None
    assert parse_selection(rf"\boxed{{{text}}}", 3) is None
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("answers", "index"),
    [
        (["a", "b", "b"], 1),
        (["a", "b", "c"], 0),
        ([None, "b", "a"], 1),
        (["b", "a", "a", "b"], 0),
        ([None, None, "a"], 2),
        ([None, None], 0),
    ],
)
def test_majority_goes_to_the_lowest_index_of_the_most_frequent_answer(answers, index):
    assert majority(answers) == index


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.lists(
        st.sampled_from(
            ["STRATEGY", "strategy ", " ", "1", "2", "٢", ":", "\n", "**", "- ", "text", "\\boxed{",
             "}", "Correct", "incorrect", "\\text{", "."]
        )
    ).map("".join) | st.text()
)  # fmt: skip
def test_any_output_parses_to_a_legal_value(output):
    assert parse_verdict(output) in ("Correct", "Incorrect", None)
    choice = parse_selection(output, 2)
    assert choice is None or 1 <= choice <= 2
    strategies = parse_strategies(output, 2)
    assert list(strategies) == list(range(1, len(strategies) + 1))
    assert all(strategies.values())
