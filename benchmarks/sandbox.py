"""Throughput of the sandbox per tier, cached look-ups, and memory of the grading process.

Run `python benchmarks/sandbox.py`; wants two idle cores. `--tests N` shortens it.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import psutil

from rolewise.config import Config, SandboxLimits, load
from rolewise.errors import SandboxError
from rolewise.sandbox.job import Job
from rolewise.sandbox.pool import Pool, single
from rolewise.sandbox.tiers import probe
from rolewise.tasks.code_grader import CodeGrader
from rolewise.tasks.problem import Problem, Test

PROGRAM = b"""import bisect, collections, heapq, itertools, math, sys
numbers = list(map(int, input().split()))
print(len(numbers), sum(numbers))
"""


def resident_mb() -> float:
    return psutil.Process().memory_info().rss / (1 << 20)


def throughput(tier: int, workers: int, tests: int) -> str:
    pool = Pool(tier, workers)
    limits = SandboxLimits()
    try:
        pool.run([single(Job(b"", limits)) for _ in range(workers)])
        began = time.monotonic()
        steps = [single(Job(PROGRAM, limits, stdin=b"%d 1 2 3 4" % i)) for i in range(tests)]
        outcomes = pool.run(steps)
        seconds = time.monotonic() - began
    except SandboxError as error:
        return str(error)
    finally:
        pool.close()
    right = sum(o.stdout == b"5 %d\n" % (i + 10) for i, o in enumerate(outcomes))
    program = 1000 * sum(outcome.cpu for outcome in outcomes) / tests
    return f"{tests / seconds:6.0f} tests/s, {right} of {tests} right, program CPU {program:.1f} ms"


def _config(folder: str) -> Config:
    config = load([Path(__file__).parents[1] / "config.yaml"])
    sandbox = config.sandbox.model_copy(update={"workers": 2})
    return config.model_copy(update={"results_dir": folder, "sandbox": sandbox})


def memory_and_cache(tests: int) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        CodeGrader(_config(folder)) as grader,
    ):
        text = f"```python\n{PROGRAM.decode()}```"
        batch = 500
        for start in range(0, tests, batch):
            problems = [
                Problem("p", "Code", "", tests=(Test(f"{i} 1", f"2 {i + 1}"),))
                for i in range(start, start + batch)
            ]
            grades = grader.grade_many([(problem, text) for problem in problems])
            assert all(grade.correct for grade in grades)
            if (start + batch) % (tests // 4) == 0:
                print(f"  after {start + batch:6d} tests: parent {resident_mb():.1f} MB")
        began = time.monotonic()
        rounds = 20
        for _ in range(rounds):
            grader.grade_many([(problem, text) for problem in problems])
        rate = rounds * batch / (time.monotonic() - began)
        print(f"  cached look-ups: {rate:.0f}/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=int, default=2000, help="tests per tier")
    parser.add_argument("--memory-tests", type=int, default=20_000, help="tests of the memory run")
    arguments = parser.parse_args()
    print(f"{probe().summary}; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for tier in (1, 2, 3):
        for workers in (2, 4):
            print(f"tier {tier}, {workers} workers: {throughput(tier, workers, arguments.tests)}")
    print("memory of the parent:")
    memory_and_cache(arguments.memory_tests)


if __name__ == "__main__":
    main()
