"""Every collected case of program grading gives its right value."""

from __future__ import annotations

import pytest

from rolewise.tasks.code_grader import CodeGrader, grade_code_row
from tests import configs
from tests.tasks.code_cases import rows, runnable


@pytest.fixture(scope="module")
def grader(tmp_path_factory):
    config = configs.config(results_dir=str(tmp_path_factory.mktemp("results")))
    with CodeGrader(config) as made:
        yield made


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["id"])
def test_case_gets_its_verdict(row, grader, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "dummy")
    result = grade_code_row(runnable(row), grader)
    assert result["id"] == row["id"]
    assert (result["passed"] == result["total"]) == row["expected"]["passed"], result
    assert result["status"] == row["expected"]["status"]
