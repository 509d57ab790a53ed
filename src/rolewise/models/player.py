"""A scripted, fallible player of every role: the teacher of the embedded models.

It knows the solution and the usual mistakes of a training problem (`Problem.meta`) and errs on
purpose, in ways that a policy can unlearn: it answers either in earnest (`So`) or with a guess
(`Maybe`), judges and picks better than chance but not well, plans good and bad strategies, and now
and then breaks a role's format.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, ValidationError

from rolewise.config import Section
from rolewise.errors import ConfigError
from rolewise.tasks.problem import Problem
from rolewise.workflows.base import Call

Probability = Annotated[float, Field(ge=0, le=1)]

EARNEST, GUESS = "So", "Maybe"
ISSUES = {"Code": "logic"}
ISSUE = "value"


class Noise(Section):
    """Probabilities of the player's behaviour; the defaults are the embedded preset's."""

    earnest: Probability = Field(0.5, description="an answer is given in earnest")
    earnest_right: Probability = Field(0.8, description="an earnest answer is right")
    guess_right: Probability = Field(0.15, description="a guess is right")
    repeat: Probability = Field(0.4, description="a revision repeats the previous answer")
    verdict_right: Probability = Field(0.72, description="the evaluator judges rightly")
    pick_odds: float = Field(3.0, ge=1, description="odds of picking a right over a wrong answer")
    copied: Probability = Field(0.8, description="the synthesizer copies a worker's answer")
    malformed: Probability = Field(0.03, description="an output breaks its role's format")


def read_noise(values: dict[str, float], scale: str) -> Noise:
    """The noise of a scale's transcripts; every mistake is named in one ConfigError."""
    try:
        return Noise.model_validate(values)
    except ValidationError as error:
        raise ConfigError(
            [
                f"models.{scale}.noise.{'.'.join(map(str, e['loc']))}: {e['msg']}"
                for e in error.errors()
            ]
        ) from error


# Every role does what it should, given the guesses it has to deal with.
FAULTLESS = Noise(
    earnest_right=1, guess_right=0, repeat=0, verdict_right=1, pick_odds=1e9, copied=1, malformed=0
)

# How likely a strategy makes its worker answer in earnest: what an orchestrator can learn.
STRATEGIES = {"steps": 0.8, "parts": 0.6, "count": 0.4, "feel": 0.2}


@dataclass(frozen=True)
class Answer:
    """What a role answered, and whether it is right."""

    text: str
    right: bool


class Player:
    """Plays all roles of one episode; remembers what it said."""

    def __init__(self, problem: Problem, noise: Noise, rng: random.Random):
        self.problem, self.noise, self._rng = problem, noise, rng
        self._answers: list[Answer] = []
        self._plan: list[str] = []

    def reply(self, call: Call) -> str:
        """The text with which the role of `call` answers."""
        match call.role:
            case "generator" if call.turn:
                return self._remember(self._revision())
            case "generator":
                return self._remember(self._answer(self.noise.earnest))
            case "worker":
                strategy = self._plan[call.slot] if self._plan else ""
                return self._remember(self._answer(STRATEGIES.get(strategy, self.noise.earnest)))
            case "evaluator":
                return self._verdict()
            case "aggregator":
                return self._selection()
            case "orchestrator":
                return self._strategies()
            case "synthesizer":
                return self._synthesis()
        raise ValueError(f"the player has no lines for role '{call.role}'")

    def _happens(self, probability: float) -> bool:
        return self._rng.random() < probability

    def _remember(self, answer: Answer) -> str:
        self._answers.append(answer)
        return answer.text

    def _answer(self, earnest: float) -> Answer:
        lead = EARNEST if self._happens(earnest) else GUESS
        right = self._happens(
            self.noise.earnest_right if lead == EARNEST else self.noise.guess_right
        )
        content = self.problem.meta["solution"] if right else self._mistake(lead)
        if self._happens(self.noise.malformed):
            return Answer(f"{lead} {content}", False)
        if self.problem.task == "Code":
            return Answer(f"{lead}\n```python\n{content}\n```", right)
        return Answer(f"{lead} \\boxed{{{content}}}", right)

    def _mistake(self, lead: str) -> str:
        """A guess is lazy, always in the same way; an earnest answer slips in one of several ways."""
        lazy, *slips = self.problem.meta["mistakes"]
        if lead == GUESS or not slips:
            return lazy
        return self._rng.choices(slips, [0.5**rank for rank in range(len(slips))])[0]

    def _revision(self) -> Answer:
        if self._happens(self.noise.repeat):
            return self._answers[-1]
        return self._answer(self.noise.earnest)

    def _verdict(self) -> str:
        right = self._answers[-1].right
        if self._happens(self.noise.malformed):
            return "Unsure"
        if right == self._happens(self.noise.verdict_right):
            return "\\boxed{Correct}"
        return f"\\boxed{{Incorrect}} {ISSUES.get(self.problem.task, ISSUE)}"

    def _pick(self) -> int:
        odds = [self.noise.pick_odds if answer.right else 1.0 for answer in self._answers]
        return self._rng.choices(range(len(odds)), odds)[0]

    def _selection(self) -> str:
        choice = self._pick() + 1
        return f"Pick {choice}" if self._happens(self.noise.malformed) else f"\\boxed{{{choice}}}"

    def _strategies(self) -> str:
        if self._happens(self.noise.malformed):
            return f"Use {self._rng.choice(list(STRATEGIES))}."
        lines = self._rng.choices((1, 2, 3), (0.2, 0.3, 0.5))[0]
        self._plan = self._rng.sample(list(STRATEGIES), lines)
        return "\n".join(f"STRATEGY {n}: {text}" for n, text in enumerate(self._plan, 1))

    def _synthesis(self) -> str:
        if self._happens(self.noise.copied):
            return self._answers[self._pick()].text
        return self._answer(self.noise.earnest).text
