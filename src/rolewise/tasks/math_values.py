r"""Equality of two formulas as values, exact or by evaluation at many digits; runs in a worker.

math-verify's parser reads the formulas. Its own comparison rounds to six places and to 15 digits,
which takes 1/11 for 0.0909090909 and loses values below 1e-15, so numbers are compared here and only
what is no number or function is left to `math_verify.verify`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import sympy as sp
from math_verify import verify

from rolewise.tasks.math_parser import parse_tex

DIGITS = 60
MOST_DIGITS = 3_000
MOST_BITS = 4_000_000
# What sympy raises of a formula that it cannot compute; the last says that it has no method for one.
UNSOLVED = (TypeError, ValueError, ArithmeticError, AttributeError, KeyError, NotImplementedError)
# Fixed sample points without special relations, the same in every run.
_POSITIVE = [sp.Rational(p, 10**4) for p in (23417, 5093, 71861, 9241)]
_SIGNED = [sp.Rational(p, 10**4) for p in (-13879, -42643, -6607, 31277)]
_STEPS = [sp.Rational(p, 10**4) for p in (3331, 7907, 12553, 4787, 15859)]
_INTEGERS = (3, 8, 5, 12, 7, 10)
_INDEX_NAMES = set("nmkjNMK")


class TooLarge(Exception):
    """A value that cannot be computed within any sensible time, such as a power tower."""


def parse_value(tex: str) -> sp.Basic | None:
    """The sympy object that a tidied formula denotes, None if it cannot be read."""
    value = parse_tex(tex)
    if isinstance(value, sp.Expr):
        value = value.subs({sp.Symbol("i"): sp.I, sp.Symbol("e"): sp.E})
        value = value.replace(_is_odd_root, _real_root)
    return value


def _is_odd_root(node: sp.Basic) -> bool:
    return (
        isinstance(node, sp.Pow)
        and isinstance(node.exp, sp.Rational)
        and node.exp.q > 1
        and node.exp.q % 2 == 1
        and node.base.is_negative is True
    )


def _real_root(root: sp.Pow) -> sp.Expr:
    """The real one of the odd roots of a negative number; sympy's own is complex."""
    return (-1) ** root.exp.p * (-root.base) ** root.exp


def same_value(answer: str, truth: str) -> bool:
    """Whether two formulas denote the same value; unreadable ones equal nothing. Raises TooLarge."""
    a, t = parse_value(answer), parse_value(truth)
    if a is None or t is None:
        return False
    matrices = [
        isinstance(value, sp.MatrixBase | sp.MatrixExpr) or value.has(sp.MatrixBase)
        for value in (a, t)
    ]
    if matrices[0] != matrices[1]:
        return False
    if not (isinstance(a, sp.Expr) and isinstance(t, sp.Expr)) or matrices[0]:
        return bool(verify(t, a, float_rounding=15, numeric_precision=DIGITS, timeout_seconds=None))
    if is_huge(a) or is_huge(t):
        if a == t:
            return True
        raise TooLarge
    a, t = _done(a), _done(t)
    if a is None or t is None:
        return False
    constant = integration_constant(t)
    if constant is not None:
        return _same_family(a, t, constant)
    return same_expression(a, t)


def same_expression(a: sp.Expr, t: sp.Expr) -> bool:
    r"""Equality of two evaluated expressions as functions of real unknowns.

    At fixed sample points, of both signs, they must agree to 40 digits wherever both are defined
    without leaving the reals; so `\sqrt{1/k}` is `1/\sqrt{k}`, but `\sqrt{x^2}` is not `x`.
    """
    if a == t:
        return True
    if a.has(sp.oo, sp.zoo, sp.nan, -sp.oo) or t.has(sp.oo, sp.zoo, sp.nan, -sp.oo):
        return False
    symbols = sorted(a.free_symbols | t.free_symbols, key=str)
    if not symbols:
        return _same_number(a, t, {})
    if a.has(sp.I) or t.has(sp.I):
        points = _points(symbols, _POSITIVE)
        return all(_same_number(a, t, point) for point in points)
    agreed = _sampled(a, t, _points(symbols, _POSITIVE + _SIGNED))
    if agreed is None:
        agreed = sp.simplify(a - t) == 0
    if not agreed and {str(s) for s in symbols} <= _INDEX_NAMES:
        agreed = bool(_sampled(a, t, _integer_points(symbols)))
    return agreed


