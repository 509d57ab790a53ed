"""What a change makes Snakemake run again, and what it leaves alone."""

import os
import re
import subprocess

import pytest
import yaml

from rolewise.runs.graph import Graph
from tests.graph.project import SMALL, SMOKE, SNAKEMAKE

AFTER_COLLECTING = {f"table_{n}" for n in range(1, 11)} | {f"figure_{n}" for n in range(1, 9)}
AFTER_COLLECTING |= {"judge_claims", "write_report"}


def plan(project, *targets):
    return project.planned(*targets, configfile=SMALL)


def trainings(project):
    """Cells and seeds that a dry run would train."""
    done = project.snakemake("train", "-n", "--configfile", SMALL)
    assert done.returncode == 0, done.stdout[-3000:]
    return re.findall(r"Training (\S+), seed (\d+)", done.stdout)


def test_the_default_study_is_the_whole_grid(fresh):
    planned = fresh.planned()
    assert {rule: n for rule, n in planned.items() if rule not in AFTER_COLLECTING} == {
        "prepare_data": 2,
        "make_model": 3,
        "train_cell": 42,
        "evaluate_cell": 42,
        "evaluate_base": 24,
        "transfer_generator": 6,
        "swap_roles": 6,
        "summarise_cell": 42,
        "summarise_base": 24,
        "collect_cells": 1,
    }
    assert planned.keys() >= AFTER_COLLECTING


def test_the_smoke_study_has_every_kind_of_job(fresh):
    planned = fresh.planned(configfile=SMOKE)
    assert planned["train_cell"] == planned["evaluate_cell"] == planned["summarise_cell"] == 14
    assert planned["evaluate_base"] == planned["summarise_base"] == 8
    assert (planned["transfer_generator"], planned["swap_roles"]) == (6, 2)
    assert planned.keys() >= AFTER_COLLECTING


def test_one_cell_builds_only_its_ancestors(fresh):
    assert fresh.planned("results/cells/Voting-IP-0.3M-Math/seed0/summary.json") == {
        "prepare_data": 2,
        "make_model": 1,
        "train_cell": 1,
        "evaluate_cell": 1,
        "evaluate_base": 1,
        "summarise_cell": 1,
    }


def test_nothing_is_left_to_do_for_a_finished_study(pristine):
    assert plan(pristine) == {}


def test_new_dates_and_comments_rerun_nothing(finished):
    for path in finished.path.rglob("*"):
        inputs = path.is_relative_to(finished.path / "src") or path.name == "manifest.json"
        if path.is_file() and inputs:
            os.utime(path)
    finished.edit("config.yaml", "preset: embedded", "# a comment\npreset: embedded")
    assert plan(finished) == {}


def test_new_data_do_not_retrain_by_themselves(finished):
    (finished.path / "results/small/data/Math/manifest.json").write_text("other problems\n")
    assert plan(finished, "train", "evaluate") == {}


def test_a_plot_setting_only_redraws(finished):
    finished.edit(SMALL, "dynamics_scale: 0.6B", "dynamics_scale: 4B")
    planned = plan(finished).keys()
    assert planned <= AFTER_COLLECTING | {"collect_cells"}
    assert "figure_2" in planned


def test_editing_a_figure_module_redraws_only_it(finished):
    with open(finished.path / "src/rolewise/paper/figure_2.py", "a") as module:
        module.write("# edited\n")
    assert plan(finished, "figures", "tables") == {"figure_2": 1}


def test_deleted_figures_are_redrawn_without_training(finished):
    for picture in (finished.path / "results/small/figures").iterdir():
        picture.unlink()
    assert plan(finished, "figures") == {f"figure_{n}": 1 for n in range(1, 9)}


def test_a_learning_rate_retrains_only_its_cells(finished):
    override = "{match: {policy: [IP], workflow: [Voting]}, set: {training.optimizer.lr: 5.0e-4}}"
    finished.edit("config.yaml", "overrides: []", f"overrides: [{override}]")
    assert set(trainings(finished)) == {("Voting-IP-0.1M-Math", "0"), ("Voting-IP-0.1M-Code", "0")}


