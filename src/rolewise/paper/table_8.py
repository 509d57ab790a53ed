"""Table 8: what each cell cost, what it gained for it, and the cost of IP against SP."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rolewise.grid import ISOLATED, SHARED, Cell, trained_cells
from rolewise.paper.study import KEYS, Study, labels
from rolewise.paper.text import compact, grouped, number

TITLE = "Compute and accuracy gained for it"

COSTS = {
    "tokens_sampled": "sampled tokens",
    "tokens_trained": "trained tokens",
    "cpu_s": "CPU seconds",
    "gpu_s": "GPU seconds",
    "wall_s": "wall seconds",
    "peak_memory_mb": "peak memory (MB)",
}
TOTAL, RATIO = "all cells", "IP / SP"
HOUR, MILLION = 3600, 1e6
COLUMNS = ["cell", *KEYS[:-1], *COSTS, "gain", "per_hour", "per_million"]


def data(study: Study) -> pd.DataFrame:
    """A row per trained cell (seeds averaged), then the sum and the ratio of IP to SP.

    `gain`: peak accuracy minus base on the report half, as a share; `per_hour` of CPU (of GPU where
    it is used) and `per_million` trained tokens, in points. The ratio is the geometric mean over
    matched cells. Memory is not summed.
    """
    cells = [cell for cell in trained_cells(study.config) if not cell.variant]
    rows = [_row(study, cell) for cell in cells]
    frame = pd.DataFrame(rows, columns=COLUMNS)
    if frame.empty:
        return frame
    total = {"cell": TOTAL} | {name: frame[name].sum(min_count=1) for name in COSTS}
    total["peak_memory_mb"] = np.nan
    return pd.concat([frame, pd.DataFrame([total, _ratio(frame)])], ignore_index=True)


def _row(study: Study, cell: Cell) -> dict[str, object]:
    spent = {name: study.one(cell, name, "terminal", "train").value for name in COSTS}
    gain = study.one(cell, "gain_base", "best").value
    seconds = spent["gpu_s"] or spent["cpu_s"]
    return {
        **labels(cell),
        **spent,
        "gain": gain,
        "per_hour": 100 * gain / (seconds / HOUR) if seconds else np.nan,
        "per_million": 100 * gain / (spent["tokens_trained"] / MILLION)
        if spent["tokens_trained"]
        else np.nan,
    }


def _ratio(frame: pd.DataFrame) -> dict[str, object]:
    keys = ["workflow", "scale", "task"]
    isolated, shared = (
        frame[frame.policy == policy].set_index(keys)[list(COSTS)] for policy in (ISOLATED, SHARED)
    )
    quotient = (isolated / shared).replace([0, np.inf], np.nan)
    return {"cell": RATIO} | np.exp(np.log(quotient.astype(float)).mean()).to_dict()


def display(data: pd.DataFrame) -> pd.DataFrame:
    """Costs rounded; GPU seconds only where there are any."""
    rows = []
    for row in data.to_dict("records"):
        ratio = row["cell"] == RATIO
        shown = {"cell": row["cell"]}
        for name, heading in COSTS.items():
            shown[heading] = number(row[name], 2) if ratio else grouped(row[name])
        shown["gain (points)"] = number(100 * row["gain"], signed=True)
        shown["points per hour"] = compact(row["per_hour"])
        shown["points per million tokens"] = compact(row["per_million"])
        rows.append(shown)
    frame = pd.DataFrame(rows)
    return frame if data.gpu_s.any() else frame.drop(columns=COSTS["gpu_s"], errors="ignore")


def caption(study: Study, data: pd.DataFrame) -> str:
    """What is counted."""
    return (
        "Over all attempts of a cell's training, seeds averaged. Gain: accuracy of the best "
        "checkpoint minus the base model's in the same workflow, report half; per hour of CPU time "
        "(GPU time where a GPU is used) and per million trained tokens. IP / SP: geometric mean of "
        f"the ratio over matched cells. {study.footer()}"
    )
