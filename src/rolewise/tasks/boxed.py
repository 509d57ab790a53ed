r"""The answer in a completion: the content of its last complete `\boxed{...}`."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""(?P<box>\\{1,2}boxed(?![A-Za-z])\s*)
      | (?P<blank>\\(?:[ ,;:!>]|q?quad(?![A-Za-z]))|[\s~]+)
      | (?P<escaped>\\.)
      | (?P<open>\{)
      | (?P<close>\})
      | (?P<other>[^\\{}\s~]+|\\)""",
    re.VERBOSE | re.DOTALL,
)
# An answer goes on with a letter or digit, an operator with an operand, or a command of TeX; not
# with the punctuation of a sentence or the end of a formula.
_GOES_ON = re.compile(
    r"""[\w({\['] | [.,:;]\d | \s{0,3}\\?%
      | \s{0,3}[-+*/^_=<>]+\s{0,3}[\w\\({.]
      | \s{0,3}\\(?!boxed|end|q?quad|hfill|par|newline)[A-Za-z]""",
    re.VERBOSE,
)
_INNER_BOX = re.compile(r"\\{1,2}boxed(?![A-Za-z])\s*")


def answer_part(text: str) -> str:
    """The text after the last thinking block; a block that never ends leaves nothing after it."""
    text = text[text.rfind("</think>") + len("</think>") :] if "</think>" in text else text
    return text.partition("<think>")[0]


def last_box(text: str) -> str | None:
    r"""Content of the last complete box that holds something, None if there is none.

    Braces are matched and escaped braces are content. Of nested boxes the outer one counts and the
    inner commands vanish (`\boxed{x=\boxed{3}}` gives `x={3}`). As in TeX, a box without braces
    takes one character, provided that the answer does not go on behind it (`\boxed 7`). A box that
    never closes is none. One pass: time grows linearly with the text.
    """
    text = answer_part(text)
    first = _INNER_BOX.search(text)
    if first is None:
        return None
    # Each open brace is the position where its box's content starts, or -1 for a plain brace.
    stack: list[int] = []
    found: tuple[int, int] | None = None
    last_content = -1
    pending = False
    for token in _TOKEN.finditer(text, first.start()):
        kind, start = token.lastgroup, token.start()
        boxed, pending = pending, False
        if kind == "box":
            pending = True
        elif kind == "open":
            stack.append(token.end() if boxed else -1)
        elif kind == "close":
            opened = stack.pop() if stack else -1
            if 0 <= opened <= last_content:
                found = (opened, start)
        elif kind != "blank":
            last_content = token.end() - 1
            if boxed and _is_single(text, start):
                found = (start, start + 1)
    if found is None:
        return None
    return _INNER_BOX.sub("", text[slice(*found)]).strip()


def _is_single(text: str, start: int) -> bool:
    """Whether the character at `start` is the whole of an answer without braces."""
    return text[start].isalnum() and _GOES_ON.match(text, start + 1) is None
