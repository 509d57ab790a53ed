r"""Reads a tidied formula into sympy with the parser of math-verify; runs in a worker."""

from __future__ import annotations

import re

import sympy as sp
from latex2sympy2_extended import NormalizationConfig
from latex2sympy2_extended.latex2sympy2 import ConversionConfig, _Latex2Sympy
from latex2sympy2_extended.math_normalization import normalize_latex

_NORMAL = NormalizationConfig(basic_latex=True, boxed="none")
_CONVERSION = ConversionConfig(lowercase_symbols=False, interpret_as_mixed_fractions=False)
_MIXED = re.compile(r"(?<![\w.}^_)])(\d+)\s*(?:\\frac\{(\d+)\}\{(\d+)\}|\s(\d+)/(\d+))")
_CYCLE = re.compile(r"(?<![\d.])(\d*)\.(\d*)\\overline\{(\d+)\}")
_DECIMAL = re.compile(r"(?<![\d.])(\d*)\.(\d+)(?![\d.])")
_DEGREES = re.compile(r"(\d+(?:\.\d+)?)\s*\^\s*\\circ(?![A-Za-z])")
_SCIENTIFIC = re.compile(r"(?<![\w.])(\d+(?:\.\d*)?|\.\d+)[eE]([-+]?\d{1,3})(?![\w.])")
_EXTREME = re.compile(r"\\(max|min|gcd|lcm)\s*\\\{([^{}]*)\\\}")


class _Parser(_Latex2Sympy):
    """The parser without its sums of integers side by side: `2(3)` is 6, mixed numbers are no calls."""

    def convert_postfix_list(self, arr: list, i: int = 0) -> object:
        """The product of factors written side by side."""
        factors = [self.convert_postfix(factor) for factor in arr[i:]]
        if not all(isinstance(factor, sp.Basic | sp.MatrixBase) for factor in factors):
            return super().convert_postfix_list(arr, i)
        product = factors.pop()
        while factors:
            factor = factors.pop()
            matrix = getattr(factor, "is_Matrix", False) or getattr(product, "is_Matrix", False)
            product = (self.mat_mul_flat if matrix else self.mul_flat)(factor, product)
        return product


def parse_tex(tex: str) -> sp.Basic | sp.MatrixBase | None:
    """The sympy object that a tidied formula denotes, letters as symbols; None if unreadable."""
    if not tex or "\\text{" in tex or "\\ldots" in tex:
        return None
    tex = _SCIENTIFIC.sub(r"(\1\\cdot 10^{\2})", tex)
    tex = _MIXED.sub(lambda m: f"({m[1]}+\\frac{{{m[2] or m[4]}}}{{{m[3] or m[5]}}})", tex)
    # Two numbers with a blank are no product, and a numeral with a base is no number with an index.
    if re.search(r"\d\s+\d|\d\s*_", tex):
        return None
    tex = re.sub(r"(?<![\\A-Za-z])([A-Za-z])(\d+)", r"\1_{\2}", tex)
    tex = re.sub(r"([A-Za-z])('+)", lambda m: f"{m[1]}_{{prime{len(m[2])}}}", tex)
    tex = _EXTREME.sub(r"\\\1(\2)", tex)
    tex = _DEGREES.sub(r"(\\frac{\1\\pi}{180})", tex).replace(r"^\circ", r"\cdot\frac{\pi}{180}")
    tex = _CYCLE.sub(_cycle, tex)
    tex = _DECIMAL.sub(
        lambda m: f"(\\frac{{{int((m[1] or '0') + m[2])}}}{{1{'0' * len(m[2])}}})", tex
    )
    tex = re.sub(r"\\%", r"\\cdot\\frac{1}{100}", tex)
    try:
        value = _Parser(config=_CONVERSION).parse(normalize_latex(tex, _NORMAL))
    except Exception:  # the parser raises bare Exception on malformed input
        return None
    return value if isinstance(value, sp.Basic | sp.MatrixBase) else None


def _cycle(match: re.Match[str]) -> str:
    """`0.1\\overline{6}` as a fraction."""
    head, fixed, cycle = match.groups()
    low, high = int((head or "0") + fixed), int((head or "0") + fixed + cycle)
    return f"(\\frac{{{high - low}}}{{{10 ** len(fixed) * (10 ** len(cycle) - 1)}}})"
