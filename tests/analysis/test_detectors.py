import numpy as np
import pytest

from rolewise.analysis import detectors
from rolewise.analysis.statistics import Interval


def outcomes(solved: int, n: int = 200) -> np.ndarray:
    return (np.arange(n) < solved).astype(float)


def test_a_fall_of_ten_points_is_a_cliff_and_carries_its_interval():
    found = detectors.cliff(outcomes(120), outcomes(100), drop=0.05)
    assert found.verdict
    assert found.drop.value == pytest.approx(0.1)
    assert 0 < found.drop.lo < 0.1 < found.drop.hi


def test_a_fall_below_the_threshold_is_no_cliff_however_certain():
    assert not detectors.cliff(outcomes(109), outcomes(100), drop=0.05).verdict


def test_a_fall_at_the_threshold_is_a_cliff():
    assert detectors.cliff(outcomes(110), outcomes(100), drop=0.05).verdict


def test_a_large_fall_that_could_be_chance_is_no_cliff():
    rng = np.random.default_rng(0)
    peak, terminal = rng.permutation(outcomes(11, 20)), rng.permutation(outcomes(9, 20))
    found = detectors.cliff(peak, terminal, drop=0.05)
    assert found.drop.value == pytest.approx(0.1) and not found.drop.excludes_zero
    assert not found.verdict


def test_a_rise_is_no_cliff():
    assert not detectors.cliff(outcomes(100), outcomes(120), drop=0.0).verdict


def test_the_plateau_starts_where_nothing_is_gained_any_more():
    found = detectors.plateau([10, 20, 30, 40, 50], [0.2, 0.4, 0.59, 0.6, 0.58])
    assert found.step == 30
    assert found.level == pytest.approx(0.59)


def test_a_curve_that_still_rises_has_no_plateau():
    assert detectors.plateau([10, 20, 30], [0.2, 0.4, 0.6]) is None


def test_a_fall_after_the_plateau_does_not_undo_it():
    assert detectors.plateau([10, 20, 30, 40], [0.2, 0.6, 0.6, 0.1]).step == 20


def test_entropy_collapse_by_hand():
    found = detectors.entropy_collapse([1, 2, 3, 4], [2.0, np.nan, 0.1, 0.5])
    assert found.depth == pytest.approx(0.95)
    assert found.step == 3 and found.verdict
    assert not detectors.entropy_collapse([1, 2], [2.0, 0.3]).verdict
    assert detectors.entropy_collapse([1, 2], [np.nan, np.nan]) is None


def test_capture_needs_distance_and_certainty():
    assert detectors.captured(Interval(0.7, 0.4, 0.9, 100))
    assert not detectors.captured(Interval(0.4, 0.2, 0.6, 100))
    assert not detectors.captured(Interval(0.7, -0.1, 1.4, 10))
    assert not detectors.captured(Interval(None, None, None, 0))


def test_a_plateau_is_found_beside_steps_without_a_value():
    nan = float("nan")
    assert detectors.plateau([0, 1, 2, 3, 4], [0.1, nan, 0.5, 0.5, nan]) == detectors.plateau(
        [0, 2, 3], [0.1, 0.5, 0.5]
    )


def test_a_gain_of_exactly_the_tolerance_is_none():
    assert detectors.plateau([0, 1], [0.5, 0.52], tolerance=0.02).step == 0
    assert detectors.plateau([0, 1], [0.5, 0.521], tolerance=0.02) is None
