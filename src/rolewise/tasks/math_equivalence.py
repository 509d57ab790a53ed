r"""When two math answers are equivalent. The rules, in the order in which they are tried:

- multiple choice: the letter counts, or, if the truth is a value, the value behind the letter;
- numerals with a base: equal as numbers, so `11_2` is 3 and not the decimal 11;
- matrices: cell by cell, whatever the brackets;
- sets of reals: intervals, unions, inequalities and set-builder forms are compared as sets; `(a,b)`
  is a point unless the other side is a set;
- `name = value` is its value where the truth is a value; two equations are equivalent if one is a
  constant multiple of the other; `y=5` is not `x=5`;
- lists (`2, 3`; `x=2 or x=3`; `\pm 2`) and `{...}`: any order, nothing missing, nothing extra;
  tuples: in order; a list without brackets may stand for a tuple;
- ratios are ordered and scale, clock times do not;
- units: different units are converted or differ; a unit on one side only repeats the question, and
  so does a degree sign, though 45 degrees are also pi/4. Percent is a hundredth: 37.5% is not 37.5;
- words: letter case, blanks and articles do not count; number words are numbers, `undefined` is
  the value of an expression without one;
- formulas: equal values, exactly. No rounding: 0.333 is not 1/3. Unknowns are real. `F + C` is any
  antiderivative with any name of the constant, and needs one. A letter said to be any integer may
  have any name, and the saying may be missing.

What cannot be read equals nothing. Runs in a worker: sympy may take for ever.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import accumulate

import sympy as sp

from rolewise.tasks.math_numbers import number_word, plain_number
from rolewise.tasks.math_parameter import share_parameter
from rolewise.tasks.math_regions import ALL_REALS, looks_like_region, read_region, same_region
from rolewise.tasks.math_split import (
    expand_signs,
    is_name,
    split_base,
    split_brackets,
    split_choice,
    split_list,
    split_matrix,
    split_ratio,
    split_relation,
    strip_lead,
    word_members,
    words_of,
)
from rolewise.tasks.math_text import LONGEST, squeeze, tidy
from rolewise.tasks.math_units import DEGREE, RADIAN, Unit, split_unit
from rolewise.tasks.math_values import is_undefined, parse_value, same_value

DEEPEST = 64
_SYNONYMS = (
    {"undefined", "doesnotexist", "dne", "notdefined", "isundefined"},
    {"nosolution", "nosolutions", "norealsolution", "norealsolutions", "emptyset", "none"},
    {"infinitelymany", "infinitelymanysolutions", "infinite"},
    {"true", "yes"},
    {"false", "no"},
)
_INTERVAL = re.compile(r"([\[\]])([^\[\](),;]*[,;][^\[\](),;]*)([\[\]])")
_EMPTY = re.compile(r"\\emptyset|\\\{\s*\\\}|\(\s*\)")


def equivalent(answer: str, truth: str) -> bool:
    """Whether `answer` is right if `truth` is; both as they stand in a box. May raise TooLarge."""
    if len(answer) > LONGEST or len(truth) > LONGEST:
        return answer.split() == truth.split()
    answer, truth = tidy(answer), tidy(truth)
    if max(_depth(answer), _depth(truth)) > DEEPEST:
        return squeeze(answer) == squeeze(truth)
    return _same(*share_parameter(_plain_intervals(answer), _plain_intervals(truth)))


def _plain_intervals(text: str) -> str:
    """`]2,5[` in the notation `(2,5)`."""

    def plain(match: re.Match[str]) -> str:
        low = "(" if match[1] == "]" else "["
        return low + match[2] + (")" if match[3] == "[" else "]")

    return _INTERVAL.sub(plain, text)


def _depth(text: str) -> int:
    """How deeply brackets are nested."""
    steps = (("([{".find(c) >= 0) - (")]}".find(c) >= 0) for c in text)
    return max(accumulate(steps, initial=0))


def _same(answer: str, truth: str) -> bool:
    answer, truth = strip_lead(answer), strip_lead(truth)
    if squeeze(answer) == squeeze(truth):
        return bool(answer)
    numbers = plain_number(answer), plain_number(truth)
    if None not in numbers:
        return numbers[0] == numbers[1]
    for rule in _RULES:
        verdict = rule(answer, truth)
        if verdict is not None:
            return verdict
    return same_value(answer, truth)


def _choice(answer: str, truth: str) -> bool | None:
    t = split_choice(truth)
    # `c` may stand for the choice C, but the letter e is a number and x a variable.
    a = split_choice(answer.upper() if len(answer) == 1 and t else answer)
    if t is not None and not t[1]:
        return a is not None and a[0] == t[0] if a or words_of(answer) else None
    if t is not None and a is not None:
        return a[0] == t[0] and (not a[1] or _same(a[1], t[1]))
    if t is not None and answer and _marked(truth):
        return _same(answer, t[1])
    if a is not None and a[1] and _marked(answer):
        return _same(a[1], truth)
    return None


def _marked(text: str) -> bool:
    return re.match(r"\(?[A-J]\s*\)", text) is not None


def _base(answer: str, truth: str) -> bool | None:
    a, t = split_base(answer), split_base(truth)
    if a is None and t is None:
        return None
    values = [
        int(*numeral) if numeral else plain_number(text)
        for numeral, text in ((a, answer), (t, truth))
    ]
    return None if None in values else values[0] == values[1]


def _matrix(answer: str, truth: str) -> bool | None:
    a, t = split_matrix(answer), split_matrix(truth)
    if a is None or t is None:
        return None
    if [len(row) for row in a] != [len(row) for row in t]:
        return False
    return all(
        _same(x, y) for ra, rt in zip(a, t, strict=True) for x, y in zip(ra, rt, strict=True)
    )


def _region(answer: str, truth: str) -> bool | None:
    if not (looks_like_region(answer) or looks_like_region(truth)):
        return None
    brackets = split_brackets(answer), split_brackets(truth)
    if None not in brackets:
        a, t = brackets
        if "{" not in (a.opening, t.opening) and len(a.items) == len(t.items) == 2:
            ends = (a.opening, a.ending) == (t.opening, t.ending)
            return ends and all(map(_same, a.items, t.items))
    regions = read_region(answer), read_region(truth)
    return None if None in regions else same_region(*regions)


def _relation(answer: str, truth: str) -> bool | None:
    a_sides, a_kinds = split_relation(answer)
    t_sides, t_kinds = split_relation(truth)
    if len(split_list(answer)) > 1 or len(split_list(truth)) > 1 or not (a_kinds or t_kinds):
        return None
    if set(a_kinds) | set(t_kinds) != {"eq"}:
        return _inequality(a_sides, a_kinds, t_sides, t_kinds)
    if not t_kinds:
        if len(a_sides) == 2 and is_name(a_sides[-1]) and _is_constant(a_sides[0]):
            a_sides.reverse()
        return _same(a_sides[-1], truth) if _gives_value(a_sides) else False
    if not a_kinds:
        return _same(answer, t_sides[-1]) if is_name(t_sides[0]) else False
    if is_name(a_sides[0]) and squeeze(a_sides[0]) == squeeze(t_sides[0]):
        return _same(a_sides[-1], t_sides[-1])
    return _same_equation((a_sides[0], a_sides[-1]), (t_sides[0], t_sides[-1]))


def _gives_value(sides: list[str]) -> bool:
    """Whether a chain of equalities ends in the value of what it starts with.

    Names and sums of names (`a+b = 7`) have values, and so do numbers; `2x+3 = 7` and whatever
    equals 0 is an equation still to be solved.
    """
    if is_name(sides[0]) or len(sides) > 2:
        return True
    if _is_constant(sides[0]):
        return True
    digits = re.sub(r"[_^]\s*(?:\w|\{[^{}]*\})", "", sides[0])
    return not re.search(r"\d", digits) and plain_number(sides[-1]) != 0


def _is_constant(text: str) -> bool:
    value = parse_value(text)
    return isinstance(value, sp.Expr) and not value.free_symbols


def _same_equation(answer: tuple[str, str], truth: tuple[str, str]) -> bool:
    """Whether the differences of the sides are constant multiples of each other."""
    values = [parse_value(side) for side in (*answer, *truth)]
    if not all(isinstance(value, sp.Expr) for value in values):
        return False
    a, t = (sp.expand(values[0] - values[1]), sp.expand(values[2] - values[3]))
    if a.free_symbols != t.free_symbols or not t.free_symbols:
        return False
    ratio = sp.cancel(sp.together(a / t))
    if not ratio.free_symbols and ratio.is_zero is False and ratio.is_finite:
        return True
    # The same curve solved for one unknown, e.g. xy = 1 and y = 1/x.
    cleared = [sp.numer(sp.together(side)) for side in (a, t)]
    ratio = sp.cancel(cleared[0] / cleared[1])
    return not ratio.free_symbols and ratio.is_zero is False and bool(ratio.is_finite)


def _inequality(
    a_sides: list[str], a_kinds: list[str], t_sides: list[str], t_kinds: list[str]
) -> bool:
    """Inequalities in several unknowns: the same relation up to a positive factor."""
    flip = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "ne": "ne", "eq": "eq"}
    if not a_kinds or not t_kinds or len(a_kinds) != len(t_kinds):
        return False
    if len(a_kinds) > 1:
        mirrored = ([*reversed(a_sides)], [flip[kind] for kind in reversed(a_kinds)])
        return any(
            kinds == t_kinds and all(map(_same, sides, t_sides))
            for sides, kinds in ((a_sides, a_kinds), mirrored)
        )
    values = [parse_value(side) for side in (*a_sides, *t_sides)]
    if not all(isinstance(value, sp.Expr) for value in values):
        return False
    ratio = sp.cancel((values[0] - values[1]) / (values[2] - values[3]))
    if ratio.is_positive:
        return a_kinds == t_kinds
    return bool(ratio.is_negative) and flip[a_kinds[0]] == t_kinds[0]


def _collection(answer: str, truth: str) -> bool | None:
    a_brackets, t_brackets = split_brackets(answer), split_brackets(truth)
    a_items, a_kind = _members(answer)
    t_items, t_kind = _members(truth)
    if a_kind == t_kind == "one":
        if (a_brackets or t_brackets) and (len(a_items), len(t_items)) == (1, 1):
            inner = a_items[0], t_items[0]
            return _same(*inner) if inner != (answer, truth) else None
        return None
    if len(a_items) == len(t_items) == 1 and "tuple" not in (a_kind, t_kind):
        return _same(a_items[0], t_items[0])
    kinds = {a_kind, t_kind}
    if kinds <= {"list", "set", "one"}:
        return _same_members(a_items, t_items, distinct="set" in kinds)
    if kinds in ({"tuple"}, {"tuple", "list"}):
        if a_kind == t_kind and not _same_shape(a_brackets, t_brackets):
            return False
        return len(a_items) == len(t_items) and all(map(_same, a_items, t_items))
    return False


def _members(text: str) -> tuple[list[str], str]:
    """Members and kind (one, list, set, tuple); a shared `x =` or `x \\in` is dropped."""
    text = re.sub(r"^\\?[A-Za-z]+\s*(?:\\in(?![A-Za-z])|=)\s*(?=\\\{)", "", text)
    brackets = split_brackets(text)
    if brackets is None:
        members = _unname(split_list(text))
        return members, "list" if len(members) > 1 else "one"
    if brackets.opening == "{":
        members = [m for item in brackets.items for m in expand_signs(item)]
        return _unname(members), "set"
    if len(brackets.items) == 1:
        return list(brackets.items), "one"
    signed = expand_signs(text)
    return (signed, "list") if len(signed) > 1 else (list(brackets.items), "tuple")


def _unname(members: list[str]) -> list[str]:
    """`x=1, x=2` and `x=1, 2` as `1, 2`; members that name different unknowns stay."""
    sides = [split_relation(member) for member in members]
    names = {s[0] for s, kinds in sides if kinds == ["eq"] and is_name(s[0])}
    if len(members) > 1 and len(names) == 1 and sides[0][1] == ["eq"]:
        return [s[-1] for s, _ in sides]
    return members


def _same_shape(a: object, t: object) -> bool:
    return (a.opening, a.ending) == (t.opening, t.ending) or len(a.items) > 2


def _same_members(answer: list[str], truth: list[str], distinct: bool) -> bool:
    """Equal as multisets, or as sets if `distinct`."""
    if distinct:
        answer, truth = _unique(answer), _unique(truth)
    if len(answer) != len(truth):
        return False
    left = list(truth)
    for item in answer:
        found = next((i for i, other in enumerate(left) if _same(item, other)), None)
        if found is None:
            return False
        del left[found]
    return True


def _unique(items: list[str]) -> list[str]:
    kept: list[str] = []
    for item in items:
        if not any(_same(item, other) for other in kept):
            kept.append(item)
    return kept


def _ratio(answer: str, truth: str) -> bool | None:
    a, t = split_ratio(answer), split_ratio(truth)
    if len(a) == len(t) == 1:
        return None
    if not all(parse_value(part) is not None for part in (*a, *t)):
        return None
    if len(a) == len(t):
        if all(re.fullmatch(r"\d{1,2}:[0-5]\d", text.strip()) for text in (answer, truth)):
            return list(map(int, a)) == list(map(int, t))
        return all(
            _same(f"({a[0]})\\cdot({y})", f"({t[0]})\\cdot({x})")
            for x, y in zip(a[1:], t[1:], strict=True)
        )
    if {len(a), len(t)} != {1, 2}:
        return False
    sides = [f"\\frac{{{p[0]}}}{{{p[1]}}}" if len(p) == 2 else p[0] for p in (a, t)]
    return _same(*sides)


def _units(answer: str, truth: str) -> bool | None:
    (a, a_unit), (t, t_unit) = split_unit(answer), split_unit(truth)
    if (a, t) == (answer, truth):
        return None
    if a_unit is None or t_unit is None or a_unit == t_unit:
        if _same(a, t):
            return True
        if {a_unit, t_unit} == {DEGREE, None}:
            return _same(_radians(a, a_unit), _radians(t, t_unit))
        # Letters without \text{} may be factors: 2mg is 2gm.
        return None if "\\text" not in answer + truth else False
    if {a_unit, t_unit} == {DEGREE, RADIAN}:
        return _same(_radians(a, a_unit), _radians(t, t_unit))
    if a_unit.dimensions != t_unit.dimensions:
        return False
    factor = a_unit.size / t_unit.size
    return _same(f"({a})\\cdot\\frac{{{factor.numerator}}}{{{factor.denominator}}}", t)


def _radians(value: str, unit: Unit | None) -> str:
    return f"({value})\\cdot\\frac{{\\pi}}{{180}}" if unit == DEGREE else value


def _words(answer: str, truth: str) -> bool | None:
    a, t = words_of(answer), words_of(truth)
    if a is None and t is None:
        return None
    if a == t:
        return True
    if a is not None and t is not None:
        if any({a, t} <= group for group in _SYNONYMS):
            return True
        members = word_members(answer), word_members(truth)
        if min(map(len, members)) > 1 and members[0] == members[1]:
            return True
    numbers = [number_word(re.sub(r"\\text\{|\}", " ", text)) for text in (answer, truth)]
    values = [
        n if n is not None else plain_number(text)
        for n, text in zip(numbers, (answer, truth), strict=True)
    ]
    if None not in values:
        return values[0] == values[1]
    word, other = (a, truth) if t is None else (t, answer)
    if a is None or t is None:
        if word in ALL_REALS:
            return None
        if word in _SYNONYMS[0]:
            return is_undefined(other)
        if word in _SYNONYMS[1]:
            return _EMPTY.fullmatch(other) is not None
    return False


_RULES: tuple[Callable[[str, str], bool | None], ...] = (
    _choice,
    _base,
    _matrix,
    _words,
    _region,
    _relation,
    _units,
    _collection,
    _ratio,
)
