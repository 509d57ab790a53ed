"""The ledger's arithmetic on vectors whose answers are known by hand."""

import math

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


def test_the_null_shuffles_slots_within_blocks():
    # Two slots that pull apart in every block: shuffling mixes them, so the null is above.
    parts = {(s, b): torch.tensor([1.0 - 2 * s, 0.1]) for s in range(2) for b in range(6)}
    found = coherence(parts, 200, 0)
    assert found.value < found.null_mean <= found.null_high


def test_one_slot_has_no_coherence():
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
