"""Status, audit and cleaning: what they see, and what they never touch."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pandas as pd
import pytest
import yaml

from rolewise.config import digest, training_subset
from rolewise.errors import RolewiseError, StateError
from rolewise.evaluation.evaluate import check_inputs
from rolewise.grid import Cell
from rolewise.runs import clean, provenance
from rolewise.runs.audit import audit
from rolewise.runs.layout import layout
from rolewise.runs.state import StateDir
from rolewise.runs.status import cell_status, last_line, study_status
from tests.configs import config, raw

CELL = Cell("Voting", "IP", "0.1M", "Math")


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = config("results")
    places = layout(settings)
    for folder in (places.data("Math"), places.data("Code"), places.model("0.1M")):
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text(json.dumps({"files": {"a": "00"}}))
    return settings


def status_of(settings):
    return cell_status(settings, layout(settings), CELL, 0)


def begin_training(settings, steps=20, seconds=3.0):
    state = StateDir(layout(settings).training_state(settings, CELL, 0))
    for step in range(1, steps + 1):
        state.append("metrics", [{"step": step, "role": r, "reward": 0.5} for r in ("a", "all")])
        state.append("timings", [{"step": step, "wall_s": seconds / 2} for _ in range(2)])
    return state


def finish_training(settings, **changes):
    subset = training_subset(settings, CELL)
    extra = {"steps": settings.training.steps, "code": [provenance.code_fingerprint()]}
    manifest = provenance.manifest(settings, CELL, 0, subset, extra) | changes
    folder = layout(settings).cell(CELL, 0)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    layout(settings).training_state(settings, CELL, 0).mkdir(parents=True, exist_ok=True)
    return folder


def test_every_cell_waits_at_first(study):
    found = study_status(study)
    assert {item.state for item in found} == {"waiting"}
    assert len(found) == 14 + 8


def test_a_running_training_shows_progress_and_time_left(study):
    state = begin_training(study)
    with state.lock():
        seen = status_of(study)
    assert (seen.state, seen.step, seen.steps, seen.reward) == ("training", 20, 40, 0.5)
    assert seen.eta_s == pytest.approx(20 * 3.0)


def test_a_killed_training_is_stopped_and_has_no_time_left(study):
    begin_training(study)
    seen = status_of(study)
    assert (seen.state, seen.step, seen.eta_s) == ("stopped", 20, None)


@pytest.mark.parametrize(
    ("line", "state"),
    [
        ("rolewise: error: non-finite loss at step 7", "failed"),
        ("RuntimeError: out of memory", "failed"),
        (
            "rolewise: error: stopped by SIGTERM; saved; rerun the same command to continue",
            "stopped",
        ),
    ],
)
def test_the_last_log_line_tells_failures_from_stops(study, line, state):
    begin_training(study)
    log = layout(study).log("train", CELL, 0)
    log.parent.mkdir(parents=True)
    log.write_text(f"step 6\n{line}\n\n")
    seen = status_of(study)
    assert (seen.state, seen.note) == (state, line)


def test_a_cell_advances_from_trained_to_done(study):
    begin_training(study, steps=40)
    folder = finish_training(study)
    assert status_of(study).state == "trained"
    (folder / "evaluations.parquet").write_text("")
    rows = "step,split,accuracy,reward,n\n0,report,0.2,0,9\n40,report,0.5,0,9\n40,all,0.9,0,9\n"
    (folder / "accuracy.csv").write_text(rows)
    assert (status_of(study).state, status_of(study).accuracy) == ("evaluated", 0.5)
    (folder / "summary.json").write_text(json.dumps({"peak": {"value": 0.625}}))
    assert (status_of(study).state, status_of(study).accuracy) == ("done", 0.625)


def test_a_stopped_rerun_is_not_done_although_the_old_summary_stands(study):
    begin_training(study, steps=33)
    folder = layout(study).cell(CELL, 0)
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text("{}")
    assert (status_of(study).state, status_of(study).step) == ("stopped", 33)
    finish_training(study)
    layout(study).evaluation_state(study, CELL, 0).mkdir(parents=True)
    assert status_of(study).state == "trained"


def test_results_from_elsewhere_are_done_without_state(study):
    folder = layout(study).cell(CELL, 0)
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text("{}")
    assert status_of(study).state == "done"


def test_the_last_line_of_a_long_log_is_found(tmp_path):
    (tmp_path / "log").write_text("x" * 10_000 + "\nlast words \n\n")
    assert last_line(tmp_path / "log") == "last words"
    assert last_line(tmp_path / "none") == ""


def test_a_result_of_the_present_study_is_not_stale(study):
    finish_training(study)
    assert audit(study) == []


def test_changed_settings_are_named_and_a_plain_rerun_renews(study):
    finish_training(study)
    changed = config("results", settings={"training.optimizer.lr": 0.5})
    [stale] = audit(changed)
    assert stale.reasons == ("training.optimizer.lr: 2e-05 then, 0.5 now",)
    assert stale.command == (
        "snakemake results/cells/Voting-IP-0.1M-Math/seed0/summary.json --cores all"
    )
    [named] = audit(changed, [Path("a.yaml"), Path("b.yaml")])
    assert named.command == f"{stale.command} --configfile a.yaml b.yaml"


def test_more_steps_make_a_result_stale(study):
    finish_training(study)
    [stale] = audit(config("results", settings={"training.steps": 80}))
    assert stale.reasons == ("training.steps: 40 then, 80 now",)


@pytest.mark.parametrize("content", ["{", "{}", "[]"])
def test_a_damaged_manifest_makes_a_result_stale(study, content):
    manifest = finish_training(study) / "manifest.json"
    manifest.write_text(content)
    [stale] = audit(study)
    assert stale.reasons == ("manifest.json: damaged",)
    assert stale.command.endswith(f"--forcerun {manifest}")


@pytest.mark.parametrize("what", ["data", "code"])
def test_changed_inputs_and_code_need_a_fresh_state(study, what):
    if what == "data":
        finish_training(study)
        manifest = layout(study).data("Math") / "manifest.json"
        manifest.write_text(json.dumps({"files": {"a": "11"}}))
    else:
        finish_training(study, code=["000000000000"])
    [stale] = audit(study)
    assert stale.reasons[0].startswith(what)
    clean_up, _, renew = stale.command.partition(" && ")
    assert clean_up == "rolewise clean --state --cell Voting-IP-0.1M-Math --seed 0 --yes"
    manifest = "results/cells/Voting-IP-0.1M-Math/seed0/manifest.json"
    assert renew.endswith(f" --forcerun {manifest}")


def test_a_changed_evaluation_setting_makes_evaluations_stale(study):
    folder = finish_training(study)
    (folder / "evaluations.parquet").write_text("")
    layout(study).evaluation_state(study, CELL, 0).mkdir(parents=True)
    assert audit(study) == []
    [stale] = audit(config("results", settings={"evaluation.samples": 4}))
    assert stale.reasons[0].startswith("evaluation")
    assert "evaluations.parquet" in stale.command


def test_a_base_evaluation_of_another_model_is_stale(study):
    base = CELL.base
    folder = layout(study).cell(base, 0)
    folder.mkdir(parents=True)
    (folder / "evaluations.parquet").write_text("")
    check_inputs(study, base, 0)
    assert audit(study) == []
    manifest = layout(study).model("0.1M") / "manifest.json"
    manifest.write_text(json.dumps({"files": {"a": "11"}}))
    [stale] = audit(study)
    assert stale.reasons == ("model: its content has changed",)
    assert stale.command.startswith("rolewise clean --state --cell Voting-Base-0.1M-Math")
    assert stale.command.endswith("evaluations.parquet")
    with pytest.raises(StateError, match=r"inputs\.model"):
        check_inputs(study, base, 0)


def test_a_trained_cell_is_not_evaluated_on_another_model_than_its_own(study):
    finish_training(study)
    state = StateDir(layout(study).training_state(study, CELL, 0))
    state.check_identity(provenance.identity(study, CELL, training_subset(study, CELL)))
    manifest = layout(study).model("0.1M") / "manifest.json"
    manifest.write_text(json.dumps({"files": {"a": "11"}}))
    with pytest.raises(StateError, match=r"inputs\.model"):
        check_inputs(study, CELL, 0)


def evaluations(correct):
    rows = {"step": 5, "problem": "p", "sample": 0, "correct": correct, "reward": 1.0, "tokens": 7}
    return pd.DataFrame([rows])


def finish_evaluation(settings, correct):
    """A shard and, made from it, the cell's evaluations."""
    shards = layout(settings).evaluation_state(settings, CELL, 0)
    shards.mkdir(parents=True, exist_ok=True)
    evaluations(correct).to_parquet(shards / "evaluations_000005.parquet")
    evaluations(correct).to_parquet(layout(settings).cell(CELL, 0) / "evaluations.parquet")
    return shards


