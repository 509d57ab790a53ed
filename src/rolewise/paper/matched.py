"""The scatter of matched cells, IP against SP, that Figures 3 and 5 share."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rolewise.paper import style

SMALLEST, LARGEST = 14, 52
# Markers that lie on each other stay visible.
FILL = 0.55


def scatter(axes: Axes, frame: pd.DataFrame) -> None:
    """A point per pair: x = SP, y = IP, with intervals where `*_lo` and `*_hi` are given.

    Marker = workflow, fill = task, area = rank of the scale; pairs with a missing half are left out.
    """
    workflows, tasks, scales = (list(frame[key].unique()) for key in ("workflow", "task", "scale"))
    for row in frame.dropna(subset=["sp", "ip"]).itertuples():
        colour = style.task_colour(row.task, tasks)
        for along, across, lo, hi in (
            ("x", row.ip, row.sp_lo, row.sp_hi),
            ("y", row.sp, row.ip_lo, row.ip_hi),
        ):
            if np.isfinite([lo, hi]).all():
                line = axes.hlines if along == "x" else axes.vlines
                line(across, lo, hi, color=colour, alpha=0.3, linewidth=0.7, zorder=1)
        axes.scatter(
            row.sp,
            row.ip,
            s=area(scales.index(row.scale), len(scales)),
            marker=style.marker_of(row.workflow, workflows),
            facecolor=to_rgba(colour, FILL),
            edgecolor="black",
            linewidth=0.5,
            zorder=2,
            clip_on=False,
        )


def diagonal(axes: Axes, amplitudes: bool = False, highest: float = math.inf) -> None:
    """Equal limits on both axes, none above `highest`, and the line on which both policies agree.

    `amplitudes` that differ by much get logarithmic axes.
    """
    seen = [*axes.dataLim.intervalx, *axes.dataLim.intervaly]
    logarithmic = amplitudes and min(seen) > 0 and style.spans_log(seen)
    forward, backward = (np.log10, lambda x: 10.0**x) if logarithmic else (np.asarray, np.asarray)
    ends = forward(np.array(seen))
    low, high = ends.min(), ends.max()
    room = 0.08 * (high - low) or 0.1
    limits = np.minimum(backward(np.array([low - room, high + room])), highest)
    axes.plot(limits, limits, color=style.GREY, linewidth=0.7, linestyle="--", zorder=0)
    if logarithmic:
        axes.set(xscale="log", yscale="log")
    axes.set(xlim=limits, ylim=limits, aspect="equal")
    if logarithmic:
        style.plain_log(axes.xaxis)
        style.plain_log(axes.yaxis)


def area(rank: int, count: int) -> float:
    """Marker area in square points of the `rank`-th of `count` scales."""
    return SMALLEST if count == 1 else SMALLEST + (LARGEST - SMALLEST) * rank / (count - 1)


def legend(figure: Figure, frame: pd.DataFrame, stacked: bool) -> None:
    """Explains markers, fills and sizes above the panels: a column each if `stacked`, else a row."""
    groups = _handles(frame)
    longest = max(map(len, groups))
    blank = Line2D([], [], linestyle="", label=" ")
    handles = [
        handle
        for group in groups
        for handle in [*group, *[blank] * (stacked * (longest - len(group)))]
    ]
    columns = len(groups) if stacked else len(handles)
    figure.legend(handles=handles, loc="outside upper center", ncols=columns)


def _handles(frame: pd.DataFrame) -> list[list[Line2D]]:
    workflows, tasks, scales = (list(frame[key].unique()) for key in ("workflow", "task", "scale"))

    def entry(label: str, marker: str, colour: str, size: float) -> Line2D:
        return Line2D(
            [],
            [],
            linestyle="",
            label=label,
            marker=marker,
            markersize=size,
            markerfacecolor=to_rgba(colour, FILL),
            markeredgecolor="black",
            markeredgewidth=0.5,
        )

    return [
        [entry(name, style.marker_of(name, workflows), "white", 4.5) for name in workflows],
        [entry(name, "o", style.task_colour(name, tasks), 4.5) for name in tasks],
        [entry(name, "o", "white", area(i, len(scales)) ** 0.5) for i, name in enumerate(scales)],
    ]


def pairs(values: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """A row per combination of `keys`: ip, ip_lo, ip_hi, sp, sp_lo, sp_hi from rows of both policies."""
    halves = [
        values[values.policy == policy]
        .set_index(list(keys))[["value", "lo", "hi"]]
        .rename(columns={"value": name, "lo": f"{name}_lo", "hi": f"{name}_hi"})
        for policy, name in (("IP", "ip"), ("SP", "sp"))
    ]
    order = values[list(keys)].drop_duplicates()
    joined = pd.concat(halves, axis=1).reset_index(names=list(keys))
    return order.merge(joined, on=list(keys), how="left")


def missing(data: pd.DataFrame, columns: Sequence[str]) -> str:
    """A sentence on the pairs that cannot be drawn; empty if there are none."""
    gaps = data[data[list(columns)].isna().any(axis=1)]
    names = dict.fromkeys(f"{row.workflow}-{row.scale}-{row.task}" for row in gaps.itertuples())
    return f"Missing: {', '.join(names)}. " if names else ""
