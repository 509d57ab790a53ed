"""From evaluation rows to what a cell achieved: checkpoints, accuracies, gains. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rolewise.analysis.statistics import (
    RESAMPLES,
    Interval,
    function_interval,
    mean_interval,
    paired_interval,
)
from rolewise.errors import DataError

SPLITS = ("select", "report", "all")
MEASURED = ("accuracy", "reward", "format_ok")
_COLUMN = {"accuracy": "correct", "reward": "reward", "format_ok": "format_ok"}


@dataclass(frozen=True)
class Outcomes:
    """Means over samples of every problem, (steps, problems); problems in order of their ids."""

    steps: tuple[int, ...]
    problems: tuple[str, ...]
    splits: np.ndarray
    values: dict[str, np.ndarray]

    def of(self, measure: str, step: int, split: str) -> np.ndarray:
        """A value per problem of `split` (`all`: every problem) at `step`."""
        row = self.values[measure][self.steps.index(step)]
        return row if split == "all" else row[self.splits == split]


def outcomes(evaluations: pd.DataFrame) -> Outcomes:
    """Evaluation rows as arrays; a checkpoint that lacks a problem is a DataError.

    Problems are never dropped: abnormal episodes are rows with `correct` false.
    """
    measured = evaluations[["step", "problem"]].copy()
    for measure, column in _COLUMN.items():
        measured[measure] = evaluations[column].astype(float)
    means = measured.groupby(["step", "problem"]).mean()
    tables = {measure: means[measure].unstack() for measure in MEASURED}
    values = {measure: table.to_numpy() for measure, table in tables.items()}
    steps = tuple(map(int, tables["accuracy"].index))
    problems = tuple(tables["accuracy"].columns)
    if not steps:
        raise DataError("no evaluation rows at all; evaluate the cell again")
    holes = np.isnan(values["accuracy"])
    if holes.any():
        i, j = np.argwhere(holes)[0]
        raise DataError(
            f"step {steps[i]} has no evaluation of problem {problems[j]} ({holes.sum()} missing in "
            "all); evaluate the cell again"
        )
    split_of = evaluations.drop_duplicates("problem").set_index("problem")["split"]
    return Outcomes(steps, problems, split_of.loc[list(problems)].to_numpy(), values)


def choose_checkpoints(found: Outcomes) -> dict[str, int]:
    """Steps called early, best and terminal.

    best: highest accuracy on `select`, the earliest of equals; step 0 (untrained) is not eligible.
    early: nearest the midpoint between the first checkpoint and the best, the earlier of equals.
    """
    steps = [step for step in found.steps if step > 0]
    if not steps:
        raise DataError("no checkpoint after step 0 was evaluated; evaluate the cell again")
    accuracy = {step: found.of("accuracy", step, "select").mean() for step in steps}
    best = max(steps, key=lambda step: (accuracy[step], -step))
    middle = (steps[0] + best) / 2
    early = min(steps, key=lambda step: (abs(step - middle), step))
    return {"early": early, "best": best, "terminal": steps[-1]}


def mark_steps(checkpoints: dict[str, int]) -> dict[int, str]:
    """Step -> checkpoint names joined by `+`, steps ascending."""
    names: dict[int, str] = {}
    for name, step in sorted(checkpoints.items(), key=lambda item: item[1]):
        names[step] = f"{names[step]}+{name}" if step in names else name
    return names


def interval_of(
    found: Outcomes, measure: str, step: int, split: str, resamples: int = RESAMPLES
) -> Interval:
    """Mean of a measure over the problems of a split, with its interval."""
    return mean_interval(found.of(measure, step, split), resamples)


def gain(
    cell: tuple[Outcomes, int],
    reference: tuple[Outcomes, int],
    split: str,
    resamples: int = RESAMPLES,
) -> Interval:
    """Accuracy of one (outcomes, step) minus that of another on the same problems, paired.

    Different problems are a DataError.
    """
    require_same_problems(cell[0], reference[0])
    a, b = (found.of("accuracy", step, split) for found, step in (cell, reference))
    return paired_interval(a, b, resamples)


def format_part(
    cell: tuple[Outcomes, int],
    base: tuple[Outcomes, int],
    split: str,
    resamples: int = RESAMPLES,
) -> Interval:
    """The part of the gain over `base` that is only fewer format errors, in accuracy.

    (f1 - f0) * a0 / f0 with f the share of parsable outputs and a the accuracy, 0 = base, 1 = cell:
    what is gained if the outputs that became parsable are as often right as the base's parsable ones.
    """
    require_same_problems(cell[0], base[0])
    columns = [cell[0].of("format_ok", cell[1], split)]
    columns += [base[0].of(measure, base[1], split) for measure in ("format_ok", "accuracy")]

    def part(means: np.ndarray) -> np.ndarray:
        f1, f0, a0 = means[..., 0], means[..., 1], means[..., 2]
        rate = np.divide(a0, f0, out=np.full(np.shape(f0), np.nan), where=f0 > 0)
        return (f1 - f0) * rate

    return function_interval(np.column_stack(columns), part, resamples)


def require_same_problems(a: Outcomes, b: Outcomes) -> None:
    """Raise DataError unless both hold the same problems in the same halves."""
    if a.problems != b.problems or (a.splits != b.splits).any():
        odd = sorted(set(a.problems) ^ set(b.problems))
        raise DataError(
            f"compared cells were evaluated on different problems ({len(odd)} not shared, e.g. "
            f"{odd[:3]}); evaluate both again"
        )
