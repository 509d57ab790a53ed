"""Figure 3: peak accuracy of matched cells, IP against SP."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from rolewise.paper import matched, style
from rolewise.paper.study import MULTI_AGENT, Study

TITLE = "Isolated against shared policies on matched cells"


def data(study: Study) -> pd.DataFrame:
    """A row per workflow, scale and task: peak accuracy in percent under IP and SP, with intervals."""
    peaks = study.at("accuracy", "best", policies=MULTI_AGENT)
    peaks[["value", "lo", "hi"]] *= 100
    return matched.pairs(peaks, ["workflow", "scale", "task"])


def draw(frame: pd.DataFrame, study: Study) -> Figure:
    """One square panel; above the diagonal favours IP."""
    figure = style.page(height=3.5, width=style.COLUMN)
    axes = figure.subplots()
    if frame[["ip", "sp"]].dropna().empty:
        style.say_missing(axes, "no matched pair")
    else:
        matched.scatter(axes, frame)
        matched.diagonal(axes, highest=100)
        axes.text(0.03, 0.97, "IP higher", transform=axes.transAxes, va="top", color="0.35")
        axes.text(0.97, 0.03, "SP higher", transform=axes.transAxes, ha="right", color="0.35")
    axes.set(xlabel="SP: peak accuracy (%)", ylabel="IP: peak accuracy (%)")
    matched.legend(figure, frame, stacked=True)
    style.footnote(figure, f"Lines: {study.interval}. {study.footer()}")
    return figure


def caption(study: Study, data: pd.DataFrame) -> str:
    """What the picture shows and which pairs it lacks."""
    return (
        "Accuracy on the report half at the checkpoint that is best on the select half. Marker: "
        f"workflow, fill: task, size: scale; lines: {study.interval}. "
        f"{matched.missing(data, ['ip', 'sp'])}{study.footer()}"
    )
