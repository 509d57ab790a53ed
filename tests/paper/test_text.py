import math

import pytest

from rolewise.paper.text import EM_DASH, compact, interval, number


@pytest.mark.parametrize("gap", [None, math.nan, math.inf])
def test_what_is_missing_reads_as_an_em_dash(gap):
    assert number(gap) == compact(gap) == interval(gap, 0, 1) == EM_DASH


def test_numbers_are_rounded_and_signed():
    assert number(12.34) == "12.3"
    assert number(12.34, signed=True) == "+12.3"
    assert number(-0.04) == "0.0"
    assert number(-1.25, 2) == "−1.25"


def test_compact_keeps_three_digits_at_every_magnitude():
    shown = [compact(x) for x in (0.0, 0.0123, 1.234, 12.34, 1234.4, 1.2e7, -3e-6)]
    assert shown == ["0.000", "0.012", "1.23", "12.3", "1234", "1.2e+07", "−3.0e−06"]


def test_an_interval_without_ends_is_its_value():
    assert interval(1, math.nan, 2) == "1.0"
    assert interval(1, None, None) == "1.0"
    assert interval(1, -2, 4, signed=True) == "+1.0 [−2.0, +4.0]"
