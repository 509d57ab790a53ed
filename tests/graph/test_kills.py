"""Killed anywhere, the same command finishes with the result of an uninterrupted run."""

import json
import os
import signal
import subprocess
import time

import pytest

from rolewise.grid import Cell
from rolewise.runs.layout import layout
from rolewise.runs.state import StateDir
from tests.graph.project import SMALL, SNAKEMAKE, Project, copy_project

pytestmark = pytest.mark.long
CELL = Cell("Voting", "IP", "0.1M", "Math")
STEPS = 12


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    """A project with data and model, and one cell trained without interruption as seed 0."""
    project = copy_project(tmp_path_factory.mktemp("killed"))
    project.edit(SMALL, "steps: 3", f"steps: {STEPS}")
    done = project.snakemake(manifest(project, 0), "--cores", "1", "--configfile", SMALL)
    assert done.returncode == 0, done.stdout[-3000:]
    return project


def manifest(project, seed):
    return str(layout(project.config(SMALL)).cell(CELL, seed) / "manifest.json")


def state_of(project, seed):
    settings = project.config(SMALL)
    return StateDir(project.path / layout(settings).training_state(settings, CELL, seed))


def restart(project):
    """Forget the training of seed 0, keeping its checkpoint hashes; returns them."""
    state = state_of(project, 0)
    hashes = json.loads((state.checkpoint(STEPS) / "files.json").read_text())
    rows = state.rows("metrics")
    subprocess.run(["rm", "-r", state.path, project.path / manifest(project, 0)], check=True)
    return hashes, rows


def start(project):
    """Snakemake training seed 0 in a process group of its own, some steps into it."""
    command = [SNAKEMAKE, manifest(project, 0), "--cores", "1", "--configfile", SMALL]
    environment = {k: v for k, v in os.environ.items() if k != "ROLEWISE_CONFIG"}
    running = subprocess.Popen(
        command,
        cwd=project.path,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    state = state_of(project, 0)
    while state.last_step("metrics") < 3:
        assert running.poll() is None
        time.sleep(0.02)
    return running


def finish_and_compare(project, hashes, rows):
    project.snakemake("--unlock", "--configfile", SMALL)
    done = project.snakemake(manifest(project, 0), "--cores", "1", "--configfile", SMALL)
    assert done.returncode == 0, done.stdout[-3000:]
    state = state_of(project, 0)
    assert json.loads((state.checkpoint(STEPS) / "files.json").read_text()) == hashes
    assert state.rows("metrics") == rows


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_whole_group_loses_nothing(project, number):
    expected = restart(project)
    running = start(project)
    os.killpg(running.pid, number)
    running.wait()
    assert not (project.path / manifest(project, 0)).exists()
    state = state_of(project, 0)
    while state.holder() is not None:
        time.sleep(0.05)
    if number != signal.SIGKILL:
        assert state.latest()[0] == state.last_step("metrics")
    finish_and_compare(project, *expected)


def test_an_orphaned_trainer_is_named_and_keeps_its_state(project):
    expected = restart(project)
    running = start(project)
    running.kill()
    running.wait()
    orphan = state_of(project, 0).holder()["pid"]
    os.kill(orphan, signal.SIGSTOP)
    project.snakemake("--unlock", "--configfile", SMALL)
    second = project.snakemake(
        manifest(project, 0), "--cores", "1", "--retries", "0", "--configfile", SMALL
    )
    assert second.returncode != 0
    assert f"in use by process {orphan} on" in second.stdout
    os.kill(orphan, signal.SIGKILL)
    finish_and_compare(project, *expected)
