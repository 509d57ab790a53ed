"""Effects of interventions, paired with the same cell without them; Table 9 and Figure 8 show them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pandas as pd

from rolewise.analysis.statistics import seed_interval
from rolewise.grid import Cell, trained_cells
from rolewise.paper.study import Study, labels
from rolewise.workflows.base import topology

# Measure -> (metric, checkpoint) on the report half; capture is found role by role.
MEASURES = {
    "peak": ("accuracy", "best"),
    "terminal": ("accuracy", "terminal"),
    "fall": ("cliff_drop", "terminal"),
    "cliff": ("cliff", "terminal"),
}
CAPTURE = "capture"
COLUMNS = ["variant", "cell", "workflow", "policy", "scale", "task", "measure", "pair"]
COLUMNS += ["plain", "changed", "effect", "lo", "hi", "seeds"]


def effects(study: Study) -> pd.DataFrame:
    """A row per variant, cell and measure: value without and with the intervention, and the effect.

    Seeds are paired; three or more give a t interval. A single seed gives one for peak and terminal
    only, from the same problems. Capture is that of the pair of roles (`pair`) most captured with or
    without the intervention. No variants give no rows; a main cell outside `grid.main` gives gaps.
    """
    rows = [
        row for cell in trained_cells(study.config) if cell.variant for row in _effects(study, cell)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _effects(study: Study, cell: Cell) -> list[dict[str, object]]:
    plain = dataclasses.replace(cell, variant="")
    own = labels(plain) | {"variant": cell.variant, "pair": ""}
    rows = []
    for measure, (metric, checkpoint) in MEASURES.items():
        values = [study.by_seed(c, metric, checkpoint, "report") for c in (plain, cell)]
        row = own | {"measure": measure} | _paired(*values)
        if row["seeds"] == 1 and metric == "accuracy":
            found = study.one(cell, "minus_plain", checkpoint)
            row |= {"lo": found.lo, "hi": found.hi}
        rows.append(row)
    if pair := _most_captured(study, plain, cell):
        role, metric = pair
        values = [study.by_seed(c, metric, "terminal", "all", role) for c in (plain, cell)]
        named = f"{role} {metric.removeprefix('capture_')}".replace("_", " ")
        rows.append(own | {"measure": CAPTURE, "pair": named} | _paired(*values))
    return rows


def _most_captured(study: Study, *cells: Cell) -> tuple[str, str] | None:
    """(role, metric) of the highest score in any of the cells of one workflow."""
    roles = topology(study.config, cells[0].workflow).roles
    scores = {
        (cell, role, metric): study.one(cell, metric, "terminal", "all", role).value
        for cell in cells
        for role in roles
        for metric in (f"capture_by_{other}" for other in roles if other != role)
    }
    known = {key: score for key, score in scores.items() if not math.isnan(score)}
    return max(known, key=lambda key: known[key])[1:] if known else None


def _paired(plain: pd.Series, changed: pd.Series) -> dict[str, object]:
    """Means over the seeds that both have, their difference and its interval over seeds."""
    both = pd.DataFrame({"plain": plain, "changed": changed}).dropna()
    difference = (both.changed - both.plain).to_numpy()
    found = seed_interval(difference)
    return {
        "plain": both.plain.mean(),
        "changed": both.changed.mean(),
        "effect": difference.mean() if len(difference) else np.nan,
        "lo": found.lo if found else np.nan,
        "hi": found.hi if found else np.nan,
        "seeds": len(both),
    }
