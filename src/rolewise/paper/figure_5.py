"""Figure 5: how violently training moves the policy, IP against SP on matched cells."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from rolewise.paper import matched, style
from rolewise.paper.study import MULTI_AGENT, Study

TITLE = "Training-side instability on matched cells"

PANELS = {
    "ratio": "largest policy ratio",
    "gradient": "largest gradient norm",
    "collapse": "depth of entropy collapse",
}


def data(study: Study) -> pd.DataFrame:
    """A row per measure, workflow, scale and task with the values under IP and SP.

    ratio: largest pi_after / pi_before of any token in any step; gradient: largest norm before
    clipping of any adapter; collapse: (first - lowest) / first entropy over all roles. Over seeds,
    the mean.
    """
    metrics = {
        "ratio": "ratio_update_max_max",
        "gradient": "grad_norm_max",
        "collapse": "entropy_collapse_depth",
    }
    keys = ["measure", "workflow", "scale", "task"]
    frames = [
        study.at(metric, split="train", policies=MULTI_AGENT).assign(measure=measure)
        for measure, metric in metrics.items()
    ]
    return matched.pairs(pd.concat(frames, ignore_index=True), keys)


def draw(frame: pd.DataFrame, study: Study) -> Figure:
    """A square panel per measure; above the diagonal means more under IP."""
    figure = style.page(height=2.6)
    for axes, (measure, title) in zip(figure.subplots(1, 3), PANELS.items(), strict=True):
        part = frame[frame.measure == measure]
        if part[["ip", "sp"]].dropna().empty:
            style.say_missing(axes)
        else:
            matched.scatter(axes, part)
            matched.diagonal(axes, amplitudes=measure != "collapse")
        axes.set(title=title, xlabel="SP", ylabel="IP")
    matched.legend(figure, frame, stacked=False)
    style.footnote(figure, f"One value per cell and seed, no interval. {study.footer(None)}")
    return figure


def caption(study: Study, data: pd.DataFrame) -> str:
    """What the picture shows and which pairs it lacks."""
    return (
        "Above the diagonal: more under IP. Largest policy ratio: over all tokens and steps, after "
        "against before an update; largest gradient norm: over steps and adapters, before clipping; "
        "entropy collapse: (first − lowest) / first. One value per cell and seed, seeds averaged, "
        f"no interval. {matched.missing(data, ['ip', 'sp'])}{study.footer(None)}"
    )
