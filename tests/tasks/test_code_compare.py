"""When an output is the expected one."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rolewise.sandbox.candidate import encode
from rolewise.tasks.code_compare import decimal_key, decode_value, same_output, same_value


@pytest.mark.parametrize(
    ("actual", "expected", "same"),
    [
        ("7", "7\n", True),
        ("7  \n8\n\n\n", "7\n8\n", True),
        ("  7", "7", True),
        ("1  2", "1 2", True),
        ("1\r\n2\r\n", "1\n2\n", True),
        ("1 2 3", "1 2\n3", False),
        ("\n7", "7", False),
        ("a\n\nb", "a\nb", False),
        ("7\x00", "7", False),
        ("7\u00a0", "7", False),
        ("YES", "Yes", False),
        ("1.5", "1.50", True),
        ("15e-1", "1.5", True),
        ("3", "3.0", True),
        ("3.0", "3", False),
        ("10", "0010", False),
        ("+7", "7", False),
        ("-0.0", "0.0", True),
        (".5", "0.5", True),
        ("0.30000000000000004", "0.3", False),
        ("nan", "nan", True),
        ("inf", "1e308", False),
        ("1_0.0", "10.0", False),
        ("", "", True),
        ("1e999999999", "1.0", False),
    ],
)
def test_same_output_without_a_tolerance(actual, expected, same):
    assert same_output(actual.encode(), expected.encode(), None) is same


@pytest.mark.parametrize(
    ("actual", "expected", "same"),
    [
        ("0.6666667", "0.666666666667", True),
        ("0.66667", "0.666666666667", False),
        ("2000000.5", "2000000.0", True),
        ("3", "3.0000001", True),
        ("1000001", "1000000", False),
        ("-0.0", "0.0", True),
        ("inf", "1e308", False),
        ("inf", "inf", True),
        ("nan", "1.0", False),
        ("1e400", "1e400", True),
        ("1e400", "2e400", False),
        ("1.0e400", "1e400", True),
        ("10e399", "1e400", True),
        ("-1.0e400", "1e400", False),
        ("x", "1.0", False),
        ("1.0 2.0", "1.0000001 2.0", True),
    ],
)
def test_same_output_within_a_tolerance(actual, expected, same):
    assert same_output(actual.encode(), expected.encode(), 1e-6) is same


@pytest.mark.parametrize(
    "output",
    [
        b"9" * 200_000,
        b"1e" + b"9" * 100_000,
        b"[" * 1_000_000,
        b"0." + b"0" * 1_000_000,
        b"\xff\xfe" * 500_000,
        b"1 " * 500_000,
        b"\n" * 1_000_000,
        "\ud800".encode("utf-8", "surrogatepass"),
    ],
)
@pytest.mark.timeout(30)
def test_hostile_output_neither_passes_nor_hangs(output):
    for tolerance in (None, 1e-6):
        assert not same_output(output, b"1.5\n", tolerance)


def returned(value):
    return decode_value(json.dumps([encode(value)]).encode())


class Loose(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


@pytest.mark.parametrize(
    ("value", "expected", "same"),
    [
        (6, 6, True),
        (6.0, 6, True),
        (True, 1, True),
        ("6", 6, False),
        (None, None, True),
        (0, None, False),
        (None, 0, False),
        ((3, 8), [3, 8], True),
        ([(1, 2), (3,)], [[1, 2], [3]], True),
        ({3, 8}, [3, 8], False),
        (iter([3, 8]), [3, 8], False),
        ({"a": [1]}, {"a": [1]}, True),
        ({1: "x"}, {"1": "x"}, True),
        ({"a": 1, "b": 2}, {"a": 1}, False),
        (10**30, 10**30, True),
        (10**30 + 1, 10**30, False),
        (2**53 + 1, 2**53, False),
        (math.inf, math.inf, True),
        (math.nan, math.nan, True),
        (math.nan, 1.0, False),
        (Loose(999), 6, False),
        (Loose(6), 6, True),
        (b"ab", "ab", False),
        ("\ud800", "\ud800", True),
        (0.1 + 0.2, 0.3, False),
        ({"": "int", "v": "6"}, 6, False),
    ],
)
def test_same_value(value, expected, same):
    assert same_value(returned(value), expected, None) is same


def test_a_tolerance_holds_for_floats_anywhere_in_a_value():
    assert same_value(returned([0.1 + 0.2, 5]), [0.3, 5], 1e-9)
    assert not same_value(returned([0.31, 5]), [0.3, 5], 1e-9)
    assert not same_value(returned([0.3, 6]), [0.3, 5], 0.5)
    assert not same_value(returned(10**400), 1.5, 1e-6)


def test_a_value_nested_too_deeply_equals_nothing():
    deep = expected = []
    for _ in range(100):
        deep, expected = [deep], [expected]
    assert not same_value(returned(deep), expected, None)
    with pytest.raises(ValueError, match="nested"):
        decode_value(b"[" * 100_000)


numbers = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30)


@given(numbers, numbers)
@settings(max_examples=200, deadline=None)
def test_decimal_keys_are_equal_exactly_for_equal_numbers(a, b):
    keys = [decimal_key(str(number).encode()) for number in (a, b)]
    assert (keys[0] == keys[1]) == (a == b)


@given(st.binary(max_size=200), st.binary(max_size=200), st.sampled_from([None, 1e-6]))
@settings(max_examples=300, deadline=None)
def test_comparison_never_fails_and_any_output_equals_itself(actual, expected, tolerance):
    assert same_output(actual, actual, tolerance)
    assert same_output(actual, expected, tolerance) in (True, False)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(json_values)
@settings(max_examples=200, deadline=None)
def test_every_json_value_equals_itself_after_the_journey(value):
    assert same_value(returned(value), value, None)


@given(st.binary(max_size=100) | json_values.map(lambda v: json.dumps(v).encode()), json_values)
@settings(max_examples=300, deadline=None)
def test_forged_result_lines_are_values_or_value_errors(line, expected):
    try:
        value = decode_value(line)
    except ValueError:
        return
    assert same_value(value, expected, 1e-6) in (True, False)
