"""Procedural programs: apply two operations to the input, half over stdin, half as a function.

The expected outputs come from evaluating an expression tree; the reference text of a program is
written from the same tree. `meta` holds `solution` and `mistakes`, from the lazy one (one step only)
to the slips of a careful reader, each failing at least one hidden test.
"""

from __future__ import annotations

import itertools
import operator
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from rolewise.config import Section
from rolewise.tasks.generators.draw import draw, read_options
from rolewise.tasks.problem import Problem, Test

OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
WORDS = {"+": "plus", "-": "minus", "*": "times"}
OPPOSITE = {"+": "-", "-": "+", "*": "+"}

# The same inputs for all problems of a signature, so that a program that two problems share is run
# once. A negative and two positive values tell all the mistakes below from the solution.
INPUTS = {("x",): ((3,), (8,), (-5,)), ("a", "b"): ((3, 2), (8, 5), (-5, 4))}


class Options(Section):
    """The largest constant in a program."""

    largest_constant: Annotated[int, Field(ge=2, le=99)] = Field(
        9, description="largest constant in a program"
    )


@dataclass(frozen=True)
class Expression:
    """A variable name, a constant, or an operation on two expressions."""

    leaf: str | int | None = None
    operation: str = ""
    left: Expression | None = None
    right: Expression | None = None

    def value(self, variables: dict[str, int]) -> int:
        """The value under an assignment of the variables."""
        if self.leaf is not None:
            return variables[self.leaf] if isinstance(self.leaf, str) else self.leaf
        return OPERATIONS[self.operation](self.left.value(variables), self.right.value(variables))

    def text(self) -> str:
        """Python source; brackets only around a sum or difference that is multiplied."""
        if self.leaf is not None:
            return str(self.leaf)
        sides = [
            f"({side.text()})"
            if self.operation == "*" and side.operation in ("+", "-")
            else side.text()
            for side in (self.left, self.right)
        ]
        return self.operation.join(sides)


@dataclass(frozen=True)
class Steps:
    """The described computation: start with the first variable, then two operations in turn."""

    variables: tuple[str, ...]
    first: tuple[str, str | int]
    second: tuple[str, str | int]

    def expression(self) -> Expression:
        """The steps applied one after the other."""
        start = Expression(self.variables[0])
        (one, k), (two, m) = self.first, self.second
        return Expression(None, two, Expression(None, one, start, Expression(k)), Expression(m))

    def slips(self) -> Iterator[Expression]:
        """Plausible wrong readings: second step forgotten, other order, constant or operation."""
        (one, k), (two, m) = self.first, self.second
        yield Expression(None, one, Expression(self.variables[0]), Expression(k))
        yield Steps(self.variables, self.second, self.first).expression()
        if isinstance(k, int):
            yield Steps(self.variables, (one, k + 1), self.second).expression()
        yield Steps(self.variables, self.first, (OPPOSITE[two], m)).expression()


def generate(
    count_train: int, count_validation: int, seed: int, options: dict[str, Any]
) -> tuple[list[Problem], list[Problem]]:
    """Disjoint training and validation problems; a ConfigError when there are not enough."""
    own = read_options(Options, options, "programs")
    return draw(list(_problems(own)), count_train, count_validation, random.Random(seed))


def _problems(options: Options) -> Iterator[Problem]:
    constants = range(1, options.largest_constant + 1)
    operands = [(sign, k) for sign in OPERATIONS for k in constants if (sign, k) != ("*", 1)]
    for first, second in itertools.product(operands, operands):
        steps = Steps(("x",), first, second)
        yield _stdin_problem(steps)
        yield _function_problem(steps)
    for first, sign in itertools.product(operands, OPERATIONS):
        steps = Steps(("a", "b"), first, (sign, "b"))
        yield _stdin_problem(steps)
        yield _function_problem(steps)


def _stdin_problem(steps: Steps) -> Problem:
    reads = [f"{name}=int(input())" for name in steps.variables]
    raw = [f"{name}=input()" for name in steps.variables]
    solution = steps.expression()
    tests = tuple(
        Test("\n".join(map(str, values)) + "\n", f"{solution.value(env)}\n")
        for values, env in _inputs(steps)
    )
    mistakes = ["\n".join([*reads, f"print({e.text()})"]) for e in _wrong(steps)]
    return Problem(
        id="",
        task="Code",
        prompt=f"Read {' and '.join(steps.variables)}. Print {_wording(steps)}.",
        tests=tests,
        meta={
            "solution": "\n".join([*reads, f"print({solution.text()})"]),
            "mistakes": [*mistakes, "\n".join([*raw, f"print({solution.text()})"])],
        },
    )


def _function_problem(steps: Steps) -> Problem:
    header = f"def f({','.join(steps.variables)}):"
    solution = steps.expression()
    tests = tuple(Test(list(values), solution.value(env)) for values, env in _inputs(steps))
    mistakes = [f"{header}\n return {e.text()}" for e in _wrong(steps)]
    return Problem(
        id="",
        task="Code",
        prompt=f"Define f({','.join(steps.variables)}): {_wording(steps)}.",
        tests=tests,
        fn_name="f",
        starter_code=header,
        meta={
            "solution": f"{header}\n return {solution.text()}",
            "mistakes": [*mistakes, f"{header}\n print({solution.text()})"],
        },
    )


def _wording(steps: Steps) -> str:
    (one, k), (two, m) = steps.first, steps.second
    return f"{steps.variables[0]} {WORDS[one]} {k} then {WORDS[two]} {m}"


def _inputs(steps: Steps) -> list[tuple[tuple[int, ...], dict[str, int]]]:
    return [
        (values, dict(zip(steps.variables, values, strict=True)))
        for values in INPUTS[steps.variables]
    ]


def _wrong(steps: Steps) -> list[Expression]:
    """The slips that some hidden test reveals, without repetition."""

    def outputs(expression: Expression) -> list[int]:
        return [expression.value(env) for _, env in _inputs(steps)]

    right = outputs(steps.expression())
    return [e for e in dict.fromkeys(steps.slips()) if outputs(e) != right]
