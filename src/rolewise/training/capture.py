"""How far each role has moved towards another role's first response shape. Pure.

A row of metrics holds the shape of its role, and adapters start as the base model: the rows of the
first step are the base shapes, read back from the log after a resume.
"""

from __future__ import annotations

import numpy as np

from rolewise.config import Signatures
from rolewise.sampling.episodes import Episode
from rolewise.training.credit import role_call
from rolewise.training.metrics import ALL
from rolewise.workflows.shapes import CLOSEST, COUNTED, counted, projections

# The columns of metrics in the order of `shapes.COMPONENTS`.
SHAPE = ("length_q50", "length_q90", *COUNTED, "truncated")
# Quantiles of a step's few calls jump when nearly all calls are equally long; means do not.
DISTINCT = 1.0


def shape_rates(episodes: list[Episode], limits: Signatures) -> dict[str, dict[str, float]]:
    """Role -> `boxed`, `code_block` and `terse`, shares of its calls that gave a completion.

    Under the key `all` the same of every call.
    """
    by_role: dict[str, list[tuple[bool, ...]]] = {}
    for episode in episodes:
        for record in episode.calls:
            tokens = len(record.completion.ids)
            if tokens:
                call = role_call(episode, record.call.key, record.text)
                counts = counted(call.kind, call.fallback, call.text, tokens, limits)
                for role in (ALL, call.role):
                    by_role.setdefault(role, []).append(counts)
    return {
        role: dict(zip(COUNTED, np.mean(counts, axis=0).tolist(), strict=True))
        for role, counts in by_role.items()
    }


def capture(now: dict, base: dict[str, dict]) -> float:
    """The largest capture of the role of `now` by another role of `base` (role -> its first metrics).

    Only roles count whose first shape differs from its own by `CLOSEST` and in its means (of length
    and rates) by `DISTINCT` standard deviations; NaN without such a role.
    """
    own = base[now["role"]]
    scores = [_score(now, own, other) for role, other in base.items() if role != now["role"]]
    return max((score for score in scores if not np.isnan(score)), default=float("nan"))


def _score(now: dict, own: dict, other: dict) -> float:
    shapes = [np.array([[row[name] for name in SHAPE]]) for row in (now, own, other)]
    scale_F = _scale(own, other)
    score_R, distance_R = projections(*shapes, scale_F)
    alike = distance_R[0] < CLOSEST**2 or _means_apart(own, other, scale_F) < DISTINCT
    return float("nan") if alike else float(score_R[0])


def _means_apart(a: dict, b: dict, scale_F: np.ndarray) -> float:
    # The two lengths of a shape have one mean and one scale: the first is left out.
    varies = scale_F[1:] > 0
    difference = np.subtract(_moments(a)[0], _moments(b)[0])[1:][varies]
    return float(np.linalg.norm(difference / scale_F[1:][varies]))


def _scale(a: dict, b: dict) -> np.ndarray:
    """Standard deviation of every component over the calls of both rows of metrics, (6,)."""
    means, variances = np.array([_moments(row) for row in (a, b)]).transpose(1, 0, 2)
    share = np.array([a["rows"], b["rows"]]) / (a["rows"] + b["rows"])
    # In this form a component without any variation gets exactly 0.
    between = share[0] * share[1] * (means[0] - means[1]) ** 2
    return np.sqrt(share @ variances + between)


def _moments(row: dict) -> tuple[list[float], list[float]]:
    rates = [row[name] for name in SHAPE[2:]]
    means = [row["length_mean"]] * 2 + rates
    return means, [row["length_std"] ** 2] * 2 + [rate * (1 - rate) for rate in rates]
