"""The loop end to end on a tiny study: it resumes bit-exactly, extends, refuses and counts."""

import hashlib
import json

import pandas as pd
import pytest

from rolewise.analysis.summarise import summarise
from rolewise.config import for_cell
from rolewise.errors import ConfigError, Interrupted, RolewiseError, StateError, TrainingError
from rolewise.evaluation.evaluate import evaluate
from rolewise.evaluation.swap import mixtures, swap_roles
from rolewise.evaluation.transfer import transfer
from rolewise.grid import parse_cell
from rolewise.runs.layout import layout
from rolewise.runs.state import StateDir
from rolewise.tasks.problem import Problem
from rolewise.training.loop import (
    check_roles,
    checkpoint_steps,
    problems_of_step,
    starts_of_step,
    train,
)
from rolewise.workflows.voting import VOTING
from tests.configs import config as small_config
from tests.study import tiny_study

CELLS = ("Voting-IP-0.1M-Math", "Orch-Workers-SP-0.1M-Math")
# What may differ between an interrupted and an uninterrupted run: clocks and attempts.
TIMED = ("timings.jsonl", "attempts.jsonl", "lock", "LATEST")


def state_of(config, name):
    cell = parse_cell(config, name)
    return StateDir(layout(config).training_state(config, cell, 0))


def fingerprint(config, name) -> dict[str, str]:
    """Content of everything a training leaves behind, timings apart."""
    path = state_of(config, name).path
    found = {
        str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name not in TIMED and file.suffix != ".jsonl"
    }
    for log in ("metrics", "gradients"):
        found[log] = json.dumps(StateDir(path).rows(log))
    return found


def run(config, name, seed=0):
    return train(config, parse_cell(config, name), seed)


@pytest.mark.parametrize("name", CELLS)
def test_an_interrupted_run_ends_like_an_uninterrupted_one(tmp_path, name):
    straight = tiny_study(tmp_path / "a")
    run(straight, name)
    settings = {"training.max_wall": 1e-9}
    stopped = tiny_study(tmp_path / "b", settings)
    attempts = 0
    while True:
        attempts += 1
        try:
            run(stopped, name)
            break
        except Interrupted as stop:
            assert stop.exit_code == 75
    assert attempts == 4
    again = {k: v for k, v in fingerprint(stopped, name).items() if "identity" not in k}
    whole = {k: v for k, v in fingerprint(straight, name).items() if "identity" not in k}
    # Bases of adapters are named by their folders, which differ between the two studies.
    assert {k for k in again if again[k] != whole[k]} <= {
        k for k in again if k.endswith(("adapter_config.json", "files.json"))
    }


def test_policy_ratios_are_measured_as_often_as_asked_and_change_nothing(tmp_path):
    name = CELLS[0]
    every, rarely = (
        tiny_study(tmp_path / str(n), {"ledger.ratios_every": n, "training.steps": 4})
        for n in (1, 3)
    )
    run(every, name)
    run(rarely, name)
    logs = {}
    for key, config in (("every", every), ("rarely", rarely)):
        logs[key] = pd.DataFrame(state_of(config, name).rows("metrics"))
    measured = logs["rarely"].dropna(subset=["chi2_update"])
    assert set(measured.step) == {1, 3}
    assert logs["every"].chi2_update.notna().all()
    assert (
        logs["rarely"]
        .loc[measured.index, "chi2_update"]
        .equals(logs["every"].loc[measured.index, "chi2_update"])
    )
    assert logs["rarely"].grad_norm.equals(logs["every"].grad_norm)


def test_more_steps_continue_and_equal_a_longer_run(tmp_path):
    name = CELLS[0]
    short = tiny_study(tmp_path, {"training.steps": 2})
    run(short, name)
    longer = tiny_study(tmp_path)
    run(longer, name)
    assert [row["step"] for row in state_of(longer, name).rows("metrics") if row["role"] == "all"] == [
        1, 2, 3, 4,
    ]  # fmt: skip
    extended = fingerprint(longer, name)
    fresh = tiny_study(tmp_path / "fresh")
    run(fresh, name)
    for key, value in fingerprint(fresh, name).items():
        if key.endswith(".safetensors") or key == "metrics":
            assert extended[key] == value


def test_a_finished_run_only_rewrites_its_manifest(tmp_path):
    config = tiny_study(tmp_path)
    manifest = run(config, CELLS[0])
    before = fingerprint(config, CELLS[0])
    manifest.unlink()
    run(config, CELLS[0])
    assert manifest.is_file() and fingerprint(config, CELLS[0]) == before


def test_other_data_under_the_same_configuration_is_refused(tmp_path):
    config = tiny_study(tmp_path)
    run(config, CELLS[0])
    file = layout(config).data("Math") / "manifest.json"
    content = json.loads(file.read_text())
    content["files"]["train.jsonl"] = "0" * 64
    file.write_text(json.dumps(content))
    with pytest.raises(StateError, match="inputs"):
        run(config, CELLS[0])


def test_a_damaged_last_checkpoint_and_a_torn_log_are_survived(tmp_path):
    config = tiny_study(tmp_path)
    run(config, CELLS[0])
    whole = fingerprint(config, CELLS[0])
    state = state_of(config, CELLS[0])
    (state.checkpoint(4) / "optimizer.safetensors").write_bytes(b"")
    log = state.path / "metrics.jsonl"
    log.write_bytes(log.read_bytes()[:-50])
    run(config, CELLS[0])
    assert fingerprint(config, CELLS[0]) == whole


