"""The report's pure parts: charts, tables, shards, advice, colours."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

import rolewise.report
from rolewise.analysis.cells import read_cells
from rolewise.analysis.claims import judge
from rolewise.analysis.evidence import Evidence
from rolewise.report.captured import captured_calls
from rolewise.report.charts import HEIGHT, WIDTH, Series, line_chart, spark_points
from rolewise.report.episodes import build_shards, reference
from rolewise.report.guidance import RULES, guidance
from rolewise.report.tables import parse_markdown, read_exhibits
from rolewise.tasks.problem import Problem, Test

STATIC = Path(rolewise.report.__file__).parent / "static"


def points(text: str) -> list[tuple[float, float]]:
    return [tuple(map(float, pair.split(","))) for pair in text.split()]


def test_chart_spans_its_frame_and_keeps_within_it():
    chart = line_chart("t", [Series("a", [0, 5, 10], [1.0, 3.0, 2.0])])
    drawn = points(chart.lines[0]["path"])
    assert [x for x, _ in drawn] == [chart.left, (chart.left + chart.right) / 2, chart.right]
    assert min(drawn, key=lambda p: p[1])[0] == drawn[1][0]
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in drawn)
    assert "first 1, lowest 1, highest 3, last 2" in chart.summary


def test_chart_of_nothing_is_none_and_unknown_values_are_left_out():
    nan = float("nan")
    assert line_chart("t", []) is None
    assert line_chart("t", [Series("a", [1, 2], [nan, nan])]) is None
    chart = line_chart("t", [Series("a", [1, 2, 3], [0.1, nan, 0.3])])
    assert [x for x, _ in chart.values["series"][0]["points"]] == [1, 3]


def test_chart_with_fixed_bounds_clips_its_band():
    series = Series("a", [0, 1], [0.1, 0.9], lo=[-0.2, 0.8], hi=[0.4, 1.3])
    chart = line_chart("t", [series], bounds=(0.0, 1.0))
    ys = [y for _, y in points(chart.lines[0]["band"])]
    assert min(ys) == chart.top and max(ys) == chart.bottom


def test_spark_keeps_a_common_scale():
    low, high = points(spark_points([0.0, 1.0]))
    assert low[1] > high[1] and low[0] < high[0]


def test_markdown_tables_read_back_with_escaped_bars_and_alignment():
    text = "**Table 1. T.** Some caption.\n\n| a | b\\|c |\n|:---|---:|\n| x\\|y | 1 |\n"
    prose, [grid] = parse_markdown(text)
    assert prose == "**Table 1. T.** Some caption."
    assert (grid.head, grid.numeric, grid.rows) == (["a", "b|c"], [False, True], [["x|y", "1"]])


def test_exhibits_are_numbered_with_title_caption_and_files(tmp_path):
    for number in (10, 2):
        (tmp_path / f"figure_{number}.md").write_text(f"**Figure {number}. On X.** Says *much*.\n")
        (tmp_path / f"figure_{number}.png").write_bytes(b"")
    (tmp_path / "figure_notes.md").write_text("no figure")
    first, second = read_exhibits(tmp_path, "figure")
    assert (first.number, second.number) == (2, 10)
    assert (first.title, first.caption) == ("On X", "Says *much*.")
    assert first.picture == "figure_2.png" and len(first.files) == 2


def call(problem: str, step: int = 10, **changes) -> dict:
    return {
        "step": step, "checkpoint": "best+terminal", "problem": problem, "sample": 0, "role": "g",
        "slot": 0, "turn": 0, "call": 0, "prompt": "p", "text": "t", "tokens": 1,
        "prompt_tokens": 1, "finish_reason": "stop", "entropy": float("nan"), "parsed": None,
        "fallback": False, "answer": None, "role_correct": None, "graded": True, "correct": True,
        "reward": 1.0, "captured": False,
    } | changes  # fmt: skip


def test_index_marks_roles_by_bit_and_keeps_gaps_null():
    calls = pd.DataFrame(
        [
            call("a"),
            call("a", role="h", call=1, role_correct=False, fallback=True, graded=False),
            call("b", correct=False, captured=True, role_correct=True),
        ]
    )
    shards = build_shards(calls, {}, ("g", "h"))
    episodes = shards.index["episodes"]
    assert (episodes["wrong"], episodes["fallback"], episodes["captured"]) == (
        [2, 0],
        [2, 0],
        [0, 1],
    )
    assert episodes["correct"] == [1, 0]
    assert shards.index["checkpoints"] == [{"step": 10, "names": ["best", "terminal"]}]
    assert shards.chunks[0]["calls"][0][0][8] is None
    assert shards.chunks[0]["strings"] == ["p", "t"]


def test_long_texts_are_spread_over_chunks_with_each_problem_whole():
    calls = pd.DataFrame(
        [
            call(f"p{i}", step, prompt=f"{i}", text=f"{i}.{step}" * 30_000)
            for i in range(6)
            for step in (1, 2)
        ]
    )
    shards = build_shards(calls, {}, ("g",))
    assert shards.index["chunks"] == len(shards.chunks) > 1
    assert sum(len(chunk["calls"]) for chunk in shards.chunks) == 12
    for _, _, chunk in shards.index["problems"]:
        assert 0 <= chunk < len(shards.chunks)


def test_reference_is_the_answer_or_the_first_tests():
    assert reference(Problem("a", "Math", "?", answer="7")) == "7"
    tests = tuple(Test(f"{i}\n", f"{i + 1}\n") for i in range(5))
    assert reference(Problem("b", "Code", "?", tests=tests)).endswith("2 → 3\nand 2 more tests")


def test_captured_outputs_are_solutions_or_long_verdicts_of_supporting_roles(config):
    program = "```python\na = 1\nprint(a)\n```\n\\boxed{Correct}"
    rows = [
        call("a", role="generator", text=program, parsed=None),
        call("a", role="evaluator", text=program, parsed="Correct", tokens=5),
        call("a", role="evaluator", text="\\boxed{Correct}", parsed="Correct", tokens=5),
        call("a", role="evaluator", text="\\boxed{Correct}", parsed="Correct", tokens=500),
        call("a", role="orchestrator", text="STRATEGY 1: so \\boxed{4}", parsed='{"1": "so"}'),
        call("a", role="orchestrator", text="STRATEGY 1: add", parsed='{"1": "add"}'),
    ]
    found = captured_calls(pd.DataFrame(rows), config.signatures)
    assert found.tolist() == [False, True, False, True, True, False]


def test_advice_rests_on_decided_claims_only():
    decided = {"id": "3a", "verdict": "contradicted"}
    [(topic, [advice])] = guidance([decided, {"id": "4", "verdict": "not decidable here"}]).items()
    assert topic == "Which policy" and "SP" in advice.text and advice.claim is decided
    assert guidance([]) == {}


def test_every_rule_names_a_claim_of_the_ledger(config, layout):
    known = {claim.id for claim in judge(Evidence(config, read_cells(config)))}
    assert {rule.id for rule in RULES} <= known


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_colours_have_readable_contrast(theme):
    css = (STATIC / "report.css").read_text()
    blocks = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", blocks[theme]))
    pairs = [("ink", "paper"), ("ink", "panel"), ("quiet", "paper"), ("quiet", "panel"),
             ("accent", "paper"), ("accent", "panel"), ("accent", "info-ground"),
             ("right", "right-ground"), ("wrong", "wrong-ground"), ("warn", "warn-ground")]  # fmt: skip
    for front, ground in pairs:
        high, low = sorted((luminance(colours[front]), luminance(colours[ground])), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, (front, ground)
