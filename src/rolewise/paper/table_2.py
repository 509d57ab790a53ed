"""Table 2: training diagnostics of every role: first logged, extreme and last value."""

from __future__ import annotations

import pandas as pd

from rolewise.grid import trained_cells
from rolewise.paper.study import KEYS, Study, labels
from rolewise.paper.text import compact
from rolewise.workflows.base import topology

TITLE = "Training diagnostics of every role"

# Metric -> (heading, whether the extreme that matters is the minimum).
METRICS = {
    "chi2_update": ("χ² update", False),
    "chi2_mismatch": ("χ² sampler", False),
    "perplexity": ("perplexity", False),
    "entropy": ("entropy", True),
    "grad_norm": ("gradient norm", False),
    "role_grad_norm": ("role gradient", False),
}
MOMENTS = ("first", "extreme", "terminal")


def data(study: Study) -> pd.DataFrame:
    """A row per trained cell and role; `<metric>_<moment>` with moments first, extreme, terminal.

    The extreme is the maximum, for entropy the minimum; over seeds, the mean of each moment.
    """
    rows = []
    for cell in trained_cells(study.config):
        if cell.variant:
            continue
        for role in topology(study.config, cell.workflow).roles:
            row: dict[str, object] = labels(cell) | {"role": role}
            for metric, (_, lowest) in METRICS.items():
                for moment, suffix in zip(
                    MOMENTS, ("first", "min" if lowest else "max", "last"), strict=True
                ):
                    found = study.one(cell, f"{metric}_{suffix}", split="train", role=role)
                    row[f"{metric}_{moment}"] = found.value
            rows.append(row)
    values = [f"{metric}_{moment}" for metric in METRICS for moment in MOMENTS]
    return pd.DataFrame(rows, columns=["cell", *KEYS[:-1], "role", *values])


def display(data: pd.DataFrame) -> pd.DataFrame:
    """One column per metric: first / extreme / last."""
    shown = data[["cell", "role"]].copy()
    for metric, (heading, minimum) in METRICS.items():
        moments = data[[f"{metric}_{moment}" for moment in MOMENTS]].astype(float)
        title = f"{heading} ({'min' if minimum else 'max'})"
        shown[title] = [" / ".join(map(compact, row)) for row in moments.to_numpy()]
    return shown


def caption(study: Study, data: pd.DataFrame) -> str:
    """What the columns say."""
    return (
        "Each entry: first logged / extreme / last logged value. χ² update: mean over tokens of "
        "ρ² − 1, after against before the update; χ² sampler: sampler against trainer before it. "
        "Perplexity: mean over sequences of exp(−mean log probability). Gradient norm: of the "
        "adapter that the role updates, before clipping; role gradient: of the role's own rows. "
        f"{study.footer(None)}"
    )
