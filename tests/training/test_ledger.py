"""The ledger's arithmetic on vectors whose answers are known by hand."""

import math

import numpy as np
import pytest
import torch

from rolewise.training.ledger import coherence, ledger_rows, role_shares


def test_shares_are_projections_and_sum_to_one():
    shares = role_shares({"a": torch.tensor([3.0, 0.0]), "b": torch.tensor([0.0, 4.0])})
    assert shares["a"].norm == 3 and shares["b"].norm == 4
    assert shares["a"].share == pytest.approx(9 / 25) and shares["b"].share == pytest.approx(
        16 / 25
    )
    assert shares["a"].mass == pytest.approx(3 / 7)


def test_an_opposing_role_has_a_negative_share():
    shares = role_shares({"a": torch.tensor([2.0]), "b": torch.tensor([-1.0])})
    assert shares["a"].share == 2 and shares["b"].share == -1


def test_shares_of_nothing_are_undefined():
    shares = role_shares({"a": torch.zeros(2)})
    assert math.isnan(shares["a"].share) and math.isnan(shares["a"].mass)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_equal_slots_are_fully_coherent_and_orthogonal_ones_one_over_n(n):
    equal = coherence({(s, 0): torch.tensor([1.0, 2.0]) for s in range(n)}, 10, 0)
    assert equal.value == pytest.approx(1) and equal.amplification == pytest.approx(n)
    eye = torch.eye(n)
    orthogonal = coherence({(s, 0): eye[s] for s in range(n)}, 10, 0)
    assert orthogonal.value == pytest.approx(1 / n)
    assert orthogonal.amplification == pytest.approx(math.sqrt(n))


def slots_and_blocks(seed, by_block=0.0, common=0.0, slots=3, blocks=4, size=2000):
    """Random gradients by (slot, block) with a share of directions of their block and of all."""
    generator = torch.Generator().manual_seed(seed)
    own = torch.randn(slots, blocks, size, generator=generator)
    own = own + by_block * torch.randn(blocks, size, generator=generator)
    own = own + common * torch.randn(size, generator=generator)
    return {(s, b): own[s, b] for s in range(slots) for b in range(blocks)}


def test_independent_slots_are_as_coherent_as_their_null():
    found = [coherence(slots_and_blocks(seed), 200, seed) for seed in range(200)]
    above = np.mean([f.within > f.null_high for f in found])
    assert 0.01 < above < 0.12
    for values in ([f.within for f in found], [f.null_mean for f in found]):
        assert np.mean(values) == pytest.approx(1 / 3, abs=0.003)


@pytest.mark.parametrize("slots", [2, 3, 5])
@pytest.mark.parametrize("blocks", [4, 6])
def test_slots_that_share_the_direction_of_their_block_lie_above_the_null(slots, blocks):
    parts = slots_and_blocks(0, by_block=1.0, slots=slots, blocks=blocks)
    found = coherence(parts, 200, 0)
    assert found.within == pytest.approx((slots + 1) / (2 * slots), abs=0.05)
    assert found.within > found.null_high + 0.05
    # Some shuffles leave slots in place, which lifts the null by a share of them.
    assert found.null_mean == pytest.approx(
        1 / slots + (found.within - 1 / slots) / blocks, abs=0.05
    )


def test_a_direction_common_to_all_blocks_is_coherence_without_a_shared_episode():
    found = coherence(slots_and_blocks(0, common=5.0), 200, 0)
    assert found.value > 0.95
    assert found.within == pytest.approx(found.null_mean, abs=0.01)


def test_a_slot_without_gradients_in_a_block_counts_as_zero_there():
    parts = slots_and_blocks(0, by_block=1.0)
    zero = parts | {(1, 2): torch.zeros(2000)}
    del parts[1, 2]
    assert coherence(parts, 50, 0) == coherence(zero, 50, 0)


def test_one_block_has_no_null_and_one_slot_no_coherence():
    found = coherence({(0, 0): torch.ones(2), (1, 0): torch.ones(2)}, 10, 0)
    assert found.value == pytest.approx(1) and found.slots == 2
    assert math.isnan(found.within) and math.isnan(found.null_high)
    assert coherence({(0, 0): torch.ones(2), (0, 1): torch.ones(2)}, 10, 0) is None


def test_rows_hold_cosines_deltas_and_layers():
    roles = {"a": torch.tensor([1.0, 0.0]), "b": torch.tensor([1.0, 1.0])}
    rows = ledger_rows(
        7, "shared", roles, {}, torch.tensor([-0.5, 0.0]), {0: [slice(0, 1)], 1: [slice(1, 2)]}
    )
    values = {(r["level"], r["a"], r["b"], r["quantity"]): r["value"] for r in rows}
    assert values["role", "a", "b", "cosine"] == pytest.approx(math.sqrt(0.5))
    assert values["role", "a", "", "delta"] == pytest.approx(0.5)
    assert values["layer", "b", "1", "norm"] == 1 and values["layer", "a", "1", "norm"] == 0
    assert all(r["step"] == 7 and r["adapter"] == "shared" for r in rows)
