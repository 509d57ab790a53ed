import json

import numpy as np
import pandas as pd
import pytest

from rolewise.analysis.sources import read_log
from rolewise.analysis.summarise import cost, summarise
from rolewise.errors import DataError
from rolewise.grid import Cell
from rolewise.records import CALLS, GRADIENTS, METRICS, TIMINGS, write_parquet
from rolewise.runs.state import StateDir
from tests import configs, synthetic

CELL = Cell("Voting", "IP", "0.1M", "Math")


def unsummarise(config, layout, cell):
    """Turn the tables of a cell back into what a run leaves: logs and shards of calls."""
    folder, shards = layout.cell(cell, 0), layout.evaluation_state(config, cell, 0)
    calls = pd.read_parquet(folder / "trajectories.parquet")
    for step, rows in calls.groupby("step"):
        write_parquet(shards / f"calls_{step:06d}.parquet", rows[list(CALLS)], CALLS)
    if cell.trained:
        state = StateDir(layout.training_state(config, cell, 0))
        for name in ("metrics", "gradients", "timings"):
            rows = pd.read_parquet(folder / f"{name}.parquet").astype(object)
            state.append(name, rows.where(rows.notna(), None).to_dict("records"))
    kept = {name: pd.read_parquet(folder / name) for name in _tables(folder)}
    for name in ("trajectories.parquet", "metrics.parquet", "summary.json"):
        (folder / name).unlink(missing_ok=True)
    return kept, folder


def _tables(folder):
    return [path.name for path in folder.glob("*.parquet")]


@pytest.fixture
def run(tmp_path):
    """A finished run of one cell and its base, before it is summarised."""
    settings = {
        "grid.workflows": ["Voting"], "grid.policies": ["IP"], "grid.tasks": ["Math"],
        "grid.single_agent": False, "evaluation.transfer_scales": [],
    }  # fmt: skip
    config = configs.config(tmp_path, settings=settings)
    layout = synthetic.write_study(tmp_path, config)
    return config, layout


def test_a_cell_is_summarised_from_its_logs_and_shards_and_regraded_by_the_real_grader(run):
    config, layout = run
    folder = layout.cell(CELL, 0)
    before = json.loads((folder / "summary.json").read_text())
    kept, folder = unsummarise(config, layout, CELL)
    summarise(config, CELL, 0)
    assert json.loads((folder / "summary.json").read_text()) == before
    order = ["step", "problem", "call"]
    again = pd.read_parquet(folder / "trajectories.parquet").sort_values(order)
    truth = kept["trajectories.parquet"].sort_values(order)
    for column in ("text", "checkpoint", "role_correct", "answer"):
        ours, expected = again[column].tolist(), truth[column].tolist()
        assert [a for a in ours if not pd.isna(a)] == [a for a in expected if not pd.isna(a)]
    pd.testing.assert_frame_equal(
        pd.read_parquet(folder / "metrics.parquet"), kept["metrics.parquet"], check_dtype=False
    )


def test_a_base_cell_has_trajectories_and_no_training_files(run):
    config, layout = run
    base = Cell("Voting", "Base", "0.1M", "Math")
    _, folder = unsummarise(config, layout, base)
    summarise(config, base, 0)
    names = {path.name for path in folder.iterdir()}
    assert "trajectories.parquet" in names and "metrics.parquet" not in names
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["steps"] == {"base": 0} and "gain" not in summary and "cost" not in summary


def test_a_missing_shard_is_named(run):
    config, layout = run
    unsummarise(config, layout, CELL)
    best = layout.evaluation_state(config, CELL, 0)
    shard = next(best.glob("calls_*.parquet"))
    shard.unlink()
    with pytest.raises(DataError, match=shard.name):
        summarise(config, CELL, 0)


def test_a_log_that_ends_before_the_last_checkpoint_is_an_error(run):
    config, layout = run
    unsummarise(config, layout, CELL)
    StateDir(layout.training_state(config, CELL, 0)).truncate("metrics", 20)
    with pytest.raises(DataError, match="ends at step 20, but checkpoint 40"):
        summarise(config, CELL, 0)


def test_a_log_row_that_breaks_the_contract_is_named(tmp_path):
    good = dict.fromkeys(TIMINGS, 1)
    StateDir(tmp_path).append("timings", [good])
    assert read_log(tmp_path, "timings", TIMINGS).shape == (1, len(TIMINGS))
    StateDir(tmp_path).append("timings", [good | {"extra": 1}])
    with pytest.raises(DataError, match="row 2: keys missing or unknown: extra"):
        read_log(tmp_path, "timings", TIMINGS)
    with pytest.raises(DataError, match=r"metrics\.jsonl: no such file"):
        read_log(tmp_path, "metrics", METRICS)


def test_costs_add_up_over_attempts_and_the_manifest_wins():
    rows = [
        (1, 1, "sample", 2.0, 1.0, 100), (1, 1, "update", 1.0, 1.0, 40),
        (2, 2, "sample", 2.0, 1.0, 100), (2, 2, "evaluate", 3.0, 3.0, 500),
    ]  # fmt: skip
    timings = pd.DataFrame(rows, columns=list(TIMINGS))
    found = cost(timings, {"cpu_s": 9.0, "peak_memory_mb": 512.0})
    assert (found["tokens_sampled"], found["tokens_trained"]) == (200, 40)
    assert (found["wall_s"], found["cpu_s"], found["attempts"]) == (8.0, 9.0, 2)
    assert found["peak_memory_mb"] == 512
    assert found["phases"]["sample"] == {"wall_s": 4.0, "cpu_s": 2.0}


def test_synthetic_logs_have_the_contracts_columns():
    config = configs.config()
    rng = np.random.default_rng(0)
    assert list(synthetic.metric_rows(config, CELL, rng)) == list(METRICS)
    assert list(synthetic.gradient_rows(config, CELL, rng)) == list(GRADIENTS)
