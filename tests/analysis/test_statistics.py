import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from rolewise.analysis import statistics as st
from rolewise.errors import RolewiseError


@pytest.mark.parametrize("p", [0.2, 0.5])
def test_the_bootstrap_interval_of_a_rate_covers_it_in_95_percent_of_data_sets(p):
    data_PK = np.random.default_rng(3).random((200, 2500)) < p
    mean, lo, hi = st.bootstrap_means(data_PK, 2000)
    assert np.allclose(mean, data_PK.mean(axis=0))
    coverage = np.mean((lo <= p) & (p <= hi))
    assert 0.93 <= coverage <= 0.97


@pytest.mark.parametrize(("p", "q"), [(0.2, 0.3), (0.5, 0.5)])
def test_the_paired_interval_covers_the_difference_of_two_rates(p, q):
    rng = np.random.default_rng(4)
    shared = rng.random((200, 2000))
    mixed = np.where(rng.random((200, 2000)) < 0.5, shared, rng.random((200, 2000)))
    difference = (mixed < q).astype(float) - (shared < p)
    _, lo, hi = st.bootstrap_means(difference, 2000)
    assert 0.93 <= np.mean((lo <= q - p) & (q - p <= hi)) <= 0.97


def test_the_interval_agrees_with_scipys_bootstrap_up_to_the_expansion():
    values = np.random.default_rng(0).normal(size=300)
    ours = st.mean_interval(values, 20000)
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=20000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert ours.value == pytest.approx(values.mean())
    assert ours.lo == pytest.approx(theirs.low, abs=0.01)
    assert ours.hi == pytest.approx(theirs.high, abs=0.01)


def test_equal_input_gives_equal_intervals():
    values = np.random.default_rng(0).random(50)
    assert st.mean_interval(values) == st.mean_interval(values)


def test_a_rate_never_seen_still_has_an_upper_end():
    found = st.mean_interval(np.zeros(100))
    wilson = stats.binomtest(0, 100).proportion_ci(method="wilson")
    assert (found.value, found.lo) == (0, 0)
    assert found.hi == pytest.approx(wilson.high)
    always = st.mean_interval(np.ones(100))
    assert always.lo == pytest.approx(1 - wilson.high) and always.hi == 1


def test_pairing_removes_what_both_sides_share():
    base = np.random.default_rng(0).random(100)
    paired = st.paired_interval(base + 0.1 + 1e-9 * base, base)
    assert paired.value == pytest.approx(0.1, abs=1e-6)
    assert paired.hi - paired.lo < 1e-6
    with pytest.raises(RolewiseError, match="3 with 2"):
        st.paired_interval(np.ones(3), np.ones(2))


def test_no_difference_at_all_leaves_room_for_an_unseen_one():
    found = st.paired_interval(np.ones(50), np.ones(50))
    assert found.lo == -found.hi < 0 < found.hi < 0.1


def test_a_ratio_counts_only_problems_that_contribute():
    found = st.ratio_interval([1, 0, 2, 0], [2, 1, 3, 0], 500)
    assert found.value == pytest.approx(3 / 6)
    assert found.n == 3
    assert found.lo <= 0.5 <= found.hi
    assert st.ratio_interval([0, 0], [0, 0]).value is None


def test_a_ratio_to_which_one_problem_contributes_has_no_interval():
    assert st.ratio_interval([1, 0, 0], [2, 0, 0]) == st.Interval(0.5, None, None, 1)
    assert st.ratio_interval([1, 2, 0], [2, 3, 0]).lo is not None


def test_seeds_are_compared_by_a_paired_t_and_two_decide_nothing():
    a, b = np.array([0.5, 0.6, 0.55, 0.7]), np.array([0.4, 0.52, 0.5, 0.5])
    found = st.seed_interval(a - b)
    expected = stats.ttest_rel(a, b).confidence_interval()
    assert (found.lo, found.hi) == pytest.approx((expected.low, expected.high))
    assert st.seed_interval(np.array([0.1, 0.2])) is None


def test_paired_p_is_mcnemar_for_outcomes_and_t_for_means():
    a, b = np.array([1] * 8 + [0] * 2 + [1] * 5), np.array([0] * 8 + [1] * 2 + [1] * 5)
    assert st.paired_p(a, b) == pytest.approx(stats.binomtest(8, 10).pvalue)
    x, y = np.array([0.1, 0.5, 0.3, 0.9]), np.array([0.2, 0.1, 0.1, 0.4])
    assert st.paired_p(x, y) == pytest.approx(stats.ttest_rel(x, y).pvalue)
    assert st.paired_p(a, a) == 1
    assert st.sign_p(9, 1) == pytest.approx(stats.binomtest(9, 10).pvalue)
    assert st.sign_p(0, 0) == 1


def test_equal_differences_are_judged_by_their_signs():
    assert st.paired_p([0.5], [0.2]) == st.paired_p([1], [0]) == 1
    assert st.paired_p([0.5] * 6, [0.25] * 6) == pytest.approx(2 / 2**6)
    with pytest.raises(RolewiseError, match="3 with 1"):
        st.paired_p([0.1, 0.2, 0.3], [0.1])


def test_the_interval_of_a_difference_turns_round_with_its_sides():
    always, never = np.ones(40), np.zeros(40)
    gain, loss = st.paired_interval(always, never), st.paired_interval(never, always)
    assert (gain.lo, gain.hi) == pytest.approx((-loss.hi, -loss.lo))
    assert loss.lo == -1 < loss.hi < 0


def test_pass_at_k_by_hand():
    # C(2,2)/C(4,2) = 1/6 of the pairs hold no correct sample
    assert st.pass_at_k([2, 0, 4], [4, 4, 4], 2) == pytest.approx([5 / 6, 0, 1])
    assert st.pass_at_k([1], [4], 1) == pytest.approx([0.25])


def test_pass_at_k_is_exact_for_few_samples_and_finite_for_many():
    for n in (1, 7, 30):
        for k in range(1, n + 1):
            exact = [1 - math.comb(n - c, k) / math.comb(n, k) for c in range(n + 1)]
            assert st.pass_at_k(np.arange(n + 1), np.full(n + 1, n), k) == pytest.approx(
                exact, abs=1e-12
            )
    assert st.pass_at_k([1, 3, 1001], [2000] * 3, 1000) == pytest.approx(
        [0.5, float(1 - Fraction(math.comb(1997, 1000), math.comb(2000, 1000))), 1], abs=1e-12
    )


def test_pass_at_k_beyond_the_samples_is_an_error():
    with pytest.raises(RolewiseError, match=r"pass@5 needs at least 5 samples.*found 4"):
        st.pass_at_k([1, 2], [8, 4], 5)


def test_holm_by_hand():
    # sorted 0.01*4, 0.02*3, 0.03*2, 0.5*1, then made monotone
    assert st.holm([0.03, 0.01, 0.5, 0.02]) == pytest.approx([0.06, 0.04, 0.5, 0.06])
    assert st.holm([0.9, 0.8]) == pytest.approx([1, 1])


def test_a_share_has_its_wilson_interval():
    found = st.share_interval(9, 12)
    expected = stats.binomtest(9, 12).proportion_ci(method="wilson")
    assert (found.value, found.lo, found.hi) == (0.75, expected.low, expected.high)
