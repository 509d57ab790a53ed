r"""Sets of real numbers: intervals, unions, inequalities, set-builder forms; runs in a worker."""

from __future__ import annotations

import re
from dataclasses import dataclass

import sympy as sp

from rolewise.tasks.math_split import (
    split_brackets,
    split_list,
    split_relation,
    split_top,
    split_union,
    words_of,
)
from rolewise.tasks.math_values import UNSOLVED, is_huge, parse_value

_BUILDER = re.compile(r"\\\{(?P<head>[^|:]*?)\s*(?:\||:|\\mid(?![A-Za-z]))\s*(?P<condition>.*)\\\}")
_MEMBER = re.compile(r"(?P<name>\\?[A-Za-z]+)\s*\\in(?![A-Za-z])\s*(?P<set>.*)")
_MINUS = re.compile(r"\\setminus(?![A-Za-z])")
_CAP = re.compile(r"\\cap(?![A-Za-z])|\\text\{\s*and\s*\}")
_REALS = re.compile(r"\\mathbb\s*\{?\s*R\s*\}?|\(\s*-\s*\\infty\s*,\s*\+?\s*\\infty\s*\)")
ALL_REALS = {"allrealnumbers", "allreals", "allrealx", "realnumbers", "allreal"}
_NOTHING = re.compile(r"\\emptyset|\\\{\s*\\\}")
_MARK = re.compile(
    r"\\(?:cup|cap|setminus|emptyset|infty|le|ge|ne|in|mathbb)(?![A-Za-z])|[<>]|^\[|\]$"
)


@dataclass(frozen=True)
class Region:
    """A set of reals and the unknown it describes, if one is named."""

    name: str | None
    values: sp.Set


def looks_like_region(text: str) -> bool:
    """Whether `text` has a sign that only sets of reals have (a plain `(a,b)` may be a point)."""
    return _MARK.search(text) is not None or words_of(text) in ALL_REALS


def read_region(text: str) -> Region | None:
    """The set that `text` describes, None if it describes none or cannot be solved."""
    try:
        return _read(text.strip())
    except UNSOLVED:
        return None


def same_region(a: Region, t: Region) -> bool:
    """Equal sets, and the same unknown where both name one."""
    if a.name and t.name and a.name != t.name:
        return False
    return a.values == t.values or (a.values ^ t.values) == sp.S.EmptySet


def _read(text: str) -> Region | None:
    if _REALS.fullmatch(text) or words_of(text) in ALL_REALS:
        return Region(None, sp.S.Reals)
    if _NOTHING.fullmatch(text):
        return Region(None, sp.S.EmptySet)
    builder = _BUILDER.fullmatch(text)
    if builder:
        head = _MEMBER.fullmatch(builder["head"].strip())
        inner = _read(builder["condition"])
        if inner is None:
            return None
        outer = _read(head["set"]) if head else Region(None, sp.S.Reals)
        return None if outer is None else Region(None, inner.values & outer.values)
    members = split_union(text)
    if len(members) > 1:
        return _combine([_read(member) for member in members], sp.Union)
    members = split_top(text, _CAP)[0]
    if len(members) > 1:
        return _combine([_read(member) for member in members], sp.Intersection)
    members = split_top(text, _MINUS)[0]
    if len(members) == 2:
        whole, without = _read(members[0]), _read(members[1])
        if whole is None or without is None:
            return None
        return Region(whole.name, whole.values - without.values)
    member = _MEMBER.fullmatch(text)
    if member:
        inner = _read(member["set"])
        return None if inner is None else Region(member["name"], inner.values)
    return _read_brackets(text) or _read_relations(text)


def _combine(regions: list[Region | None], operation: type[sp.Set]) -> Region | None:
    if None in regions:
        return None
    names = {region.name for region in regions if region.name}
    if len(names) > 1:
        return None
    return Region(names.pop() if names else None, operation(*(r.values for r in regions)))


def _read_brackets(text: str) -> Region | None:
    brackets = split_brackets(text)
    if brackets is None:
        return None
    values = [_bound(item) for item in brackets.items]
    if None in values:
        return None
    if brackets.opening == "{":
        return Region(None, sp.FiniteSet(*values))
    if len(values) != 2:
        return None
    low, high = values
    if low > high:  # a point whose coordinates fall
        return None
    return Region(None, sp.Interval(low, high, brackets.opening == "(", brackets.ending == ")"))


def _read_relations(text: str) -> Region | None:
    """`a < x <= b`, `2x > 6`, `x \\ne 3`, and several of them with commas (all must hold)."""
    parts = split_list(text)
    if len(parts) > 1:
        if all(split_relation(part)[1] for part in parts):
            return _combine([_read_relations(part) for part in parts], sp.Intersection)
        sides, kinds = split_relation(parts[0])
        if kinds == ["ne"]:
            parts = [f"{sides[0]} \\ne {v}" for v in [sides[1], *parts[1:]]]
            return _combine([_read_relations(part) for part in parts], sp.Intersection)
        return None
    sides, kinds = split_relation(text)
    if not kinds:
        return None
    values = [parse_value(side) for side in sides]
    if any(not isinstance(v, sp.Expr) or is_huge(v) for v in values):
        return None
    unknowns = sorted(set().union(*(v.free_symbols for v in values)), key=str)
    if len(unknowns) != 1:
        return None
    name = str(unknowns[0])
    x = sp.Symbol(name, real=True)
    values = [sp.simplify(v.subs(unknowns[0], x)) for v in values]
    make = {"lt": sp.Lt, "le": sp.Le, "gt": sp.Gt, "ge": sp.Ge, "ne": sp.Ne, "eq": sp.Eq}
    result: sp.Set = sp.S.Reals
    for left, kind, right in zip(values[:-1], kinds, values[1:], strict=True):
        relation = make[kind](left, right)
        if relation in (sp.true, sp.false):
            result = result & (sp.S.Reals if relation == sp.true else sp.S.EmptySet)
        else:
            result = result & relation.as_set()
    return Region(name, result)


def _bound(text: str) -> sp.Expr | None:
    value = parse_value(text)
    if not isinstance(value, sp.Expr) or is_huge(value) or value.free_symbols:
        return None
    value = sp.simplify(value.doit())
    return value if value.is_extended_real else None
