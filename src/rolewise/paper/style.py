"""One palette, one set of markers and one page for every figure.

Colours are those of Okabe and Ito, told apart with every common colour blindness; each also has its
own marker, line or hatch, so that a grey print still reads.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import matplotlib.style
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from rolewise.grid import BASE, ISOLATED, SHARED, SINGLE, SINGLE_AGENT

PAGE, COLUMN = 6.75, 3.3

BLACK, GREY, LIGHT = "#222222", "#8a8a8a", "#d9d9d9"
ORANGE, SKY, GREEN, YELLOW = "#e69f00", "#56b4e9", "#009e73", "#f0e442"
BLUE, VERMILION, PURPLE = "#0072b2", "#d55e00", "#cc79a7"

POLICY_COLOUR = {BASE: GREY, SINGLE_AGENT: BLACK, SHARED: BLUE, ISOLATED: VERMILION}
POLICY_MARKER = {BASE: "", SINGLE_AGENT: "D", SHARED: "s", ISOLATED: "o"}
POLICY_LINE = {BASE: ":", SINGLE_AGENT: "-.", SHARED: "--", ISOLATED: "-"}
POLICY_LABEL = {BASE: "base", SINGLE_AGENT: "SA-RL", SHARED: "SP", ISOLATED: "IP"}

WORKFLOW_MARKER = {SINGLE: "D", "Eval-Opt": "o", "Voting": "s", "Orch-Workers": "^"}
SPARE_MARKERS = ("v", "P", "X", "h")

TASK_COLOUR = {"Math": GREEN, "Code": ORANGE}
SPARE_COLOURS = (SKY, PURPLE, YELLOW)

ROLE_COLOURS = (ORANGE, GREEN, PURPLE, SKY, YELLOW)
ROLE_LINES = ("-", "--", "-.", ":")
ROLE_MARKERS = ("o", "s", "^", "D", "v")

GAP = {"facecolor": "white", "edgecolor": "0.75", "hatch": "/////", "linewidth": 0}

# Amplitudes below this are float noise; accuracy panels show at least that many points.
NOISE = 0.01
LEAST_POINTS = 10


def styled() -> AbstractContextManager[None]:
    """The project's style; draw and save inside it."""
    return matplotlib.style.context(Path(__file__).with_name("rolewise.mplstyle"))


def marker_of(workflow: str, workflows: Sequence[str]) -> str:
    """The marker of a workflow; one of your own takes a spare one by its place in `workflows`."""
    own = [name for name in workflows if name not in WORKFLOW_MARKER]
    return WORKFLOW_MARKER.get(workflow) or SPARE_MARKERS[own.index(workflow) % len(SPARE_MARKERS)]


def task_colour(task: str, tasks: Sequence[str]) -> str:
    """The fill colour of a task; one of your own takes a spare one by its place in `tasks`."""
    own = [name for name in tasks if name not in TASK_COLOUR]
    return TASK_COLOUR.get(task) or SPARE_COLOURS[own.index(task) % len(SPARE_COLOURS)]


def role_style(index: int) -> dict[str, str]:
    """Colour, line and marker of the `index`-th role of a workflow."""
    return {
        "color": ROLE_COLOURS[index % len(ROLE_COLOURS)],
        "linestyle": ROLE_LINES[index % len(ROLE_LINES)],
        "marker": ROLE_MARKERS[index % len(ROLE_MARKERS)],
    }


def policy_style(policy: str) -> dict[str, str]:
    """Colour, line and marker of a policy."""
    return {
        "color": POLICY_COLOUR[policy],
        "linestyle": POLICY_LINE[policy],
        "marker": POLICY_MARKER[policy],
    }


def policy_handles(policies: Sequence[str], line: bool = True) -> list[Line2D]:
    """Legend entries of `policies`, with their line or with the marker alone."""
    handles = [Line2D([], [], label=POLICY_LABEL[name], **policy_style(name)) for name in policies]
    for handle in handles if not line else []:
        handle.set_linestyle("")
    return handles


