"""Response shapes: how a role's outputs look, and the capture formula over them. Pure.

Array suffixes: `_R` resamples (or any other vectors compared pairwise), `_F` components of a shape.
"""

from __future__ import annotations

import re

import numpy as np

from rolewise.config import Signatures
from rolewise.tasks.boxed import last_box
from rolewise.workflows.judging import Kind

CLOSEST = 0.5
COUNTED = ("boxed", "code_block", "terse")
COMPONENTS = ("length_q50", "length_q90", *COUNTED, "truncation")
RATES = COMPONENTS[2:]
_FENCE = re.compile(
    r"^[ \t]*```[ \t]*(\w*)[^\n]*\n(.*?)(?:^[ \t]*```|\Z)", re.MULTILINE | re.DOTALL
)


def counted(
    kind: Kind, fallback: bool, text: str, tokens: int, limits: Signatures
) -> tuple[bool, bool, bool]:
    """Whether a call boxes an answer, holds a code block and is terse: `COUNTED`, in this order."""
    return (
        last_box(text) is not None,
        has_code_block(text, limits.code_block_lines),
        is_terse(kind, fallback, text, tokens, limits),
    )


def has_code_block(text: str, fewest_lines: int) -> bool:
    """Whether a fenced Python block (or one without a language) has that many non-blank lines.

    A final fence that is never closed counts.
    """
    return "```" in text and any(
        language.lower() in ("", "python", "py", "python3")
        and sum(bool(line.strip()) for line in body.splitlines()) >= fewest_lines
        for language, body in _FENCE.findall(text)
    )


def is_terse(kind: Kind, fallback: bool, text: str, tokens: int, limits: Signatures) -> bool:
    """Whether a call is a terse pick or verdict.

    A selection parsed within `terse_aggregator_tokens`, or a verdict parsed within
    `terse_evaluator_tokens` and without a fence; no other call is terse.
    """
    if fallback or kind not in ("selection", "verdict"):
        return False
    if kind == "selection":
        return tokens <= limits.terse_aggregator_tokens
    return tokens <= limits.terse_evaluator_tokens and "```" not in text


def projections(
    now_RF: np.ndarray, base_a_RF: np.ndarray, base_b_RF: np.ndarray, scale_F: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of role A's way from its base shape towards role B's, and the squared distance, (R,) each.

    (s_A(t) - s_A(0)) . (s_B(0) - s_A(0)) / |s_B(0) - s_A(0)|^2, components scaled by their base-model
    standard deviation: 0 = unmoved, 1 = arrived, NaN without a distance. A component that never varies
    under the base model cannot tell the roles apart and is left out. Below `CLOSEST` standard
    deviations the base shapes are too alike for a direction between them.
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
    return score_R, distance_R
