"""Two runs on the same problems: paired differences of accuracy at matching checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rolewise.analysis.outcomes import (
    Outcomes,
    choose_checkpoints,
    outcomes,
    require_same_problems,
)
from rolewise.analysis.sources import read_table
from rolewise.analysis.statistics import Interval, paired_interval, paired_p
from rolewise.grid import Cell

COMPARED = ("best", "terminal")


@dataclass(frozen=True)
class Side:
    """One of two compared runs: its outcomes and the steps of its checkpoints."""

    found: Outcomes
    steps: dict[str, int]

    def step(self, checkpoint: str) -> int:
        """The step meant by `checkpoint`; an untrained cell has only one."""
        return self.steps.get(checkpoint, self.steps.get("base", 0))


@dataclass(frozen=True)
class Difference:
    """Accuracy of `a` against `b` at one checkpoint of each, over the same problems.

    `only_a` and `only_b` count problems that one side solves more often than the other.
    """

    checkpoint: str
    step_a: int
    step_b: int
    a: float
    b: float
    difference: Interval
    only_a: int
    only_b: int
    p: float


def read_side(folder: Path, cell: Cell) -> Side:
    """The outcomes below a cell's folder; a missing `evaluations.parquet` is a DataError."""
    found = outcomes(read_table(folder / "evaluations.parquet"))
    return Side(found, choose_checkpoints(found) if cell.trained else {"base": 0})


def differences(a: Side, b: Side, split: str, resamples: int) -> Iterator[Difference]:
    """`a` minus `b` at the best checkpoint of each and at the last; once if neither was trained."""
    require_same_problems(a.found, b.found)
    trained = "base" not in a.steps or "base" not in b.steps
    for checkpoint in COMPARED if trained else ("base",):
        steps = a.step(checkpoint), b.step(checkpoint)
        of_a = a.found.of("accuracy", steps[0], split)
        of_b = b.found.of("accuracy", steps[1], split)
        yield Difference(
            checkpoint,
            *steps,
            float(of_a.mean()),
            float(of_b.mean()),
            paired_interval(of_a, of_b, resamples),
            int((of_a > of_b).sum()),
            int((of_b > of_a).sum()),
            paired_p(of_a, of_b),
        )


def conclusion(found: Difference, names: tuple[str, str]) -> str:
    """One sentence: who is ahead, by how much, and whether the interval leaves room for doubt."""
    interval = found.difference
    ahead, behind = names if found.a >= found.b else names[::-1]
    size = f"{abs(found.a - found.b):.3f}"
    if interval.excludes_zero:
        return f"{found.checkpoint}: {ahead} solves more than {behind}, by {size} in accuracy."
    return f"{found.checkpoint}: not decided on these {interval.n} problems (the interval holds 0)."