def is_undefined(tex: str) -> bool:
    """Whether a formula has no value (division by zero, a pole)."""
    value = parse_value(tex)
    if not isinstance(value, sp.Expr) or is_huge(value):
        return False
    value = _done(value)
    return value is not None and value.has(sp.zoo, sp.nan)


def integration_constant(expression: sp.Expr) -> sp.Symbol | None:
    """The symbol C of `F(x) + C` or `F(x) - C`, None without one."""
    if not isinstance(expression, sp.Add):
        return None
    others = expression.free_symbols
    for symbol in (s for term in expression.args for s in (term, -term) if s.is_Symbol):
        if re.fullmatch(r"[CcKk](?:_.*)?", str(symbol)) and len(others) > 1:
            return symbol
    return None


def is_huge(expression: sp.Basic) -> bool:
    """Whether evaluating would build an integer of more than `MOST_BITS` bits."""
    try:
        return any(_bits(node) > MOST_BITS for node in sp.preorder_traversal(expression))
    except (OverflowError, ValueError):
        return True


def _bits(node: sp.Basic) -> float:
    """Estimated bits of a power or factorial of numbers, 0 for anything else."""
    return _size(node) or 0.0 if isinstance(node, sp.Pow | sp.factorial) else 0.0


def _size(node: sp.Basic) -> float | None:
    """Estimated bits of a numeric expression written out, None if it is none or stays as it is."""
    if isinstance(node, sp.Rational):
        return float(max(node.p.bit_length(), node.q.bit_length()))
    if isinstance(node, sp.factorial):
        n = _rough(node.args[0])
        return None if n is None else n * math.log2(n) if n >= 2 else 1.0
    if isinstance(node, sp.Pow):
        base, exponent = _size(node.base), _rough(node.exp)
        one = node.base in (1, -1, 0)
        return None if base is None or exponent is None or one else base * abs(exponent)
    if isinstance(node, sp.Add | sp.Mul):
        sizes = [_size(arg) for arg in node.args]
        return None if None in sizes else math.fsum(sizes)
    return None


def _rough(node: sp.Basic) -> float | None:
    """A numeric expression as a float, infinite if too large for one; None with unknowns."""
    if node.free_symbols or not isinstance(node, sp.Expr):
        return None
    if isinstance(node, sp.Rational):
        return _float(lambda: node.p / node.q)
    parts = [_rough(arg) for arg in node.args]
    if None in parts:
        return None
    if isinstance(node, sp.Add):
        return math.fsum(parts)
    if isinstance(node, sp.Mul):
        return math.prod(parts)
    if isinstance(node, sp.Pow):
        base, exponent = parts
        # Roots of negative numbers and 1/0 are not what makes a value too large.
        if (base < 0 and exponent % 1) or (base == 0 and exponent < 0):
            return None
        return _float(lambda: base**exponent)
    if isinstance(node, sp.factorial) and parts[0] >= 0:
        return math.inf if parts[0] > 170 else math.gamma(parts[0] + 1)
    return None


def _float(compute: Callable[[], float]) -> float:
    try:
        return compute()
    except OverflowError:
        return math.inf


def _done(expression: sp.Expr) -> sp.Expr | None:
    try:
        done = expression.doit()
        return done if isinstance(done, sp.Expr) else None
    except UNSOLVED:
        return None


