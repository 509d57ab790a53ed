"""What every generator shares: reading its options and drawing disjoint problems."""

from __future__ import annotations

import dataclasses
import random
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from rolewise.errors import ConfigError
from rolewise.tasks.problem import Problem

Options = TypeVar("Options", bound=BaseModel)


def read_options(schema: type[Options], options: dict[str, Any], generator: str) -> Options:
    """The typed options of a generator; every mistake is named in one ConfigError."""
    try:
        return schema.model_validate(options)
    except ValidationError as error:
        raise ConfigError(
            [
                f"options of generator '{generator}': {'.'.join(map(str, item['loc']))}: "
                f"{item['msg']} (got {item['input']!r})"
                for item in error.errors()
            ]
        ) from error


def draw(
    problems: list[Problem], count_train: int, count_validation: int, rng: random.Random
) -> tuple[list[Problem], list[Problem]]:
    """A random cut of distinct `problems` into training and validation, with ids in drawn order."""
    wanted = count_train + count_validation
    if wanted > len(problems):
        raise ConfigError(
            [
                f"train + validation: {wanted} problems wanted, the generator has {len(problems)}; "
                "lower the counts or widen the generator's options"
            ]
        )
    drawn = rng.sample(problems, wanted)
    train = _numbered(drawn[:count_train], "train")
    return train, _numbered(drawn[count_train:], "validation")


def _numbered(problems: list[Problem], part: str) -> list[Problem]:
    return [
        dataclasses.replace(problem, id=f"{problem.task.lower()}-{part}-{number:05d}")
        for number, problem in enumerate(problems)
    ]
