"""Largest: name the largest of three numbers. A task of one's own: a generator and a grader.

tasks: {Largest: {kind: procedural, generator: "docs.examples.largest:generate", train: 800, ...}}
extensions: {tasks: {Largest: "docs.examples.largest:LargestGrader"}}
"""

import itertools
import random
from typing import Any

from rolewise.tasks.generators.draw import draw
from rolewise.tasks.math_grader import MathGrader
from rolewise.tasks.problem import Problem

# A boxed number is graded as Math's is, so its grader serves as it is.
LargestGrader = MathGrader


def generate(
    count_train: int, count_validation: int, seed: int, options: dict[str, Any]
) -> tuple[list[Problem], list[Problem]]:
    """Disjoint training and validation problems over numbers up to `options.largest`.

    `meta` is what embedded models learn from: the solution, and usual mistakes, the laziest first.
    """
    problems = []
    for numbers in itertools.permutations(range(1, options["largest"] + 1), 3):
        solution = str(max(numbers))
        mistakes = [str(n) for n in numbers if str(n) != solution]
        problems.append(
            Problem(
                id="",
                task="Largest",
                prompt="Largest of " + " ".join(map(str, numbers)),
                answer=solution,
                meta={"solution": solution, "mistakes": mistakes},
            )
        )
    return draw(problems, count_train, count_validation, random.Random(seed))
