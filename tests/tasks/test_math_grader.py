import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rolewise.config import Reward
from rolewise.errors import RolewiseError
from rolewise.tasks import math_pool
from rolewise.tasks.grade import reward_of
from rolewise.tasks.math_grader import MathGrader
from rolewise.tasks.problem import Problem

CASES = [json.loads(line) for line in Path("tests/cases/math.jsonl").read_text().splitlines()]
# Costs far more than any limit and is not refused beforehand.
ENDLESS = r"\sum_{k=1}^{10^9} \frac{1}{k^2+\sin k}"
LIMIT_S = 1.5


def _problem(truth):
    return Problem("p", "Math", "", answer=truth)


def _completion(case):
    if "completion" in case:
        return case["completion"]
    parts = case["completion_repeat"]
    return parts["prefix"] + parts["unit"] * parts["times"] + parts["suffix"]


def _boxed(answer):
    return f"So it is \\boxed{{{answer}}}."


def _statuses(grader, answers, truth):
    grades = grader.grade_many([(_problem(truth), _boxed(answer)) for answer in answers])
    return [grade.status for grade in grades]


def _alive(pid):
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(scope="module")
def grader():
    with MathGrader.from_reward(Reward()) as grader:
        yield grader


@pytest.fixture(scope="module")
def graded(grader):
    items = [(_problem(case["ground_truth"]), _completion(case)) for case in CASES]
    return dict(zip([case["id"] for case in CASES], grader.grade_many(items), strict=True))


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case_has_its_right_value(case, graded):
    grade = graded[case["id"]]
    assert grade.correct is case["expected"], case["why"]
    if "expected_extracted" in case:
        assert grade.answer == case["expected_extracted"]


def test_rewards_stay_with_their_completions(grader):
    texts = [r"\boxed{4}", "no idea", r"\boxed{4}", "", r"\boxed{x+x}", r"\boxed{5}"]
    grades = grader.grade_many([(_problem("4"), text) for text in texts])
    rewards = [reward_of("Math", grade, Reward(format_penalty=-0.5)) for grade in grades]
    assert rewards == [1, -0.5, 1, -0.5, 0, 0]
    assert [grade.status for grade in grades] == [
        "correct", "no_answer", "correct", "no_answer", "wrong", "wrong",
    ]  # fmt: skip
    assert grader.grade_many([]) == []


def test_the_reward_option_reaches_the_grader(grader):
    with MathGrader.from_reward(Reward(math="exact")) as exact:
        assert _statuses(exact, ["0.5", r"\dfrac12"], r"\frac{1}{2}") == ["wrong", "correct"]
    assert _statuses(grader, ["0.5", r"\dfrac12"], r"\frac{1}{2}") == ["correct", "correct"]


