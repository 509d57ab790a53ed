"""Table 9: effect of every intervention on accuracy, on the fall after the peak and on capture."""

from __future__ import annotations

import pandas as pd

from rolewise.paper.effects import CAPTURE, effects
from rolewise.paper.study import Study
from rolewise.paper.text import interval, number

TITLE = "Effects of the interventions"

# Measure -> (heading, scale).
HEADINGS = {
    "peak": ("peak (points)", 100),
    "terminal": ("terminal (points)", 100),
    "fall": ("fall after the peak (points)", 100),
    "cliff": ("cliffs, without → with", 1),
    CAPTURE: ("capture", 1),
}


def data(study: Study) -> pd.DataFrame:
    """Rows of `effects`."""
    return effects(study)


def display(data: pd.DataFrame) -> pd.DataFrame:
    """A row per intervention and cell, a column per measure; one row of gaps if none was run."""
    rows = []
    for (variant, cell), group in data.groupby(["variant", "cell"], sort=False):
        shown = {"intervention": variant, "cell": cell, "seeds": str(group.seeds.max())}
        for measure, (heading, scale) in HEADINGS.items():
            found = group[group.measure == measure]
            shown[heading] = _entry(found.iloc[0], measure, scale) if len(found) else number(None)
        rows.append(shown)
    gaps = dict.fromkeys(
        ["cell", "seeds", *(heading for heading, _ in HEADINGS.values())], number(None)
    )
    return pd.DataFrame(rows or [{"intervention": "not run in this preset"} | gaps])


def _entry(row: pd.Series, measure: str, scale: float) -> str:
    if measure == "cliff":
        return f"{number(row.plain, 2)} → {number(row.changed, 2)}"
    digits = 1 if scale == 100 else 2
    text = interval(*(scale * x for x in (row.effect, row.lo, row.hi)), digits, signed=True)
    return f"{text} ({row.pair})" if row.pair and text != number(None) else text


def caption(study: Study, data: pd.DataFrame) -> str:
    """What an effect is, and what gives it an interval."""
    if data.empty:
        return f"This preset runs no interventions (`grid.variants`). {study.footer(None)}"
    return (
        "Difference to the same cell without the intervention, seeds paired: three or more give a "
        "t interval; a single seed one over problems for peak and terminal accuracy; fewer than "
        "three seeds decide nothing else. Cliffs: share of seeds. Capture: change of the score of "
        "the pair of roles most captured with or without the intervention, at the last checkpoint. "
        f"{study.footer()}"
    )
