"""The charts of a cell's page."""

from __future__ import annotations

import pandas as pd

from rolewise.report.charts import Chart, Series, line_chart
from rolewise.report.study import Run

SPLITS = {"report": "report half", "select": "select half"}
OF_STEP = {"success": ("Training success rate", (0.0, 1.0))}
OF_ROLE = {
    "role_grad_norm": "Gradient norm by role",
    "role_grad_share": "Gradient share by role",
    "entropy": "Entropy by role, nats",
    "perplexity": "Training perplexity by role",
    "chi2_update": "χ² of the update by role",
    "kl_base": "KL to the base model by role, nats per token",
    "length_mean": "Completion length by role, tokens",
    "coherence": "Coherence of parallel slots",
}
SHARES = {"coherence"}


def cell_charts(run: Run) -> list[Chart]:
    """Training success, validation accuracy and role diagnostics, as far as the data go."""
    training = training_metrics(run)
    found = [
        *(
            line_chart(title, _of_role(training, metric, ["all"], label=title), bounds=bounds)
            for metric, (title, bounds) in OF_STEP.items()
        ),
        line_chart("Validation accuracy by checkpoint", _accuracy(run), bounds=(0.0, 1.0)),
        *(
            line_chart(
                title,
                _of_role(training, metric, _roles(training)),
                bounds=(0.0, 1.0) if metric in SHARES else None,
            )
            for metric, title in OF_ROLE.items()
        ),
    ]
    return [chart for chart in found if chart is not None]


def training_metrics(run: Run) -> pd.DataFrame:
    """Long form `step, role, metric, value`: from metrics.parquet, else the aggregates of cells.csv."""
    if run.metrics is None:
        return run.rows[run.rows["split"] == "train"][["step", "role", "metric", "value"]]
    wanted = [name for name in (*OF_STEP, *OF_ROLE) if name in run.metrics]
    return run.metrics.melt(["step", "role"], wanted, "metric", "value").dropna(subset="value")


def _roles(training: pd.DataFrame) -> list[str]:
    return [role for role in dict.fromkeys(training["role"]) if role != "all"]


def _of_role(
    training: pd.DataFrame, metric: str, roles: list[str], label: str | None = None
) -> list[Series]:
    series = []
    for role in roles:
        rows = training[(training["metric"] == metric) & (training["role"] == role)]
        rows = rows.sort_values("step")
        if len(rows):
            series.append(Series(label or role, rows["step"].tolist(), rows["value"].tolist()))
    return series


def _accuracy(run: Run) -> list[Series]:
    series = []
    for split, label in SPLITS.items():
        values = run.curve("accuracy", split)
        if not values:
            continue
        band = split == "report" and all(v.lo is not None and v.hi is not None for v in values)
        series.append(
            Series(
                label,
                [v.step for v in values],
                [v.value for v in values],
                lo=[v.lo for v in values] if band else [],
                hi=[v.hi for v in values] if band else [],
                points=True,
            )
        )
    return series