def test_numbers_need_no_worker(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a worker was started")

    monkeypatch.setattr(math_pool.subprocess, "Popen", refuse)
    with MathGrader.from_reward(Reward()) as grader:
        answers = [*range(3000), "1/2", "1,000", "50%", r"\frac{7}{2}"]
        statuses = _statuses(grader, answers, "1000")
    assert statuses.count("correct") == 2


def test_long_numbers_are_wrong_and_no_error(grader):
    grouped = "123," * 1500 + "123"
    answers = [grouped, rf"\frac{{{grouped}}}{{2}}", "0." + "5" * 5000, "7" * 5000 + "x"]
    assert _statuses(grader, answers, "5") == ["wrong"] * 4
    assert _statuses(grader, ["5"], grouped) == ["wrong"]


def test_a_problem_without_answer_is_refused(grader):
    with pytest.raises(ValueError, match="needs an answer"):
        grader.grade_many([(Problem("p", "Math", ""), "text")])


def test_a_timeout_is_counted_and_the_batch_goes_on():
    with MathGrader.from_reward(Reward(), cpu_s=LIMIT_S) as grader:
        answers = ["4", r"6^{6^{6^{6}}}", ENDLESS, "2+2"]
        statuses = _statuses(grader, answers, "4")
        assert statuses == ["correct", "grader_timeout", "grader_timeout", "correct"]
        assert grader.failures == {"grader_timeout": 2}
        assert _statuses(grader, answers, "4") == statuses
        assert grader.failures == {"grader_timeout": 2}


def test_a_worker_thread_may_grade():
    with MathGrader.from_reward(Reward(), cpu_s=LIMIT_S) as grader:
        found = []
        thread = threading.Thread(target=lambda: found.extend(_statuses(grader, [ENDLESS], "3")))
        thread.start()
        thread.join()
        assert found == ["grader_timeout"]


def test_killed_workers_lose_nothing(monkeypatch):
    started = []
    start = math_pool.MathPool._start

    def start_and_kill(pool):
        worker = start(pool)
        started.append(worker.process)
        if len(started) < math_pool.TRIES:
            worker.process.kill()
        return worker

    monkeypatch.setattr(math_pool.MathPool, "_start", start_and_kill)
    with MathGrader.from_reward(Reward()) as grader:
        statuses = _statuses(grader, ["x+x", "3x", "x(1+1)", "x", "2", r"\frac{4x}{2}"], "2x")
        assert statuses == ["correct", "wrong", "correct", "wrong", "wrong", "correct"]
        assert not grader.failures
        started[-1].send_signal(signal.SIGKILL)
        assert _statuses(grader, ["x+x+0"], "2x") == ["correct"]
    assert [process.returncode for process in started] == [-signal.SIGKILL] * 4


def test_a_pair_that_always_kills_its_worker_is_a_counted_crash(monkeypatch):
    start = math_pool.MathPool._start

    def start_and_kill(pool):
        worker = start(pool)
        worker.process.kill()
        return worker

    with MathGrader.from_reward(Reward()) as grader:
        with monkeypatch.context() as patch:
            patch.setattr(math_pool.MathPool, "_start", start_and_kill)
            assert _statuses(grader, ["x+x", "2"], "2x") == ["grader_crash", "grader_crash"]
        assert grader.failures == {"grader_crash": 2}
        assert _statuses(grader, ["x+x"], "2x") == ["correct"]  # not remembered


def test_a_stopped_worker_is_given_up(monkeypatch):
    monkeypatch.setattr(math_pool, "WALL_PER_CPU", 0.5)
    start = math_pool.MathPool._start

    def start_and_stop(pool):
        worker = start(pool)
        worker.process.send_signal(signal.SIGSTOP)
        return worker

    monkeypatch.setattr(math_pool.MathPool, "_start", start_and_stop)
    with MathGrader.from_reward(Reward(), cpu_s=1.0) as grader:
        assert _statuses(grader, ["x+x"], "2x") == ["grader_timeout"]


def test_workers_that_cannot_start_are_an_error(monkeypatch):
    monkeypatch.setattr(math_pool.sys, "executable", "/bin/false")
    with (
        MathGrader.from_reward(Reward()) as grader,
        pytest.raises(RolewiseError, match="cannot start"),
    ):
        _statuses(grader, ["x+x"], "2x")


@pytest.mark.parametrize("answer", ["x+x", ENDLESS], ids=["idle", "busy"])
def test_no_worker_outlives_a_killed_parent(answer):
    script = (
        "import sys, threading, time\n"
        "from rolewise.config import Reward\n"
        "from rolewise.tasks.math_grader import MathGrader\n"
        "from rolewise.tasks.problem import Problem\n"
        "grader = MathGrader.from_reward(Reward(), cpu_s=600)\n"
        "item = (Problem('p', 'Math', '', answer='2x'), '\\\\boxed{' + sys.argv[1] + '}')\n"
        "threading.Thread(target=grader.grade_many, args=([item],), daemon=True).start()\n"
        "while not grader._pool._workers: time.sleep(0.01)\n"
        "print(grader._pool._workers[0].process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, answer], stdout=subprocess.PIPE, text=True
    )
    worker = int(parent.stdout.readline())
    assert _alive(worker)
    parent.kill()
    parent.communicate()
    while _alive(worker):  # the time limit of the test is the only clock
        time.sleep(0.05)


def test_leaving_the_grader_leaves_no_process():
    with MathGrader.from_reward(Reward(), workers=2) as grader:
        _statuses(grader, ["x+x", "x+x+x", "3x-x"], "2x")
        pids = [worker.process.pid for worker in grader._pool._workers]
    assert len(pids) == 2
    with pytest.raises(ChildProcessError):
        os.waitpid(pids[0], os.WNOHANG)
    assert not any(map(_alive, pids))


TOKENS = st.sampled_from([
    r"\frac", "{", "}", "(", ")", "[", "]", r"\{", r"\}", "1", "2", "10", "0", "-", "+", "=",
    "<", r"\le", r"\cup", r"\infty", ",", ":", "x", "y", "C", "n", "i", "e", "^", "_", "!",
    r"\sqrt", r"\pi", r"\text{cm}", r"\text{or}", r"\text{no}", r"\%", r"^\circ", r"\pm", ".",
    "0.5", r"\in", r"\mathbb{R}", r"\setminus", "&", "\\\\", r"\sin", r"\binom", "|",
    r"\begin{pmatrix}", r"\end{pmatrix}", r"\cdot", "²", "π", "A", "(C)", "/", "٢", "@", r"\mid",
    r"\emptyset", "$", "word", r"\lim", r"\int", r"\ne", " ",
])  # fmt: skip
TRUTHS = st.sampled_from(
    ["5", r"\frac{1}{2}", "(1,2)", r"[0,\infty)", "x=3", r"\{1,2\}", r"14\text{ cm}", "3:5", "C",
     "yes", "x^2+C", "x<2", r"\begin{pmatrix}1&2\end{pmatrix}", "@", r"1011_2"]
)  # fmt: skip


@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.lists(TOKENS, max_size=12).map("".join) | st.text(max_size=20), TRUTHS)
def test_any_answer_gets_a_status(grader, answer, truth):
    [grade] = grader.grade_many([(_problem(truth), f"\\boxed{{{answer}}}")])
    assert grade.status in ("correct", "wrong", "no_answer", "grader_timeout")
    assert grade.format_ok is (grade.status != "no_answer")
