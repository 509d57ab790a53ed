"""Advantages: groups by identity, unbiased spread, unknown rewards, switches of the group."""

import numpy as np
import pytest

from rolewise.config import Advantage
from rolewise.training.advantages import assign_advantages, centred, count_groups
from rolewise.training.rows import Row


def row(role, slot, episode, problem, reward, turn=0):
    return Row(
        role=role, slot=slot, turn=turn, adapter="a", episode=episode, problem=problem,
        prompt_ids=(1,), completion_ids=(2,), old_logprobs_T=np.zeros(1), reward=reward,
    )  # fmt: skip


def outcomes(rows):
    """(problem, reward) of every episode."""
    return list({r.episode: (r.problem, r.reward) for r in rows}.values())


def test_groups_are_formed_by_problem_not_by_position():
    got = centred([1, 1, 0, 1], ["p1", "p2", "p1", "p2"], scale=False, eps=0)
    assert got.tolist() == [0.5, 0, -0.5, 0]
    rewards = [1, 0, 1, 0, 0, 1, 1, 1, 1, 0, 1, 1]
    got = centred(rewards, list("abc") * 4, scale=False, eps=0)
    assert got.tolist() == [0.5, -0.5, 0, -0.5, -0.5, 0, 0.5, 0.5, 0, -0.5, 0.5, 0]


def test_the_spread_is_the_unbiased_one():
    assert centred([1, 0, 0, 0], [0] * 4, scale=True, eps=0).tolist() == [1.5, -0.5, -0.5, -0.5]


def test_an_unknown_reward_enters_no_mean_and_gets_no_advantage():
    got = centred([1, float("nan"), 0, 1], [0] * 4, scale=True, eps=0)
    assert got == pytest.approx([0.5773503, 0, -1.1547005, 0.5773503])


def test_the_rounding_of_a_mean_is_no_signal():
    rewards = [0.1] * 24
    assert np.mean(rewards) != 0.1
    assert centred(rewards, [0] * 24, scale=True, eps=0).tolist() == [0] * 24


def test_a_group_of_one_or_of_equal_rewards_has_no_signal():
    assert centred([1, 0.5, 0.5], ["a", "b", "b"], scale=True, eps=0).tolist() == [0, 0, 0]
    assert vars(count_groups([1, 0.5, 0.5, 0], ["a", "b", "b", "a"])) == {
        "total": 2,
        "zero_variance": 1,
    }


def test_every_call_of_an_episode_gets_the_advantage_of_its_episode():
    # Episode 0 has three calls and episode 1 one: the baseline must still be their plain mean.
    rows = [row("generator", 0, 0, "p", 1), row("evaluator", 0, 0, "p", 1)]
    rows += [row("generator", 0, 0, "p", 1, turn=1), row("generator", 0, 1, "p", 0)]
    assign_advantages(rows, Advantage(normalise="none"), "Eval-Opt", "Math", outcomes(rows))
    assert [r.advantage for r in rows] == [0.5, 0.5, 0.5, -0.5]


def test_an_episode_without_a_row_still_counts_among_those_of_its_problem():
    rows = [row("generator", 0, 0, "p", 1), row("generator", 0, 2, "p", 1)]
    failed = [("p", 1.0), ("p", -0.5), ("p", 1.0)]
    groups = assign_advantages(rows, Advantage(normalise="none"), "Single", "Math", failed)
    assert [r.advantage for r in rows] == [0.5, 0.5]
    assert vars(groups) == {"total": 1, "zero_variance": 0}


def voting_rows():
    return [
        row(role, slot, episode, "p", reward)
        for episode, reward in ((0, 1.0), (1, 0.0), (2, 0.0))
        for role, slot in (("generator", 0), ("generator", 1), ("aggregator", 0))
    ]


@pytest.mark.parametrize(
    ("group_by", "workflow", "task", "groups"),
    [
        ("episode", "Voting", "Math", 1),
        ("slot", "Voting", "Math", 3),
        ("role", "Voting", "Math", 2),
        ("turn", "Voting", "Math", 2),
        ("released", "Voting", "Math", 3),
        ("released", "Voting", "Code", 2),
        ("released", "Orch-Workers", "Math", 2),
    ],
)
def test_the_group_is_what_the_switch_says(group_by, workflow, task, groups):
    rows = voting_rows()
    counted = assign_advantages(rows, Advantage(group_by=group_by), workflow, task, outcomes(rows))
    assert counted.total == groups
    for role in ("generator", "aggregator"):
        assert sum(r.advantage for r in rows if r.role == role) == pytest.approx(0, abs=1e-9)


def test_agent_wise_normalisation_gives_every_role_unit_spread():
    rows = voting_rows()
    assign_advantages(rows, Advantage(per_role=True, eps=0), "Voting", "Math", outcomes(rows))
    for role in ("generator", "aggregator"):
        values = [r.advantage for r in rows if r.role == role]
        assert np.mean(values) == pytest.approx(0, abs=1e-9)
        assert np.std(values, ddof=1) == pytest.approx(1)


def test_own_rewards_are_compared_within_the_role():
    rows = [row("generator", 0, e, "p", e % 2) for e in range(4)]
    rows += [row("aggregator", 0, e, "p", 1.0) for e in range(4)]
    assign_advantages(rows, Advantage(reward="role"), "Voting", "Math", outcomes(rows))
    assert all(r.advantage == 0 for r in rows[4:])
    assert {round(r.advantage, 3) for r in rows[:4]} == {0.866, -0.866}
