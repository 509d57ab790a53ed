"""Pairs of answers that are, or are not, equivalent; one line of the file is one rule's example."""

from pathlib import Path

import pytest

from rolewise.tasks.math_equivalence import equivalent
from rolewise.tasks.math_text import compare_plain
from rolewise.tasks.math_values import TooLarge

LINES = Path("tests/cases/math_pairs.txt").read_text().splitlines()[1:]
PAIRS = [line.split("\t") for line in LINES]


@pytest.mark.parametrize(("answer", "relation", "truth"), PAIRS, ids=LINES)
def test_pair_is_decided_rightly(answer, relation, truth):
    expected = relation == "="
    assert equivalent(answer, truth) is expected
    assert compare_plain(answer, truth, exact=False) in (None, expected)


@pytest.mark.parametrize("answer", [a for a, relation, _ in PAIRS if relation == "="])
def test_every_readable_answer_equals_itself_respaced(answer):
    assert equivalent(f" {answer}\n", answer)


@pytest.mark.parametrize("answer", [r"9^{9^{9^{9}}}", r"(10^8)!", "10**10**10", r"3^{10^{9}}+x"])
def test_what_no_time_suffices_to_evaluate_is_refused(answer):
    with pytest.raises(TooLarge):
        equivalent(answer, "5")


def test_deep_nesting_is_compared_as_text():
    deep = "(" * 500 + "1" + ")" * 500
    assert not equivalent(deep, "1")
    assert equivalent(deep, deep)
