"""Figure 8: effects of the interventions with their intervals."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from rolewise.paper import style
from rolewise.paper.effects import CAPTURE, effects
from rolewise.paper.study import Study

TITLE = "Effects of the interventions"

# Measure -> (title, scale, unit).
PANELS = {
    "peak": ("peak accuracy", 100, "points"),
    "terminal": ("terminal", 100, "points"),
    "fall": ("fall after peak", 100, "points"),
    CAPTURE: ("capture", 1, "score"),
}


def data(study: Study) -> pd.DataFrame:
    """Rows of `effects` for the measures drawn, with accuracies in points."""
    frame = effects(study)
    frame = frame[frame.measure.isin(list(PANELS))].reset_index(drop=True)
    scale = frame.measure.map({measure: scale for measure, (_, scale, _) in PANELS.items()})
    for name in ("plain", "changed", "effect", "lo", "hi"):
        frame[name] = frame[name].astype(float) * scale.astype(float)
    return frame


def draw(frame: pd.DataFrame, study: Study) -> Figure:
    """A row per intervention and cell, a panel per measure; right of the line means more of it."""
    names = list(dict.fromkeys(zip(frame.variant, frame.cell, strict=True)))
    figure = style.page(height=1.1 + 0.24 * len(names))
    if not names:
        style.say_missing(figure.subplots(), "no interventions in this preset")
        style.footnote(figure, study.footer(None))
        return figure
    axes = figure.subplots(1, len(PANELS), sharey=True)
    for panel, (measure, (title, _, unit)) in zip(axes, PANELS.items(), strict=True):
        part = frame[frame.measure == measure].set_index(["variant", "cell"]).reindex(names)
        panel.axvline(0, color=style.BLACK, linewidth=0.6)
        for policy in dict.fromkeys(frame.policy):
            rows = part.assign(value=part.effect.where(part.policy == policy))
            look = style.policy_style(policy) | {"linestyle": ""}
            style.points(panel, range(len(names)), rows, horizontal=True, **look)
        for place, (_, row) in enumerate(part.iterrows()):
            if pd.isna(row.effect):
                panel.axhspan(place - 0.3, place + 0.3, **style.GAP)
        panel.set(title=title, xlabel=f"effect ({unit})")
        panel.grid(axis="y", visible=False)
    axes[0].set_yticks(range(len(names)), [f"{variant}: {cell}" for variant, cell in names])
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    policies = [p for p in style.POLICY_LABEL if p in set(frame.policy)]
    handles = style.policy_handles(policies, line=False)
    figure.legend(handles=handles, loc="outside upper right", ncols=4)
    style.footnote(
        figure, f"Bars: 95 % intervals, three or more seeds or problems. {study.footer()}"
    )
    return figure


def caption(study: Study, data: pd.DataFrame) -> str:
    """What the picture shows."""
    if data.empty:
        return f"This preset runs no interventions (`grid.variants`). {study.footer(None)}"
    return (
        "Difference to the same cell without the intervention, seeds paired; bars: 95 % t interval "
        "over three or more seeds, or over problems for the accuracy of a single seed; no bar: not "
        f"decidable. Hatched: missing. {study.footer()}"
    )
