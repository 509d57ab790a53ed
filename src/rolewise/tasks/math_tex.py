r"""Habits of TeX source made explicit: arguments without braces, digits in groups of three."""

from __future__ import annotations

import re
from itertools import accumulate

_TOKEN = re.compile(
    r"""(?P<command>\\(?:frac|binom)(?![A-Za-z])|\\sqrt(?![A-Za-z])(?:\s*\[[^\[\]]*\])?)
      | (?P<word>\\(?:text|math[a-z]+|overline)\{[^{}]*\}|\\[A-Za-z]+)
      | (?P<script>(?<=\\log)_\s*[0-9]|\^\s*-[0-9]+
          |[_^]\s*(?:[0-9]+|[A-Za-z]|\\(?!circ|frac|binom|sqrt|prime|text|math)[A-Za-z]+))
      | (?P<open>\{)
      | (?P<close>\})
      | (?P<blank>\s+)
      | (?P<letter>[A-Za-z0-9])
      | (?P<other>\\?.|\\)""",
    re.VERBOSE | re.DOTALL,
)
_GROUPED = re.compile(r"(?<![\d,.])[1-9]\d{0,2}(?:,\d{3})+(?!,?\d)")


def brace_arguments(text: str) -> str:
    r"""`text` with braces around every argument: `\frac\pi2` as `\frac{\pi}{2}`, `x^2` as `x^{2}`.

    As in TeX, an argument is a group, a command or one character; but an index or exponent of
    several digits is one number (`2^10`), except in `\log_28`. One pass over the text.
    """
    out: list[str] = []
    # None is an open group; a command is [number of missing arguments, whether it needs a brace].
    stack: list[list | None] = []

    def complete() -> None:
        """An argument ends, and with it the commands whose last argument it is."""
        while stack and stack[-1]:
            stack[-1][0] -= 1
            if stack[-1][0]:
                return
            if not stack.pop()[1]:
                return
            out.append("}")

    def abandon() -> None:
        """The commands at the end of the stack get no more arguments."""
        while stack and stack[-1]:
            if stack.pop()[1]:
                out.append("}")

    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup, match[0]
        wanted = bool(stack and stack[-1])
        if kind == "command":
            bare_script = bool(out) and out[-1] in ("^", "_")
            out.append("{" * (wanted or bare_script) + token)
            stack.append([1 if token.startswith("\\sqrt") else 2, wanted or bare_script])
        elif kind == "open":
            out.append(token)
            stack.append(None)
        elif kind == "close":
            abandon()
            if stack:
                stack.pop()
            out.append(token)
            complete()
        elif kind == "script":
            out.append(f"{token[0]}{{{token[1:].strip()}}}")
        elif wanted and kind in ("word", "letter"):
            out.append(f"{{{token}}}")
            complete()
        elif not (wanted and kind == "blank"):
            abandon()
            out.append(token)
    abandon()
    return "".join(out)


def join_groups(text: str) -> str:
    """`1,000` as `1000` wherever that is one number and cannot be two members of a list.

    Within brackets `1,200` may be two members; it is one number if members are parted by a comma
    and a blank, or if `,000` could be no member.
    """
    flat = text.replace("\\{", " (").replace("\\}", " )")
    depths = list(accumulate((c in "([") - (c in ")]") for c in flat))

    def join(match: re.Match[str]) -> str:
        certain = depths[match.start()] <= 0 or ", " in text or ",0" in match[0]
        return match[0].replace(",", "") if certain else match[0]

    return _GROUPED.sub(join, text)
