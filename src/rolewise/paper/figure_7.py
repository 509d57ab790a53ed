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
DOTTED = {"color": style.GREY, "linestyle": ":", "linewidth": 0.8}


def data(study: Study) -> pd.DataFrame:
    """Curves by workflow: under SP the gradient share of every role, under both policies the coherence of
    parallel slots, that of orthogonal ones, and `within` blocks with its permutation null (`null`, `null_hi`).
    """
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
    columns += ["smooth", "orthogonal", "within", "null", "null_hi"]
    frame = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)
    return frame.assign(scale=scale, task=task).reindex(columns=columns)


def _coherence(study: Study, cell: Cell, role: str) -> pd.DataFrame:
    names = ("coherence", "slots", "coherence_within", "coherence_null", "coherence_null_hi")
    value, slots, within, null, high = (
        study.curve(cell, name, "train", role).set_index("step").value for name in names
    )
    curves = {"value": value, "orthogonal": 1 / slots}
    curves |= {"within": within, "null": null, "null_hi": high}
    frame = pd.DataFrame(curves).reset_index(names="step")
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
    handles.append(Line2D([], [], **DOTTED, label=_dotted(frame)))
    figure.legend(handles=handles, loc="outside upper right", ncols=len(handles))
    for row in axes:
        low, high = row[0].get_ylim()
        row[0].set_ylim(min(0, low), max(1, high))
    axes[0, 0].set_yticks([0, 0.25, 0.5, 0.75, 1])
    style.role_legends(axes[0], columns=3)
    scale, task = study.dynamics
    style.footnote(figure, f"{study.scale_label(scale)}, {task}. No interval. {study.footer(None)}")
    return figure


def _dotted(frame: pd.DataFrame) -> str:
    below = ", below: orthogonal slots (1/n)" if frame.orthogonal.notna().any() else ""
    return f"above: equal shares of roles{below}"


def _shares(axes: Axes, part: pd.DataFrame, roles: tuple[str, ...]) -> None:
    if part.value.notna().sum() == 0:
        style.say_missing(axes, ticks=True)
        return
    axes.axhline(1 / len(roles), **DOTTED)
    for i, role in enumerate(roles):
        rows = part[part.role == role]
        look = style.role_style(i)
        axes.plot(rows.step, rows.value, color=look["color"], alpha=0.25, linewidth=0.6)
        axes.plot(rows.step, rows.smooth, label=role, markevery=0.2, **look)


def _slots(axes: Axes, part: pd.DataFrame, policies: list[str]) -> None:
    if part.value.notna().sum() == 0:
        style.say_missing(axes, ticks=True)
        return
    for policy, rows in part.groupby("policy", sort=False):
        axes.plot(rows.step, rows.value, **style.policy_style(policy))
    orthogonal = part.groupby("step").orthogonal.mean()
    axes.plot(orthogonal.index, orthogonal, **DOTTED)
    style.say_lacking(axes, [policy for policy in policies if policy not in set(part.policy)])


def caption(study: Study, data: pd.DataFrame) -> str:
    """What the picture shows."""
    scale, task = study.dynamics
    dotted = "dotted: " if data.orthogonal.notna().any() else ""
    return (
        f"{study.scale_label(scale)} on {task}. Above: share g_r·G/|G|² of each role in the shared adapter's "
        f"gradient (thin: every point, thick: running mean over {WINDOW} points; dotted: equal "
        "shares). Below: coherence |Σg|²/(n Σ|g|²) of parallel slots, 1 = identical gradients, "
        f"{dotted}1/n = orthogonal ones. {study.footer(None)}"
    )
