"""Procedural problems of one step for small pretrained models: sums and differences, programs of one operation.

`sums` and `programs` are named in a configuration by import path, e.g.
`rolewise.tasks.generators.simple:sums`.
"""

from __future__ import annotations

import operator
import random
from typing import Annotated, Any

from pydantic import Field

from rolewise.config import Section
from rolewise.tasks.generators.draw import draw, read_options
from rolewise.tasks.problem import Problem, Test

OPERATIONS = {"plus": operator.add, "minus": operator.sub, "times": operator.mul}
INPUTS = (3, 8, -5)
# Questions that the prompts of the mini preset answer as examples.
SHOWN = frozenset(
    {
        "What is 2 + 3?",
        "What is 14 - 4?",
        "What is 7 + 1?",
        "What is 12 + 5?",
        "What is 8 + 5?",
        "Read x. Print x plus 4.",
        "Define f(x): x times 3.",
    }
)


class Sums(Section):
    """The largest first and second number."""

    largest: Annotated[int, Field(ge=2, le=999)] = 40
    largest_second: Annotated[int, Field(ge=1, le=999)] = 9


class Programs(Section):
    """The largest constant in a program."""

    largest_constant: Annotated[int, Field(ge=2, le=999)] = 99


def sums(
    count_train: int, count_validation: int, seed: int, options: dict[str, Any]
) -> tuple[list[Problem], list[Problem]]:
    """Disjoint sums and differences that are not negative; a ConfigError if there are not enough."""
    own = read_options(Sums, options, "simple:sums")
    problems = [
        Problem(id="", task="Math", prompt=f"What is {a} {sign} {b}?", answer=str(value))
        for a in range(1, own.largest + 1)
        for b in range(1, own.largest_second + 1)
        for sign, value in (("+", a + b), ("-", a - b))
        if value >= 0
    ]
    problems = [problem for problem in problems if problem.prompt not in SHOWN]
    return draw(problems, count_train, count_validation, random.Random(seed))


def programs(
    count_train: int, count_validation: int, seed: int, options: dict[str, Any]
) -> tuple[list[Problem], list[Problem]]:
    """Disjoint programs of one operation, over stdin or as a function; a ConfigError as for `sums`."""
    own = read_options(Programs, options, "simple:programs")
    problems = [
        make(word, constant)
        for word in OPERATIONS
        for constant in range(2, own.largest_constant + 1)
        for make in (_stdin_problem, _function_problem)
    ]
    problems = [problem for problem in problems if problem.prompt not in SHOWN]
    return draw(problems, count_train, count_validation, random.Random(seed))


def _stdin_problem(word: str, constant: int) -> Problem:
    apply = OPERATIONS[word]
    tests = tuple(Test(f"{x}\n", f"{apply(x, constant)}\n") for x in INPUTS)
    return Problem(id="", task="Code", prompt=f"Read x. Print x {word} {constant}.", tests=tests)


def _function_problem(word: str, constant: int) -> Problem:
    apply = OPERATIONS[word]
    return Problem(
        id="",
        task="Code",
        prompt=f"Define f(x): x {word} {constant}.",
        tests=tuple(Test([x], apply(x, constant)) for x in INPUTS),
        fn_name="f",
        starter_code="def f(x):",
    )
