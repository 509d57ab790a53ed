"""Geometry of small line charts that the templates draw as inline SVG. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

WIDTH, HEIGHT = 460, 250
LEFT, RIGHT, TOP, BOTTOM = 56, 14, 12, 42


@dataclass(frozen=True)
class Series:
    """One line through its finite values; `lo` and `hi` bound its interval band."""

    label: str
    x: list[float]
    y: list[float]
    lo: list[float] = field(default_factory=list)
    hi: list[float] = field(default_factory=list)
    points: bool = False


@dataclass(frozen=True)
class Chart:
    """A drawn chart: scaled paths and ticks, with the values for the read-out under the pointer."""

    title: str
    x_label: str
    lines: list[dict[str, Any]]
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    values: dict[str, Any]
    summary: str
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def line_chart(
    title: str,
    series: list[Series],
    *,
    x_label: str = "training step",
    bounds: tuple[float, float] | None = None,
) -> Chart | None:
    """The chart of `series`, None when not one value is finite; `bounds` fixes the y range."""
    from matplotlib.ticker import MaxNLocator

    xs = [x for one in series for x, _ in _known(one)]
    ys = [v for one in series for v in [*one.y, *one.lo, *one.hi] if math.isfinite(v)]
    if not xs:
        return None
    x_low, x_high = _padded(min(xs), max(xs), 0.0)
    y_low, y_high = bounds or _padded(min(ys), max(ys), 0.05)

    def sx(x: float) -> float:
        return round(LEFT + (x - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT), 1)

    def sy(y: float) -> float:
        inside = min(max(y, y_low), y_high)
        return round(TOP + (y_high - inside) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM), 1)

    def ticks(low: float, high: float, scale, count: int, integer: bool = False):
        values = MaxNLocator(count, integer=integer).tick_values(low, high)
        return [(scale(v), f"{v:.4g}") for v in values if low - 1e-12 <= v <= high + 1e-12]

    lines = [
        {
            "label": one.label,
            "path": " ".join(f"{sx(x)},{sy(y)}" for x, y in _known(one)),
            "dots": [(sx(x), sy(y)) for x, y in _known(one)]
            if one.points or len(_known(one)) == 1
            else [],
            "band": _band(one, sx, sy),
        }
        for one in series
    ]
    return Chart(
        title=title,
        x_label=x_label,
        lines=lines,
        x_ticks=ticks(x_low, x_high, sx, 6, integer=True),
        y_ticks=ticks(y_low, y_high, sy, 5),
        values={
            "left": LEFT,
            "right": WIDTH - RIGHT,
            "low": x_low,
            "high": x_high,
            "series": [
                {"label": one.label, "points": [(x, float(f"{y:.4g}")) for x, y in _known(one)]}
                for one in series
            ],
        },
        summary="; ".join(_describe(one) for one in series),
    )


def spark_points(values: list[float], width: int = 120, height: int = 28) -> str:
    """Points of a polyline over the finite `values`, on a fixed scale from 0 to 1."""
    known = [(i, v) for i, v in enumerate(values) if math.isfinite(v)]
    span = max(len(values) - 1, 1)
    return " ".join(
        f"{2 + i / span * (width - 4):.1f},{height - 2 - v * (height - 4):.1f}" for i, v in known
    )


def _padded(low: float, high: float, share: float) -> tuple[float, float]:
    if low == high:
        return low - 0.5, high + 0.5
    return low - share * (high - low), high + share * (high - low)


def _known(one: Series) -> list[tuple[float, float]]:
    return [(x, y) for x, y in zip(one.x, one.y, strict=True) if math.isfinite(y)]


def _band(one: Series, sx, sy) -> str:
    if not one.lo:
        return ""
    known = [
        (x, lo, hi)
        for x, lo, hi in zip(one.x, one.lo, one.hi, strict=True)
        if math.isfinite(lo) and math.isfinite(hi)
    ]
    return " ".join(
        [f"{sx(x)},{sy(hi)}" for x, _, hi in known]
        + [f"{sx(x)},{sy(lo)}" for x, lo, _ in reversed(known)]
    )


def _describe(one: Series) -> str:
    known = [y for _, y in _known(one)]
    if not known:
        return f"{one.label}: no values"
    return (
        f"{one.label}: first {known[0]:.3g}, lowest {min(known):.3g}, "
        f"highest {max(known):.3g}, last {known[-1]:.3g}"
    )
