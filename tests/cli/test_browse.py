"""The browsing commands, on a small synthetic study."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

from rolewise.cli import app
from rolewise.errors import RolewiseError
from tests import configs, synthetic

CELL, TWIN = "Voting-IP-0.1M-Math", "Voting-SP-0.1M-Math"
SETTINGS = {
    "grid.workflows": ["Voting"],
    "grid.tasks": ["Math"],
    "evaluation.transfer_scales": [],
    "signatures.bootstrap": 100,
}


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A folder with config.yaml and a finished study in results/."""
    home = tmp_path_factory.mktemp("home")
    config = configs.config(home / "results", settings=SETTINGS)
    synthetic.write_study(home / "results", config)
    raw = config.model_dump(mode="json") | {"results_dir": "results"}
    (home / "config.yaml").write_text(yaml.safe_dump(raw))
    return home


@pytest.fixture
def rolewise(home, monkeypatch):
    """Runs a command in `home` and returns what it prints; its RolewiseError is raised."""
    monkeypatch.chdir(home)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, arguments)
        if result.exception is not None:
            raise result.exception
        return result.output

    return run


def test_show_gives_accuracies_curves_and_cost(rolewise):
    shown = rolewise("show", CELL)
    for part in (
        f"{CELL}, seed 0",
        "terminal",
        "validation accuracy",
        "aggregator: entropy",
        "cost:",
    ):
        assert part in shown
    assert set("▁█") <= set(shown)


def test_show_needs_the_summary_only(rolewise, home, tmp_path):
    folder = tmp_path / "cells" / CELL / "seed0"
    folder.mkdir(parents=True)
    shutil.copy(home / "results" / "cells" / CELL / "seed0" / "summary.json", folder)
    assert "gain over base" in rolewise("show", CELL, "--results", str(tmp_path))


def test_trajectories_list_problems_and_mark_them(rolewise, home):
    calls = pd.read_parquet(home / "results/cells" / CELL / "seed0/trajectories.parquet")
    listed = rolewise("trajectories", CELL)
    assert all(problem in listed for problem in calls["problem"])
    always = calls.groupby("problem")["correct"].all()
    wrong = rolewise("trajectories", CELL, "--wrong")
    assert all((problem in wrong) != solved for problem, solved in always.items())


def test_trajectories_show_every_role_of_an_episode_by_number_or_id(rolewise):
    shown = rolewise("trajectories", CELL, "--problem", "5")
    assert shown == rolewise("trajectories", CELL, "--problem", "math-0005")
    assert shown.count("generator · slot") == 3 and "aggregator · slot 1" in shown
    assert "Compute 7 * 8 + 5." in shown and "<|im_start|>" not in shown
    assert "<|im_start|>user" in rolewise("trajectories", CELL, "--problem", "5", "--prompts")


def test_outputs_reach_the_terminal_literally(rolewise, home, tmp_path):
    folder = tmp_path / "cells" / CELL / "seed0"
    folder.mkdir(parents=True)
    calls = pd.read_parquet(home / "results/cells" / CELL / "seed0/trajectories.parquet")
    hostile = "\x1b[31mred\x1b]0;owned\x07 [bold]b[/bold] :smile: \u202egnirts\r\x9bm"
    fields = {name: hostile for name in ("text", "prompt", "problem")}
    calls.assign(**fields, parsed=hostile).to_parquet(folder / "trajectories.parquet")
    shown = rolewise(
        "trajectories", CELL, "--problem", "0", "--prompts", "--results", str(tmp_path)
    )
    shown += rolewise("trajectories", CELL, "--results", str(tmp_path))
    assert not {"\x1b", "\x07", "\u202e", "\r", "\x9b"} & set(shown)
    assert "\\x1b[31mred" in shown and "[bold]b[/bold] :smile:" in shown


