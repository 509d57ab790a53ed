"""Marks single outputs that look captured: a supporting role that writes like the solving one."""

from __future__ import annotations

import pandas as pd

from rolewise.analysis.shapes import call_features
from rolewise.config import Signatures

CAPTURED_MEANS = (
    "a role that judges, picks or plans wrote a program, gave a verdict or a choice at length, or "
    "boxed an answer in its plan."
)


def captured_calls(calls: pd.DataFrame, limits: Signatures) -> pd.Series:
    """Boolean per call of `records.TRAJECTORIES`: a verdict, selection or plan of a solver's shape.

    It holds a code block, or it was parsed but is not terse (see `workflows.shapes.is_terse`),
    or it is a plan with a boxed answer. The capture score of a whole role, which compares with the
    base model's shapes, is in the tables.
    """
    features = call_features(calls, limits)
    brief = features["kind"].isin(["verdict", "selection"]) & ~features["fallback"].astype(bool)
    verbose = brief & (features["terse"] == 0)
    solves = (features["code_block"] > 0) | ((features["kind"] == "plan") & (features["boxed"] > 0))
    return (features["kind"] != "answer") & (verbose | solves)
