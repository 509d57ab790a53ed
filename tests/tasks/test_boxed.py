import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rolewise.tasks.boxed import answer_part, last_box


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"\boxed{1} then \boxed{ 2 }.", "2"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}"),
        (r"\boxed{5} and \boxed{", "5"),
        (r"\boxed{5} and \boxed{6", "5"),
        (r"\boxed{5} or \boxed{}", "5"),
        (r"\boxed{5} or \boxed{\ ~\quad}", "5"),
        (r"\boxed{x = \boxed{3}, y = \boxed{4}}", "x = {3}, y = {4}"),
        (r"\boxed{x = \boxed{3}", "3"),
        (r"{ \boxed{5} {", "5"),
        (r"\boxed{5}} }", "5"),
        (r"\\boxed{5}", "5"),
        (r"line one \\\boxed{5}", "5"),
        ("\\boxed\n{\n5\n}", "5"),
        (r"\boxed 7.", "7"),
        (r"\boxed 75", None),
        (r"\boxed\frac12", None),
        (r"\boxed", None),
        (r"\boxedanswer{5}", None),
        (r"\boxed{5\}", None),
        ("5", None),
        ("", None),
    ],
)
def test_last_complete_box_with_content_is_the_answer(text, content):
    assert last_box(text) == content


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"<think>\boxed{1}</think> so \boxed{2}", "2"),
        (r"<think>\boxed{1}</think> I cannot decide", None),
        (r"\boxed{1}</think> so \boxed{2}", "2"),
        (r"<think>\boxed{1}", None),
        (r"\boxed{3} <think>\boxed{1}", "3"),
    ],
)
def test_thinking_holds_no_answer(text, content):
    assert last_box(text) == content


def test_answer_part_is_the_text_itself_without_thinking():
    assert answer_part("a <b> c") == "a <b> c"


# Each of these takes hours if any step is quadratic.
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("\\boxed{" * 150_000, None),
        ("\\boxed{" * 150_000 + "}" * 150_000, None),
        ("\\boxed{1} " * 100_000 + "\\boxed{2}", "2"),
        ("\\boxed{" + "{" * 1_000_000, None),
        ("\\" * 1_000_001 + "boxed{3}", "3"),
        ("\\boxed " * 150_000, None),
        ("<think>" * 150_000 + "</think>" * 150_000, None),
        (" " * 1_000_000 + "\\boxed{" + " " * 1_000_000 + "}", None),
    ],
    ids=range(8),
)
def test_extraction_is_linear_on_megabytes(text, content):
    assert last_box(text) == content


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.lists(st.sampled_from(["\\boxed", "{", "}", "\\", "\\{", "5", " ", "<think>", "</think>"]))
)
def test_any_text_has_a_trimmed_box_or_none(tokens):
    content = last_box("".join(tokens))
    assert content is None or (content and content == content.strip())


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(alphabet="abc019+-=(),. \n", min_size=1), st.text(alphabet="ab \\{}$"))
def test_a_final_box_is_found_whatever_stands_before(content, before):
    expected = content.strip() or None
    if "\\boxed" not in before:
        assert last_box(before + " \\boxed{" + content + "}") == expected


@pytest.mark.parametrize(
    "text",
    [
        r"\boxed 7.5", r"\boxed 7/2", r"\boxed 7\pi", r"\boxed 7+1", r"\boxed x^2", r"\boxed 1,000",
        r"\boxed 7 + 1", r"\boxed 7 \cdot 2", r"\boxed x = 3", r"\boxed 7\%", r"\boxed 3:5", r"\boxed x_1",
        r"\boxed f(x)", r"\boxed x{y}", r"\boxed 7 < x",
    ],
)  # fmt: skip
def test_a_box_without_braces_is_none_if_the_answer_goes_on(text):
    assert last_box(text) is None
    assert last_box(r"\boxed{5} " + text) == "5"


@pytest.mark.parametrize(
    "text",
    [
        r"\boxed 7", r"$\boxed 7$.", r"\(\boxed 7\)", r"\[\boxed 7\]", r"\boxed 7, as claimed",
        r"\boxed 7\end{align}", r"\boxed 7 \\ and so on", "\\boxed 7\nDone.", r"\boxed 7 is it",
        r"\boxed 7 (see above)", r"\boxed 7.", r"\boxed 7\quad",
    ],
)  # fmt: skip
def test_a_box_without_braces_ends_with_its_sentence_or_formula(text):
    assert last_box(text) == "7"
