import json
import os

import pytest
from typer.testing import CliRunner

from rolewise.cli import app
from rolewise.errors import DataError

RUN = CliRunner()


@pytest.fixture(autouse=True)
def _bare_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def _run(*arguments, rows=()):
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    result = RUN.invoke(app, [*arguments, "-"], input=text)
    return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()]


def test_math_rows_come_back_in_order_and_nothing_is_left_behind():
    rows = [
        {"id": "a", "completion": r"\boxed{\frac12}", "ground_truth": "0.5"},
        {"id": 7, "completion": "no box", "ground_truth": "1"},
        {"id": None, "completion": r"\boxed{x+x}", "ground_truth": "3x"},
        {
            "id": "r",
            "completion_repeat": {"prefix": "", "unit": "\\boxed{1} ", "times": 9, "suffix": ""},
            "ground_truth": 1,
        },
    ]
    code, lines = _run("grade", "math", "--format-penalty", "-0.25", rows=rows)
    assert code == 0
    assert lines == [
        {"id": "a", "answer": r"\frac12", "correct": True, "format_ok": True, "reward": 1.0},
        {"id": 7, "answer": None, "correct": False, "format_ok": False, "reward": -0.25},
        {"id": None, "answer": "x+x", "correct": False, "format_ok": True, "reward": 0.0},
        {"id": "r", "answer": "1", "correct": True, "format_ok": True, "reward": 1.0},
    ]
    assert os.listdir() == []


def test_the_math_reward_can_be_exact():
    rows = [{"id": 1, "completion": r"\boxed{\frac12}", "ground_truth": "0.5"}]
    _, [line] = _run("grade", "math", "--reward-math", "exact", rows=rows)
    assert not line["correct"]


MALFORMED = [
    '{"id": 1',
    "[1]",
    "null",
    '{"id": 1}',
    '{"id": 1, "completion": 5, "ground_truth": "5"}',
    '{"id": 1, "completion": "5"}',
    '{"id": 1, "completion_repeat": [], "ground_truth": "5"}',
    "[" * 100_000,
]


def test_malformed_lines_are_error_rows_in_their_place():
    good = {"id": "g", "completion": r"\boxed{5}", "ground_truth": "5"}
    code, lines = _run("grade", "math", rows=[good, *MALFORMED, "", good])
    assert code == 1
    assert lines[0] == lines[-1] == {
        "id": "g", "answer": "5", "correct": True, "format_ok": True, "reward": 1.0,
    }  # fmt: skip
    assert [line["line"] for line in lines[1:-1]] == list(range(2, 2 + len(MALFORMED)))
    assert all(line["error"] for line in lines[1:-1])


def test_a_line_that_is_no_text_is_an_error_row():
    good = json.dumps({"id": 1, "completion": r"\boxed{5}", "ground_truth": "5"}).encode()
    result = RUN.invoke(app, ["grade", "math", "-"], input=b"\xff\xfe\n" + good)
    first, second = map(json.loads, result.stdout.splitlines())
    assert (result.exit_code, first["line"], second["correct"]) == (1, 1, True)


def test_more_rows_than_a_batch_keep_their_order(tmp_path):
    file = tmp_path / "rows.jsonl"
    rows = [
        {"id": i, "completion": f"\\boxed{{{i}}}", "ground_truth": str(i % 2)} for i in range(700)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = RUN.invoke(app, ["grade", "math", str(file)])
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["id"] for line in lines] == list(range(700))
    assert [line["id"] for line in lines if line["correct"]] == [0, 1]


def test_a_missing_file_says_so():
    result = RUN.invoke(app, ["grade", "math", "missing.jsonl"])
    assert isinstance(result.exception, DataError)
    assert "missing.jsonl" in str(result.exception)


def test_programs_are_graded_by_their_tests():
    program = "```python\nprint(int(input()) + 1)\n```"
    rows = [
        {"id": "p", "completion": program, "mode": "stdin",
         "tests": [{"input": "1\n", "output": "2\n"}, {"input": "2\n", "output": "4\n"}]},
        {"id": "n", "completion": "none", "mode": "stdin", "tests": [{"input": "", "output": ""}]},
        {"id": "f", "completion": "```python\ndef f(x): return 2 * x\n```", "mode": "functional",
         "fn_name": "f", "tests": [{"input": [2], "output": 4}]},
        {"id": "m", "completion": program, "mode": "other", "tests": []},
    ]  # fmt: skip
    code, lines = _run("grade", "code", "--min-tier", "3", rows=rows)
    assert code == 1
    assert lines[:3] == [
        {"id": "p", "status": "wrong_answer", "passed": 1, "total": 2, "reward": 0.5},
        {"id": "n", "status": "no_code", "passed": 0, "total": 1, "reward": 0.0},
        {"id": "f", "status": "pass", "passed": 1, "total": 1, "reward": 1.0},
    ]
    assert lines[3]["line"] == 4
    _, lines = _run("grade", "code", "--min-tier", "3", "--reward-code", "all_pass", rows=rows[:1])
    assert lines[0]["reward"] == 0.0
    assert os.listdir() == []


def test_verdicts_are_parsed():
    rows = [{"id": 1, "output": r"\boxed{correct.}"}, {"id": 2, "output": "Correct"}, {"id": 3}]
    code, lines = _run("parse", "verdict", rows=rows)
    assert code == 1
    assert lines[:2] == [
        {"id": 1, "value": "Correct", "fallback": False},
        {"id": 2, "value": None, "fallback": True},
    ]
    assert lines[2]["line"] == 3


def test_selections_are_parsed_within_their_candidates():
    rows = [
        {"id": 1, "output": r"\boxed{3}", "n_candidates": 3},
        {"id": 2, "output": r"\boxed{3}", "n_candidates": 2},
        {"id": 3, "output": r"\boxed{3}"},
        {"id": 4, "output": r"\boxed{3}", "n_candidates": True},
    ]
    code, lines = _run("parse", "selection", rows=rows)
    assert code == 1
    assert [line.get("value") for line in lines] == [3, None, None, None]
    assert [line.get("fallback") for line in lines] == [False, True, None, None]
    assert "n_candidates" in lines[2]["error"]


def test_strategies_are_parsed():
    rows = [
        {"id": 1, "output": "STRATEGY 1: A.", "n_strategies": 1},
        {"id": 2, "output": "STRATEGY 1: A.", "n_strategies": 2},
        {"id": 3, "output": "STRATEGY 1: A."},
    ]
    code, lines = _run("parse", "strategies", rows=rows)
    assert code == 0
    assert lines == [
        {"id": 1, "value": {"1": "A."}, "fallback": False},
        {"id": 2, "value": None, "fallback": True},
        {"id": 3, "value": {"1": "A."}, "fallback": False},
    ]


@pytest.mark.parametrize(
    "command",
    [
        *["grade", "grade math", "grade code"],
        *["parse", "parse verdict", "parse selection", "parse strategies", "reference"],
    ],
)
def test_every_command_shows_an_example(command):
    help_text = RUN.invoke(app, [*command.split(), "--help"]).stdout
    _, _, example = " ".join(help_text.split()).partition("Example: ")
    assert f"rolewise {command} " in example
