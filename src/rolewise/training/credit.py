"""What each call of an episode earns: the outcome of its episode, or its own role's merit."""

from __future__ import annotations

from collections.abc import Sequence

from rolewise.config import Config
from rolewise.sampling.episodes import CallKey, Episode
from rolewise.tasks.grade import Grade, reward_of
from rolewise.tasks.task import Task
from rolewise.workflows.base import Topology
from rolewise.workflows.judging import RoleCall, judge_calls, parsed_text


def broadcast(episodes: Sequence[Episode], rewards: Sequence[float]) -> list[dict[CallKey, float]]:
    """The outcome reward of an episode for every one of its calls (the paper)."""
    return [
        {record.call.key: reward for record in episode.calls}
        for episode, reward in zip(episodes, rewards, strict=True)
    ]


def by_role(
    episodes: Sequence[Episode],
    rewards: Sequence[float],
    task: Task,
    topology: Topology,
    config: Config,
) -> list[dict[CallKey, float]]:
    """Each call's own reward: an answer's grade, 1 or 0 for a verdict or a choice that is right or not.

    A call that gives nothing to be right about (a plan), and every call of an abnormal episode, keeps
    the outcome reward.
    """
    members = [
        [role_call(episode, record.call.key, record.text) for record in episode.calls]
        for episode in episodes
    ]
    asked = [
        (i, j)
        for i, calls in enumerate(members)
        for j, call in enumerate(calls)
        if call.kind == "answer"
    ]
    graded = task.grader.grade_many([(episodes[i].problem, members[i][j].text) for i, j in asked])
    grades: dict[tuple[int, int], Grade] = dict(zip(asked, graded, strict=True))
    result = broadcast(episodes, rewards)
    for i, episode in enumerate(episodes):
        if episode.abnormal:
            continue
        own = [grades.get((i, j)) for j in range(len(members[i]))]
        judged = judge_calls(members[i], own, topology.main_role)
        for record, grade, verdict in zip(episode.calls, own, judged, strict=True):
            if grade is not None:
                result[i][record.call.key] = reward_of(task.name, grade, config.reward)
            elif verdict.correct is not None:
                result[i][record.call.key] = float(verdict.correct)
    return result


def role_call(episode: Episode, key: CallKey, text: str) -> RoleCall:
    """A finished call as its judge sees it."""
    parsed = episode.parsed.get(key)
    return RoleCall(
        *key,
        text,
        None if parsed is None else parsed_text(parsed.value),
        bool(parsed and parsed.fallback),
        episode.outcome is not None and episode.outcome.graded == key,
    )
