"""What Tables 4, 5 and 6 share: trajectory signatures of named cells over four checkpoints."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from rolewise.grid import Cell, base_of
from rolewise.paper.study import Study
from rolewise.paper.text import interval
from rolewise.workflows.base import topology

CHECKPOINTS = ("base", "early", "best", "terminal")

# Metric -> (how it reads, whether it is a share shown in percent).
NAMES = {
    "accuracy": ("accuracy (%)", True),
    "role_accuracy": ("role's own output right (%)", True),
    "oracle": ("any slot right (%)", True),
    "selection_error": ("wrong although a slot is right (%)", True),
    "wrong_agreement": ("agreement on a wrong answer (%)", True),
    "slot_similarity": ("similarity of slots (%)", True),
    "strategies": ("strategies per plan", False),
    "strategy_diversity": ("diversity of strategies (%)", True),
    "length_q50": ("median length (tokens)", False),
    "length_q90": ("90 % length (tokens)", False),
    "boxed": ("boxed (%)", True),
    "code_block": ("Python block (%)", True),
    "terse": ("terse (%)", True),
    "truncation": ("truncated (%)", True),
    "hedging": ("hedging (%)", True),
    "distinct": ("distinct tokens (%)", True),
    "sampled_entropy": ("entropy (nats)", False),
    "parse_fallback": ("not parsed (%)", True),
    "verdict_accepts_right": ("accepts a right answer (%)", True),
    "verdict_accepts_wrong": ("accepts a wrong answer (%)", True),
    "verdict_rejects_right": ("rejects a right answer (%)", True),
    "verdict_rejects_wrong": ("rejects a wrong answer (%)", True),
}
CAPTURE = "capture_by_"


def signature_rows(study: Study, names: list[str]) -> pd.DataFrame:
    """All signatures of the cells called `names` (the paper's spelling).

    A row per cell, role and metric with `<checkpoint>`, `<checkpoint>_lo`, `<checkpoint>_hi` and n;
    a cell without trajectories, or outside this preset, is one row of gaps.
    """
    columns = [f"{point}{end}" for point in CHECKPOINTS for end in ("", "_lo", "_hi")]
    frames = []
    for name in names:
        cell = study.paper_cell(name)
        label = {"paper_cell": name, "cell": cell.name if cell else "not in this preset"}
        rows = _of(study, cell) if cell else []
        frames.append(pd.DataFrame(rows or [{"role": "", "metric": ""}]).assign(**label))
    everything = ["paper_cell", "cell", "role", "metric", *columns, "n"]
    if not frames:
        return pd.DataFrame(columns=everything)
    return pd.concat(frames, ignore_index=True).reindex(columns=everything)


def _of(study: Study, cell: Cell) -> list[dict[str, object]]:
    roles = ["all", *topology(study.config, cell.workflow).roles]
    captures = [f"{CAPTURE}{role}" for role in roles[1:]]
    base, rows = base_of(study.config, cell), []
    for role in roles:
        for metric in [*NAMES, *captures]:
            found = {
                point: study.one(base if point == "base" else cell, metric, point, "all", role)
                for point in CHECKPOINTS
            }
            if all(math.isnan(estimate.value) for estimate in found.values()):
                continue
            row: dict[str, object] = {"role": role, "metric": metric}
            for point, estimate in found.items():
                row |= {
                    point: estimate.value,
                    f"{point}_lo": estimate.lo,
                    f"{point}_hi": estimate.hi,
                    "n": max(row.get("n", 0), estimate.n),
                }
            rows.append(row)
    return rows


def display_rows(data: pd.DataFrame, metrics: tuple[str, ...]) -> pd.DataFrame:
    """The rows of `metrics`, in that order within each role, as text."""
    order = {metric: i for i, metric in enumerate(metrics)}
    shown = [_family(metric) in order or not metric for metric in data.metric]
    kept = data.loc[np.array(shown, dtype=bool)]
    rank = [order.get(_family(metric), 0) for metric in kept.metric]
    roles = [kept.index[kept.cell == cell].min() for cell in kept.cell]
    first = kept.groupby(["cell", "role"], sort=False).ngroup()
    kept = kept.assign(_cell=roles, _role=first, _rank=rank).sort_values(
        ["_cell", "_role", "_rank"], kind="stable"
    )
    rows = []
    for row in kept.to_dict("records"):
        label, percent = _reading(row["metric"])
        scale = 100 if percent else 1
        text = {"cell": row["cell"], "role": row["role"], "signature": label}
        for point in CHECKPOINTS:
            ends = [row[point], row[f"{point}_lo"], row[f"{point}_hi"]]
            values = [scale * end for end in ends]
            text[point] = interval(*values, digits=1 if scale == 100 else 2)
        rows.append(text)
    return pd.DataFrame(rows, columns=["cell", "role", "signature", *CHECKPOINTS])


def _family(metric: str) -> str:
    return CAPTURE if metric.startswith(CAPTURE) else metric


def _reading(metric: str) -> tuple[str, bool]:
    if metric.startswith(CAPTURE):
        return f"captured by {metric.removeprefix(CAPTURE)} (1 = arrived)", False
    return NAMES.get(metric, ("—", False))


def signature_caption(study: Study, what: str) -> str:
    """What the table shows, of how many problems."""
    count = study.config.evaluation.trajectory_problems
    return (
        f"{what} Base: untrained model in the same workflow; best: chosen on the select half; early: "
        "nearest the midpoint between the first checkpoint and the best; terminal: the last. First "
        f"{count} validation problems, every role's own output regraded; accuracy: all validation "
        f"problems. {study.footer(None)}"
    )
