"""The grader: order, repetition, cache, limits, rewards."""

from __future__ import annotations

import json
import multiprocessing
import sqlite3

import pytest

from rolewise.config import Reward
from rolewise.errors import DataError, SandboxError
from rolewise.sandbox import tiers
from rolewise.tasks.code_grader import CodeGrader, grade_code_row
from rolewise.tasks.grade import reward_of
from rolewise.tasks.problem import Problem, Test
from tests import configs

ADD = Problem("add", "Code", "", tests=(Test("3 4\n", "7\n"), Test("10 -2\n", "8\n")))
CALL = Problem("f", "Code", "", tests=tuple(Test([i], i + 1) for i in range(4)), fn_name="f")


def fenced(program: str) -> str:
    return f"```python\n{program}\n```"


RIGHT = fenced("print(sum(map(int, input().split())))")
WRONG = fenced("print(7)")


@pytest.fixture
def config(tmp_path):
    return configs.config(results_dir=tmp_path / "results")


@pytest.fixture
def grader(config):
    with CodeGrader(config) as made:
        yield made


def test_grades_come_in_order_with_their_counts(grader):
    outputs = [RIGHT, "no program", WRONG, RIGHT]
    grades = grader.grade_many([(ADD, text) for text in outputs])
    assert [(g.status, g.passed, g.total) for g in grades] == [
        ("pass", 2, 2),
        ("no_code", 0, 2),
        ("wrong_answer", 1, 2),
        ("pass", 2, 2),
    ]
    assert [reward_of("Code", g, Reward()) for g in grades] == [1.0, 0.0, 0.5, 1.0]
    assert [reward_of("Code", g, Reward(code="all_pass")) for g in grades] == [1.0, 0.0, 0.0, 1.0]
    assert grades[0].outputs == grades[3].outputs != grades[2].outputs


def test_a_problem_without_tests_is_never_a_pass(grader):
    [grade] = grader.grade_many([(Problem("x", "Code", ""), RIGHT)])
    assert (grade.status, grade.correct) == ("no_tests", False)


def test_nothing_is_started_for_outputs_without_a_program(grader, monkeypatch):
    monkeypatch.setattr(tiers, "probe", None)
    [grade] = grader.grade_many([(ADD, "nothing")])
    assert grade.status == "no_code"


def test_equal_programs_on_equal_tests_run_once(grader):
    grader.grade_many([(ADD, RIGHT)] * 5)
    assert grader.counters["tests"] == 2
    grader.grade_many([(ADD, RIGHT)] * 5)
    assert grader.counters["tests"] == 2


def test_verdicts_outlive_the_grader(config):
    with CodeGrader(config) as first:
        before = first.grade_many([(ADD, RIGHT), (CALL, fenced("f = lambda x: x + 1"))])
    with CodeGrader(config) as second:
        assert second.grade_many([(ADD, RIGHT), (CALL, fenced("f = lambda x: x + 1"))]) == before
        assert second.counters == {}


@pytest.mark.parametrize(
    "change",
    [
        {"tests": (Test("3 4\n", "8\n"),)},
        {"tests": (Test("3 5\n", "7\n"),)},
        {"tolerance": 0.5},
        {"meta": {"limits": {"time_s": 1}}},
    ],
)
def test_whatever_changes_a_verdict_is_part_of_its_key(change, grader):
    one = Problem("x", "Code", "", tests=(Test("3 4\n", "7\n"),))
    grader.grade_many([(one, RIGHT)])
    grader.grade_many([(Problem(**(vars(one) | change)), RIGHT)])
    assert grader.counters["tests"] == 2


def test_a_corrupt_cache_is_replaced_with_a_warning(config, caplog):
    path = configs.Path(config.results_dir) / "state" / "verdicts.sqlite"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"this is no database" * 100)
    with CodeGrader(config) as grader:
        [grade] = grader.grade_many([(ADD, RIGHT)])
    assert grade.status == "pass"
    assert "corrupt" in caplog.text
    with CodeGrader(config) as grader:
        grader.grade_many([(ADD, RIGHT)])
        assert grader.counters == {} or grader.counters["tests"] == 2
    with CodeGrader(config) as grader:
        grader.grade_many([(ADD, RIGHT)])
        assert grader.counters == {}
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def _grade_some(results_dir, start):
    problems = [Problem("x", "Code", "", tests=(Test(f"{i} 1", str(i + 1)),)) for i in range(12)]
    items = [(problem, RIGHT) for problem in problems]
    with CodeGrader(configs.config(results_dir=results_dir)) as grader:
        grades = [grader.grade_many([item])[0] for item in items[start:] + items[:start]]
    return all(grade.correct for grade in grades)


def test_concurrent_processes_share_the_cache(tmp_path):
    context = multiprocessing.get_context("spawn")
    with context.Pool(3) as pool:
        results = pool.starmap(_grade_some, [(tmp_path, 0), (tmp_path, 4), (tmp_path, 8)])
    assert results == [True] * 3
    with sqlite3.connect(tmp_path / "state" / "verdicts.sqlite") as database:
        assert database.execute("SELECT count(*) FROM verdicts").fetchone() == (12,)


