import json
import shutil

import numpy as np
import pandas as pd
import pytest

from rolewise.analysis import measures
from rolewise.analysis.cells import read_cells
from rolewise.analysis.collect import _passed, _training, collect
from rolewise.errors import DataError
from rolewise.grid import Cell
from rolewise.records import CELLS, METRICS
from tests import configs, synthetic

KEY = [name for name in CELLS if name not in ("value", "lo", "hi", "n")]


@pytest.fixture(scope="session")
def cells(study):
    return read_cells(study[0])


def test_the_table_has_the_contracts_columns_and_one_row_per_key(cells):
    assert list(cells) == list(CELLS)
    assert not cells.duplicated(KEY).any()
    assert len(cells) < 40_000


def test_metrics_of_an_earlier_version_are_read_without_the_later_columns(study):
    settings = study[0]
    rng = np.random.default_rng(0)
    metrics = synthetic.metric_rows(settings, Cell("Voting", "IP", "0.3M", "Math"), rng)
    found = {row["metric"] for row in _training(metrics)}
    older = {
        row["metric"] for row in _training(metrics.drop(columns=["slots", "coherence_within"]))
    }
    assert {name for name in found - older if name in METRICS} == {"slots", "coherence_within"}


def test_every_metric_is_documented(cells):
    named = {
        *measures.EVALUATED, *measures.COMPARED, *measures.DETECTED, *measures.COSTS,
        *measures.SIGNATURES, *METRICS,
        *(f"{m}_{end}" for m in measures.EXTREMES for end in ("first", "max", "min", "last")),
    }  # fmt: skip
    plain = {m for m in cells["metric"].unique() if not m.startswith(("capture_by", "captured_by"))}
    assert plain <= named


def test_reading_gives_back_what_was_collected_and_two_processes_write_the_same_bytes(study):
    config, layout = study
    path = layout.tables / "cells.csv"
    first, again = path.read_bytes(), collect(config, processes=2)
    pd.testing.assert_frame_equal(read_cells(config), again, check_dtype=False)
    assert again.to_csv(index=False).encode() == first


def test_table_1_numbers_follow_exactly_from_the_evaluation_rows(study, cells):
    _, layout = study
    for path in sorted(layout.root.glob("cells/*/seed0/summary.json")):
        summary = json.loads(path.read_text())
        rows = pd.read_parquet(path.parent / "evaluations.parquet")
        mine = cells[
            (cells.workflow == summary["workflow"])
            & (cells.policy == summary["policy"])
            & (cells.task == summary["task"])
            & (cells.variant == "")
        ]
        for name, step in summary["steps"].items():
            for split in ("select", "report"):
                part = rows[(rows.step == step) & (rows.split == split)]
                expected = part.correct.sum() / len(part)
                assert summary["accuracy"][name][split]["value"] == expected
                assert summary["accuracy"][name][split]["n"] == part.problem.nunique()
                found = mine[
                    (mine.metric == "accuracy") & (mine.step == step) & (mine.split == split)
                ]
                assert found.value.tolist() == [expected]


def test_the_gain_over_sa_is_paired_on_problems_at_the_checkpoint_of_the_same_name(study, cells):
    _, layout = study
    voting, single = Cell("Voting", "SP", "0.1M", "Math"), Cell("Single", "SA", "0.1M", "Math")
    right = {}
    for cell in (voting, single):
        folder = layout.cell(cell, 0)
        best = json.loads((folder / "summary.json").read_text())["steps"]["best"]
        rows = pd.read_parquet(folder / "evaluations.parquet")
        rows = rows[(rows.step == best) & (rows.split == "report")]
        right[cell] = rows.set_index("problem").correct.astype(float)
    expected = (right[voting] - right[single]).mean()
    row = cells[
        (cells.metric == "gain_sa") & (cells.workflow == "Voting") & (cells.policy == "SP")
        & (cells.task == "Math") & (cells.split == "report")
        & cells.checkpoint.str.contains("best")
    ]  # fmt: skip
    assert row.value.item() == pytest.approx(expected)
    assert row.lo.item() <= expected <= row.hi.item()


