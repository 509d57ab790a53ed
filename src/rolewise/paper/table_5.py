"""Table 5: trajectory signatures of the role-capture cells with unlike token distributions."""

from __future__ import annotations

import pandas as pd

from rolewise.paper.signature_table import (
    CAPTURE,
    display_rows,
    signature_caption,
    signature_rows,
)
from rolewise.paper.study import Study

TITLE = "Trajectory signatures of the role-capture cells, unlike token distributions"

METRICS = (
    "accuracy",
    "role_accuracy",
    CAPTURE,
    "length_q50",
    "length_q90",
    "boxed",
    "code_block",
    "terse",
    "truncation",
    "hedging",
    "parse_fallback",
    "verdict_accepts_right",
    "verdict_accepts_wrong",
    "verdict_rejects_right",
    "verdict_rejects_wrong",
)


def data(study: Study) -> pd.DataFrame:
    """All signatures of `paper.capture_cells`."""
    return signature_rows(study, study.config.paper.capture_cells)


def display(data: pd.DataFrame) -> pd.DataFrame:
    """Capture scores, response shapes and verdicts."""
    return display_rows(data, METRICS)


def caption(study: Study, data: pd.DataFrame) -> str:
    """What the table shows."""
    return signature_caption(
        study,
        "Shared policies in which one role may come to write as another does. Capture: how far a "
        "role's response shape moved towards the other's under the base model, 0 = unmoved.",
    )