def points(
    axes: Axes, place: Sequence[float], rows: pd.DataFrame, *, horizontal: bool = False, **look: str
) -> None:
    """Values at `place` with their intervals; rows have value, lo and hi, gaps are left out."""
    known = rows.value.notna().to_numpy()
    at, rows = np.asarray(place)[known], rows[known]
    spread = np.stack([rows.value - rows.lo, rows.hi - rows.value]).clip(min=0)
    spread = np.nan_to_num(spread)
    options = {"elinewidth": 0.9, "markeredgewidth": 0.6} | look
    if horizontal:
        axes.errorbar(rows.value, at, xerr=spread, **options)
    else:
        axes.errorbar(at, rows.value, yerr=spread, **options)


def page(height: float, width: float = PAGE) -> Figure:
    """An empty figure of print size, in inches."""
    return Figure(figsize=(width, height), layout="constrained")


def spans_log(values: Iterable[float]) -> bool:
    """Whether positive values differ by so much that a logarithmic axis reads better."""
    positive = [value for value in values if value > 0]
    return len(positive) > 0 and max(positive) > 4 * min(positive)


def amplitude_scale(axis: Axis, values: pd.Series) -> None:
    """Logarithmic where the values span much; around 0 linear where some are not positive."""
    if not spans_log(values):
        return
    if values.min() > 0:
        axis.axes.set_yscale("log")
        plain_log(axis)
    elif values.max() > 10 * NOISE:
        axis.axes.set_yscale("symlog", linthresh=NOISE, linscale=0.5)
        axis.axes.margins(y=0.1)
        axis.set_major_formatter("{x:g}")


def step_axis(axes: Axes) -> None:
    """Training steps along x: whole numbers, few of them."""
    axes.set_xlabel("training step")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))


def percent_axis(axes: Axes) -> None:
    """At least ten points from bottom to top, so that noise does not fill a panel."""
    low, high = axes.get_ylim()
    if high - low < LEAST_POINTS:
        middle = (low + high) / 2
        axes.set_ylim(middle - LEAST_POINTS / 2, middle + LEAST_POINTS / 2)


def plain_log(axis: Axis) -> None:
    """Plain numbers at 1, 2 and 5 of each decade, or at the decades where they are many."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())


def role_legends(row: Sequence[Axes], columns: int) -> None:
    """A legend between every panel of a row and its title, where it can lie on no curve."""
    lines = 0
    for axes in row:
        count = len(axes.get_legend_handles_labels()[1])
        lines = max(lines, math.ceil(count / columns))
        if count:
            axes.legend(
                loc="lower left",
                bbox_to_anchor=(0, 1),
                ncols=min(count, columns),
                fontsize=6,
                borderpad=0.1,
                borderaxespad=0.1,
                labelspacing=0.2,
                columnspacing=0.6,
                handlelength=1.4,
            )
    for axes in row:
        size = axes.title.get_fontsize()
        axes.set_title(axes.get_title(), pad=4 + 8.5 * lines, fontsize=size)


def say_lacking(axes: Axes, policies: Sequence[str]) -> None:
    """Name the policies whose curve a panel lacks."""
    if policies:
        names = ", ".join(POLICY_LABEL[policy] for policy in policies)
        axes.text(
            0.02,
            0.97,
            f"no results: {names}",
            transform=axes.transAxes,
            va="top",
            color="0.35",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
        )


def footnote(figure: Figure, text: str) -> None:
    """A small line below the panels: what every picture must say of itself."""
    # The empty line keeps it off the axis label above.
    figure.supxlabel(f"\n{text}", x=0.995, ha="right", fontsize=5, color="0.35")


def say_missing(axes: Axes, text: str = "not available", ticks: bool = False) -> None:
    """Hatch an empty panel and say why it is empty; `ticks` keeps those that others share."""
    axes.spines[:].set_visible(ticks)
    axes.patch.set(hatch="////", facecolor="white", edgecolor="0.85")
    axes.grid(False)
    if not ticks:
        axes.tick_params(left=False, labelleft=False, bottom=False, labelbottom=False)
    axes.text(
        0.5,
        0.5,
        text,
        transform=axes.transAxes,
        ha="center",
        va="center",
        color="0.35",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 2},
    )
