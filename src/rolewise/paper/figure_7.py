"""Figure 7: who moves a shared adapter, and how coherent parallel slots are, over training."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rolewise.grid import ISOLATED, SHARED, Cell
from rolewise.paper import style
from rolewise.paper.curves import WINDOW, smooth
from rolewise.paper.study import Study
from rolewise.workflows.base import topology

TITLE = "Gradient share of roles and coherence of parallel slots"

SHARE, COHERENCE = "gradient share", "coherence"


def data(study: Study) -> pd.DataFrame:
    """Curves by workflow: under SP the gradient share of every role, under both policies the
    coherence of parallel slots with its permutation null (`null`, `null_hi`)."""
    scale, task = study.dynamics
    frames = []
    for workflow in study.config.grid.workflows:
        shape = topology(study.config, workflow)
        for policy in study.config.grid.policies:
            cell = Cell(workflow, policy, scale, task)
            if policy == SHARED:
                for role in shape.roles:
                    share = study.curve(cell, "role_grad_share", "train", role)
                    frames.append(
                        share.assign(
                            panel=SHARE,
                            role=role,
                            smooth=smooth(share.value),
                            workflow=workflow,
                            policy=policy,
                        )
                    )
            if shape.parallel:
                frames.append(_coherence(study, cell, shape.parallel))
    columns = ["scale", "task", "workflow", "policy", "role", "panel", "step", "value"]
    columns += ["smooth", "null", "null_hi"]
    frame = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)
    return frame.assign(scale=scale, task=task).reindex(columns=columns)


def _coherence(study: Study, cell: Cell, role: str) -> pd.DataFrame:
    value, null, high = (
        study.curve(cell, name, "train", role).set_index("step").value
        for name in ("coherence", "coherence_null", "coherence_null_hi")
    )
    frame = pd.DataFrame({"value": value, "null": null, "null_hi": high}).reset_index(names="step")
    return frame.assign(panel=COHERENCE, role=role, workflow=cell.workflow, policy=cell.policy)


def draw(frame: pd.DataFrame, study: Study) -> Figure:
    """A column per workflow; shares above, coherence below."""
    workflows = study.config.grid.workflows
    figure = style.page(height=3.6)
    axes = figure.subplots(2, len(workflows), sharex="all", sharey="row", squeeze=False)
    for j, workflow in enumerate(workflows):
        part = frame[frame.workflow == workflow]
        shape = topology(study.config, workflow)
        axes[0, j].set_title(workflow)
        _shares(axes[0, j], part[part.panel == SHARE], shape.roles)
        if shape.parallel:
            _slots(axes[1, j], part[part.panel == COHERENCE], study.config.grid.policies)
            axes[1, j].set_title(
                f"slots of {shape.parallel}", fontsize=6.5, fontweight="normal", pad=2
            )
        else:
            style.say_missing(axes[1, j], "no parallel slots", ticks=True)
        style.step_axis(axes[1, j])
    axes[0, 0].set_ylabel("share of the SP gradient")
    axes[1, 0].set_ylabel("coherence of slots")
    handles = style.policy_handles(
        [p for p in (SHARED, ISOLATED) if p in study.config.grid.policies]
    )
    null = Line2D([], [], color=style.GREY, linestyle=":", label="null: slots shuffled (95 %)")
    figure.legend(handles=[*handles, null], loc="outside upper right", ncols=3)
    for row in axes:
        low, high = row[0].get_ylim()
        row[0].set_ylim(min(0, low), max(1, high))
    scale, task = study.dynamics
    style.footnote(figure, f"{study.scale_label(scale)}, {task}. No interval. {study.footer(None)}")
    return figure


def _shares(axes: Axes, part: pd.DataFrame, roles: tuple[str, ...]) -> None:
    if part.value.notna().sum() == 0:
        style.say_missing(axes, ticks=True)
        return
    axes.axhline(1 / len(roles), color=style.GREY, linewidth=0.6, linestyle=":")
    for i, role in enumerate(roles):
        rows = part[part.role == role]
        look = style.role_style(i)
        axes.plot(rows.step, rows.value, color=look["color"], alpha=0.25, linewidth=0.6)
        axes.plot(rows.step, rows.smooth, label=role, markevery=0.2, **look)
    style.role_legend(axes)


def _slots(axes: Axes, part: pd.DataFrame, policies: list[str]) -> None:
    if part.value.notna().sum() == 0:
        style.say_missing(axes, ticks=True)
        return
    for policy, rows in part.groupby("policy", sort=False):
        look = style.policy_style(policy)
        axes.plot(rows.step, rows.value, **look)
        axes.plot(rows.step, rows.null_hi, color=look["color"], linestyle=":", linewidth=0.8)
    style.say_lacking(axes, [policy for policy in policies if policy not in set(part.policy)])


def caption(study: Study, data: pd.DataFrame) -> str:
    """What the picture shows."""
    scale, task = study.dynamics
    return (
        f"{study.scale_label(scale)} on {task}. Above: share g_r·G/|G|² of each role in the shared adapter's "
        f"gradient (thin: every point, thick: running mean over {WINDOW} points; dotted: equal "
        "shares). Below: coherence |Σg|²/(n Σ|g|²) of parallel slots, 1 = identical gradients, "
        "1/n = orthogonal ones; dotted: 95 % quantile of the same with slots shuffled between "
        f"episodes. {study.footer(None)}"
    )
