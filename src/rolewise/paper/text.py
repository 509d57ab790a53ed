"""How numbers read in tables: rounded, with their interval, an em dash where there is none."""

from __future__ import annotations

import math

EM_DASH = "—"
MINUS = "−"


def number(value: float | None, digits: int = 1, signed: bool = False) -> str:
    """`value` with `digits` decimals and a true minus sign; an em dash for None and NaN."""
    if value is None or not math.isfinite(value):
        return EM_DASH
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.lstrip("+-")
    return text.replace("-", MINUS)


def compact(value: float | None) -> str:
    """Three significant digits at any magnitude: 0.00123, 12.3, 4560, 1.2e+07."""
    if value is None or not math.isfinite(value):
        return EM_DASH
    if value != 0 and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.1e}".replace("-", MINUS)
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return number(value, digits)


def grouped(value: float | None) -> str:
    """A count or an amount without decimals, thousands apart: 1,234,567."""
    return f"{value:,.0f}" if value is not None and math.isfinite(value) else EM_DASH


def interval(
    value: float | None, lo: float | None, hi: float | None, digits: int = 1, signed: bool = False
) -> str:
    """`value [lo, hi]`; without the brackets where there is no interval."""
    middle = number(value, digits, signed)
    if middle == EM_DASH or lo is None or hi is None or not math.isfinite(lo + hi):
        return middle
    return f"{middle} [{number(lo, digits, signed)}, {number(hi, digits, signed)}]"
