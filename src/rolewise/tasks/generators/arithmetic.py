"""Procedural arithmetic: one operation on two small numbers, in several wordings.

`meta` of a problem holds what warm-started models learn from: `solution`, and `mistakes`, from the
lazy one (the number named first) to the slips of a calculation.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from rolewise.config import Section
from rolewise.tasks.generators.draw import draw, read_options
from rolewise.tasks.problem import Problem

Operand = Annotated[int, Field(ge=2, le=999)]


class Options(Section):
    """Largest operands of sums and differences, and of products."""

    largest_term: Operand = Field(9, description="largest operand of sums and differences")
    largest_factor: Operand = Field(9, description="largest operand of products")


@dataclass(frozen=True)
class Operation:
    """An operation: its value, usual slips and the wordings of a question about it."""

    value: Callable[[int, int], int]
    slips: Callable[[int, int], tuple[int, ...]]
    wordings: tuple[str, ...]


OPENINGS = ("", "Find ", "Compute ")
OPERATIONS = {
    "add": Operation(
        lambda a, b: a + b,
        lambda a, b: (a + b + 1, a + b - 1),
        (
            "{a}+{b}",
            "{a} plus {b}",
            "the sum of {a} and {b}",
            "{a} added to {b}",
            "{a} more than {b}",
        ),
    ),
    "subtract": Operation(
        lambda a, b: a - b,
        lambda a, b: (a - b + 1, a - b - 1),
        ("{a}-{b}", "{a} minus {b}", "{b} taken from {a}", "{b} less than {a}", "{a} without {b}"),
    ),
    "multiply": Operation(
        lambda a, b: a * b,
        lambda a, b: (a * b + 1, a * b - 1),
        (
            "{a}*{b}",
            "{a} times {b}",
            "the product of {a} and {b}",
            "{a} groups of {b}",
            "{a} by {b}",
        ),
    ),
}


def generate(
    count_train: int, count_validation: int, seed: int, options: dict[str, Any]
) -> tuple[list[Problem], list[Problem]]:
    """Disjoint training and validation problems; a ConfigError when there are not enough."""
    own = read_options(Options, options, "arithmetic")
    return draw(list(_problems(own)), count_train, count_validation, random.Random(seed))


def _problems(options: Options) -> Iterator[Problem]:
    terms = range(1, options.largest_term + 1)
    factors = range(2, options.largest_factor + 1)
    operands = {
        "add": [(a, b) for a in terms for b in terms],
        "subtract": [(a, b) for a in terms for b in terms if b < a],
        "multiply": [(a, b) for a in factors for b in factors],
    }
    for name, operation in OPERATIONS.items():
        for a, b in operands[name]:
            answer = operation.value(a, b)
            for opening, wording in itertools.product(OPENINGS, operation.wordings):
                prompt = opening + wording.format(a=a, b=b)
                named_first = b if wording.index("{b}") < wording.index("{a}") else a
                mistakes = [m for m in (named_first, *operation.slips(a, b)) if m != answer]
                yield Problem(
                    id="",
                    task="Math",
                    prompt=prompt,
                    answer=str(answer),
                    meta={
                        "operation": name,
                        "solution": str(answer),
                        "mistakes": [str(m) for m in dict.fromkeys(mistakes)],
                    },
                )
