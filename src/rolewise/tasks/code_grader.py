"""Grades programs by their hidden tests; expected outputs never leave this process."""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rolewise.config import Config, SandboxLimits
from rolewise.errors import DataError
from rolewise.sandbox.job import Job, Outcome
from rolewise.sandbox.pool import Pool, Steps
from rolewise.sandbox.tiers import TierReport, require
from rolewise.tasks.code_blocks import last_python_block
from rolewise.tasks.code_compare import decode_value, output_lines, same_output, same_value
from rolewise.tasks.grade import Grade, reward_of
from rolewise.tasks.problem import Problem, Test
from rolewise.tasks.verdict_cache import Verdict, VerdictCache

_VERSION = 2  # raise it when a verdict's meaning changes: it is part of every cache key
_LARGEST_PROGRAM = 256 * 1024


class CodeGrader:
    """Grader of the Code task. Workers start with the first program that is not in the cache.

    `problem.meta["limits"]` may tighten or widen the configured limits: `time_s`, `memory_mb`,
    `output_mb`.
    """

    def __init__(self, config: Config):
        self._sandbox = config.sandbox
        self.reward = config.reward
        self._cache = VerdictCache(Path(config.results_dir) / "state" / "verdicts.sqlite")
        self._pool: Pool | None = None

    def __enter__(self) -> CodeGrader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the workers and close the cache."""
        if self._pool is not None:
            self._pool.close()
        self._cache.close()

    @property
    def counters(self) -> dict[str, int]:
        """Tests run, forbidden system calls and failures of the machinery so far."""
        return vars(self._pool.counters).copy() if self._pool else {}

    def tier(self) -> TierReport:
        """The sandbox tier in use; SandboxError where the machine offers none that is accepted."""
        return require(self._sandbox.min_tier)

    def extract(self, text: str) -> str | None:
        """The last fenced Python block."""
        return last_python_block(text)

    def grade_many(self, items: Sequence[tuple[Problem, str]]) -> list[Grade]:
        """Grades in order; equal programs on equal tests run once."""
        work = [
            _Item(problem, self.extract(text), self._limits(problem)) for problem, text in items
        ]
        runnable = [item for item in work if item.runnable]
        if runnable:
            head = f"{_VERSION} {sys.version_info[:2]} tier {self.tier().tier}".encode()
            for item in runnable:
                item.keys = item.cache_keys(head)
        verdicts = self._verdicts(runnable)
        return [item.grade(verdicts) for item in work]

    def _limits(self, problem: Problem) -> SandboxLimits:
        own = problem.meta.get("limits") or {}
        changes: dict[str, Any] = {}
        if own.get("time_s"):
            changes["cpu_s"] = float(own["time_s"])
        if own.get("memory_mb"):
            changes["memory_mb"] = int(own["memory_mb"])
        if own.get("output_mb"):
            changes["output_kb"] = int(own["output_mb"] * 1024)
        return self._sandbox.limits.model_copy(update=changes) if changes else self._sandbox.limits

    def _verdicts(self, work: list[_Item]) -> dict[bytes, Verdict]:
        known = self._cache.get_many(key for item in work for key in item.keys)
        pending = set()
        steps: list[Steps[dict[bytes, Verdict]]] = []
        for item in work:
            fresh = {
                key: test
                for key, test in zip(item.keys, item.problem.tests, strict=True)
                if key not in known and key not in pending
            }
            pending |= fresh.keys()
            if fresh and item.problem.fn_name is not None:
                steps.append(_call_steps(item, fresh))
            else:
                steps += [_stdin_steps(item, key, test) for key, test in fresh.items()]
        if steps:
            fresh_verdicts: dict[bytes, Verdict] = {}
            for verdicts in self._running_pool().run(steps):
                fresh_verdicts |= verdicts
            self._cache.put_many(fresh_verdicts)
            known |= fresh_verdicts
        return known

    def _running_pool(self) -> Pool:
        if self._pool is None:
            self._pool = Pool(self.tier().tier, self._sandbox.workers)
        return self._pool


class _Item:
    """One output to grade: its program and the cache keys of its tests."""

    def __init__(self, problem: Problem, program: str | None, limits: SandboxLimits):
        self.problem, self.program, self.limits = problem, program, limits
        self.source = (program or "").encode("utf-8", "surrogatepass")
        self.runnable = bool(
            program is not None and problem.tests and len(self.source) <= _LARGEST_PROGRAM
        )
        self.keys: list[bytes] = []

    def cache_keys(self, head: bytes) -> list[bytes]:
        """One key a test: everything that a verdict depends on, under `head`."""
        settings = [self.problem.fn_name, self.problem.tolerance, *vars(self.limits).values()]
        common = hashlib.blake2b(head, digest_size=16)
        common.update(json.dumps(settings).encode() + b"\0" + self.source + b"\0")
        keys = []
        for test in self.problem.tests:
            key = common.copy()
            key.update(json.dumps([test.input, test.output]).encode())
            keys.append(key.digest())
        return keys

    def grade(self, verdicts: dict[bytes, Verdict]) -> Grade:
        """The grade, given a verdict for every key."""
        total = len(self.problem.tests)
        if self.program is None:
            return Grade(None, "no_code", 0, total)
        if not total:
            return Grade(self.program, "no_tests", 0, 0)
        if not self.runnable:
            return Grade(self.program, "runtime_error", 0, total, "program too long")
        own = [verdicts[key] for key in self.keys]
        passed = sum(status == "pass" for status, _ in own)
        status = next((status for status, _ in own if status != "pass"), "pass")
        outputs = hashlib.sha256("\n".join(output for _, output in own).encode()).hexdigest()[:16]
        return Grade(self.program, status, passed, total, outputs)


def _text(value: Any) -> bytes:
    if not isinstance(value, str):
        raise DataError(f"a stdin test needs text as input and output, not {type(value).__name__}")
    return value.encode("utf-8", "surrogatepass")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _stdin_steps(item: _Item, key: bytes, test: Test) -> Steps[dict[bytes, Verdict]]:
    """Run the program on one input and judge what it wrote."""
    outcome: Outcome = yield Job(item.source, item.limits, stdin=_text(test.input))
    if outcome.status != "pass":
        return {key: (outcome.status, outcome.status)}
    same = same_output(outcome.stdout, _text(test.output), item.problem.tolerance)
    digest = _digest(b"\n".join(b" ".join(line) for line in output_lines(outcome.stdout)))
    return {key: ("pass" if same else "wrong_answer", digest)}


def _call_steps(item: _Item, tests: dict[bytes, Test]) -> Steps[dict[bytes, Verdict]]:
    """Make the calls in one process, as far as they return; judge a failing one in its own process.

    So no call fails for what an earlier one left behind, and a verdict does not depend on which
    other calls were made with it.
    """
    verdicts: dict[bytes, Verdict] = {}
    keys = list(tests)
    while keys:
        calls = tuple(tests[key].input for key in keys)
        job = Job(item.source, item.limits, fn_name=item.problem.fn_name, calls=calls)
        outcome: Outcome = yield job
        lines = outcome.results.split(b"\n")[:-1]  # what follows the last line end is no result
        returned = list(itertools.takewhile(_is_value, lines[: len(keys)]))
        for key, line in zip(keys, returned, strict=False):
            verdicts[key] = _judge_value(line, tests[key].output, item.problem.tolerance)
        keys = keys[len(returned) :]
        if keys and not returned:
            status = _failure(lines[0]) if lines else outcome.status
            status = "runtime_error" if status == "pass" else status
            verdicts[keys.pop(0)] = (status, status)
    return verdicts


def _is_value(line: bytes) -> bool:
    return line.startswith(b"[")


def _failure(line: bytes) -> str:
    return "memory" if line.endswith(b'MemoryError"') else "runtime_error"


def _judge_value(line: bytes, expected: Any, tolerance: float | None) -> Verdict:
    try:
        value = decode_value(line)
    except ValueError:
        return ("runtime_error", "runtime_error")
    same = same_value(value, expected, tolerance)
    return ("pass" if same else "wrong_answer", _digest(line))


def problem_of_row(row: dict[str, Any]) -> Problem:
    """The problem in a line of `rolewise grade code` (id, mode, tests, fn_name, checker, limits).

    DataError for a mode, checker or test that is not understood.
    """
    mode = row.get("mode", "functional" if row.get("fn_name") else "stdin")
    if mode not in ("stdin", "functional"):
        raise DataError(f"mode: '{mode}' is neither stdin nor functional")
    if mode == "functional" and not row.get("fn_name"):
        raise DataError("fn_name: a functional row must name the function")
    tests = []
    for test in row.get("tests") or ():
        if not isinstance(test, dict) or "output" not in test:
            raise DataError("tests: each must be a mapping with `input` (or `args`) and `output`")
        given = test.get("args", test.get("input"))
        if not isinstance(given, list if mode == "functional" else str):
            kind = "a list of arguments" if mode == "functional" else "text"
            raise DataError(f"tests: the input of a {mode} test must be {kind}")
        if mode == "stdin" and not isinstance(test["output"], str):
            raise DataError("tests: the output of a stdin test must be text")
        tests.append(Test(given, test["output"]))
    return Problem(
        id=str(row.get("id", "")),
        task="Code",
        prompt="",
        tests=tuple(tests),
        fn_name=row["fn_name"] if mode == "functional" else None,
        starter_code=row.get("starter_code") or "",
        tolerance=_tolerance(row.get("checker")),
        meta={"limits": row.get("limits") or {}},
    )


def _tolerance(checker: str | None) -> float | None:
    if checker is None:
        return None
    kind, _, value = checker.partition(" ")
    try:
        if kind == "float":
            return float(value)
    except ValueError:
        pass
    raise DataError(f"checker: '{checker}' is not known; use 'float TOLERANCE' or leave it out")


def grade_code_row(row: dict[str, Any], grader: CodeGrader) -> dict[str, Any]:
    """`id, status, passed, total, reward` of one row; DataError for a malformed one."""
    if not isinstance(row.get("completion"), str):
        raise DataError("completion: a row needs the output as text")
    [grade] = grader.grade_many([(problem_of_row(row), row["completion"])])
    return {
        "id": row.get("id"),
        "status": grade.status,
        "passed": grade.passed,
        "total": grade.total,
        "reward": reward_of("Code", grade, grader.reward),
    }
