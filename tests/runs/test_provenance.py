"""Manifests say where a result comes from."""

import json
import subprocess
import sys

import pytest

import rolewise
from rolewise.config import training_subset
from rolewise.errors import DataError
from rolewise.grid import Cell
from rolewise.runs import provenance
from rolewise.runs.layout import layout
from rolewise.runs.meter import Meter
from rolewise.runs.state import StateDir
from tests.configs import config

CELL = Cell("Voting", "IP", "0.1M", "Math")


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = config("results")
    for folder in (layout(settings).data("Math"), layout(settings).model("0.1M")):
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text(json.dumps({"files": {"a": "00"}, "made": "today"}))
    prompts = tmp_path / "workflow/prompts" / settings.prompts / "Math"
    prompts.mkdir(parents=True)
    (prompts / "generator.j2").write_text("Solve {{ problem }}")
    return settings


def test_a_manifest_names_settings_inputs_code_and_machine(study):
    subset = training_subset(study, CELL)
    made = provenance.manifest(study, CELL, 3, subset, {"steps": 40})
    again = provenance.manifest(study, CELL, 3, subset, {"steps": 40})
    assert json.dumps(made) == json.dumps(again)
    assert (made["cell"], made["seed"], made["steps"]) == ("Voting-IP-0.1M-Math", 3, 40)
    assert made["config"] == subset
    assert made["inputs"].keys() == {"data", "model", "prompts"}
    assert "numpy" in made["packages"]
    assert made["machine"]["python"].count(".") == 2


def test_inputs_change_with_content_and_not_with_dates(study):
    before = provenance.inputs(study, CELL)
    manifest = layout(study).data("Math") / "manifest.json"
    manifest.write_text(json.dumps({"made": "tomorrow", "files": {"a": "00"}}))
    assert provenance.inputs(study, CELL) == before
    manifest.write_text(json.dumps({"files": {"a": "01"}}))
    assert provenance.inputs(study, CELL)["data"] != before["data"]


def test_a_prompt_changes_only_its_tasks(study, tmp_path):
    before = provenance.inputs(study, CELL)
    folder = tmp_path / "workflow/prompts" / study.prompts
    (folder / "Code").mkdir()
    (folder / "Code/generator.j2").write_text("Write a program")
    assert provenance.inputs(study, CELL) == before
    (folder / "Math/generator.j2").write_text("Compute {{ problem }}")
    assert provenance.inputs(study, CELL)["prompts"] != before["prompts"]


@pytest.mark.parametrize("content", [None, "{", "[]", "{}"])
def test_a_broken_manifest_is_named_with_the_command_that_remakes_it(study, content):
    manifest = layout(study).model("0.1M") / "manifest.json"
    manifest.unlink()
    if content is not None:
        manifest.write_text(content)
    with pytest.raises(DataError, match=rf"{manifest}.*snakemake --cores 1 {manifest}"):
        provenance.inputs(study, CELL)


def test_tree_hash_sees_names_and_content(tmp_path):
    (tmp_path / "a.py").write_text("x = 1")
    first = provenance.tree_hash(tmp_path, "*.py")
    (tmp_path / "notes.txt").write_text("not code")
    assert provenance.tree_hash(tmp_path, "*.py") == first
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    second = provenance.tree_hash(tmp_path, "*.py")
    (tmp_path / "b.py").write_text("x = 2")
    assert len({first, second, provenance.tree_hash(tmp_path, "*.py")}) == 3


def test_the_fingerprint_covers_training_and_not_figures():
    fingerprint = provenance.code_fingerprint()
    assert fingerprint != provenance.code_fingerprint(("paper",))
    assert set(provenance.TRAINING_MODULES) == {
        "policy", "sampling", "training", "workflows", "tasks", "sandbox",
    }  # fmt: skip


def test_torch_is_not_loaded_for_provenance():
    program = (
        "import sys, rolewise.runs.provenance as p; p.machine(); print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_the_meter_adds_up_killed_attempts(tmp_path):
    state = StateDir(tmp_path)
    first = Meter(state)
    first.beat()
    first.beat()
    second = Meter(state, gpus=2)
    second.beat()
    rows = state.rows("attempts")
    totals = second.totals()
    assert (first.attempt, second.attempt, totals["attempts"]) == (1, 2, 2)
    assert totals["wall_s"] == pytest.approx(rows[1]["wall_s"] + rows[2]["wall_s"], abs=1e-3)
    assert totals["gpu_s"] == pytest.approx(2 * rows[2]["wall_s"], abs=1e-3)


def test_the_meter_names_the_code_of_every_attempt_that_did_something(tmp_path, monkeypatch):
    state = StateDir(tmp_path)
    for code, works in (("aaa", True), ("bbb", True), ("ccc", False)):
        monkeypatch.setattr("rolewise.runs.meter.code_fingerprint", lambda code=code: code)
        meter = Meter(state)
        if works:
            meter.beat()
    assert meter.code() == ["aaa", "bbb"]


def test_a_file_that_git_does_not_know_makes_the_tree_dirty(tmp_path, monkeypatch):
    def git(*arguments):
        person = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", "-C", str(tmp_path), *person, *arguments], check=True)

    monkeypatch.setattr(rolewise, "__file__", str(tmp_path / "__init__.py"))
    (tmp_path / ".gitignore").write_text("results/\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "ignored").write_text("")
    assert provenance.git_revision()["dirty"] is False
    (tmp_path / "mine.py").write_text("")
    assert provenance.git_revision()["dirty"] is True
