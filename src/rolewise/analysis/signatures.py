"""What trajectories show of each role at one checkpoint: correctness, choice, agreement, style. Pure.

All intervals resample problems with everything that belongs to them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rolewise.analysis import shapes
from rolewise.analysis.statistics import (
    NOTHING,
    Interval,
    function_interval,
    ratio,
    ratio_interval,
)
from rolewise.config import Signatures
from rolewise.tasks.parsing import parse_strategies
from rolewise.workflows.base import Topology

EPISODE = ["problem", "sample"]
_AGREEMENT = ("agreeing", "comparable")


@dataclass(frozen=True)
class Signature:
    """One measured value of a role at a checkpoint; names are described in `measures`."""

    role: str
    metric: str
    interval: Interval


@dataclass(frozen=True)
class Checkpoint:
    """Calls of one checkpoint by role, with their features, the position `at` of their problem in
    `problems`, and the shapes of the roles."""

    roles: dict[str, pd.DataFrame]
    shapes: dict[str, np.ndarray]
    problems: list[str]
    resamples: int

    @staticmethod
    def of(calls: pd.DataFrame, limits: Signatures) -> Checkpoint:
        """Features and role shapes of the rows of one step."""
        codes, problems = pd.factorize(calls["problem"], sort=True)
        features = shapes.call_features(calls, limits).assign(at=codes)
        roles = {str(role): rows for role, rows in features.groupby("role", sort=True)}
        found = {
            role: shapes.shapes(rows, len(problems), limits.bootstrap)
            for role, rows in roles.items()
        }
        return Checkpoint(roles, found, list(problems), limits.bootstrap)


def signatures(
    now: Checkpoint, base: Checkpoint, topology: Topology, limits: Signatures, most_strategies: int
) -> list[Signature]:
    """All signatures of a checkpoint; `base` is the base model's, in the same workflow."""
    found: list[Signature] = []
    for role in now.roles:
        found += role_signatures(now, role, limits)
        found += _plans(now, role, most_strategies)
        found += _verdicts(now, role)
        found += captures(now, base, role)
    if topology.parallel in now.roles and topology.parallel in base.roles:
        found += slot_signatures(now, base, topology.parallel)
    return found


def role_signatures(now: Checkpoint, role: str, limits: Signatures) -> list[Signature]:
    """Correctness, parse fallbacks, hedging, token concentration and response shape of a role."""
    calls = now.roles[role]
    found = {}
    judged = calls[calls["role_correct"].notna()]
    if len(judged):
        found["role_accuracy"] = _rate(now, judged, judged["role_correct"].astype(float))
    parsing = (calls["kind"] != "answer").any()
    if parsing:
        found["parse_fallback"] = _rate(now, calls, calls["fallback"].astype(float))
    phrase = hedging_pattern(limits.hedging_phrases)
    hedged = [float(phrase.search(text) is not None) for text in calls["text"]]
    found["hedging"] = _rate(now, calls, hedged)
    found["distinct"] = _rate(now, calls, calls["distinct_tokens"], calls["tokens"])
    found["mean_logprob"] = _rate(now, calls, calls["logprob"], calls["tokens"])
    found["sampled_entropy"] = _rate(now, calls, calls["entropy"])
    found |= shapes.length_intervals(now.shapes[role], len(now.problems))
    concise = calls["kind"].isin(("verdict", "selection")).any()
    for name in shapes.RATES:
        if concise or name != "terse":
            found[name] = _rate(now, calls, calls[name])
    return [Signature(role, name, value) for name, value in found.items()]


def hedging_pattern(phrases: Iterable[str]) -> re.Pattern[str]:
    """Finds any of `phrases` as whole words, in any case; without phrases it finds nothing."""
    words = "|".join(map(re.escape, phrases))
    return re.compile(rf"(?<!\w)(?:{words})(?!\w)" if words else r"(?!)", re.IGNORECASE)


def captures(now: Checkpoint, base: Checkpoint, role: str) -> list[Signature]:
    """Capture of `role` by every other role: metrics `capture_by_<other>`."""
    found = []
    if role not in base.roles or now.problems != base.problems:
        return []
    for other in base.roles:
        if other != role:
            scale = shapes.scale_of(base.roles[role], base.roles[other])
            score = shapes.capture_score(
                now.shapes[role], base.shapes[role], base.shapes[other], scale, len(now.problems)
            )
            found.append(Signature(role, f"capture_by_{other}", score))
    return found


def slot_signatures(now: Checkpoint, base: Checkpoint, parallel: str) -> list[Signature]:
    """What only parallel slots show: oracle, choice among them, agreement and similarity."""
    slots, then = slot_table(now.roles[parallel]), slot_table(base.roles[parallel])
    outcome = now.roles[parallel].drop_duplicates(EPISODE).sort_values(EPISODE)["correct"]
    wrong = 1 - outcome.to_numpy(dtype=float)
    oracle = slots["oracle"]
    return [
        Signature(parallel, "oracle", _rate(now, slots, oracle)),
        Signature("all", "selection_error", _rate(now, slots, oracle * wrong, oracle)),
        Signature(
            parallel, "wrong_agreement", _rate(now, slots, slots["agreeing"], slots["comparable"])
        ),
        Signature(
            parallel,
            "wrong_agreement_gain",
            _agreement_gain(now, slots, then) if now.problems == base.problems else NOTHING,
        ),
        Signature(
            parallel, "slot_similarity", _rate(now, slots, slots["similarity"], slots["pairs"])
        ),
    ]


