import pandas as pd
import pytest
from matplotlib.figure import Figure

from rolewise.paper import style
from rolewise.paper.output import PAGE_ROWS, escape, latex, markdown, write_figure
from rolewise.runs.layout import Layout


def balanced(tex):
    """Whether braces and environments of a LaTeX text close."""
    plain = tex.replace(r"\{", "").replace(r"\}", "")
    depth = 0
    for character in plain:
        depth += (character == "{") - (character == "}")
        if depth < 0:
            return False
    begun, ended = (
        sorted(part.split("}")[0] for part in tex.split(word)[1:])
        for word in (r"\begin{", r"\end{")
    )
    return depth == 0 and begun == ended


HARD = pd.DataFrame({"cell_name": ["a_b & c", "50 % {x}", "~^\\"], "value": ["−1.0", "—", "3 ≤ 4"]})


@pytest.mark.parametrize("rows", [3, PAGE_ROWS + 3])
def test_latex_escapes_what_would_break_it(rows):
    long = pd.concat([HARD] * (1 + rows // 3)).head(rows)
    tex = latex(long, "Caption with 95 % and a_b", "tab:1")
    assert balanced(tex)
    assert r"a\_b \& c" in tex and r"95 \%" in tex and r"cell\_name" in tex
    assert ("longtable" in tex) == (rows > PAGE_ROWS)


def test_escaped_text_is_plain_ascii_for_our_symbols():
    assert escape("χ² ≥ 1 → Δ ± ×").isascii()


def test_markdown_keeps_pipes_inside_cells():
    text = markdown(pd.DataFrame({"a": ["x|y"], "b": ["1"]}), "Caption")
    assert text.splitlines()[-1].replace(r"\|", "").count("|") == 3


def test_the_same_figure_is_written_as_the_same_bytes(tmp_path):
    written = []
    for folder in ("one", "two"):
        figure = Figure()
        figure.subplots().plot([1, 2], [3, 4])
        with style.styled():
            paths = write_figure(
                Layout(tmp_path / folder),
                1,
                title="T",
                caption="C",
                data=pd.DataFrame({"x": [1]}),
                figure=figure,
                formats=["png", "pdf", "svg"],
            )
        written.append({path.name: path.read_bytes() for path in paths})
    assert written[0] == written[1]
    assert set(written[0]) == {f"figure_1.{kind}" for kind in ("csv", "md", "png", "pdf", "svg")}