def _points(symbols: list[sp.Symbol], starts: list[sp.Rational]) -> list[dict]:
    """For each start a value per symbol; the symbols' values move up from it."""
    return [
        {s: start + k * _STEPS[(i + k) % len(_STEPS)] for k, s in enumerate(symbols)}
        for i, start in enumerate(starts)
    ]


def _integer_points(symbols: list[sp.Symbol]) -> list[dict]:
    return [
        {s: sp.Integer(_INTEGERS[(i + 2 * k) % len(_INTEGERS)] + k) for k, s in enumerate(symbols)}
        for i in range(len(_INTEGERS))
    ]


def _sampled(a: sp.Expr, t: sp.Expr, points: list[dict]) -> bool | None:
    """Whether both agree at the points where both are defined; None with fewer than two such."""
    compared = 0
    for point in points:
        if _leaves_reals(a, point) or _leaves_reals(t, point):
            continue
        x, y = _number(a, point), _number(t, point)
        if x is None or y is None:
            continue
        if not _same_number(a, t, point):
            return False
        compared += 1
    return True if compared >= 2 else None


def _leaves_reals(expression: sp.Expr, point: dict) -> bool:
    """Whether a root or logarithm of a negative number occurs on the way to the value."""
    for node in expression.atoms(sp.Pow, sp.log):
        if isinstance(node, sp.Pow) and node.exp.subs(point).is_integer:
            continue
        inner = _number(node.args[0], point)
        if inner is None or inner < 0:
            return True
    return False


def _number(expression: sp.Expr, point: dict) -> sp.Expr | None:
    """The real value to `DIGITS` digits, None if it is not real or cannot be evaluated."""
    try:
        value = expression.evalf(DIGITS, subs=point)
    except UNSOLVED:
        return None
    if not value.is_number:
        return None
    real, imaginary = value.as_real_imag()
    if not (real.is_Float or real.is_Rational) or not real.is_finite:
        return None
    tiny = abs(imaginary) <= sp.Float(10, DIGITS) ** (-DIGITS + 15) * (1 + abs(real))
    return real if bool(tiny) else None


def _same_number(a: sp.Expr, t: sp.Expr, point: dict) -> bool:
    """Whether the terms of the difference cancel at a point.

    What cancels exactly is gone before anything is rounded, and the digits of the rest grow with
    the numbers in it, so neither a large common term nor a long number hides a difference.
    """
    difference = a - t
    if difference.is_Rational:
        return difference == 0
    size = _digits(difference)
    digits = DIGITS + 2 * size
    try:
        terms = [term.evalf(15, subs=point) for term in sp.Add.make_args(difference)]
        value = difference.evalf(digits, subs=point, maxn=max(100, digits))
        limit = max(map(abs, terms)) * sp.Float(10, 15) ** -(DIGITS - 20 + size)
        return all(bool(abs(part) <= limit) for part in value.as_real_imag())
    except UNSOLVED:
        return False


def _digits(expression: sp.Expr) -> int:
    """Decimal digits of all numbers in an expression and of its powers by large exponents."""
    bits = sum(r.p.bit_length() + r.q.bit_length() for r in expression.atoms(sp.Rational))
    exponents = [abs(_rough(node.exp) or 0.0) for node in expression.atoms(sp.Pow, sp.exp)]
    return int(min(MOST_DIGITS / 3, bits / 3.3 + math.fsum(exponents)))


def _same_family(a: sp.Expr, t: sp.Expr, constant: sp.Symbol) -> bool:
    """Whether two antiderivatives with constants differ by a constant only."""
    own = integration_constant(sp.expand(a))
    if own is None or own in t.free_symbols - {constant}:
        return False
    difference = sp.expand(a).subs(own, 0) - t.subs(constant, 0)
    return all(
        same_expression(sp.diff(difference, symbol), sp.Integer(0))
        for symbol in sorted(difference.free_symbols, key=str)
    )