def test_the_cliff_and_the_captured_cell_are_found(study, cells):
    config, _ = study
    falls = cells[(cells.metric == "cliff") & (cells.value == 1)]
    fallen = {f"{r.workflow}-{r.policy}-{r.scale}-{r.task}" for r in falls.itertuples()}
    assert synthetic.cliff_cell(config).name in fallen
    taken = cells[(cells.metric == "captured_by_generator") & (cells.role == "evaluator")]
    taken = taken[taken.value == 1]
    captured = synthetic.captured_cell(config)
    assert set(zip(taken.policy, taken.task, strict=True)) == {(captured.policy, captured.task)}


def test_long_trainings_are_thinned_to_windows(tmp_path):
    settings = {
        "training.steps": 250, "training.checkpoint_every": 50, "grid.workflows": ["Voting"],
        "grid.policies": ["IP"], "grid.tasks": ["Math"], "grid.single_agent": False,
        "evaluation.transfer_scales": [],
    }  # fmt: skip
    config = configs.config(tmp_path, settings=settings)
    layout = synthetic.write_study(tmp_path, config)
    curve = read_cells(config)
    curve = curve[(curve.metric == "grad_norm") & (curve.role == "all")]
    logged = pd.read_parquet(
        layout.cell(Cell("Voting", "IP", "0.1M", "Math"), 0) / "metrics.parquet"
    )
    logged = logged[logged.role == "all"].sort_values("step").grad_norm.to_numpy()
    assert list(curve.step) == [*range(5, 251, 5)]
    assert np.allclose(curve.value, logged.reshape(50, 5).max(axis=1))


def test_a_missing_cell_is_an_error_and_on_request_a_visible_gap(tmp_path):
    settings = {"grid.workflows": ["Voting"], "grid.tasks": ["Math"]}
    config = configs.config(tmp_path, settings=settings)
    layout = synthetic.write_study(tmp_path, config)
    shutil.rmtree(layout.cell(Cell("Single", "SA", "0.1M", "Math"), 0))
    with pytest.raises(DataError, match=r"SA-RL-0\.1M-Math/seed0"):
        collect(config)
    found = collect(config, allow_missing=True)
    gap = found[found.metric == measures.MISSING]
    assert gap[["policy", "task", "n"]].values.tolist() == [["SA", "Math", 0]]
    assert gap.value.isna().all()
    assert not (found.metric == "gain_sa").any() and (found.metric == "gain_base").any()


def test_interventions_and_seeds_are_compared_with_their_plain_cell_of_the_same_seed(tmp_path):
    settings = {
        "grid.workflows": ["Voting"], "grid.policies": ["IP"], "grid.tasks": ["Math"],
        "grid.single_agent": False, "evaluation.transfer_scales": [], "seeds": [0, 1],
        "grid.variants": [{"name": "one-vote", "set": {"workflow.votes": 1}, "seeds": [1]}],
    }  # fmt: skip
    config = configs.config(tmp_path, settings=settings)
    layout = synthetic.write_study(tmp_path, config)
    cells = read_cells(config)
    assert set(cells[cells.variant == ""].seed) == {0, 1}
    found = cells[(cells.metric == "minus_plain") & (cells.split == "all")]
    assert set(found.variant) == {"one-vote"} and set(found.seed) == {1}
    last = found[found.checkpoint == "terminal"]
    rates = [
        pd.read_parquet(layout.cell(Cell("Voting", "IP", "0.1M", "Math", name), 1)
                        / "evaluations.parquet").query("step == 40").correct.mean()
        for name in ("one-vote", "")
    ]  # fmt: skip
    assert last.value.item() == pytest.approx(rates[0] - rates[1])


def test_pass_at_k_is_the_share_solved_by_any_of_all_samples():
    rows = [
        {"step": 10, "problem": p, "split": split, "sample": k, "correct": correct}
        for p, split, outcomes in (("a", "select", (1, 0)), ("b", "report", (0, 0)))
        for k, correct in enumerate(outcomes)
    ]
    found = {row["split"]: row["value"] for row in _passed(pd.DataFrame(rows), {10: "best"}, 50)}
    assert found == {"select": 1.0, "report": 0.0, "all": 0.5}
    single = pd.DataFrame(rows).query("sample == 0")
    assert list(_passed(single, {10: "best"}, 50)) == []
