"""Response shapes: how a role's outputs look, and how far one role has moved towards another's.

Array suffixes: `_C` calls, `_R` bootstrap resamples (the first row is the sample itself), `_P`
problems, `_F` components of a shape.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from rolewise.analysis.statistics import RESAMPLES, Interval, percentile_interval, resample_counts
from rolewise.config import Signatures
from rolewise.tasks.boxed import last_box
from rolewise.workflows.judging import kind_of

CLOSEST = 0.5
COMPONENTS = ("length_q50", "length_q90", "boxed", "code_block", "terse", "truncation")
RATES = COMPONENTS[2:]
_FENCE = re.compile(
    r"^[ \t]*```[ \t]*(\w*)[^\n]*\n(.*?)(?:^[ \t]*```|\Z)", re.MULTILINE | re.DOTALL
)


def has_code_block(text: str, fewest_lines: int) -> bool:
    """Whether a fenced Python block (or one without a language) has that many non-blank lines.

    A final fence that is never closed counts.
    """
    return any(
        language.lower() in ("", "python", "py", "python3")
        and sum(bool(line.strip()) for line in body.splitlines()) >= fewest_lines
        for language, body in _FENCE.findall(text)
    )


def call_features(calls: pd.DataFrame, limits: Signatures) -> pd.DataFrame:
    """Rows of trajectories with `kind` and the 0/1 columns of the shape's rates added.

    terse: a selection parsed within `terse_aggregator_tokens`, or a verdict parsed within
    `terse_evaluator_tokens` and without a fence; 0 for calls that give neither.
    """
    texts, tokens = calls["text"], calls["tokens"]
    kinds = calls["parsed"].map(lambda parsed: kind_of(None if pd.isna(parsed) else parsed))
    clean = ~calls["fallback"].astype(bool)
    picked = (kinds == "selection") & (tokens <= limits.terse_aggregator_tokens)
    judged = (kinds == "verdict") & (tokens <= limits.terse_evaluator_tokens)
    unfenced = ~texts.str.contains("```", regex=False)
    return calls.assign(
        kind=kinds,
        boxed=[float(last_box(text) is not None) for text in texts],
        code_block=[float(has_code_block(text, limits.code_block_lines)) for text in texts],
        terse=(clean & (picked | (judged & unfenced))).astype(float),
        truncation=(calls["finish_reason"] == "length").astype(float),
    )


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

    (s_A(t) - s_A(0)) . (s_B(0) - s_A(0)) / |s_B(0) - s_A(0)|^2, components scaled by their base-model
    standard deviation: 0 = unmoved, 1 = arrived. A component that never varies under the base model
    cannot tell the roles apart and is left out. Base shapes less than `CLOSEST` standard deviations
    apart are too alike for a direction between them: no score.
    """
    varies = scale_F > 0
    moved = (now_RF - base_a_RF)[:, varies] / scale_F[varies]
    apart = (base_b_RF - base_a_RF)[:, varies] / scale_F[varies]
    distance_R = (apart**2).sum(axis=1)
    score_R = np.divide(
        (moved * apart).sum(axis=1),
        distance_R,
        out=np.full(len(distance_R), np.nan),
        where=distance_R > 0,
    )
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
