"""Figure 4: training dynamics of the three workflows at one scale on one task."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rolewise.grid import BASE, SINGLE, SINGLE_AGENT, Cell
from rolewise.paper import style
from rolewise.paper.curves import WINDOW, smooth
from rolewise.paper.study import Study

TITLE = "Training dynamics"

TRAINING, VALIDATION = "training success", "validation accuracy"


def data(study: Study) -> pd.DataFrame:
    """Curves of every policy by workflow: `panel`, step, value in percent, lo, hi, and for training
    success `smooth`, the centred running mean over five points."""
    scale, task = study.dynamics
    frames = []
    for workflow in study.config.grid.workflows:
        cells = [
            *(Cell(workflow, policy, scale, task) for policy in study.config.grid.policies),
            *([Cell(SINGLE, SINGLE_AGENT, scale, task)] if study.config.grid.single_agent else []),
        ]
        for cell in cells:
            success = study.curve(cell, "success", "train")
            accuracy = study.curve(cell, "accuracy", "all")
            frames += [
                success.assign(
                    panel=TRAINING,
                    smooth=smooth(success.value),
                    workflow=workflow,
                    policy=cell.policy,
                ),
                accuracy.assign(panel=VALIDATION, workflow=workflow, policy=cell.policy),
            ]
        base = study.curve(Cell(workflow, BASE, scale, task), "accuracy", "all")
        frames.append(base.assign(panel=VALIDATION, workflow=workflow, policy=BASE))
    frame = pd.concat(frames, ignore_index=True).assign(scale=scale, task=task)
    frame[["value", "lo", "hi", "smooth"]] *= 100
    columns = [
        "scale",
        "task",
        "workflow",
        "policy",
        "panel",
        "step",
        "value",
        "smooth",
        "lo",
        "hi",
        "n",
    ]
    return frame.reindex(columns=columns)


def draw(frame: pd.DataFrame, study: Study) -> Figure:
    """A column per workflow; training success above, validation accuracy below."""
    workflows = study.config.grid.workflows
    policies = [BASE, *([SINGLE_AGENT] if study.config.grid.single_agent else [])]
    policies += [p for p in style.POLICY_LABEL if p in study.config.grid.policies]
    figure = style.page(height=3.5)
    axes = figure.subplots(2, len(workflows), sharex="all", sharey="row", squeeze=False)
    for j, workflow in enumerate(workflows):
        part = frame[frame.workflow == workflow]
        axes[0, j].set_title(workflow)
        _training(axes[0, j], part[part.panel == TRAINING], policies)
        _validation(axes[1, j], part[part.panel == VALIDATION], policies)
        style.step_axis(axes[1, j])
    axes[0, 0].set_ylabel("training success (%)")
    axes[1, 0].set_ylabel("validation accuracy (%)")
    for row in axes:
        style.percent_axis(row[0])
    figure.legend(handles=style.policy_handles(policies), loc="outside upper right", ncols=4)
    scale, task = study.dynamics
    note = f"{study.scale_label(scale)}, {task}. Shaded: {study.interval}. {study.footer('all')}"
    style.footnote(figure, note)
    return figure


def _training(axes: Axes, part: pd.DataFrame, policies: list[str]) -> None:
    for policy, rows in part.groupby("policy", sort=False):
        look = style.policy_style(policy) | {"marker": ""}
        axes.plot(rows.step, rows.value, **look | {"linestyle": "-"}, alpha=0.18, linewidth=0.6)
        axes.plot(rows.step, rows.smooth, **look)
    _gaps(axes, part, [policy for policy in policies if policy != BASE])


def _validation(axes: Axes, part: pd.DataFrame, policies: list[str]) -> None:
    for policy, rows in part.groupby("policy", sort=False):
        look = style.policy_style(policy)
        if policy == BASE:
            axes.axhline(rows.value.iloc[0], color=look["color"], linestyle=look["linestyle"])
            continue
        axes.fill_between(rows.step, rows.lo, rows.hi, color=look["color"], alpha=0.12, linewidth=0)
        axes.plot(rows.step, rows.value, **look)
    _gaps(axes, part, policies)


def _gaps(axes: Axes, part: pd.DataFrame, policies: list[str]) -> None:
    if part.empty:
        style.say_missing(axes, ticks=True)
    else:
        style.say_lacking(axes, [policy for policy in policies if policy not in set(part.policy)])


def caption(study: Study, data: pd.DataFrame) -> str:
    """What the picture shows."""
    scale, task = study.dynamics
    return (
        f"{study.scale_label(scale)} on {task}. Above: share of training episodes solved (thin: "
        f"every point, thick: running mean over {WINDOW} points). Below: accuracy on all validation "
        f"problems at every checkpoint, shaded: {study.interval}. {study.footer('all')}"
    )
