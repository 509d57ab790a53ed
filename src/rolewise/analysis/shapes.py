"""Response shapes: how a role's outputs look, and how far one role has moved towards another's.

Array suffixes: `_C` calls, `_R` bootstrap resamples (the first row is the sample itself), `_P`
problems, `_F` components of a shape.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from rolewise.analysis.statistics import RESAMPLES, Interval, percentile_interval, resample_counts
from rolewise.config import Signatures
from rolewise.workflows.judging import kind_of
from rolewise.workflows.shapes import (
    CLOSEST,
    COMPONENTS,
    COUNTED,
    RATES,
    counted,
    projections,
)


def call_features(calls: pd.DataFrame, limits: Signatures) -> pd.DataFrame:
    """Rows of trajectories with `kind` and the 0/1 columns of the shape's rates added."""
    kinds = calls["parsed"].map(lambda parsed: kind_of(None if pd.isna(parsed) else parsed))
    columns = (kinds, calls["fallback"].astype(bool), calls["text"], calls["tokens"])
    each = [counted(*call, limits) for call in zip(*columns, strict=True)]
    features = pd.DataFrame(each, columns=list(COUNTED), index=calls.index, dtype=float)
    truncation = (calls["finish_reason"] == "length").astype(float)
    return calls.assign(kind=kinds, **features, truncation=truncation)


def shapes(features: pd.DataFrame, problems: int, resamples: int = RESAMPLES) -> np.ndarray:
    """Response-shape vectors of one role's calls, (1 + resamples, 6): sample first, then resamples.

    Components in the order of `COMPONENTS`. The `problems` problems, to whose positions the column
    `at` points, are resampled with all their calls; a resample without a call of the role is NaN.
    """
    ordered = features.sort_values("tokens", kind="stable")
    index_C = ordered["at"].to_numpy()
    counts_RP = resample_counts(problems, resamples)
    weights_RC = np.vstack([np.ones(problems), counts_RP])[:, index_C]
    if not len(index_C):
        return np.full((1 + resamples, len(COMPONENTS)), np.nan)
    running_RC = np.cumsum(weights_RC, axis=1)
    total_R = running_RC[:, -1]
    tokens_C = ordered["tokens"].to_numpy(dtype=float)
    quantiles = [tokens_C[(running_RC >= q * total_R[:, None]).argmax(axis=1)] for q in (0.5, 0.9)]
    sums_RF = weights_RC @ ordered[list(RATES)].to_numpy(dtype=float)
    with np.errstate(invalid="ignore"):
        rates_RF = sums_RF / total_R[:, None]
    shapes_RF = np.column_stack([*quantiles, rates_RF])
    shapes_RF[total_R == 0] = np.nan
    return shapes_RF


def scale_of(role_a: pd.DataFrame, role_b: pd.DataFrame) -> np.ndarray:
    """Standard deviation of every component over both roles' calls under the base model, (6,)."""
    pooled = pd.concat([role_a, role_b])
    columns = pooled[["tokens", "tokens", *RATES]].to_numpy(dtype=float)
    return columns.std(axis=0)


def capture_score(
    now_RF: np.ndarray, base_a_RF: np.ndarray, base_b_RF: np.ndarray, scale_F: np.ndarray, n: int
) -> Interval:
    """How far role A moved from its own base shape towards role B's, with its interval over problems.

    The formula is that of `projections`; base shapes closer than `CLOSEST` give no score.
    """
    score_R, distance_R = projections(now_RF, base_a_RF, base_b_RF, scale_F)
    if np.isnan(score_R[0]) or distance_R[0] < CLOSEST**2:
        return Interval(None, None, None, n)
    lo, hi = percentile_interval(score_R[1:, None], n)
    return Interval(float(score_R[0]), float(lo[0]), float(hi[0]), n)


def length_intervals(shapes_RF: np.ndarray, n: int) -> dict[str, Interval]:
    """The length quantiles of a shape with their intervals over problems."""
    lo, hi = percentile_interval(shapes_RF[1:], n)
    return {
        name: Interval(float(shapes_RF[0, i]), float(lo[i]), float(hi[i]), n)
        for i, name in enumerate(COMPONENTS)
        if name not in RATES
    }
