"""What happened to a curve: cliff, plateau, entropy collapse, capture. Pure; thresholds are arguments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rolewise.analysis.statistics import RESAMPLES, Interval, paired_interval

PLATEAU_TOLERANCE = 0.02
CAPTURE_SCORE = 0.5


@dataclass(frozen=True)
class Cliff:
    """Fall from peak to terminal accuracy on the report half, and whether it counts as a cliff."""

    drop: Interval
    verdict: bool


def cliff(
    peak_P: np.ndarray, terminal_P: np.ndarray, drop: float = 0.05, resamples: int = RESAMPLES
) -> Cliff:
    """A cliff: peak - terminal >= `drop` and its 95 % paired interval over problems excludes 0.

    Both are the same problems' accuracies, at the checkpoint chosen on the other half and at the last.
    """
    fall = paired_interval(peak_P, terminal_P, resamples)
    return Cliff(fall, fall.reaches(drop))


@dataclass(frozen=True)
class Plateau:
    """From which step a curve gains no more, and its mean level from there on."""

    step: int
    level: float


def plateau(
    steps: np.ndarray, values: np.ndarray, tolerance: float = PLATEAU_TOLERANCE
) -> Plateau | None:
    """The first step after which no later value is more than `tolerance` above the value there.

    A later fall does not undo a plateau (that is a cliff). Unlogged (NaN) steps are left out. None
    when it is only the last step, that is, when the curve was still rising; a curve without values
    is a ValueError.
    """
    values = np.asarray(values, dtype=float)
    logged = ~np.isnan(values)
    steps, values = np.asarray(steps)[logged], values[logged]
    best_later = np.maximum.accumulate(values[::-1])[::-1]
    first = int(np.argmax(best_later - values <= tolerance + 1e-12))
    if first == len(values) - 1:
        return None
    return Plateau(int(steps[first]), float(values[first:].mean()))


@dataclass(frozen=True)
class Collapse:
    """Entropy collapse: relative depth, the step of the minimum, and whether it counts."""

    depth: float
    step: int
    verdict: bool


def entropy_collapse(
    steps: np.ndarray, entropies: np.ndarray, remaining: float = 0.1
) -> Collapse | None:
    """(first - minimum) / first; a collapse when at most `remaining` of the first value is left.

    Unlogged (NaN) steps are left out; None without a positive first value.
    """
    entropies = np.asarray(entropies, dtype=float)
    logged = ~np.isnan(entropies)
    steps, entropies = np.asarray(steps)[logged], entropies[logged]
    if not len(entropies) or entropies[0] <= 0:
        return None
    lowest = int(entropies.argmin())
    depth = float((entropies[0] - entropies[lowest]) / entropies[0])
    return Collapse(depth, int(steps[lowest]), depth >= 1 - remaining - 1e-12)


def captured(score: Interval, threshold: float = CAPTURE_SCORE) -> bool:
    """Capture: the role moved at least `threshold` of the way to the other's base shape.

    0 = unmoved, 1 = arrived; the interval must exclude 0.
    """
    return score.reaches(threshold)
