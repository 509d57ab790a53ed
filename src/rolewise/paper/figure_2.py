"""Figure 2: accuracy change of every cell against the base model in the same workflow."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from rolewise.grid import ISOLATED, SHARED, SINGLE
from rolewise.paper import style
from rolewise.paper.study import Study

TITLE = "Validation-accuracy change against the base model"

# From left to right as in the legend.
OFFSET = {SHARED: -0.16, ISOLATED: 0.16}


def data(study: Study) -> pd.DataFrame:
    """A row per trained cell of the grid: `value` is peak minus base accuracy on the report half,
    in percentage points."""
    gains = study.at("gain_base", "best")
    gains[["value", "lo", "hi"]] *= 100
    return gains


def draw(frame: pd.DataFrame, study: Study) -> Figure:
    """A panel per task and scale; a column of points per workflow."""
    tasks, scales = frame.task.unique(), frame.scale.unique()
    workflows = sorted(frame.workflow.unique(), key=lambda name: name != SINGLE)
    policies = [p for p in style.POLICY_LABEL if p in set(frame.policy)]
    figure = style.page(height=0.6 + 1.3 * max(len(tasks), 1))
    if frame.empty:
        style.say_missing(figure.subplots(), "no main cells in this preset")
        style.footnote(figure, study.footer())
        return figure
    axes = figure.subplots(len(tasks), len(scales), sharex=True, sharey=True, squeeze=False)
    for i, task in enumerate(tasks):
        for j, scale in enumerate(scales):
            panel = axes[i, j]
            part = frame[(frame.task == task) & (frame.scale == scale)]
            panel.axhline(0, color=style.BLACK, linewidth=0.6)
            for policy in policies:
                rows = part[part.policy == policy].set_index("workflow").reindex(workflows)
                offset = OFFSET.get(policy, 0.0)
                place = [k + offset for k in range(len(workflows))]
                style.points(panel, place, rows, **style.policy_style(policy) | {"linestyle": ""})
            for gap in part[part.value.isna()].itertuples():
                offset = OFFSET.get(gap.policy, 0.0)
                centre = workflows.index(gap.workflow) + offset
                panel.axvspan(centre - 0.12, centre + 0.12, **style.GAP)
            panel.set_xticks(range(len(workflows)), [_short(name) for name in workflows])
            panel.set_xlim(-0.6, len(workflows) - 0.4)
            panel.grid(axis="x", visible=False)
            if i == 0:
                panel.set_title(scale)
        axes[i, 0].set_ylabel(f"{task}: change (points)")
    style.percent_axis(axes[0, 0])
    figure.legend(
        handles=style.policy_handles(policies, line=False), loc="outside upper right", ncols=4
    )
    style.footnote(figure, f"Bars: {study.interval}. {study.footer()}")
    return figure


def _short(workflow: str) -> str:
    return "Single\n(SA-RL)" if workflow == SINGLE else workflow.replace("-", "-\n", 1)


def caption(study: Study, data: pd.DataFrame) -> str:
    """What the picture shows."""
    return (
        "Points: accuracy of the best checkpoint (chosen on the select half, reported on the "
        "report half) minus the base model's in the same workflow, in percentage points; bars: "
        f"{study.interval}. Hatched: missing. {study.footer()}"
    )