def test_state_is_a_leftover_once_a_result_of_this_configuration_replaces_it(study):
    other = config("results", settings={"training.optimizer.lr": 0.5})
    begin_training(study)
    old = begin_training(other).path
    assert clean.leftovers(study) == []
    assert [item.path for item in clean.kept(study)] == [old]
    finish_training(study)
    [item] = clean.leftovers(study)
    assert (item.path, clean.kept(study)) == (old, [])
    assert item.size > 0
    clean.remove([item])
    assert clean.leftovers(study) == []
    assert layout(study).training_state(study, CELL, 0).is_dir()


def test_state_behind_the_results_at_hand_is_no_leftover(study):
    other = config("results", settings={"training.optimizer.lr": 0.5})
    begin_training(study)
    finish_training(other)
    shards = finish_evaluation(other, True)
    assert clean.leftovers(study) == []
    assert shards in [item.path for item in clean.kept(study)]


def test_shards_are_leftovers_only_if_the_evaluations_are_of_this_configuration(study):
    more = config("results", settings={"evaluation.samples": 2})
    finish_training(study)
    own = finish_evaluation(study, True)
    theirs = finish_evaluation(more, False)
    assert clean.leftovers(study) == []
    assert [item.path for item in clean.leftovers(more)] == [own]
    finish_evaluation(study, True)
    assert [item.path for item in clean.leftovers(study)] == [theirs]


