"""Equality of math answers as text."""

from fractions import Fraction
import re


def compare_plain(answer, truth, *, exact):
    a, b = answer.strip(), truth.strip()
    if a == b:
        return True
    if exact:
        return False
    if re.fullmatch(r"-?\d+", a) and re.fullmatch(r"-?\d+", b):
        return int(a) == int(b)
    return None