def test_an_unwritable_results_folder_only_costs_the_cache(tmp_path, caplog):
    (tmp_path / "state").write_text("a file where the folder should be")
    with CodeGrader(configs.config(results_dir=tmp_path)) as grader:
        [grade] = grader.grade_many([(ADD, RIGHT)])
    assert grade.status == "pass"
    assert "verdict cache" in caplog.text


def test_a_weak_machine_is_refused(grader, monkeypatch):
    weak = tiers.TierReport(3, (), "12/12", ("tier 2: no Landlock",))
    monkeypatch.setattr(tiers, "probe", lambda: weak)
    with pytest.raises(SandboxError, match="sandbox tier 2"):
        grader.grade_many([(ADD, RIGHT)])


def test_calls_do_not_see_what_earlier_calls_left(grader):
    counting = fenced("n = [0]\ndef f(x, seen=[]):\n    n[0] += 1\n    seen.append(x)\n"
                      "    return x + n[0] + len(seen) - 1")  # fmt: skip
    in_place = fenced("def f(x):\n    import builtins, sys\n    sys.setrecursionlimit(60)\n"
                      "    return x + 1")  # fmt: skip
    assert [g.passed for g in grader.grade_many([(CALL, counting), (CALL, in_place)])] == [4, 4]


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("raise ValueError", "runtime_error"),
        ("import os; os._exit(0)", "runtime_error"),
        ("import ctypes; ctypes.string_at(0)", "runtime_error"),
        ("bytearray(1 << 40)", "memory"),
        ("exit()", "runtime_error"),
    ],
)
def test_a_failing_call_costs_only_itself(ending, status, grader):
    program = fenced(f"def f(x):\n    if x == 1:\n        {ending}\n    return x + 1")
    [grade] = grader.grade_many([(CALL, program)])
    assert (grade.status, grade.passed) == (status, 3)


def test_a_slow_call_costs_only_itself(tmp_path):
    settings = {"sandbox.limits": {"cpu_s": 0.5}}
    program = fenced("def f(x):\n    while x == 1: pass\n    return x + 1")
    with CodeGrader(configs.config(results_dir=tmp_path, settings=settings)) as grader:
        [grade] = grader.grade_many([(CALL, program)])
    assert (grade.status, grade.passed) == ("timeout", 3)


def test_forged_result_lines_do_not_pass(grader):
    program = fenced("import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'[1]\\n[2]\\n')\n"
                     "    except OSError: pass\nos._exit(0)")  # fmt: skip
    hidden = Problem("f", "Code", "", tests=(Test([1], "a-hidden-value"),), fn_name="f")
    [grade] = grader.grade_many([(hidden, program)])
    assert not grade.passed


def test_a_program_too_long_is_not_run(grader):
    [grade] = grader.grade_many([(ADD, fenced("#" * 300_000))])
    assert (grade.status, grade.passed) == ("runtime_error", 0)


@pytest.mark.parametrize(
    "change",
    [
        {"mode": "files"},
        {"mode": "functional"},
        {"checker": "any order"},
        {"tests": [{"input": "1"}]},
        {"tests": [{"input": [1], "output": "1"}]},
        {"tests": ["x"]},
        {"completion": None},
    ],
)
def test_a_malformed_row_is_a_data_error(change, grader):
    row = {
        "id": "r",
        "completion": RIGHT,
        "mode": "stdin",
        "tests": [{"input": "1", "output": "1"}],
    }
    assert grade_code_row(row, grader)["status"] == "pass"
    with pytest.raises(DataError):
        grade_code_row(row | change, grader)


def test_a_row_is_graded_to_plain_json(grader):
    row = {"id": 5, "completion": WRONG, "tests": [{"input": "3 4", "output": "7"}] * 2}
    result = json.loads(json.dumps(grade_code_row(row, grader)))
    assert result == {"id": 5, "status": "pass", "passed": 2, "total": 2, "reward": 1.0}


def test_results_written_past_the_call_do_not_count(grader):
    forger = "import os\ndef f(x):\n    for fd in range(3, 20):\n"
    forger += "        try: os.write(fd, b'[%d]\\n' % (x + 1))\n        except OSError: pass\n"
    texts = [fenced(f"{forger}    return {value}") for value in ("0", "x + 1")]
    grades = grader.grade_many([(CALL, text) for text in texts])
    assert [(g.status, g.passed) for g in grades] == [("wrong_answer", 0), ("pass", 4)]


def test_a_call_that_asks_numpy_for_too_much_memory_says_so(grader):
    [grade] = grader.grade_many(
        [(CALL, fenced("import numpy as np\ndef f(x): return len(np.ones(1 << 36))"))]
    )
    assert (grade.status, grade.passed) == ("memory", 0)
