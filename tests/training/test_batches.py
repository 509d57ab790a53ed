"""Rows into mini-batches and micro-batches: nothing lost, budgets kept."""

import numpy as np
import pytest

from rolewise.config import Update
from rolewise.training.batches import microbatches, minibatches
from rolewise.training.rows import Row


def rows(lengths):
    return [
        Row(
            role="generator", slot=0, turn=0, adapter="a", episode=i, problem=str(i),
            prompt_ids=(i % 3,) * 4, completion_ids=(1,) * n, old_logprobs_T=np.zeros(n), reward=0.0,
        )
        for i, n in enumerate(lengths)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "sizes"),
    [
        (Update(minibatch=4), [4, 6]),
        (Update(minibatch=4, remainder="kept"), [4, 4, 2]),
        (Update(minibatch=16), [10]),
        (Update(minibatch=4, steps="one_per_adapter"), [10]),
    ],
)
def test_minibatches_hold_every_row_once(settings, sizes):
    all_rows = rows(range(1, 11))
    batches = minibatches(all_rows, settings, seed=1)
    assert [len(b) for b in batches] == sizes
    assert sorted(r.episode for b in batches for r in b) == list(range(10))


def test_shuffling_is_a_matter_of_the_seed():
    order = [[r.episode for r in minibatches(rows([1] * 20), Update(), s)[0]] for s in (1, 1, 2)]
    assert order[0] == order[1] != order[2]


def test_by_length_sorts():
    (batch,) = minibatches(rows([5, 1, 9]), Update(order="by_length"), 0)
    assert [r.tokens for r in batch] == [1, 5, 9]


def test_microbatches_keep_the_budget_counting_shared_prompts_once():
    groups = microbatches(rows([10] * 12), 60)
    assert sum(map(len, groups)) == 12
    for group in groups:
        cost = sum(r.tokens for r in group) + 4 * len({r.prompt_ids for r in group})
        assert cost <= 60


def test_a_row_over_the_budget_is_a_group_of_its_own():
    assert [len(g) for g in microbatches(rows([100, 100]), 10)] == [1, 1]


def test_no_rows_no_batches():
    assert minibatches([], Update(), 0) == [] and microbatches([], 10) == []
