"""What every contender does: the same problems, prompts, reward and sizes. Standard library only,

because it is imported in two environments.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

TEMPERATURE = 0.7
RANK, ALPHA = 16, 32
LEARNING_RATE = 3e-4
# Multiplications and additions of one trained token of the bench model: forward and backward through
# frozen linear layers (4 x weights), adapters (6 x), attention at the mean context, and the head.
TRAINED_TOKEN_FLOP = 4.3e6


@dataclass(frozen=True)
class Load:
    """Sizes of a step: `prompts` x `generations` completions of at most `tokens` tokens.

    With `exact` the end-of-turn token is ignored, so that every completion has just that length.
    """

    name: str
    prompts: int
    generations: int
    tokens: int
    exact: bool

    def __str__(self) -> str:
        sign = "=" if self.exact else "<="
        return f"{self.name} ({self.prompts} x {self.generations}, {sign} {self.tokens} tokens)"


LOADS = {
    load.name: load
    for load in (
        Load("A", 8, 8, 24, exact=False),
        Load("B", 16, 8, 96, exact=True),
        Load("chain", 8, 4, 24, exact=False),
        Load("tiny", 2, 2, 8, exact=False),
    )
}


@dataclass(frozen=True)
class Sum:
    """An addition or subtraction of two numbers from 1 to 12."""

    question: str
    answer: int


def sums(count: int, seed: int) -> list[Sum]:
    """`count` problems; equal seeds give equal problems."""
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        a, b, plus = rng.randint(1, 12), rng.randint(1, 12), rng.random() < 0.5
        made.append(Sum(f"{a}+{b}", a + b) if plus else Sum(f"{a}-{b}", a - b))
    return made


def solve(question: str) -> str:
    """What a generator is asked."""
    return f"Solve {question}. Box the answer."


def pick(question: str, candidates: Sequence[str]) -> str:
    """What an aggregator is asked."""
    listed = "\n".join(f"{i}: {candidate}" for i, candidate in enumerate(candidates, 1))
    return f"Solve {question}. Pick.\n{listed}"


def candidates_of(problem: Sum, seed: int) -> list[str]:
    """Three stored answers, some of them wrong, for a second agent that acts at the same time."""
    rng = random.Random(f"{seed} {problem.question}")
    return [str(problem.answer + rng.choice([0, 0, -10, -1, 1, 10])) for _ in range(3)]


def boxed(text: str) -> str:
    """The boxed answer, `?` if there is none."""
    found = re.findall(r"\\boxed\{([^}]*)\}", text)
    return found[-1] if found else "?"


def marks(text: str) -> tuple[int, int]:
    """(letters of the first half of the alphabet, all characters, at least 1).

    Their quotient is the reward: it differs between completions of one prompt even for a model that
    solves nothing, so that no group is without signal and no contender may skip a row.
    """
    return sum("a" <= c <= "m" for c in text), max(1, len(text))


def reward(text: str) -> float:
    """Reward of a completion, from 0 to 1."""
    hits, length = marks(text)
    return hits / length
