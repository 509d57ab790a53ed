"""Table 6: trajectory signatures of the role-capture cells in which one role holds most slots."""

from __future__ import annotations

import pandas as pd

from rolewise.paper.signature_table import (
    CAPTURE,
    display_rows,
    signature_caption,
    signature_rows,
)
from rolewise.paper.study import Study

TITLE = "Trajectory signatures of the role-capture cells, unlike episode frequency"

METRICS = (
    "accuracy",
    "role_accuracy",
    CAPTURE,
    "oracle",
    "selection_error",
    "wrong_agreement",
    "slot_similarity",
    "strategies",
    "strategy_diversity",
    "length_q50",
    "length_q90",
    "boxed",
    "truncation",
    "hedging",
    "distinct",
    "sampled_entropy",
)


def data(study: Study) -> pd.DataFrame:
    """All signatures of `paper.frequency_cells`."""
    return signature_rows(study, study.config.paper.frequency_cells)


def display(data: pd.DataFrame) -> pd.DataFrame:
    """Capture scores, agreement of slots, plans, length and certainty."""
    return display_rows(data, METRICS)


def caption(study: Study, data: pd.DataFrame) -> str:
    """What the table shows."""
    return signature_caption(
        study,
        "Shared policies in which workers hold most of an episode's calls. Capture: how far a "
        "role's response shape moved towards the other's under the base model, 0 = unmoved.",
    )