def test_state_of_a_cell_outside_the_grid_is_no_leftover(study):
    state = begin_training(study)
    smaller = config("results", settings={"grid.workflows": ["Eval-Opt"]})
    assert clean.leftovers(smaller) == []
    assert [item.path for item in clean.kept(smaller)] == [state.path]


HOLD = """
    import sys, time
    from rolewise.config import load
    from rolewise.runs.graph import hold
    print(hold(load(["config.yaml"])), flush=True)
    time.sleep(60)
"""


def test_the_configuration_of_a_running_snakemake_is_no_leftover(study):
    Path("config.yaml").write_text(yaml.safe_dump(raw() | {"preset": "other"}))
    command = [sys.executable, "-c", textwrap.dedent(HOLD)]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    settled = Path(run.stdout.readline().strip())
    assert clean.leftovers(study) == []
    clean.remove([clean.Removable(settled, 1, "listed before the run began")])
    assert settled.is_file()
    run.kill()
    run.communicate()
    assert [item.path for item in clean.leftovers(study)] == [settled]


def test_state_is_selected_by_cell_and_seed(study):
    begin_training(study)
    name = digest(training_subset(study, CELL))
    [item] = clean.state_of(study, ["Voting-IP-0.1M-Math"], [0])
    assert item.path.name == f"train-{name}"
    assert clean.state_of(study, ["Voting-SP-0.1M-Math"], []) == []
    assert clean.state_of(study, [], [1]) == []
    with pytest.raises(RolewiseError, match=r"did you mean 'Voting-IP-0\.1M-Math"):
        clean.state_of(study, ["Votin-IP-0.1M-Math"], [])


def test_state_in_use_is_not_deleted(study):
    state = begin_training(study)
    items = clean.state_of(study, [], [])
    with state.lock(), pytest.raises(StateError, match="in use"):
        clean.remove(items)
    assert state.path.is_dir()


def test_a_running_training_is_seen_from_another_process(study):
    program = """
        import os, sys, time
        from rolewise.runs.state import StateDir
        with StateDir(sys.argv[1]).lock():
            print("held", flush=True)
            time.sleep(60)
    """
    state = begin_training(study)
    command = [sys.executable, "-c", textwrap.dedent(program), str(state.path)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    assert child.stdout.readline() == "held\n"
    assert state.holder()["pid"] == child.pid
    assert status_of(study).state == "training"
    child.kill()
    child.communicate()
    assert state.holder() is None
