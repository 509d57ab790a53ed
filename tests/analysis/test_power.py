"""What the exact test could have found."""

import numpy as np
import pytest

from rolewise.analysis.power import detectable_difference, mcnemar_power, power_note
from rolewise.analysis.statistics import sign_p
from tests.configs import config


def test_power_is_the_share_of_studies_in_which_the_test_in_use_rejects():
    rng = np.random.default_rng(0)
    pairs = rng.binomial(60, 0.3, 4000)
    wins = rng.binomial(pairs, (1 + 0.15 / 0.3) / 2)
    rejected = [sign_p(int(w), int(d - w)) < 0.05 for w, d in zip(wins, pairs, strict=True)]
    assert mcnemar_power(60, 0.15, 0.3, 0.05) == pytest.approx(np.mean(rejected), abs=0.025)


@pytest.mark.parametrize("n", [6, 8, 20, 50])
def test_never_less_is_claimed_than_six_discordant_pairs_can_show(n):
    assert detectable_difference(n) >= 6 / n
    assert sign_p(6, 0) < 0.05 < sign_p(5, 0)


def test_more_problems_find_less_and_five_find_nothing():
    assert detectable_difference(5) is None
    found = [detectable_difference(n) for n in (10, 20, 100, 400)]
    assert found == sorted(found, reverse=True)
    assert mcnemar_power(200, detectable_difference(200), 0.2, 0.05) >= 0.8


def test_the_note_states_test_assumption_and_correction_and_is_silent_without_the_test():
    note = power_note(config(), 20)
    assert "exact McNemar" in note and "without Holm" in note and "20 % of the problems" in note
    assert "no difference is found" in power_note(config(), 4)
    assert power_note(config(settings={"seeds": [0, 1, 2]}), 200) == ""
    assert power_note(config(settings={"evaluation.samples": 4}), 200) == ""
