"""Text of models stays text: in script files and in terminals."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from rolewise.report.text import script_json, sparkline, visible

ANYTHING = st.text(st.characters(codec=None), max_size=60)


@given(ANYTHING)
def test_script_json_is_plain_ascii_without_markup_and_reads_back(text):
    embedded = script_json({"text": text})
    assert embedded.isascii() and not set("<>&\n\r") & set(embedded)
    assert json.loads(embedded) == {"text": text}


def test_script_json_escapes_what_ends_a_script_or_a_line():
    assert script_json("</script>\u2028\u2029") == '"\\u003c/script\\u003e\\u2028\\u2029"'


def test_script_json_turns_what_json_lacks_into_null():
    assert script_json([float("nan"), {"x": float("inf")}, (1.5,)]) == '[null,{"x":null},[1.5]]'


@given(ANYTHING)
def test_visible_text_is_printable_but_for_line_feeds_and_tabs(text):
    assert all(c in "\n\t" or c.isprintable() or c.isspace() for c in visible(text))
    assert "\x1b" not in visible(text) and "\r" not in visible(text)


def test_visible_writes_controls_and_overrides_out():
    assert visible("\x1b[31mred\x07\u202eabc\n\tπ 数 é") == "\\x1b[31mred\\x07\\u202eabc\n\tπ 数 é"


def test_sparkline_spans_its_own_range_and_leaves_gaps():
    assert sparkline([0.0, float("nan"), 0.5, 1.0]) == "▁ ▅█"
    assert sparkline([2.0, 2.0]) == "▁▁"
    assert sparkline([float("nan")]) == ""
