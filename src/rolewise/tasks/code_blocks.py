"""The program in an output: its last fenced Python block."""

from __future__ import annotations

import re
from functools import lru_cache

from markdown_it import MarkdownIt

# Block structure only, by CommonMark; without raw HTML, so that `<answer>` does not hide a fence.
_MARKDOWN = MarkdownIt("zero").enable(["fence", "list", "blockquote", "code", "heading", "hr"])
_PYTHON_TAG = re.compile(r"\{?\s*\.?(python|py)[\d.]*(?![\w-])", re.IGNORECASE)
_END_OF_THOUGHT = re.compile(r"^[ \t]*</think>", re.MULTILINE)
_THOUGHT = re.compile(r"^[ \t]*<think>", re.MULTILINE)


def after_thinking(text: str) -> str:
    """The text after its thinking blocks; nothing of an unclosed one is left.

    Within the text a tag opens its line, so that a program may print one.
    """
    if text.lstrip().startswith("<think>"):
        text = text.partition("</think>")[2]
    answer = _END_OF_THOUGHT.split(text)[-1]
    return _THOUGHT.split(answer, maxsplit=1)[0]


def is_python(info: str) -> bool:
    """Whether a fence's info string says Python: `python`, `Py`, `python3 title=x`, `{.python}`."""
    return _PYTHON_TAG.match(info) is not None


@lru_cache(maxsize=1024)
def last_python_block(text: str) -> str | None:
    """Content of the last fenced Python block after any thinking block, None if absent or blank.

    Fences are CommonMark's: three or more backticks or tildes, also inside lists and quotations; a
    fence that is never closed runs to the end. An untagged block is not taken for Python.
    """
    program = None
    for token in _MARKDOWN.parse(after_thinking(text)):
        if token.type == "fence" and is_python(token.info.strip()):
            program = token.content
    return program if program and program.strip() else None
