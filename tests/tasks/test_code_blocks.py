"""Which text of an output is the program."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rolewise.tasks.code_blocks import is_python, last_python_block

CODE = "print(1)\n"


@pytest.mark.parametrize(
    ("text", "program"),
    [
        (f"```python\n{CODE}```", CODE),
        (f"~~~python\n{CODE}~~~", CODE),
        (f"````python\n{CODE}```\n````", f"{CODE}```\n"),
        (f"```python\n{CODE}", CODE),
        ("```python\nprint(1)", "print(1)"),
        (f"  ```python\n  {CODE}  ```", CODE),
        (f"1. First:\n\n   ```python\n   {CODE}   ```\n", CODE),
        (f"10. First:\n\n    ```python\n    {CODE}    ```\n", CODE),
        (f"- item\n  ```python\n  {CODE}  ```\n", CODE),
        (f"> ```python\n> {CODE}> ```\n", CODE),
        (f"<answer>\n```python\n{CODE}```\n</answer>", CODE),
        (f"```python\nx\n```\n```python\n{CODE}```", CODE),
        (f"```python\n{CODE}```\n```text\n1\n```", CODE),
        (f"```python\n{CODE}```\n```\nstray", CODE),
        (f"```python\r\n{CODE}```\r\n", CODE),
        (f"<think>\n```python\ndraft\n```\n</think>\n```python\n{CODE}```", CODE),
        (f"a thought\n</think>\n\n```python\n{CODE}```", CODE),
        ("```python\nprint('</think>')\n```", "print('</think>')\n"),
        ("```python\nprint('<think>')\n```", "print('<think>')\n"),
        (f"```python\n{CODE}```\n<think>\n```python\ndraft\n", CODE),
        (f"<think>a</think>\n```python\n{CODE}```\n<think>\n```python\ndraft\n```", CODE),
        (
            f"<think>a</think>\n```python\ndraft\n```\n<think>\nb\n</think>\n```python\n{CODE}```",
            CODE,
        ),
        (f"```python\n{CODE}```\n<think>\n```python\ndraft\n```\n</think>", None),
        (f"<think>\n```python\n{CODE}```\n", None),
        (f"<think>\n```python\n{CODE}```\n</think>\nNo idea.", None),
        (f"    ```python\n    {CODE}    ```", None),
        (f"````markdown\n```python\n{CODE}```\n````", None),
        ("```python\n\n```", None),
        (f"```python\n{CODE}```\n```python\n \n```", None),
        (f"```\n{CODE}```", None),
        (f"text ```python\n{CODE}```", None),
        ("", None),
    ],
)
def test_last_python_block(text, program):
    assert last_python_block(text) == program


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        *((tag, True) for tag in ("python", "Python", "PY", "py", "python3", "py3", "python3.11")),
        *((tag, True) for tag in ("python title='a'", "{.python}", "{python}", "python:main.py")),
        *((tag, False) for tag in ("", "text", "pycon", "python-repl", "pytb", "cython", "pypy")),
        *((tag, False) for tag in ("c++", "python_output", "ipython")),
    ],
)
def test_language_tags(info, expected):
    assert is_python(info) is expected


pieces = st.sampled_from(
    ["```", "```python", "~~~", "````", "\n", "\r\n", "    ", "> ", "- ", "1. ", "<think>", "</think>",
     "print(1)", "\t", "\x00", "#", "===", "<div>", "\ufeff", "x" * 50]
)  # fmt: skip


@given(st.one_of(st.text(), st.lists(pieces, max_size=60).map("".join)))
@settings(max_examples=400, deadline=None)
def test_extraction_never_fails_and_returns_a_part_of_the_text(text):
    program = last_python_block(text)
    assert program is None or program.strip()
