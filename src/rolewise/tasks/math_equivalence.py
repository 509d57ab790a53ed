"""Equality of math answers as values."""

from math_verify import parse, verify


def equivalent(answer, truth):
    return verify(
        parse(f"${truth}$", parsing_timeout=None),
        parse(f"${answer}$", parsing_timeout=None),
        timeout_seconds=None,
    )
