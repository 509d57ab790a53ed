"""Table 3: the SA-RL adapter in the workflows, all other roles untrained."""

from __future__ import annotations

import pandas as pd

from rolewise.grid import SINGLE, SINGLE_AGENT, Cell
from rolewise.paper.study import Study
from rolewise.paper.text import interval

TITLE = "Generator-only transfer"

# How `tables/cells.csv` marks a transfer: policy SA in a workflow other than Single.
TRANSFER = "transfer"
ENDS = ("value", "lo", "hi")


def data(study: Study) -> pd.DataFrame:
    """A row per scale, task and workflow: accuracy as a share on the report half, beside the base.

    `SA-RL` is the adapter alone, as in Table 1; a workflow's row serves it to the role that solves
    the problem and leaves all other roles untrained.
    """
    config = study.config
    scales = config.evaluation.transfer_scales or [study.dynamics[0]]
    rows = []
    for scale in scales:
        for task in config.grid.tasks:
            alone = Cell(SINGLE, SINGLE_AGENT, scale, task)
            cells = [("SA-RL", alone)] + [
                (name, Cell(name, SINGLE_AGENT, scale, task, TRANSFER))
                for name in config.grid.workflows
            ]
            for name, cell in cells:
                found = study.one(cell, "accuracy", "best")
                untrained = Cell(cell.workflow, "Base", scale, task)
                base = study.one(untrained, "accuracy", "base")
                rows.append(
                    {"scale": scale, "task": task, "workflow": name}
                    | {end: getattr(found, end) for end in ENDS}
                    | {f"base_{end}": getattr(base, end) for end in ENDS}
                    | {"n": found.n, "seeds": found.seeds}
                )
    return pd.DataFrame(rows)


def display(data: pd.DataFrame) -> pd.DataFrame:
    """A row per scale and task, a column per workflow, in percent; the base model below."""
    rows = []
    for (scale, task), group in data.groupby(["scale", "task"], sort=False):
        for label, prefix in (("SA-RL adapter", ""), ("base", "base_")):
            shown = {"scale": scale, "task": task, "generator": label}
            for row in group.to_dict("records"):
                ends = [row[f"{prefix}{end}"] for end in ENDS]
                shown[row["workflow"]] = interval(*(100 * end for end in ends))
            rows.append(shown)
    return pd.DataFrame(rows)


def caption(study: Study, data: pd.DataFrame) -> str:
    """What the table shows."""
    scales = ", ".join(study.scale_label(scale) for scale in dict.fromkeys(data.scale))
    return (
        f"{scales}. The adapter of SA-RL, at its best checkpoint, serves the role that solves the problem "
        "(generator; worker in Orch-Workers); every other role is the base model. Column SA-RL: the "
        "adapter alone, as in Table 1; rows `base`: no adapter at all. Accuracy in percent on the "
        f"report half; brackets: {study.interval}. {study.footer()}"
    )
