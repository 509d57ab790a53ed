"""Fifteen thousand episodes in one list."""

from __future__ import annotations

import shutil

import pandas as pd
import pytest

from rolewise.report.build import write_shard
from rolewise.report.episodes import build_shards
from rolewise.tasks.problem import Problem
from tests.report.browsing import Reader

PROBLEMS, CHECKPOINTS = 5000, {10: "early", 20: "best", 40: "terminal"}
RUN = {"key": "Large/seed0", "cell": "Large", "policy": "IP", "shard": "Large.seed0",
       "base": None, "twin": None, "single": None}  # fmt: skip


@pytest.fixture(scope="module")
def large(report, tmp_path_factory):
    """A copy of the report whose only run has 15,000 episodes."""
    folder = tmp_path_factory.mktemp("large") / "report"
    shutil.copytree(report, folder)
    ids = [f"p-{i:05d}" for i in range(PROBLEMS)]
    calls = pd.DataFrame(
        [
            {"step": step, "checkpoint": name, "problem": problem, "sample": 0, "call": 0,
             "role": "generator", "slot": 0, "turn": 0, "prompt": f"solve {problem}",
             "text": f"{name} answer to {problem}", "tokens": 3, "prompt_tokens": 2,
             "finish_reason": "stop", "entropy": 0.5, "parsed": None, "fallback": False,
             "answer": "1", "role_correct": i % 2 == 0, "graded": True, "correct": i % 2 == 0,
             "reward": 1.0, "captured": False}
            for step, name in CHECKPOINTS.items()
            for i, problem in enumerate(ids)
        ]
    )  # fmt: skip
    problems = {id_: Problem(id_, "Math", f"What is {id_}?", "1") for id_ in ids}
    shards = build_shards(calls, problems, ("generator",))
    assert len(shards.index["episodes"]["problem"]) == 15_000
    write_shard(folder / "data", "Large.seed0", shards.index)
    for i, chunk in enumerate(shards.chunks):
        write_shard(folder / "data", f"Large.seed0.t{i}", chunk)
    write_shard(folder / "data", "catalogue", {"runs": [RUN]})
    return folder


def test_long_list_keeps_few_rows_and_reaches_its_end(chromium, large):
    reader = Reader(chromium, large)
    reader.browse(scope="Large/seed0")
    assert reader.count() == "5000 of 5000 problems"
    assert len(reader.find(".row")) < 60
    reader.driver.execute_script("document.getElementById('list').scrollTop = 1e9")
    reader.until(lambda: reader.find("#row-4999"))
    assert len(reader.find(".row")) < 60
    reader.click("#wrong")
    reader.until(lambda: reader.count() == "2500 of 5000 problems")


def test_problem_deep_in_a_long_list_opens_from_its_link(chromium, large):
    reader = Reader(chromium, large)
    reader.browse(scope="Large/seed0", problem="p-04321")
    assert "p-04321" in reader.text(".row[aria-selected=true]")
    columns = reader.texts(".column")[-3:]
    answers = [f"{name} answer to p-04321" for name in CHECKPOINTS.values()]
    assert all(answer in column for answer, column in zip(answers, columns, strict=True))
    reader.press("j")
    reader.until(lambda: reader.text("#problem-title") == "p-04322")