@pytest.mark.parametrize(
    "name", ["Eval-Opt-SP-0.1M-Code", "Eval-Opt-IP-0.1M-Math", "SA-RL-0.1M-Code", CELLS[1]]
)
def test_every_topology_trains_and_evaluates(tmp_path, name):
    config = tiny_study(tmp_path, {"training.steps": 2})
    manifest = json.loads(run(config, name).read_text())
    assert manifest["episodes"] == 2 * 3 * 4
    assert list(manifest["checkpoints"]) == ["2"]
    evaluate(config, parse_cell(config, name), 0)
    table = (layout(config).cell(parse_cell(config, name), 0) / "accuracy.csv").read_text()
    assert len(table.splitlines()) == 4


def test_own_role_rewards_differ_from_the_outcome(tmp_path):
    name = CELLS[0]
    config = tiny_study(tmp_path, {"training.advantage.reward": "role", "training.steps": 2})
    run(config, name)
    rows = state_of(config, name).rows("metrics")
    spread = {row["role"]: row["advantage_std"] for row in rows if row["step"] == 1}
    assert spread["generator"] != spread["aggregator"]


def test_base_evaluation_equals_untrained_adapters_and_transfer_runs(tmp_path):
    config = tiny_study(tmp_path, {"training.steps": 2})
    run(config, "SA-RL-0.1M-Math")
    evaluate(config, parse_cell(config, "SA-RL-0.1M-Math"), 0)
    evaluate(config, parse_cell(config, "Voting-Base-0.1M-Math"), 0)
    summary = json.loads(transfer(config, "Voting", "0.1M", "Math", 0).read_text())
    assert summary["step"] == 2 and summary["accuracy"]["report"]["n"] == 10


def test_checkpoints_are_regular_and_end_with_the_last_step(tmp_path):
    def steps(total, every):
        made = tiny_study(tmp_path, {"training.steps": total, "training.checkpoint_every": every})
        return checkpoint_steps(for_cell(made, parse_cell(made, CELLS[0])))

    assert steps(40, 10) == [10, 20, 30, 40]
    assert steps(25, 10) == [10, 20, 25]
    assert steps(3, 10) == [3]


def test_problems_come_in_epochs_of_every_problem_once():
    problems = list(range(7))
    drawn = [p for step in range(1, 8) for p in problems_of_step(problems, step, 3, seed=0)]
    assert len(drawn) == 21
    for epoch in range(3):
        assert sorted(drawn[7 * epoch : 7 * (epoch + 1)]) == problems
    assert problems_of_step(problems, 1, 3, 0) != problems_of_step(problems, 1, 3, 1)


def test_a_problem_that_a_step_sees_twice_is_sampled_anew():
    once, twice = Problem("a", "Math", ""), Problem("b", "Math", "")
    starts = starts_of_step([twice, once, twice], 2)
    assert [(p.id, k) for p, k in starts] == [
        ("b", 0), ("b", 1), ("a", 0), ("a", 1), ("b", 2), ("b", 3),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"training.train_roles": ["generater"]}, "'generater' is not one of"),
        ({"training.train_roles": ["worker"]}, "Voting has none of"),
        ({"training.train_roles": []}, "Voting has none of"),
        ({"training.loss.kl_anchor": {"judge": 0.1}}, "'judge' is not one of"),
    ],
)
def test_settings_by_role_that_would_do_nothing_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        check_roles(small_config(settings=settings), VOTING)


def test_settings_by_role_may_name_roles_of_other_workflows():
    settings = {"training.train_roles": ["generator", "worker"]}
    check_roles(small_config(settings=settings), VOTING)


def test_role_swap_evaluates_every_mixture_once(tmp_path):
    name = CELLS[1]
    config = tiny_study(tmp_path, {"training.steps": 2})
    run(config, name)
    evaluate(config, parse_cell(config, name), 0)
    frame = pd.read_parquet(swap_roles(config, parse_cell(config, name), 0))
    assert frame.groupby("trained").size().to_dict() == {
        mixture: 20
        for mixture in (
            "orchestrator", "worker", "synthesizer", "worker+synthesizer",
            "orchestrator+synthesizer", "orchestrator+worker",
        )
    }  # fmt: skip
    assert mixtures(("generator", "aggregator")) == [("generator",), ("aggregator",)]
    with pytest.raises(RolewiseError, match="several roles"):
        swap_roles(config, parse_cell(config, "SA-RL-0.1M-Math"), 0)


def test_checkpoints_that_no_analysis_needs_can_go(tmp_path):
    name = CELLS[0]
    settings = {"training.checkpoint_every": 1, "training.keep_checkpoints": "analysis"}
    config = tiny_study(tmp_path, settings)
    cell = parse_cell(config, name)
    run(config, name)
    evaluate(config, cell, 0)
    evaluate(config, parse_cell(config, "Voting-Base-0.1M-Math"), 0)
    assert state_of(config, name).steps() == [1, 2, 3, 4]
    summary = json.loads(summarise(config, cell, 0).read_text())
    assert state_of(config, name).steps() == sorted(set(summary["steps"].values()))


def test_caps_that_no_prompt_fits_stop_the_run_with_the_key_to_change(tmp_path):
    config = tiny_study(tmp_path, {"caps.Math.prompt": {"default": 2}})
    with pytest.raises(TrainingError, match=r"caps\.Math\.prompt"):
        run(config, CELLS[0])