def slot_table(calls: pd.DataFrame) -> pd.DataFrame:
    """A row per episode on its last turn of parallel calls: oracle, agreement, similarity.

    `agreeing` of `comparable` = 1: mean over slot pairs with parsed answers of "same answer", only
    where every slot is wrong and a pair can be compared (else both 0). `similarity` of `pairs` = 1:
    mean over slot pairs of the Jaccard index of their word pairs (0 of 0 for a single slot).
    """
    last = calls.groupby(EPISODE)["turn"].transform("max")
    episodes: dict[tuple[str, int], list] = {}
    for row in calls[calls["turn"] == last].itertuples(index=False):
        slot = (bool(row.role_correct), row.answer_key, bigrams(row.text))
        episodes.setdefault((row.at, row.problem, row.sample), []).append(slot)
    rows = []
    for (at, problem, sample), slots in sorted(episodes.items()):
        right = any(correct for correct, _, _ in slots)
        keys = [key for _, key, _ in slots if isinstance(key, str)]
        same = [a == b for a, b in itertools.combinations(keys, 2)]
        alike = [jaccard(a, b) for a, b in itertools.combinations([s[2] for s in slots], 2)]
        comparable = bool(same) and not right
        rows.append(
            {
                "at": at,
                "problem": problem,
                "sample": sample,
                "oracle": float(right),
                "agreeing": float(np.mean(same)) if comparable else 0.0,
                "comparable": float(comparable),
                "similarity": float(np.mean(alike)) if alike else 0.0,
                "pairs": float(bool(alike)),
            }
        )
    return pd.DataFrame(rows)


def bigrams(text: str) -> frozenset[tuple[str, str]]:
    """Pairs of successive words; a single word pairs with nothing."""
    words = text.split()
    return frozenset(itertools.pairwise([*words, ""]))


def jaccard(a: frozenset, b: frozenset) -> float:
    """Shared share of two sets; two empty sets are equal."""
    return len(a & b) / len(a | b) if a | b else 1.0


def _agreement_gain(now: Checkpoint, slots: pd.DataFrame, base: pd.DataFrame) -> Interval:
    columns_PK = np.column_stack(
        [_sums(now, table, table[name]) for table in (slots, base) for name in _AGREEMENT]
    )
    contributes = columns_PK[:, [1, 3]].any(axis=1)
    return function_interval(
        columns_PK[contributes],
        lambda means: ratio(means[..., :2]) - ratio(means[..., 2:]),
        now.resamples,
    )


def _verdicts(now: Checkpoint, role: str) -> Iterator[Signature]:
    calls = now.roles[role]
    calls = calls[(calls["kind"] == "verdict") & ~calls["fallback"].astype(bool)]
    if calls.empty:
        return
    accepts = calls["parsed"] == "Correct"
    right = accepts == calls["role_correct"].astype(bool)
    for name, chosen in (
        ("accepts_right", accepts & right),
        ("accepts_wrong", accepts & ~right),
        ("rejects_right", ~accepts & right),
        ("rejects_wrong", ~accepts & ~right),
    ):
        yield Signature(role, f"verdict_{name}", _rate(now, calls, chosen.astype(float)))


def _plans(now: Checkpoint, role: str, most: int) -> list[Signature]:
    calls = now.roles[role]
    calls = calls[calls["kind"] == "plan"]
    if calls.empty:
        return []
    plans = [list(parse_strategies(text, most).values()) for text in calls["text"]]
    differing, comparable = [], []
    for plan in plans:
        pairs = list(itertools.combinations([frozenset(p.lower().split()) for p in plan], 2))
        differing.append(float(np.mean([1 - jaccard(a, b) for a, b in pairs])) if pairs else 0.0)
        comparable.append(float(bool(pairs)))
    counts = [float(len(plan)) for plan in plans]
    return [
        Signature(role, "strategies", _rate(now, calls, counts)),
        Signature(role, "strategy_diversity", _rate(now, calls, differing, comparable)),
    ]


def _rate(
    now: Checkpoint, rows: pd.DataFrame, top: Iterable, bottom: Iterable | None = None
) -> Interval:
    ones = np.ones(len(rows)) if bottom is None else bottom
    return ratio_interval(_sums(now, rows, top), _sums(now, rows, ones), now.resamples)


def _sums(now: Checkpoint, rows: pd.DataFrame, values: Iterable) -> np.ndarray:
    """Sums of `values` over the rows of every problem of the checkpoint."""
    weights = np.asarray(values, dtype=float)
    return np.bincount(rows["at"].to_numpy(), weights=weights, minlength=len(now.problems))
