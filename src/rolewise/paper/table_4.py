"""Table 4: trajectory signatures of the gradient-amplification cells."""

from __future__ import annotations

import pandas as pd

from rolewise.paper.signature_table import display_rows, signature_caption, signature_rows
from rolewise.paper.study import Study

TITLE = "Trajectory signatures of the gradient-amplification cells"

METRICS = (
    "accuracy",
    "role_accuracy",
    "oracle",
    "selection_error",
    "wrong_agreement",
    "slot_similarity",
    "length_q50",
    "length_q90",
    "boxed",
    "truncation",
    "hedging",
    "distinct",
    "sampled_entropy",
)


def data(study: Study) -> pd.DataFrame:
    """All signatures of `paper.amplification_cells`."""
    return signature_rows(study, study.config.paper.amplification_cells)


def display(data: pd.DataFrame) -> pd.DataFrame:
    """Correctness, agreement of parallel slots, length and certainty."""
    return display_rows(data, METRICS)


def caption(study: Study, data: pd.DataFrame) -> str:
    """What the table shows."""
    return signature_caption(
        study, "Isolated policies whose role with parallel slots is updated by all of them."
    )