def test_compare_pairs_two_cells_on_the_same_problems(rolewise, home):
    shown = rolewise("compare", CELL, TWIN)
    assert "40 problems" in shown and "best" in shown and "terminal" in shown
    accuracy = {}
    for name in (CELL, TWIN):
        rows = pd.read_parquet(home / "results/cells" / name / "seed0/evaluations.parquet")
        last = rows[(rows["step"] == rows["step"].max()) & (rows["split"] == "report")]
        accuracy[name] = last["correct"].mean()
    assert f"{accuracy[CELL]:.3f}  {accuracy[TWIN]:.3f}" in shown
    assert f"{accuracy[CELL] - accuracy[TWIN]:.3f} [" in shown


def test_compare_of_a_run_with_itself_finds_no_difference(rolewise):
    shown = rolewise("compare", "--results", "results", "--results", "results")
    assert CELL in shown.replace("\n", "") or "Voting" in shown
    numbers = [line for line in shown.splitlines() if " best " in line or " terminal " in line]
    assert len(numbers) == 6 and all("0.000 [" in line for line in numbers)
    assert "not decided" in rolewise("compare", CELL, CELL)


def test_compare_counts_base_once(rolewise):
    assert "base" in rolewise("compare", "Voting-Base-0.1M-Math", "Single-Base-0.1M-Math")


def test_tensorboard_reads_back_every_metric_of_every_role_once(rolewise, home, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for _ in range(2):
        assert "1 training(s)" in rolewise("tensorboard", CELL, "--to", str(tmp_path))
    metrics = pd.read_parquet(home / "results/cells" / CELL / "seed0/metrics.parquet")
    for role, rows in metrics.groupby("role"):
        run = EventAccumulator(str(tmp_path / CELL / "seed0" / role)).Reload()
        told = rows.dropna(subset="reward")
        events = run.Scalars("reward") if len(told) else []
        assert [e.step for e in events] == told["step"].tolist()
        assert [e.value for e in events] == pytest.approx(told["reward"].tolist())


def test_report_prints_where_it_is(rolewise, home):
    rolewise("collect")
    assert rolewise("report").strip() == "results/report/index.html"
    assert (home / "results/report/index.html").is_file()


def test_claims_are_counted_by_verdict(rolewise, home):
    rolewise("collect")
    *paths, counts = rolewise("claims").splitlines()
    assert paths == ["results/claims/claims.json", "results/claims/claims.md"]
    given = [claim["verdict"] for claim in json.loads((home / paths[0]).read_text())]
    verdicts = ("supported", "contradicted", "not decidable here")
    assert counts == ", ".join(f"{given.count(verdict)} {verdict}" for verdict in verdicts)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "Votng-IP-0.1M-Math"], "did you mean 'Voting-IP-0.1M-Math'"),
        (["show", CELL, "--seed", "7"], "summary.json: not there; `snakemake --cores 2 results/"),
        (["show", CELL.lower()], f"did you mean '{CELL}'"),
        (
            ["show", CELL, "--results", "nowhere"],
            "nowhere: no such results folder; --results takes",
        ),
        (["trajectories", CELL, "--problem", "999"], "hold 12 problems, math-0000 to math-0011"),
        (["trajectories", CELL, "--problem", "1", "--checkpoint", "base"], "Base twin"),
        (["trajectories", CELL, "--seed", "3"], "trajectories.parquet: not there"),
        (["tensorboard", CELL, "--seed", "4"], "no training metrics in results"),
        (["compare", CELL], "name two cells"),
        (["compare", CELL, TWIN, "--split", "train"], "choose one of select, report, all"),
        (["compare", CELL, TWIN, "--seed", "4"], "evaluations.parquet: not there"),
    ],
)
def test_mistakes_are_explained_in_one_line(rolewise, arguments, message):
    with pytest.raises(RolewiseError) as error:
        rolewise(*arguments)
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("command", ["report", "show", "trajectories", "compare", "tensorboard"])
def test_help_has_an_example(rolewise, command):
    assert "Example:" in rolewise(command, "--help")
