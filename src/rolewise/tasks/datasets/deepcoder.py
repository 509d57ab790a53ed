"""DeepCoder-Preview (`agentica-org/DeepCoder-Preview-Dataset`): statement, tests, solutions."""

from __future__ import annotations

import json
import re
from typing import Any

from rolewise.errors import DataError
from rolewise.tasks.problem import Problem, Test

_FENCE = re.compile(r"^\s*```")


def to_problem(row: dict[str, Any], number: int) -> Problem | str:
    """The problem of a row, or why the row has none.

    `tests` is a JSON list of {input, output, type, fn_name}. Of a row with both kinds of tests only
    calls count, because a program cannot be both. A stored solution becomes `meta["reference"]`.
    """
    try:
        statement, raw = row["problem"], row["tests"]
    except KeyError as error:
        raise DataError(
            f"row {number}: column {error} is missing; expected problem, tests"
        ) from None
    if not isinstance(statement, str) or not statement.strip():
        return "no statement"
    try:
        cases = json.loads(raw) if isinstance(raw, str) else raw
        calls = [case for case in cases if _is_call(case)]
        if calls:
            names = {case["fn_name"] for case in calls}
            if len(names) > 1:
                return f"tests name several functions: {', '.join(sorted(names))}"
            fn_name, tests = names.pop(), _call_tests(calls)
        else:
            fn_name, tests = None, [Test(case["input"], case["output"]) for case in cases]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return f"tests cannot be read ({type(error).__name__}: {error})"
    if not tests:
        return "no tests"
    if fn_name is None and not all(
        isinstance(t.input, str) and isinstance(t.output, str) for t in tests
    ):
        return "a test of stdin is not text"
    solutions = row.get("solutions") or []
    reference = solutions[0] if isinstance(solutions, list) and solutions else solutions
    return Problem(
        id=f"deepcoder-{number:05d}",
        task="Code",
        prompt=statement.strip(),
        tests=tuple(tests),
        fn_name=fn_name,
        starter_code=(row.get("starter_code") or "").strip(),
        meta={"reference": _fenced(reference)} if isinstance(reference, str) and reference else {},
    )


def _is_call(case: dict[str, Any]) -> bool:
    return bool(case.get("fn_name")) and case.get("type") != "stdin_stdout"


def _call_tests(cases: list[dict[str, Any]]) -> list[Test]:
    """Arguments and result of each call.

    Text input holds one JSON value a line. The source writes a result as a list of one; only when
    all tests of a problem do so is the list taken off.
    """
    inputs = [
        [json.loads(line) for line in case["input"].split("\n") if line.strip()]
        if isinstance(case["input"], str)
        else list(case["input"])
        for case in cases
    ]
    outputs = [
        json.loads(case["output"])
        if isinstance(case["output"], str) and isinstance(case["input"], str)
        else case["output"]
        for case in cases
    ]
    if all(isinstance(output, list) and len(output) == 1 for output in outputs):
        outputs = [output[0] for output in outputs]
    return [Test(given, output) for given, output in zip(inputs, outputs, strict=True)]


def _fenced(program: str) -> str:
    return program if _FENCE.match(program) else f"```python\n{program}\n```"
