"""Group-relative advantages (GRPO): what an episode's reward is compared with. Pure.

`episode` compares the episodes of one problem with each other, and every call of an episode gets the
result (the paper). `slot`, `role` and `turn` compare calls: of one slot, of one role with slots and
turns pooled, of one role and turn. `released` is what the paper's code does: slots apart for Voting on
Math, pooled by role elsewhere. A group of one, or with equal rewards, yields no signal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from rolewise.config import Advantage
from rolewise.training.rows import Row


@dataclass(frozen=True)
class Groups:
    """How many groups there were, and how many carried no signal because all rewards are equal."""

    total: int
    zero_variance: int


def centred(
    rewards: Sequence[float], groups: Sequence[Hashable], *, scale: bool, eps: float
) -> np.ndarray:
    """Each reward minus its group's mean, over (std + eps) if `scale` (unbiased std).

    Groups are formed by value, never by position. A NaN reward is unknown: it enters no mean and its
    advantage is 0.
    """
    values = np.asarray(rewards, dtype=np.float64)
    result = np.zeros_like(values)
    members: dict[Hashable, list[int]] = defaultdict(list)
    for i, group in enumerate(groups):
        if not np.isnan(values[i]):
            members[group].append(i)
    for index in members.values():
        group = values[index]
        # The mean of equal rewards may differ from them by rounding, which is no signal.
        if (group == group[0]).all():
            continue
        deviation = group - group.mean()
        if scale:
            deviation = deviation / (group.std(ddof=1) + eps)
        result[index] = deviation
    return result


def group_key(row: Row, group_by: str, workflow: str, task: str) -> Hashable:
    """The group of a row; for `episode`, its problem."""
    if group_by == "released":
        group_by = "slot" if (workflow, task) == ("Voting", "Math") else "role"
    return {
        "episode": (row.problem,),
        "slot": (row.problem, row.role, row.slot),
        "role": (row.problem, row.role),
        "turn": (row.problem, row.role, row.turn),
    }[group_by]


def assign_advantages(
    rows: list[Row],
    settings: Advantage,
    workflow: str,
    task: str,
    episodes: Sequence[tuple[str, float]],
) -> Groups:
    """Fill in `advantage` of every row; rewards of a role's own kind are grouped by role.

    `episodes` are (problem, reward) of each, in the order that rows count them: one that failed before
    its first token leaves no row and still counts among those of its problem.
    """
    own = settings.reward == "role" and settings.group_by == "episode"
    keys = [group_key(row, "role" if own else settings.group_by, workflow, task) for row in rows]
    scale = settings.normalise == "std"
    if settings.group_by == "episode" and not own:
        # One value per episode, so that an episode with more calls does not weigh more.
        problems, rewards = zip(*episodes, strict=True)
        by_episode = centred(rewards, problems, scale=scale, eps=settings.eps)
        for row in rows:
            row.advantage = by_episode[row.episode]
        groups = count_groups(rewards, problems)
    else:
        rewards = [row.reward for row in rows]
        values = centred(rewards, keys, scale=scale, eps=settings.eps)
        for row, value in zip(rows, values, strict=True):
            row.advantage = value
        groups = count_groups(rewards, keys)
    if settings.per_role:
        values = centred(
            [row.advantage for row in rows],
            [row.role for row in rows],
            scale=True,
            eps=settings.eps,
        )
        for row, value in zip(rows, values, strict=True):
            row.advantage = value
    return groups


def count_groups(rewards: Sequence[float], groups: Sequence[Hashable]) -> Groups:
    """Groups among known rewards, and those whose rewards are all equal."""
    seen: dict[Hashable, set[float]] = defaultdict(set)
    for reward, group in zip(rewards, groups, strict=True):
        if not np.isnan(reward):
            seen[group].add(reward)
    return Groups(len(seen), sum(len(values) == 1 for values in seen.values()))