def test_another_seed_trains_only_new_cells(finished):
    finished.edit("config.yaml", "seeds: [0]", "seeds: [0, 1]")
    planned = plan(finished)
    assert planned["train_cell"] == 6
    assert planned["evaluate_base"] == 4
    assert {seed for _, seed in trainings(finished)} == {"1"}
    assert "make_model" not in planned


def test_more_steps_continue_every_training_and_leave_the_base_alone(finished):
    finished.edit(SMALL, "steps: 3", "steps: 5")
    planned = plan(finished)
    assert planned["train_cell"] == 6
    assert "evaluate_base" not in planned
    assert "make_model" not in planned


def test_an_evaluation_setting_evaluates_again_without_training(finished):
    finished.edit(SMALL, "trajectory_problems: 10", "trajectory_problems: 12")
    planned = plan(finished)
    assert "train_cell" not in planned
    assert planned["evaluate_cell"] == 6


def test_an_unknown_cell_is_named_with_the_nearest(fresh):
    done = fresh.snakemake("-n", "results/cells/Votng-IP-0.3M-Math/seed0/summary.json")
    assert done.returncode != 0
    assert "unknown cell 'Votng-IP-0.3M-Math'; did you mean 'Voting-IP-0.3M-Math'?" in done.stdout


def test_every_mistake_in_the_configuration_is_one_line(finished):
    finished.edit("config.yaml", "seeds: [0]", "seeds: [x]\nseedz: 1")
    finished.edit("config.yaml", "lr: 1.0e-3", "lr: -1")
    done = finished.snakemake("-n")
    assert done.returncode == 1
    assert "Traceback" not in done.stdout
    for line in ("seeds.0: ", "seedz: unknown key", "training.optimizer.lr: "):
        assert f"\n{line}" in done.stdout


def test_cores_have_to_be_given(fresh):
    done = fresh.snakemake("figures")
    assert done.returncode == 1
    assert "--cores" in done.stdout


def test_jobs_that_cost_most_start_first(fresh):
    graph = Graph(fresh.config())
    order = sorted((c.name for c, _ in graph.trained), key=graph.priority, reverse=True)
    assert all("-0.8M-" in name for name in order[:6])
    assert order[-1] == "SA-RL-0.1M-Math"


@pytest.mark.long
def test_large_studies_are_planned_in_seconds(fresh, tmp_path):
    def overlay(seeds):
        file = tmp_path / f"{seeds}.yaml"
        file.write_text(yaml.safe_dump({"seeds": list(range(seeds))}))
        return str(file)

    for seeds, jobs, limit in ((5, 1000, 5), (24, 4800, 20)):
        began = os.times()
        planned = fresh.planned(configfile=overlay(seeds))
        spent = os.times()
        used = spent.children_user + spent.children_system
        used -= began.children_user + began.children_system
        assert sum(planned.values()) >= jobs * 0.9
        assert used < limit


def test_the_workflow_is_clean_for_its_linter_and_formatter(fresh):
    assert fresh.snakemake("--lint").returncode == 0
    check = [SNAKEMAKE.parent / "snakefmt", "--check", "Snakefile", "workflow"]
    assert subprocess.run(check, cwd=fresh.path, capture_output=True, check=False).returncode == 0


def test_a_broken_workflow_of_ones_own_stops_the_plan(finished):
    overlay = {"extensions": {"workflows": {"Nope": "nope.nope:NOPE"}}}
    (finished.path / "own.yaml").write_text(yaml.safe_dump(overlay))
    done = finished.snakemake("-n", "--configfile", SMALL, "own.yaml")
    assert done.returncode != 0
    assert "extensions.workflows.Nope: cannot import 'nope.nope:NOPE'" in done.stdout
