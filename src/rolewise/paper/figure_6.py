"""Figure 6: training dynamics of the cells that fall off an accuracy cliff, or might have."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rolewise.grid import Cell, trained_cells
from rolewise.paper import style
from rolewise.paper.study import Study
from rolewise.paper.text import interval
from rolewise.workflows.base import topology

TITLE = "Training dynamics and the fall after the peak"

MOST = 4
ACCURACY = "accuracy (%)"
# The half on which the fall is measured, so that title and curve show the same problems.
HALF = "report"
# Metric -> axis label.
AMPLITUDES = {"chi2_update": "χ² of the update", "perplexity": "training perplexity"}
COLUMNS = ["cell", "cliff", "panel", "role", "step", "value", "lo", "hi"]


def data(study: Study) -> pd.DataFrame:
    """Curves of the deepest cliffs: per role the amplitudes, for the whole cell the accuracy.

    Without any cliff, the cells that the paper names; `cliff` says which they are.
    """
    frames = []
    for cell, fell in _chosen(study):
        for role in topology(study.config, cell.workflow).roles:
            for metric, label in AMPLITUDES.items():
                frames.append(
                    study.curve(cell, metric, "train", role).assign(panel=label, role=role)
                )
                frames[-1]["cell"], frames[-1]["cliff"] = cell.name, fell
        accuracy = study.curve(cell, "accuracy", HALF).assign(panel=ACCURACY, role="all")
        accuracy[["value", "lo", "hi"]] *= 100
        frames.append(accuracy.assign(cell=cell.name, cliff=fell))
    if not frames:
        return pd.DataFrame(columns=COLUMNS)
    return pd.concat(frames, ignore_index=True)[COLUMNS]


def _chosen(study: Study) -> list[tuple[Cell, bool]]:
    """The cliff cells by depth, at most four; without any, the paper's cells of this preset.

    Over seeds a cell counts if at least half of them fall.
    """
    cells = [cell for cell in trained_cells(study.config) if not cell.variant]
    fallen = [cell for cell in cells if study.one(cell, "cliff", "terminal").value >= 0.5]
    fallen.sort(key=lambda cell: -study.one(cell, "cliff_drop", "terminal").value)
    if fallen:
        return [(cell, True) for cell in fallen[:MOST]]
    paper = study.config.paper
    named = [study.paper_cell(name) for name in paper.amplification_cells + paper.frequency_cells]
    return [(cell, False) for cell in named if cell][:MOST]


def draw(frame: pd.DataFrame, study: Study) -> Figure:
    """A column per cell; amplitudes above, accuracy below with best and last checkpoint marked."""
    chosen = _chosen(study)
    figure = style.page(height=4.3, width=min(style.PAGE, 1.1 + 2.3 * max(len(chosen), 1)))
    if not chosen:
        style.say_missing(
            figure.subplots(), "no cliff, and none of the paper's cells in this preset"
        )
        return figure
    axes = figure.subplots(3, len(chosen), sharex="all", sharey="row", squeeze=False)
    for j, (cell, fell) in enumerate(chosen):
        part = frame[frame.cell == cell.name]
        axes[0, j].set_title(
            f"{cell.name}\n{_verdict(study, cell, fell)}", fontsize=7.5 if len(chosen) < MOST else 6
        )
        roles = topology(study.config, cell.workflow).roles
        for i, label in enumerate(AMPLITUDES.values()):
            _amplitude(axes[i, j], part[part.panel == label], roles)
        _accuracy(axes[2, j], part[part.panel == ACCURACY], study, cell)
        style.step_axis(axes[2, j])
    for i, label in enumerate([*AMPLITUDES.values(), ACCURACY]):
        axes[i, 0].set_ylabel(label)
        if label == ACCURACY:
            style.percent_axis(axes[i, 0])
        else:
            style.amplitude_scale(axes[i, 0].yaxis, frame[frame.panel == label].value)
    style.role_legends(axes[0], columns=2)
    style.footnote(
        figure, f"Accuracy: {HALF} half. Shaded: {study.interval}.\n{study.footer(HALF)}"
    )
    return figure


def _verdict(study: Study, cell: Cell, fell: bool) -> str:
    drop = study.one(cell, "cliff_drop", "terminal")
    if math.isnan(drop.value):
        return "no results"
    fall = interval(*(100 * x for x in (drop.value, drop.lo, drop.hi)))
    return f"{'falls' if fell else 'no cliff:'} {fall}\n(points, n = {drop.n:.0f})"


def _amplitude(axes: Axes, part: pd.DataFrame, roles: tuple[str, ...]) -> None:
    if part.empty:
        style.say_missing(axes, ticks=True)
    for i, role in enumerate(roles):
        rows = part[part.role == role]
        axes.plot(rows.step, rows.value, label=role, markevery=0.2, **style.role_style(i))


def _accuracy(axes: Axes, part: pd.DataFrame, study: Study, cell: Cell) -> None:
    if part.empty:
        style.say_missing(axes, ticks=True)
        return
    look = style.policy_style(cell.policy)
    axes.fill_between(part.step, part.lo, part.hi, color=look["color"], alpha=0.12, linewidth=0)
    axes.plot(part.step, part.value, **look)
    for point in ("best", "terminal"):
        for step in study.steps(cell, point):
            axes.axvline(step, color=style.GREY, linewidth=0.6, linestyle=":")


def caption(study: Study, data: pd.DataFrame) -> str:
    """What the picture shows."""
    chosen = _chosen(study)
    fallen = [cell.name for cell, fell in chosen if fell]
    what = (
        f"The cells with the deepest cliffs (at most {MOST})."
        if fallen
        else "No cell of this preset falls off a cliff; shown are the cells that the paper names."
    )
    drop = study.config.signatures.cliff_drop
    return (
        f"{what} A cliff: accuracy at the best checkpoint minus that at the last, on the report half, is at "
        f"least {100 * drop:g} points and its paired 95 % interval excludes 0; the number in the "
        "title. Above: χ² after against before the update and training perplexity of every role "
        "(logarithmic where they span much). χ² is estimated from the step's tokens as their mean of ρ² − 1; "
        "unlike χ² itself, the estimate can be negative. Below: accuracy on the same report half, dotted: best "
        f"and last checkpoint of each seed. Shaded: {study.interval}. {study.footer(HALF)}"
    )
