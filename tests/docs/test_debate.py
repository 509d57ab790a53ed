"""The worked example of a workflow of one's own: found by import path, trained, drawn, tabulated."""

import json

import pandas as pd
import pytest

from rolewise.analysis.collect import write_cells
from rolewise.analysis.summarise import summarise
from rolewise.config import load, training_subset
from rolewise.evaluation.evaluate import evaluate
from rolewise.grid import base_cells, parse_cell, trained_cells
from rolewise.paper.build import build_figure, build_table
from rolewise.paper.study import load as load_study
from rolewise.runs.graph import Graph
from rolewise.runs.provenance import inputs
from rolewise.tasks.task import open_task
from rolewise.training.loop import train
from rolewise.workflows.base import topology
from tests.configs import config
from tests.study import tiny_study
from tests.workflows.scripted import PROBLEM, keys, play

EXTENSION = {"Debate": "docs.examples.debate:DEBATE"}
SETTINGS = {
    "extensions.workflows": EXTENSION,
    "grid.workflows": ["Debate"],
    "grid.tasks": ["Math"],
    "training.steps": 2,
    "training.checkpoint_every": 1,
    "evaluation.transfer_scales": [],
    "grid.single_agent": False,
    "paper.figure_format": ["png"],
}
DEBATE = topology(config(settings={"extensions.workflows": EXTENSION}), "Debate")
OPENINGS = {("debater", 0, 0): r"\boxed{1}", ("debater", 1, 0): r"\boxed{2}"}
FINALS = {("debater", 0, 1): r"\boxed{3}", ("debater", 1, 1): r"\boxed{4}"}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A debate trained for two steps under both policies, evaluated and collected."""
    tiny = tiny_study(tmp_path_factory.mktemp("debate"), SETTINGS)
    for cell in trained_cells(tiny):
        train(tiny, cell, 0)
    for cell in [*base_cells(tiny), *trained_cells(tiny)]:
        evaluate(tiny, cell, 0)
        summarise(tiny, cell, 0)
    write_cells(tiny)
    return load_study(tiny)


def test_a_debater_reads_its_own_and_the_other_answer():
    waves, outcome = play(DEBATE, config(), OPENINGS | FINALS | {"judge": r"\boxed{2}"})
    assert keys(waves) == [
        [("debater", 0, 0), ("debater", 1, 0)],
        [("debater", 0, 1), ("debater", 1, 1)],
        [("judge", 0, 0)],
    ]
    rebuttal = waves[1][0].messages
    assert rebuttal[1].content == r"\boxed{1}" and r"\boxed{2}" in rebuttal[2].content
    assert outcome.graded == ("debater", 1, 1)
    assert not outcome.parsed["judge", 0, 0].fallback


def test_an_unparsable_choice_falls_back_to_the_first_debater():
    _, outcome = play(DEBATE, config(), OPENINGS | FINALS | {"judge": "both"})
    assert outcome.graded == ("debater", 0, 1)
    assert outcome.parsed["judge", 0, 0].fallback


@pytest.mark.parametrize("prompts", ["compact", "full"])
@pytest.mark.parametrize("task", ["Math", "Code"])
def test_its_template_is_found_beside_it_in_every_set(prompts, task):
    settings = {"prompts": prompts, "extensions.workflows": EXTENSION}
    opened = open_task(config(settings=settings), task, DEBATE.prompts)
    assert "OTHER ANSWER" in opened.ask("rebuttal", PROBLEM, other="OTHER ANSWER")
    assert "1 + 1" in opened.ask("generator", PROBLEM)


def test_it_is_trained_under_both_policies(study):
    for policy, adapters in (("IP", {"debater", "judge"}), ("SP", {"shared"})):
        cell = parse_cell(study.config, f"Debate-{policy}-0.1M-Math")
        folder = Graph(study.config).layout.cell(cell, 0)
        metrics = pd.read_parquet(folder / "metrics.parquet")
        roles = metrics[metrics["role"] != "all"]
        assert set(roles["role"]) == {"debater", "judge"} and metrics["step"].max() == 2
        assert set(roles["adapter"]) == adapters
        recorded = json.loads((folder / "manifest.json").read_text())["inputs"]
        assert {"own_prompts", "workflow"} <= recorded.keys()


def test_it_is_drawn_in_figure_1(study):
    written = build_figure(study, 1)
    frame = pd.read_csv(next(path for path in written if path.suffix == ".csv"))
    texts = frame[(frame.workflow == "Debate") & (frame.policy == "IP") & (frame.kind == "text")]
    edges = set(zip(texts.source, texts.target, strict=True))
    assert {("debater:0", "debater:1"), ("debater:1", "judge:0")} <= edges
    assert any(path.suffix == ".png" and path.stat().st_size > 0 for path in written)


@pytest.mark.parametrize("number", range(1, 11))
def test_it_stands_in_every_table(study, number):
    written = build_table(study, number)
    assert {path.suffix for path in written} >= {".csv", ".md", ".tex"}
    table = next(path for path in written if path.suffix == ".csv").read_text()
    assert number not in (1, 2, 7, 8) or "Debate" in table


def test_adding_it_renews_no_other_cell_and_no_model():
    plain = load(["config.yaml"])
    own = load(["config.yaml", "docs/examples/debate.yaml"])
    cell = parse_cell(plain, "SA-RL-0.1M-Math")
    assert training_subset(plain, cell) == training_subset(own, cell)
    both = plain.model_copy(update={"extensions": own.extensions})
    assert Graph(plain).model_params("0.1M") == Graph(both).model_params("0.1M")


def test_its_own_prompts_are_part_of_its_identity_and_of_no_other(study):
    debate, voting = (
        inputs(study.config, parse_cell(c, f"{workflow}-IP-0.1M-Math"))
        for c, workflow in ((study.config, "Debate"), (config(), "Voting"))
    )
    assert debate.keys() - voting.keys() == {"own_prompts", "workflow"}
    assert debate["prompts"] == voting["prompts"]
